//! LIMIT and PER PARTITION LIMIT.

use cql::ast::Term;
use cql::error::CqlError;
use value::CqlType;

use crate::bind::{PrepareContext, PreparedTerm, TermValue, prepare_term};
use crate::bounds::limit_value;
use crate::values::EvaluationInputs;

/// The name of LIMIT's bind marker.
pub const LIMIT: &str = "[limit]";
/// The name of PER PARTITION LIMIT's bind marker.
pub const PER_PARTITION_LIMIT: &str = "[per_partition_limit]";

/// Prepares the term of a limit. A literal is checked at once.
pub fn prepare(
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

/// The limit of an execution; `None` if the statement has none or its marker is unset.
///
/// # Errors
/// If the limit is null or not positive.
pub fn evaluate(
    term: Option<&PreparedTerm>,
    values: EvaluationInputs<'_>,
) -> Result<Option<u32>, CqlError> {
    match term {
        None => Ok(None),
        Some(term) => check(term.evaluate(values.bound, values.clock)?),
    }
}

fn check(bound: TermValue) -> Result<Option<u32>, CqlError> {
    match bound {
        TermValue::Unset => Ok(None),
        TermValue::Null => Err(CqlError::invalid("Invalid null value of limit")),
        TermValue::Value(bytes) => limit_value(&bytes).map(Some),
    }
}
