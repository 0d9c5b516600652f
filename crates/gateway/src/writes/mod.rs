//! Writes to tables with a vector index: each leaves rows in the change log of its table.
//!
//! A log row is a *hint*: it names a key, and a reader of the log reads that row of the table
//! itself. So log rows hold only keys, need no order, and do no harm if there are too many. But
//! none may be missing. A write takes these steps:
//!
//! 1. The text of a statement is *understood* when it comes ([`read`]): its table, and the terms
//!    that are its key (module `plan`). A statement that Cassandra refuses anyway is left to it. A
//!    statement that Cassandra would carry out, but whose rows the gateway cannot know, is refused
//!    with a reason. For tables without an index only the first words are read.
//! 2. An execution gives the plan its values, from which *hints* are made (modules `keys` and
//!    `terms`). Functions such as now() in a key are evaluated by the gateway (module `calls`).
//! 3. Hints become *log rows* with streams and times (module `hint`, `crate::log_clock`).
//! 4. A [`WriteExecution`] takes the write and the log rows to the node, in one request where it
//!    can. The client keeps its prepared id and gets the node's answer to the write.
//!
//! The time of a log row is the gateway's own, not the write's. Nothing else depends on a clock
//! here: a write without a timestamp still gets that of its coordinator, as it would without a
//! gateway.

mod batch_log;
mod calls;
mod execution;
#[cfg(test)]
mod execution_tests;
mod frames;
mod hint;
mod inserts;
mod keys;
mod newest;
mod plan;
mod request_forms;
mod rewrite;
mod statement;
mod terms;
#[cfg(test)]
pub(crate) mod test_tables;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use cql::wire::{BatchRequest, BatchedStatement, BoundValue};

use self::batch_log::BatchLog;
use self::hint::WriteHint;
use self::inserts::LogInserts;
use self::newest::NewestWrites;
use crate::log_clock::LogClock;
use crate::metrics::RequestCounters;

pub(crate) use execution::{NextWriteAction, WriteExecution};
pub(crate) use request_forms::DecidedFrame;
pub(crate) use rewrite::{ClientRequest, PreparedWrite};
pub(crate) use statement::{is_logged, read, truncated};
pub(crate) use verdict::nothing_was_written;

/// The bytes that Cassandra counts for a cell in addition to its value: timestamp, lifetime and
/// deletion time.
const CELL_BYTES: usize = 24;

/// The bytes that Cassandra counts for a log row in addition to its key: five columns of its own,
/// and the overhead of each cell.
const LOG_ROW_BYTES: usize = 256;

/// Log rows that were on their way for longer than this are written again, with a later time. The
/// reader of the log that follows close to the present reads a time once, 100 ms after it has
/// passed. The other half of these 100 ms is for clocks that differ.
pub(crate) const LATE_AFTER: Duration = Duration::from_millis(50);

/// The state that the writes of all connections share.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    inserts: LogInserts,
    clock: Arc<LogClock>,
    batch_log: BatchLog,
    batch_bytes_max: usize,
    late_after: Duration,
    /// The newest acknowledged write to each table.
    pub(crate) newest: NewestWrites,
    pub(crate) metrics: Arc<RequestCounters>,
}

impl ChangeLog {
    /// Makes the state for writes whose batches stay within `batch_bytes_max`, as Cassandra counts
    /// a batch. Log rows that were on their way for longer than `late_after` are written again.
    /// `clock` dates them.
    pub(crate) fn new(
        batch_bytes_max: usize,
        late_after: Duration,
        clock: Arc<LogClock>,
        metrics: Arc<RequestCounters>,
    ) -> ChangeLog {
        ChangeLog {
            inserts: LogInserts::default(),
            clock,
            batch_log: BatchLog::default(),
            batch_bytes_max,
            late_after,
            newest: NewestWrites::default(),
            metrics,
        }
    }

    /// Whether a batch stays within the limit with log rows of these hints. This is an estimate: a
    /// text counts for its length in bytes, and a collection for one cell.
    fn fits(&self, batch: &BatchRequest, hints: &[WriteHint]) -> bool {
        let of_value = |value: &BoundValue| match value {
            BoundValue::Value(bytes) => bytes.len() + CELL_BYTES,
            BoundValue::Null | BoundValue::Unset => CELL_BYTES,
        };
        let of_statements = batch.statements.iter().map(|item| {
            let text = match &item.statement {
                BatchedStatement::Text(text) => text.len(),
                BatchedStatement::Prepared(_) => 0,
            };
            text + item.values.iter().map(of_value).sum::<usize>()
        });
        let of_hints = hints.iter().map(|hint| {
            let key = hint.partition.iter().chain(&hint.clustering);
            LOG_ROW_BYTES + key.map(|value| value.len()).sum::<usize>()
        });
        of_statements.chain(of_hints).sum::<usize>() <= self.batch_bytes_max
    }
}
