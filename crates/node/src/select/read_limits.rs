//! The bounds within which a long read goes on: its client is connected, and a page takes no longer
//! than its limit.
//!
//! An aggregate and the groups of a GROUP BY read as many rows as there are. They are read in
//! internal pages, as those of Cassandra, each with the limit of a page. So `count(*)` of a large
//! table ends with the right number, and not with a timeout.

use std::time::Duration;

use cql::error::CqlError;
use query::values::EvaluationInputs;
use tokio::time::Instant;

use super::plan::ResolvedSelect;
use crate::database::CqlDatabase;
use crate::statement::{ExecutionParameters, deadline};

/// The bounds of one read.
pub(super) struct ReadLimits<'a> {
    plan: &'a ResolvedSelect,
    parameters: &'a ExecutionParameters,
    /// The time that a page may take; `None` for any.
    limit: Option<Duration>,
    /// The begin of the page, or of the internal page.
    began: Instant,
    /// The number of rows that had been read by then.
    rows_before: u64,
}

impl<'a> ReadLimits<'a> {
    /// The bounds of a read with this limit, which begins now.
    pub(super) fn new(
        plan: &'a ResolvedSelect,
        parameters: &'a ExecutionParameters,
        limit: Option<Duration>,
    ) -> ReadLimits<'a> {
        ReadLimits {
            plan,
            parameters,
            limit,
            began: Instant::now(),
            rows_before: 0,
        }
    }

    /// The time after which a page ends with the rows that it has, if another can follow: `most`,
    /// or the limit if that is less.
    pub(super) fn page_time(&self, most: Duration) -> Duration {
        self.limit.map_or(most, |limit| limit.min(most))
    }

    /// Checks that the read may go on, after so many rows. With a number of rows in an internal
    /// page, the limit is that of each such page.
    ///
    /// # Errors
    /// A timeout, and a client that has hung up.
    pub(super) fn check(&mut self, rows: u64, internal_page: Option<u64>) -> Result<(), CqlError> {
        self.parameters.presence.check()?;
        if internal_page.is_some_and(|page| rows - self.rows_before >= page) {
            self.began = Instant::now();
            self.rows_before = rows;
            return Ok(());
        }
        match self.limit {
            Some(limit) if self.began.elapsed() >= limit => Err(deadline::read_timeout(
                &self.plan.selected.table,
                self.parameters,
            )),
            _ => Ok(()),
        }
    }
}

/// The time that a page may take; `None` for any. The time of `USING TIMEOUT` counts in its place,
/// and for the statement as a whole (`crate::statement::deadline`).
///
/// # Errors
/// A timeout of the statement that is not allowed.
pub(super) fn page_limit(
    database: &CqlDatabase,
    plan: &ResolvedSelect,
    names_partitions: bool,
    parameters: &ExecutionParameters,
    values: EvaluationInputs<'_>,
) -> Result<Option<Duration>, CqlError> {
    let own = match &plan.timeout {
        Some(timeout) => timeout.limit(values.bound, values.clock)?,
        None => None,
    };
    if own.is_some() || !parameters.presence.is_of_client() {
        return Ok(None);
    }
    Ok(match names_partitions {
        true => database.timeouts.read,
        false => database.timeouts.range,
    })
}
