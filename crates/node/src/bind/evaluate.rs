//! From a prepared term and the bound values to a value.

use cql::error::CqlError;

use super::{Bound, PreparedTerm, StatementClock};
use crate::query::Parameters;

impl PreparedTerm {
    /// The value of the term. What is bound to markers is checked here.
    ///
    /// # Errors
    /// If a bound value is not of its type, or null or unset within a collection.
    pub fn evaluate(
        &self,
        parameters: &Parameters,
        clock: &StatementClock,
    ) -> Result<Bound, CqlError> {
        let _ = (parameters, clock);
        todo!()
    }
}
