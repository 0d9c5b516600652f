//! `USING TTL`, `USING TIMESTAMP` and `USING TIMEOUT`.

use bytes::Bytes;
use cql::ast::{Term, Using};
use cql::error::CqlError;
use cql::types::CqlType;
use storage::catalog::Table;

use crate::bind::{Bound, PrepareContext, PreparedTerm, StatementClock, Timeout, prepare_term};
use crate::query::Parameters;

/// 20 years: what is written with a longer life would expire behind what 32 bits of seconds hold.
pub const MAX_TTL_S: i32 = 20 * 365 * 24 * 60 * 60;

/// The prepared clause of a statement or of a whole batch.
#[derive(Debug, Default)]
pub(super) struct UsingPlan {
    pub timestamp: Option<PreparedTerm>,
    ttl: Option<PreparedTerm>,
    timeout: Option<Timeout>,
}

impl UsingPlan {
    pub fn prepare(using: &Using, ctx: &mut PrepareContext) -> Result<Self, CqlError> {
        let timeout = using.timeout.as_ref();
        let timeout = timeout
            .map(|term| Timeout::prepare(term, ctx))
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

    /// The write timestamp that the statement gives itself; `None` if it gives none or left it
    /// unset. Microseconds since the epoch.
    pub fn timestamp(
        &self,
        parameters: &Parameters,
        clock: &StatementClock,
    ) -> Result<Option<i64>, CqlError> {
        if let Some(timeout) = &self.timeout {
            timeout.check(parameters, clock)?;
        }
        let Some(term) = &self.timestamp else {
            return Ok(None);
        };
        match term.evaluate(parameters, clock)? {
            Bound::Value(bytes) => read_timestamp(&bytes).map(Some),
            Bound::Null => Err(CqlError::invalid("Invalid null value of timestamp")),
            Bound::Unset => Ok(None),
        }
    }

    /// The time to live: the statement's, else the table's. Seconds; `None` for ever.
    pub fn ttl_s(
        &self,
        table: &Table,
        parameters: &Parameters,
        clock: &StatementClock,
    ) -> Result<Option<u32>, CqlError> {
        let given = match &self.ttl {
            Some(term) => match term.evaluate(parameters, clock)? {
                Bound::Value(bytes) => Some(read_ttl(&bytes)?),
                // As in Cassandra, and unlike a TTL left unset, which is the table's.
                Bound::Null => Some(0),
                Bound::Unset => None,
            },
            None => None,
        };
        Ok(Some(given.unwrap_or(table.default_ttl_s)).filter(|ttl_s| *ttl_s > 0))
    }
}

/// Refuses the one number that cannot be a write timestamp: it stands for "none" in the protocol's
/// family of databases.
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

fn read_ttl(bytes: &Bytes) -> Result<u32, CqlError> {
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
