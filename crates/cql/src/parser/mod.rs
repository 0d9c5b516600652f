//! From text to [`crate::ast`]: a lexer and a recursive descent, one file an area of the grammar.
//!
//! The grammar is Cassandra's with ScyllaDB's additions. Errors say where, what was expected and
//! what was found. Memory is bounded: nesting by [`MAX_NESTING`], the number of nodes by
//! [`MAX_TOKENS`], and all else by the length of the text.

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

use crate::ast::Parsed;
use crate::error::CqlError;
use crate::types::CqlType;

pub use names::is_reserved;
pub use outline::{Changed, changed, changed_by_batch, replace_calls};
pub use select::{SelectionText, selection_text};

/// How deep terms, selectors, types and relations may lie in one another.
pub const MAX_NESTING: usize = 64;

/// The most tokens of a statement. A token costs up to about 100 bytes in the tree, so that a
/// statement of the largest frame, made of nothing but commas and digits, would take gigabytes.
/// This is half a million elements of a list: 341 vectors of 1,536 dimensions, written out.
pub const MAX_TOKENS: usize = 1 << 20;

/// Parses one statement (a trailing semicolon is allowed).
///
/// # Errors
/// A syntax error that says the line and column (both from 1), what was expected and what was
/// found: `line 1:10 expected FROM, found 'FRM'`. A type that can't be is an invalid request.
pub fn parse_statement(text: &str) -> Result<Parsed, CqlError> {
    let mut cursor = Cursor::new(text)?;
    let statement = cursor.statement()?;
    Ok(Parsed {
        statement,
        markers: cursor.into_markers(),
    })
}

/// Parses the text of a type, as [`CqlType`]'s `Display` writes it.
///
/// # Errors
/// As [`parse_statement`].
pub fn parse_type(text: &str) -> Result<CqlType, CqlError> {
    let mut cursor = Cursor::new(text)?;
    let cql_type = cursor.cql_type()?;
    cursor.expect_end()?;
    Ok(cql_type)
}
