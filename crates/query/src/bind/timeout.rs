//! `USING TIMEOUT`. It has no effect, as a statement waits for no other node, but a value that is
//! no timeout is refused.

use cql::ast::Term;
use cql::error::CqlError;
use cql::wire::BoundValue;
use value::{CqlType, Value};

use super::{Bound, PrepareContext, PreparedTerm, StatementClock, prepare_term};

const NANOSECONDS_PER_MILLISECOND: i64 = 1_000_000;

/// The prepared `USING TIMEOUT` of a statement.
#[derive(Clone, Debug)]
pub struct Timeout(PreparedTerm);

impl Timeout {
    /// Prepares the term of the clause, and checks its value if that is known.
    ///
    /// # Errors
    /// A term that is no duration, and null. A duration that is negative, has days or months, or is
    /// finer than milliseconds.
    pub fn prepare(term: &Term, ctx: &mut PrepareContext) -> Result<Timeout, CqlError> {
        let term = prepare_term(term, &CqlType::Duration, "[timeout]", ctx)?;
        if let Some(bound) = term.constant() {
            check(bound)?;
        }
        Ok(Timeout(term))
    }

    /// Checks the value of the clause in one execution. Unset is allowed.
    ///
    /// # Errors
    /// As [`Timeout::prepare`].
    pub fn check(&self, values: &[BoundValue], clock: &StatementClock) -> Result<(), CqlError> {
        check(&self.0.evaluate(values, clock)?)
    }
}

fn check(bound: &Bound) -> Result<(), CqlError> {
    let refused = |what: &str| Err(CqlError::invalid(format!("Timeout values {what}")));
    let bytes = match bound {
        Bound::Unset => return Ok(()),
        Bound::Null => return refused("cannot be null"),
        Bound::Value(bytes) => bytes,
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
    Ok(())
}
