//! Writing rows: many prepared inserts at once, within a bound of their number and bytes, each
//! tried again while the server is busy.

use std::collections::VecDeque;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use scylla::client::session::Session;
use tokio::sync::mpsc::Receiver;

use super::feed::FeedBatch;
use super::log::ImportLog;
use super::plan::InsertPlan;
use super::progress::ImportProgress;
use super::rows::{ConvertedRow, FeedRow, RejectedRow};
use crate::ToolError;
use crate::cql_json::BoundBytes;
use crate::server_error::WriteFailure;

/// The bytes of values from which on no more inserts are sent.
const BYTES_IN_FLIGHT_MAX: usize = 32 << 20;

/// The tries of an insert, and the pause after the first, which doubles up to the longest. Together
/// they take half a minute.
const TRIES: u32 = 12;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The way of rows to the server.
pub struct InsertWriter<'a> {
    /// The session.
    pub session: &'a Session,
    /// The statement.
    pub plan: &'a InsertPlan,
    /// The most inserts in flight.
    pub in_flight_max: usize,
    /// The number of rejected rows from which on the import stops.
    pub errors_max: u64,
}

impl InsertWriter<'_> {
    /// Writes all rows that come, and notes each in the log.
    ///
    /// # Errors
    /// If a file can't be read, the server can't be written to, too many rows are rejected, or the
    /// user interrupts. The log then has all that was done.
    pub async fn write(
        &self,
        mut batches: Receiver<FeedBatch>,
        log: &mut ImportLog,
        progress: &mut ImportProgress,
    ) -> Result<(), ToolError> {
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        let mut in_flight = FuturesUnordered::new();
        let mut waiting: VecDeque<FeedRow> = VecDeque::new();
        let (mut bytes, mut is_over) = (0, false);
        loop {
            while in_flight.len() < self.in_flight_max && bytes < BYTES_IN_FLIGHT_MAX {
                match waiting.pop_front() {
                    Some(FeedRow::Converted(row)) => {
                        bytes += row.bytes();
                        in_flight.push(self.insert(row));
                    }
                    Some(FeedRow::Rejected(row)) => self.reject(row, log, progress)?,
                    None => break,
                }
            }
            if is_over && waiting.is_empty() && in_flight.is_empty() {
                return Ok(());
            }
            tokio::select! {
                Some((row, outcome)) = in_flight.next(), if !in_flight.is_empty() => {
                    bytes -= row.bytes();
                    match outcome {
                        Ok(()) => log.written(row.place.number)?,
                        Err(WriteFailure::Refused(why)) => {
                            self.reject(row.refused(&why), log, progress)?;
                        }
                        Err(WriteFailure::Passing(why) | WriteFailure::Final(why)) => {
                            return Err(ToolError::Connection(format!(
                                "the server takes no rows: {why}"
                            )));
                        }
                    }
                    progress.show(log);
                }
                batch = batches.recv(), if waiting.is_empty() && !is_over => match batch {
                    Some(batch) => waiting.extend(batch?),
                    None => is_over = true,
                },
                _ = &mut interrupt => return Err(ToolError::Interrupted),
            }
        }
    }

    fn reject(
        &self,
        row: RejectedRow,
        log: &mut ImportLog,
        progress: &mut ImportProgress,
    ) -> Result<(), ToolError> {
        let reason = row.reason.clone();
        log.reject(row)?;
        progress.rejected(&reason, log);
        match log.rejected() > self.errors_max {
            false => Ok(()),
            true => Err(ToolError::File(format!(
                "{} rows are rejected, more than --max-errors {}; the last: {reason}",
                log.rejected(),
                self.errors_max
            ))),
        }
    }

    /// Inserts a row, and gives it back with what became of it.
    async fn insert(&self, row: ConvertedRow) -> (ConvertedRow, Result<(), WriteFailure>) {
        let (mut pause, mut tries) = (FIRST_PAUSE, 1);
        loop {
            let values = BoundBytes(&row.values);
            let sent = self.session.execute_unpaged(&self.plan.statement, values);
            match sent.await.map_err(|error| WriteFailure::of(&error)) {
                Err(WriteFailure::Passing(_)) if tries < TRIES => tries += 1,
                Ok(_) => return (row, Ok(())),
                Err(failure) => return (row, Err(failure)),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
