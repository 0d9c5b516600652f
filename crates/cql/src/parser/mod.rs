//! The parser: it turns a CQL text into a [`crate::ast`].
//!
//! It is a lexer and a recursive descent, with one file for each area of the grammar. The grammar
//! is Cassandra's with ScyllaDB's additions. A syntax error gives the position, the tokens that
//! were expected and the one that was found. Memory is bounded: nesting by [`MAX_NESTING`], the
//! number of nodes by [`MAX_TOKENS`], and all else by the length of the text.

mod cursor;
mod describe;
mod dml;
mod index;
mod keyspace;
mod lexer;
mod names;
mod options;
mod outline;
mod relation;
mod select;
mod selector;
mod statement;
mod table;
mod terms;
mod types;

use cursor::Cursor;
use value::CqlType;

use crate::ast::Parsed;
use crate::error::CqlError;

pub use names::is_reserved;
pub use outline::{Changed, changed, changed_by_batch, replace_calls};
pub use select::{SelectionText, selection_text};

/// The deepest nesting of terms, selectors, types and relations in one another.
pub const MAX_NESTING: usize = 64;

/// The most tokens of a statement. A token takes up to about 100 bytes in the tree, so without this
/// limit a statement of the largest frame, made of commas and digits alone, would take gigabytes.
/// The limit allows half a million elements of a list: 341 vectors of 1,536 dimensions, written
/// out.
pub const MAX_TOKENS: usize = 1 << 20;

/// Parses one statement (a trailing semicolon is allowed).
///
/// # Errors
/// A syntax error with the line and column (both from 1), the tokens expected and the one found:
/// `line 1:10 expected FROM, found 'FRM'`. A type that can't exist is an invalid request.
pub fn parse_statement(text: &str) -> Result<Parsed, CqlError> {
    let mut cursor = Cursor::new(text)?;
    let statement = cursor.statement()?;
    Ok(Parsed {
        statement,
        markers: cursor.into_markers(),
    })
}

/// Parses the text of a type. [`CqlType`]'s `Display` writes such texts.
///
/// # Errors
/// As [`parse_statement`].
pub fn parse_type(text: &str) -> Result<CqlType, CqlError> {
    let mut cursor = Cursor::new(text)?;
    let cql_type = cursor.cql_type()?;
    cursor.expect_end()?;
    Ok(cql_type)
}
