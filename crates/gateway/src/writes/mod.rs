//! Writes to tables with a vector index: each leaves rows in the change log of its table.
//!
//! A log row is a *hint*: it names a key, and whoever follows the log reads that row of the table itself. So log rows
//! hold keys alone, may be too many, and need not be in order; but none may be missing. What that takes here:
//!
//! 1. A statement is *understood* when it comes as text ([`read`]): which table, and which terms are its key
//!    (module `plan`). What Cassandra refuses anyway is left to it; what it would carry out, but whose rows are
//!    not known here, is refused with a reason. For tables without an index the first words are all that is read.
//! 2. An execution gives the plan its values and makes *hints* (modules `keys` and `terms`), functions such as now() in a
//!    key being evaluated here (module `calls`).
//! 3. Hints become *log rows* with streams and times (module `hint`, `crate::log_clock`).
//! 4. An [`Errand`] takes write and log rows to the node, in one request where it can.
//!
//! The time of a log row is the gateway's own, not the write's. Nothing else depends on a clock here: a write
//! without a timestamp still gets that of its coordinator, as it would without a gateway.

mod asked;
mod batch_log;
mod calls;
mod errand;
#[cfg(test)]
mod errand_tests;
mod frames;
mod hint;
mod inserts;
mod keys;
mod plan;
mod rewrite;
mod statement;
mod terms;
#[cfg(test)]
pub(crate) mod test_tables;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use cql::wire::{Batch, BatchedStatement, BoundValue};

use self::batch_log::BatchLog;
use self::hint::Hint;
use self::inserts::LogInserts;

use crate::log_clock::LogClock;

pub(crate) use asked::Origin;
pub(crate) use errand::{Errand, Next};
pub(crate) use rewrite::{ClientRequest, PreparedWrite};
pub(crate) use statement::{is_logged, of_no_table, read};
pub(crate) use verdict::nothing_was_written;

/// What Cassandra counts for a cell beside its value: timestamp, lifetime and deletion time.
const CELL_BYTES: usize = 24;

/// What Cassandra counts for a log row beside its key: five columns of its own, and what each cell adds.
const LOG_ROW_BYTES: usize = 256;

/// Log rows that were on their way for longer are written again, with a later time. A reader of the log that keeps at the heels of
/// the present reads a time 100 ms after it has passed, and once; the rest is for clocks that differ.
pub(crate) const LATE_AFTER: Duration = Duration::from_millis(50);

/// What the writes of all connections share.
#[derive(Debug)]
pub(crate) struct ChangeLog {
    inserts: LogInserts,
    clock: Arc<LogClock>,
    batch_log: BatchLog,
    batch_bytes_max: usize,
    late_after: Duration,
}

impl ChangeLog {
    /// A log whose batches stay within `batch_bytes_max`, as Cassandra counts a batch, and whose rows are written again if they were
    /// on their way for longer than `late_after`. `clock` dates them.
    pub(crate) fn new(
        batch_bytes_max: usize,
        late_after: Duration,
        clock: Arc<LogClock>,
    ) -> ChangeLog {
        ChangeLog {
            inserts: LogInserts::default(),
            clock,
            batch_log: BatchLog::default(),
            batch_bytes_max,
            late_after,
        }
    }

    /// Whether a batch stays within the limit with log rows of these hints. An estimate: a text is taken for as many bytes as
    /// it is long, and a collection for one cell.
    fn fits(&self, batch: &Batch, hints: &[Hint]) -> bool {
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
