//! The right side of `IN`.

use cql::ast::Comparand;
use cql::error::CqlError;
use cql::types::CqlType;

use super::{Bound, PrepareContext, PreparedTerm, StatementClock};
use crate::query::Parameters;

/// The values of an `IN`: one marker for them all, or terms.
#[derive(Clone, Debug)]
pub enum PreparedInList {
    /// `IN ?`: a list.
    Whole(PreparedTerm),
    /// `IN (a, b)`.
    Terms(Vec<PreparedTerm>),
}

/// Prepares the right side of `name IN ...`, whose elements are of type `cql_type`.
pub fn prepare_in_list(
    comparand: &Comparand,
    cql_type: &CqlType,
    name: &str,
    ctx: &mut PrepareContext,
) -> Result<PreparedInList, CqlError> {
    let _ = (comparand, cql_type, name, ctx);
    todo!()
}

impl PreparedInList {
    /// The values, in the order written, with repeats.
    ///
    /// # Errors
    /// As [`PreparedTerm::evaluate`]; and for a null or unset list.
    pub fn evaluate(
        &self,
        parameters: &Parameters,
        clock: &StatementClock,
    ) -> Result<Vec<Bound>, CqlError> {
        let _ = (parameters, clock);
        todo!()
    }
}
