//! The log rows of a write, in groups, with their images.
//!
//! ScyllaDB's index service takes the time of a log row for that of the deletion. So a log that
//! only an index needs does not tell a row as deleted that lives on: a back-dated DELETE that loses
//! leaves no log row, and one that takes some columns is logged as an update. A log that the user
//! enabled keeps every delete.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use schema::{CdcLog, ColumnId, ImageMode, TableId};

use super::states::{ChangedRow, LiveRowStates, NeededStates, RequiredColumns, RowStates};
use crate::StorageError;
use crate::cdc::{CdcGate, DeleteFate, GroupTime, ImageRow, LogRowGroup, RowImages, WriteOrigin};
use crate::commit::apply::CommitTime;
use crate::commit::overlay::put_encoded;
use crate::commit::resolve::ResolvedMutation;
use crate::engine::{EntryBatch, SpaceId};
use crate::growth::LatestLogTimes;
use crate::layout::{ResolvedSchema, TableSchema};
use crate::mutation::PartitionChange;
use crate::read::Cell;

/// The logs that get rows, with the times of these.
pub(in crate::commit) type RaisedLogTimes = Vec<(Arc<LatestLogTimes>, i64)>;

/// The places that log rows go to.
pub(super) struct BatchSink<'a> {
    pub batch: &'a mut EntryBatch,
    /// Tables that got data with a time to live.
    pub expiring: &'a mut HashSet<TableId>,
}

/// A group: the changes of a write to one partition of a logged table with one timestamp.
pub(super) struct LogGroup<'w> {
    /// The first mutation of the partition.
    mutation: &'w ResolvedMutation<'w>,
    log: &'w CdcLog,
    timestamp: i64,
    changes: Vec<&'w PartitionChange>,
}

/// The log that a table's writes leave rows in; `None` if there is none.
fn written_log(table: &TableSchema) -> Option<&CdcLog> {
    table.table.log.as_ref().filter(|log| log.options.enabled)
}

/// Whether only an index needs the log. The log's readers may take the time of a log row for that
/// of the deletion, so the log must not tell a row as deleted that lives on.
fn is_for_index(table: &TableSchema) -> bool {
    let cdc = table.table.cdc.as_ref();
    !cdc.is_some_and(|options| options.enabled)
}

/// The row that a change deletes by its whole key.
fn deleted_row<'w>(table: &TableSchema, change: &'w PartitionChange) -> Option<ChangedRow<'w>> {
    match change {
        PartitionChange::DeleteRow { .. } | PartitionChange::DeletePartition { .. } => {
            ChangedRow::of(table, change)
        }
        _ => None,
    }
}

/// Whether a change gives its row a pre-image. Rows below a range or partition deletion have none.
fn has_pre_image(change: &PartitionChange) -> bool {
    matches!(
        change,
        PartitionChange::Row { .. }
            | PartitionChange::DeleteRow { .. }
            | PartitionChange::Static { .. }
    )
}

/// Whether a change gives its row a post-image. Deleted rows have none.
fn has_post_image(change: &PartitionChange) -> bool {
    matches!(
        change,
        PartitionChange::Row { .. } | PartitionChange::Static { .. }
    )
}

/// The states that the log needs of the row that a change names.
pub(super) fn needs(table: &TableSchema, change: &PartitionChange) -> NeededStates {
    let Some(log) = written_log(table) else {
        return NeededStates::default();
    };
    let is_judged = is_for_index(table) && deleted_row(table, change).is_some();
    let options = &log.options;
    let before = match (options.preimage, has_pre_image(change)) {
        _ if is_judged => Some(RequiredColumns::All),
        (ImageMode::Off, _) | (_, false) => None,
        (ImageMode::Full, true) => Some(RequiredColumns::All),
        // A pre-image shows the columns that the write changes.
        (_, true) => Some(match change {
            PartitionChange::Row { cells, .. } | PartitionChange::Static { cells, .. } => {
                RequiredColumns::Columns(cells.iter().map(|cell| cell.column).collect())
            }
            _ => RequiredColumns::All,
        }),
    };
    NeededStates {
        before,
        after: is_judged || (options.postimage && has_post_image(change)),
    }
}

/// Sorts the changes of a write into groups.
pub(super) fn groups<'w>(mutations: &'w [ResolvedMutation<'w>]) -> Vec<LogGroup<'w>> {
    let mut groups: Vec<LogGroup<'w>> = Vec::new();
    let mut known: HashMap<(SpaceId, &'w [u8], i64), usize> = HashMap::new();
    for mutation in mutations {
        let Some(log) = written_log(mutation.table) else {
            continue;
        };
        for change in &mutation.changes {
            let timestamp = change.timestamp();
            let id = (mutation.table.space, &mutation.partition[..], timestamp);
            let at = *known.entry(id).or_insert_with(|| {
                groups.push(LogGroup {
                    mutation,
                    log,
                    timestamp,
                    changes: Vec::new(),
                });
                groups.len() - 1
            });
            groups[at].changes.push(change);
        }
    }
    groups
}

impl<'w> LogGroup<'w> {
    /// Finds which of the deleted rows live on, by the position of the change.
    fn fates(&self, states: &RowStates<'w>) -> HashMap<usize, DeleteFate> {
        let mut fates = HashMap::new();
        if !is_for_index(self.mutation.table) {
            return fates;
        }
        for (at, change) in self.changes.iter().copied().enumerate() {
            let Some(row) = deleted_row(self.mutation.table, change) else {
                continue;
            };
            let Some(after) = states.after.get(self.mutation, row) else {
                continue;
            };
            let before = states.before.get(self.mutation, row);
            let fate = if before == Some(after) {
                DeleteFate::Lost
            } else {
                let is_gone = |(id, _): &&(ColumnId, Cell)| !after.iter().any(|(o, _)| o == id);
                let before = before.map(Vec::as_slice).unwrap_or_default();
                DeleteFate::Nulled(before.iter().filter(is_gone).map(|(id, _)| *id).collect())
            };
            fates.insert(at, fate);
        }
        fates
    }

    /// The live rows among those whose changes have an image, each once.
    fn images<'s>(
        &self,
        states: &'s LiveRowStates<'w>,
        has_image: impl Fn(&PartitionChange) -> bool,
    ) -> Vec<ImageRow<'s>>
    where
        'w: 's,
    {
        let mut images: Vec<ImageRow<'s>> = Vec::new();
        let mut seen: HashSet<ChangedRow<'w>> = HashSet::new();
        for change in self
            .changes
            .iter()
            .copied()
            .filter(|change| has_image(change))
        {
            if let Some(row) = ChangedRow::of(self.mutation.table, change)
                && seen.insert(row)
                && let Some(cells) = states.get(self.mutation, row)
            {
                images.push(ImageRow {
                    clustering: match row {
                        ChangedRow::Row(clustering) => Some(clustering),
                        ChangedRow::Static => None,
                    },
                    cells,
                });
            }
        }
        images
    }

    /// Puts the log rows into the batch. Returns the log and the time of the rows in it; `None` if
    /// there are no log rows, as all changes are deletions that lost.
    pub(super) fn derive(
        self,
        states: &RowStates<'w>,
        origin: WriteOrigin,
        schema: &ResolvedSchema,
        gate: &CdcGate,
        moment: CommitTime,
        into: BatchSink<'_>,
    ) -> Result<Option<(Arc<LatestLogTimes>, i64)>, StorageError> {
        let (mutation, log) = (self.mutation, self.log);
        let fates = self.fates(states);
        if (0..self.changes.len()).all(|at| fates.get(&at) == Some(&DeleteFate::Lost)) {
            return Ok(None);
        }
        let mut images = RowImages::default();
        if log.options.preimage != ImageMode::Off {
            images.before = self.images(&states.before, has_pre_image);
        }
        if log.options.postimage {
            images.after = self.images(&states.after, has_post_image);
        }
        let generation = schema.catalog.log_streams(log);
        let Some(stream) = generation.stream_of(mutation.token) else {
            return Err(StorageError::Corrupt(format!(
                "the CDC log of {} has no streams",
                mutation.table.table.name
            )));
        };
        let log_table = schema.table(log.table)?;
        // No reader looks for rows from before the streams began, so such a row gets the commit
        // time. So does the log row of an expired row, whose deletion is as old as the row.
        let is_older = self.timestamp < generation.since_ms.saturating_mul(1_000);
        let timestamp = match origin {
            WriteOrigin::Client if !is_older => self.timestamp,
            WriteOrigin::Client | WriteOrigin::Expiry => i64::MIN,
        };
        let deletes = self.changes.iter().all(|change| {
            matches!(
                change,
                PartitionChange::DeleteRow { .. }
                    | PartitionChange::DeleteRange { .. }
                    | PartitionChange::DeletePartition { .. }
            )
        });
        let taken = gate.take(timestamp, moment.now_micros, deletes);
        let GroupTime {
            time,
            reached_micros,
        } = taken;
        log_table.growth.reach(reached_micros);
        let rows = LogRowGroup {
            base: mutation.table,
            log: log_table,
            options: &log.options,
            stream,
            time: time.timeuuid(),
            partition_key: &mutation.partition_key,
            changes: &self.changes,
            fates,
            images,
            origin,
            now_micros: moment.now_micros,
        }
        .log_rows()?;
        if log.options.ttl_s > 0 {
            into.expiring.insert(log.table);
        }
        for (key, record) in rows {
            put_encoded(into.batch, log_table.space, key, &record);
        }
        Ok(Some((Arc::clone(&log_table.growth), reached_micros)))
    }
}
