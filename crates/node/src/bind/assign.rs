//! Whether a term may stand where a type is wanted: what functions are chosen by.

use cql::ast::Term;
use cql::types::CqlType;

/// How well a term fits a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignability {
    No,
    /// It can be read as the type, but also as others (a bind marker, an integer literal).
    Weak,
    Exact,
}

/// How well `term` fits `cql_type`.
pub fn assignability(term: &Term, cql_type: &CqlType) -> Assignability {
    let _ = (term, cql_type);
    todo!()
}

/// The one type that a term has by itself, wherever it stands: that of a type hint or of a
/// function's result. `None` for literals and markers.
pub fn natural_type(term: &Term) -> Option<CqlType> {
    let _ = term;
    todo!()
}
