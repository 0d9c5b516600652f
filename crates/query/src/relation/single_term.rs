//! Relations that have one term on their right side.

use cql::ast::{self, Comparand, Term};
use cql::error::CqlError;

/// The only term on the right side of a relation; any other right side is an error.
pub(super) fn single_term<'a>(
    relation: &'a ast::Relation,
    name: &str,
) -> Result<&'a Term, CqlError> {
    match &relation.comparand {
        Comparand::Term(term) => Ok(term),
        Comparand::List(_) | Comparand::None => Err(CqlError::invalid(format!(
            "{} on {name} needs one value",
            relation.operator.as_str()
        ))),
    }
}
