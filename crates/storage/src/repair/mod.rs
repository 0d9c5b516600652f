//! Repair of secondary indexes: compares an index with its table, and mends the index.
//!
//! The comparison runs next to all other work, in short steps. Rows and entries at fault go to the
//! committer, a few at a time, which looks at them again. So a row that is written meanwhile keeps
//! the entries of that write, and a repair of an index without faults writes nothing.

mod comparison;
#[cfg(test)]
mod tests;

use std::time::Duration;

use comparison::{ComparedKeys, IndexComparison};
use cpu_scheduler::WorkClass;
use platform::aside;
use schema::TableId;
use tasks::Task;
use tokio::time::Instant;
use uuid::Uuid;

use crate::commit::IndexRepairRequest;
use crate::{Storage, StorageError};

/// The counters that a task of a repair has.
pub const REPAIR_COUNTERS: &[&str] = &[
    "rows_compared",
    "entries_compared",
    "entries_added",
    "entries_mended",
    "entries_removed",
];

/// The pause after a step and after a batch, as a multiple of the time that it took.
const PAUSE_SHARE: u32 = 1;
/// The rows and entries that the committer looks at between two batches, unless they are large.
const REPAIRED_AT_A_TIME: usize = 32;

impl Storage {
    /// Repairs a secondary index, by [`schema::SecondaryIndex::version`]: writes the entries that
    /// rows lack, and removes those of values that rows do not have. The task counts keys, and has
    /// the counters [`REPAIR_COUNTERS`]. Returns whether all was compared; it was not if the task
    /// was stopped.
    pub async fn repair_index(
        &self,
        table: TableId,
        index: Uuid,
        task: &Task,
    ) -> Result<bool, StorageError> {
        let mut comparison = IndexComparison::new(index);
        while !task.abort_requested() {
            let storage = self.clone();
            let work = move || {
                let _turn = storage
                    .cpu_scheduler()
                    .acquire_blocking(WorkClass::Background);
                let began = Instant::now();
                let compared = comparison.step(&storage.view(table)?)?;
                Ok((comparison, compared, began.elapsed()))
            };
            let done = aside(work).await;
            let done = done.map_err(|error| StorageError::Io(error.to_string()))?;
            let (compared, took): (ComparedKeys, Duration);
            (comparison, compared, took) = done?;
            let mut suspects = &compared.suspects[..];
            while !suspects.is_empty() {
                let began = Instant::now();
                let mending = IndexRepairRequest {
                    table,
                    index,
                    suspects: suspects[..suspects.len().min(REPAIRED_AT_A_TIME)].to_vec(),
                };
                let mended = self.repair_entries(mending).await?;
                suspects = &suspects[mended.looked_at..];
                // Other writes wait while the committer mends.
                tokio::time::sleep(began.elapsed() * PAUSE_SHARE).await;
                task.count("entries_added", mended.added);
                task.count("entries_mended", mended.repaired);
                task.count("entries_removed", mended.removed);
            }
            task.count("rows_compared", compared.rows);
            task.count("entries_compared", compared.entries);
            task.add(compared.keys);
            if compared.is_done {
                return Ok(true);
            }
            tokio::time::sleep(took * PAUSE_SHARE).await;
        }
        Ok(false)
    }
}
