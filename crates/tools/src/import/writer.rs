//! Writing rows: many prepared inserts at once, within a bound of their number and bytes, each
//! tried again while the server is busy.
//!
//! A busy server is sent fewer at once ([`SendWindow`]): as many as before would time out again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

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

/// The pause before an insert is sent again, which doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The longest time without a row written, after which the server is taken to be down.
const PATIENCE: Duration = Duration::from_secs(60);

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
        // Rows that are sent again, before new ones.
        let mut again: VecDeque<(ConvertedRow, Duration)> = VecDeque::new();
        let mut window = SendWindow::new(self.in_flight_max, Instant::now());
        let (mut bytes, mut is_over) = (0, false);
        loop {
            while in_flight.len() < window.size
                && let Some((row, pause)) = again.pop_front()
            {
                in_flight.push(self.insert(row, pause));
            }
            while in_flight.len() < window.size && bytes < BYTES_IN_FLIGHT_MAX {
                match waiting.pop_front() {
                    Some(FeedRow::Converted(row)) => {
                        bytes += row.bytes();
                        in_flight.push(self.insert(row, Duration::ZERO));
                    }
                    Some(FeedRow::Rejected(row)) => self.reject(row, log, progress)?,
                    None => break,
                }
            }
            if is_over && waiting.is_empty() && in_flight.is_empty() {
                return Ok(());
            }
            tokio::select! {
                Some((row, pause, outcome)) = in_flight.next(), if !in_flight.is_empty() => {
                    match outcome {
                        Ok(()) => {
                            window.written(Instant::now());
                            bytes -= row.bytes();
                            log.written(row.place.number)?;
                        }
                        Err(WriteFailure::Refused(why)) => {
                            window.written(Instant::now());
                            bytes -= row.bytes();
                            self.reject(row.refused(&why), log, progress)?;
                        }
                        Err(WriteFailure::Passing(_)) if window.failed(Instant::now()) => {
                            let pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                            again.push_back((row, pause));
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

    /// Inserts a row after a pause, and gives both back with what became of it.
    async fn insert(
        &self,
        row: ConvertedRow,
        pause: Duration,
    ) -> (ConvertedRow, Duration, Result<(), WriteFailure>) {
        tokio::time::sleep(pause).await;
        let values = BoundBytes(&row.values);
        let sent = self.session.execute_unpaged(&self.plan.statement, values);
        let outcome = sent.await.map_err(|error| WriteFailure::of(&error));
        (row, pause, outcome.map(drop))
    }
}

/// The number of inserts that may be in flight. It halves when one fails as the server is busy, and
/// grows by one for as many inserts as it has.
#[derive(Debug)]
struct SendWindow {
    size: usize,
    size_max: usize,
    /// The inserts that went well since it grew.
    since_growth: usize,
    /// The inserts whose failures don't count, as they were sent before it halved.
    in_flight_before: usize,
    /// The time at which a row was written last.
    written_at: Instant,
}

impl SendWindow {
    fn new(size_max: usize, now: Instant) -> SendWindow {
        SendWindow {
            size: size_max.max(1),
            size_max: size_max.max(1),
            since_growth: 0,
            in_flight_before: 0,
            written_at: now,
        }
    }

    /// Notes that the server took a row.
    fn written(&mut self, now: Instant) {
        self.written_at = now;
        self.in_flight_before = self.in_flight_before.saturating_sub(1);
        self.since_growth += 1;
        if self.since_growth >= self.size {
            self.size = self.size_max.min(self.size + 1);
            self.since_growth = 0;
        }
    }

    /// Notes that the server was too busy. Returns false if it has taken no row for too long.
    fn failed(&mut self, now: Instant) -> bool {
        self.since_growth = 0;
        if self.in_flight_before == 0 {
            self.in_flight_before = self.size;
            self.size = (self.size / 2).max(1);
        }
        self.in_flight_before -= 1;
        now.duration_since(self.written_at) < PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_server_is_sent_fewer_rows_at_once_and_more_when_it_takes_them() {
        let began = Instant::now();
        let mut window = SendWindow::new(64, began);
        // All that were in flight fail together, which halves the window once.
        for _ in 0..64 {
            assert!(window.failed(began));
        }
        assert_eq!(window.size, 32);
        for _ in 0..32 {
            assert!(window.failed(began));
        }
        assert_eq!(window.size, 16);
        for _ in 0..16 {
            window.written(began);
        }
        assert_eq!(window.size, 17);
        for _ in 0..10_000 {
            window.written(began);
        }
        assert_eq!(window.size, 64);
    }

    #[test]
    fn a_server_that_takes_no_row_for_a_minute_is_down() {
        let began = Instant::now();
        let mut window = SendWindow::new(2, began);
        let at = |seconds| began + Duration::from_secs(seconds);
        assert!(window.failed(at(59)));
        window.written(at(59));
        assert!(window.failed(at(118)));
        assert!(!window.failed(at(119)));
        assert_eq!(window.size, 1);
    }
}
