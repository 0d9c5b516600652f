//! `USING TIMEOUT`: the time that a statement may take.

use std::time::Duration;

use cql::ast::Term;
use cql::error::CqlError;
use cql::wire::BoundValue;
use value::{CqlType, Value};

use super::{PrepareContext, PreparedTerm, StatementClock, TermValue, prepare_term};

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// The prepared `USING TIMEOUT` of a statement.
#[derive(Clone, Debug)]
pub struct StatementTimeout(PreparedTerm);

impl StatementTimeout {
    /// Prepares the term of the clause, and checks its value if that is known.
    ///
    /// # Errors
    /// A term that is no duration, and null. A duration that is negative, has days or months, or is
    /// finer than milliseconds.
    pub fn prepare(term: &Term, ctx: &mut PrepareContext) -> Result<StatementTimeout, CqlError> {
        let term = prepare_term(term, &CqlType::Duration, "[timeout]", ctx)?;
        if let Some(bound) = term.constant() {
            check(bound)?;
        }
        Ok(StatementTimeout(term))
    }

    /// The time that one execution may take; `None` if the value is unset.
    ///
    /// # Errors
    /// As [`StatementTimeout::prepare`].
    pub fn limit(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Option<Duration>, CqlError> {
        check(&self.0.evaluate(values, clock)?)
    }
}

fn check(bound: &TermValue) -> Result<Option<Duration>, CqlError> {
    let refused = |what: &str| Err(CqlError::invalid(format!("Timeout values {what}")));
    let bytes = match bound {
        TermValue::Unset => return Ok(None),
        TermValue::Null => return refused("cannot be null"),
        TermValue::Value(bytes) => bytes,
    };
    let Ok(Value::Duration {
        months,
        days,
        nanoseconds,
    }) = Value::deserialize(&CqlType::Duration, bytes)
    else {
        return refused("must be durations such as 500ms");
    };
    if months < 0 || days < 0 || nanoseconds < 0 {
        return refused("must be non-negative");
    }
    if months > 0 || days > 0 {
        return refused("cannot be expressed in days or longer units");
    }
    if nanoseconds % NANOSECONDS_PER_MILLISECOND != 0 {
        return refused("cannot have a granularity finer than milliseconds");
    }
    // The number is not negative.
    Ok(Some(Duration::from_nanos(nanoseconds.unsigned_abs())))
}
