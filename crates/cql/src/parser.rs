//! From text to [`crate::ast`].

use crate::ast::Parsed;
use crate::error::CqlError;
use crate::types::CqlType;

/// Parses one statement (a trailing semicolon is allowed).
///
/// # Errors
/// A syntax error that says the line and column (from 1), what was found and what was expected.
pub fn parse_statement(text: &str) -> Result<Parsed, CqlError> {
    let _ = text;
    todo!()
}

/// Parses the text of a type, as [`CqlType`]'s `Display` writes it.
pub fn parse_type(text: &str) -> Result<CqlType, CqlError> {
    let _ = text;
    todo!()
}
