//! From a term as written to a term that fits its place.

use cql::ast::Term;
use cql::error::CqlError;
use cql::types::CqlType;

use super::{Bound, PrepareContext, PreparedTerm};

/// What a prepared term is made of.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Constant(Bound),
    Marker(u16),
}

/// Checks `term` against the type of the place where it stands and notes its bind markers.
/// `spec_name` names the place in messages and in the specs of markers: the column's name, or
/// `[ttl]`, `[timestamp]`, `[limit]`.
///
/// # Errors
/// If the term cannot be of that type.
pub fn prepare_term(
    term: &Term,
    cql_type: &CqlType,
    spec_name: &str,
    ctx: &mut PrepareContext,
) -> Result<PreparedTerm, CqlError> {
    let _ = (term, cql_type, spec_name, ctx);
    todo!()
}
