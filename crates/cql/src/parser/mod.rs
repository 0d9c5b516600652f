//! The parser: it turns a CQL text into a [`crate::ast`].
//!
//! It is a lexer and a recursive descent, with one file for each area of the grammar. The grammar
//! is Cassandra's with ScyllaDB's additions. A syntax error gives the position, the tokens that
//! were expected and the one that was found. Memory is bounded: nesting by [`MAX_NESTING`], the
//! number of nodes by [`MAX_TOKENS`], and all else by the length of the text.

mod create_index;
mod cursor;
mod describe;
mod dml;
mod keyspace;
mod lexer;
mod literals;
mod names;
mod operations;
mod options;
mod outline;
mod relation;
mod role;
mod select;
mod selector;
mod statement;
mod table;
mod terms;
mod types;
mod user_type;

use cursor::TokenCursor;
use value::CqlType;

use crate::ast::ParsedStatement;
use crate::ast::data_type::{DataType, no_user_types};
use crate::error::CqlError;

pub use literals::without_literals;
pub use names::is_reserved;
pub use outline::{ChangedData, changed, changed_by_batch, replace_calls};
pub use select::{SelectionText, selection_text};
pub use types::is_type_name;

/// The deepest nesting of terms, selectors, types and relations in one another.
pub const MAX_NESTING: usize = 64;

/// The most operators in one term or selector, its parts included. Each makes the tree deeper,
/// which is walked by recursion later.
pub const MAX_OPERATORS: usize = 128;

/// The most fields and brackets (`a.b['c']`) in an expression. The tree is walked by recursion, so
/// its depth must be bounded.
pub const MAX_PARTS: usize = 128;

/// The most tokens of a statement. A token takes up to about 100 bytes in the tree, so without this
/// limit a statement of the largest frame, made only of commas and digits, would take gigabytes.
/// The limit allows half a million elements of a list: 341 vectors of 1,536 dimensions, written
/// out.
pub const MAX_TOKENS: usize = 1 << 20;

/// Parses one statement (a trailing semicolon is allowed).
///
/// # Errors
/// A syntax error with the line and column (both from 1), the tokens expected and the one found:
/// `line 1:10 expected FROM, found 'FRM'`. A vector of a wrong number of dimensions, and a cast
/// to a type that can't exist, is an invalid request.
pub fn parse_statement(text: &str) -> Result<ParsedStatement, CqlError> {
    let mut cursor = TokenCursor::new(text)?;
    let statement = cursor.statement()?;
    Ok(ParsedStatement {
        statement,
        markers: cursor.into_markers(),
    })
}

/// Parses the text of a type that has no user types in it. [`CqlType`]'s `Display` writes such
/// texts.
///
/// # Errors
/// As [`parse_statement`], and for a type that can't exist.
pub fn parse_type(text: &str) -> Result<CqlType, CqlError> {
    parse_data_type(text)?.resolve(&no_user_types)
}

/// Parses the text of a type, in which user types may occur by their names.
///
/// # Errors
/// As [`parse_statement`].
pub fn parse_data_type(text: &str) -> Result<DataType, CqlError> {
    let mut cursor = TokenCursor::new(text)?;
    let data_type = cursor.data_type()?;
    cursor.expect_end()?;
    Ok(data_type)
}
