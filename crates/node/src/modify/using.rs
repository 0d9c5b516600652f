//! `USING TTL`, `USING TIMESTAMP` and `USING TIMEOUT`.

use std::time::Duration;

use bytes::Bytes;
use cql::ast::{Term, UsingClause};
use cql::error::CqlError;
use query::bind::{
    PrepareContext, PreparedTerm, StatementClock, StatementTimeout, TermValue, prepare_term,
};
use schema::Table;
use value::CqlType;

use super::condition::PreparedCondition;
use crate::statement::BoundValue;

/// The longest time to live, in seconds: 20 years. With a longer one, 32 bits could not hold the
/// time of expiry in seconds.
pub const MAX_TTL_S: i32 = 20 * 365 * 24 * 60 * 60;

/// The prepared USING clause of a statement or of a whole batch.
#[derive(Debug, Default)]
pub(super) struct UsingPlan {
    /// The write timestamp: microseconds since the epoch, a `bigint`.
    pub timestamp: Option<PreparedTerm>,
    /// The time to live: seconds, an `int`.
    ttl: Option<PreparedTerm>,
    timeout: Option<StatementTimeout>,
}

impl UsingPlan {
    /// Prepares a USING clause.
    ///
    /// # Errors
    /// Terms that don't fit, and a timeout that is not allowed.
    pub fn prepare(using: &UsingClause, ctx: &mut PrepareContext) -> Result<Self, CqlError> {
        let timeout = using.timeout.as_ref();
        let timeout = timeout
            .map(|term| StatementTimeout::prepare(term, ctx))
            .transpose()?;
        let mut prepare = |term: &Option<Term>, cql_type: CqlType, name: &str| {
            term.as_ref()
                .map(|term| prepare_term(term, &cql_type, name, ctx))
                .transpose()
        };
        Ok(UsingPlan {
            timestamp: prepare(&using.timestamp, CqlType::Bigint, "[timestamp]")?,
            ttl: prepare(&using.ttl, CqlType::Int, "[ttl]")?,
            timeout,
        })
    }

    /// The time that the statement may take; `None` for any.
    ///
    /// # Errors
    /// A timeout that is not allowed.
    pub fn limit(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Option<Duration>, CqlError> {
        match &self.timeout {
            Some(timeout) => timeout.limit(values, clock),
            None => Ok(None),
        }
    }

    /// The write timestamp of the clause, in microseconds since the epoch; `None` if there is none
    /// or it is unset. Checks the timeout, too.
    ///
    /// # Errors
    /// Values that don't fit, null, and a timeout that is not allowed.
    pub fn timestamp(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Option<i64>, CqlError> {
        self.limit(values, clock)?;
        let Some(term) = &self.timestamp else {
            return Ok(None);
        };
        match term.evaluate(values, clock)? {
            TermValue::Value(bytes) => read_timestamp(&bytes).map(Some),
            TermValue::Null => Err(CqlError::invalid("Invalid null value of timestamp")),
            TermValue::Unset => Ok(None),
        }
    }

    /// The time to live in seconds: the clause's, else the table's; `None` for ever.
    ///
    /// # Errors
    /// A value that does not fit, is negative, or is greater than [`MAX_TTL_S`].
    pub fn ttl_s(
        &self,
        table: &Table,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Option<u32>, CqlError> {
        let given = match &self.ttl {
            Some(term) => match term.evaluate(values, clock)? {
                TermValue::Value(bytes) => Some(read_ttl(&bytes)?),
                // As in Cassandra, null means for ever, while an unset TTL is the table's.
                TermValue::Null => Some(0),
                TermValue::Unset => None,
            },
            None => None,
        };
        Ok(Some(given.unwrap_or(table.default_ttl_s)).filter(|ttl_s| *ttl_s > 0))
    }
}

/// Refuses a timestamp together with a condition: the write must be later than what the condition
/// saw.
pub(super) fn check_timestamp(
    condition: Option<&PreparedCondition>,
    using: &UsingClause,
) -> Result<(), CqlError> {
    match condition.is_some() && using.timestamp.is_some() {
        true => Err(CqlError::invalid(
            "Cannot provide custom timestamp for conditional updates",
        )),
        false => Ok(()),
    }
}

/// Refuses `i64::MIN`, the only number that can't be a write timestamp: Cassandra and its kin take
/// it for "no timestamp".
pub(super) fn checked_timestamp(micros: i64) -> Result<i64, CqlError> {
    if micros == i64::MIN {
        return Err(CqlError::invalid(format!(
            "Out of bound timestamp, must be in [{}, {}]",
            i64::MIN + 1,
            i64::MAX
        )));
    }
    Ok(micros)
}

fn read_timestamp(bytes: &Bytes) -> Result<i64, CqlError> {
    let bytes: [u8; 8] = bytes
        .as_ref()
        .try_into()
        .map_err(|_| CqlError::invalid("Invalid empty value of timestamp"))?;
    checked_timestamp(i64::from_be_bytes(bytes))
}

/// Empty bytes are no time to live, as in Cassandra.
fn read_ttl(bytes: &Bytes) -> Result<u32, CqlError> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let bytes: [u8; 4] = bytes
        .as_ref()
        .try_into()
        .map_err(|_| CqlError::invalid("Invalid empty value of TTL"))?;
    checked_ttl(i32::from_be_bytes(bytes))
}

fn checked_ttl(ttl_s: i32) -> Result<u32, CqlError> {
    if ttl_s > MAX_TTL_S {
        return Err(CqlError::invalid(format!(
            "ttl is too large. requested ({ttl_s}) maximum ({MAX_TTL_S})"
        )));
    }
    u32::try_from(ttl_s).map_err(|_| {
        CqlError::invalid(format!(
            "A TTL must be greater or equal to 0, but was {ttl_s}"
        ))
    })
}

/// The write timestamp of a request, in microseconds since the epoch: the one that the client gave,
/// else the next one of the server's clock.
pub(super) fn write_timestamp(given: Option<i64>, clock: &StatementClock) -> Result<i64, CqlError> {
    match given {
        Some(micros) => checked_timestamp(micros),
        None => Ok(clock.next_write_micros()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttls_lie_between_none_and_twenty_years() {
        assert_eq!(checked_ttl(0).unwrap(), 0);
        assert_eq!(checked_ttl(630_720_000).unwrap(), 630_720_000);
        assert_eq!(
            checked_ttl(630_720_001).unwrap_err().message,
            "ttl is too large. requested (630720001) maximum (630720000)"
        );
        assert_eq!(
            checked_ttl(-1).unwrap_err().message,
            "A TTL must be greater or equal to 0, but was -1"
        );
    }

    #[test]
    fn the_least_number_is_no_timestamp() {
        assert_eq!(checked_timestamp(i64::MIN + 1).unwrap(), i64::MIN + 1);
        assert!(checked_timestamp(i64::MIN).is_err());
    }
}
