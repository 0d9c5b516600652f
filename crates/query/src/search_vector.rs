//! The vector that a query looks for.

use bytes::Bytes;
use cql::ast::Term;
use cql::error::CqlError;
use cql::wire::BoundValue;
use index::SimilarityFunction;
use value::CqlType;

use crate::bind::{PrepareContext, PreparedTerm, TermValue, prepare_term};
use crate::functions::natural_type;
use crate::values::EvaluationInputs;
use crate::{bounds, clauses};

/// The vector that a query looks for, as it is written.
#[derive(Clone, Debug)]
pub struct SearchVector {
    term: PreparedTerm,
    /// The name of the vector column.
    pub column: String,
    /// The number of elements of a vector.
    pub dimensions: u16,
}

impl SearchVector {
    /// Prepares the term. `column` and `cql_type` are those of the vector column.
    ///
    /// # Errors
    /// If the column is no vector of floats, or the term no vector of its dimensions.
    pub fn prepare(
        term: &Term,
        column: &str,
        cql_type: &CqlType,
        ctx: &mut PrepareContext,
    ) -> Result<SearchVector, CqlError> {
        let dimensions = clauses::float_vector_dimensions(column, cql_type)?;
        clauses::check_dimensions(term, natural_type(term).as_ref(), dimensions)?;
        Ok(SearchVector {
            term: prepare_term(term, cql_type, column, ctx)?,
            column: column.to_owned(),
            dimensions,
        })
    }

    /// Refuses a vector that is too long for an index by this metric.
    ///
    /// # Errors
    /// As [`SimilarityFunction::check_length`].
    pub fn check_length(&self, vector: &[u8], metric: SimilarityFunction) -> Result<(), CqlError> {
        let checked = metric.check_serialised_length(vector);
        checked.map_err(|error| {
            CqlError::invalid(format!("Invalid value for {}: {error}", self.column))
        })
    }

    /// The vector that an execution looks for, serialised.
    ///
    /// # Errors
    /// If the vector is null or unset, of another length, or not of finite numbers.
    pub fn evaluate(&self, values: EvaluationInputs<'_>) -> Result<Bytes, CqlError> {
        if let Some(marker) = self.term.marker()
            && let Some(BoundValue::Value(bytes)) = values.bound.get(usize::from(marker))
        {
            bounds::check_bound_dimensions(bytes, self.dimensions)?;
        }
        match self.term.evaluate(values.bound, values.clock)? {
            TermValue::Value(bytes) => bounds::check_finite(&bytes, &self.column).map(|()| bytes),
            TermValue::Null => Err(bounds::null_vector(&self.column)),
            TermValue::Unset => Err(bounds::unset_vector(&self.column)),
        }
    }
}
