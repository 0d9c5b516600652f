//! LIMIT and PER PARTITION LIMIT.

use cql::ast::Term;
use cql::error::CqlError;
use cql::types::CqlType;

use super::values::Values;
use crate::bind::{Bound, PrepareContext, PreparedTerm, prepare_term};

/// The name of LIMIT's bind marker.
pub(super) const LIMIT: &str = "[limit]";
/// The name of PER PARTITION LIMIT's bind marker.
pub(super) const PER_PARTITION_LIMIT: &str = "[per_partition_limit]";

/// Settles the term of a limit; a literal is checked at once.
pub(super) fn prepare(
    term: Option<&Term>,
    name: &str,
    ctx: &mut PrepareContext,
) -> Result<Option<PreparedTerm>, CqlError> {
    let Some(term) = term else { return Ok(None) };
    let prepared = prepare_term(term, &CqlType::Int, name, ctx)?;
    if let Some(bound) = prepared.constant() {
        check(bound.clone())?;
    }
    Ok(Some(prepared))
}

/// The limit of this execution; `None` for none. An unset marker is none.
///
/// # Errors
/// If it is null or not positive.
pub(super) fn evaluate(
    term: Option<&PreparedTerm>,
    values: Values<'_>,
) -> Result<Option<u32>, CqlError> {
    match term {
        None => Ok(None),
        Some(term) => check(term.evaluate(values.parameters, values.clock)?),
    }
}

fn check(bound: Bound) -> Result<Option<u32>, CqlError> {
    let bytes = match bound {
        Bound::Unset => return Ok(None),
        Bound::Null => return Err(CqlError::invalid("Invalid null value of limit")),
        Bound::Value(bytes) => bytes,
    };
    let Ok(limit) = bytes.as_ref().try_into().map(i32::from_be_bytes) else {
        return Err(CqlError::invalid("Invalid limit value"));
    };
    match u32::try_from(limit) {
        Ok(limit) if limit > 0 => Ok(Some(limit)),
        _ => Err(CqlError::invalid("LIMIT must be strictly positive")),
    }
}
