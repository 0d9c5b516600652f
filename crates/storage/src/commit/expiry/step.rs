//! The deletions of one step of a pass, which are committed together.

use bytes::Bytes;

use super::times::has_come;
use crate::StorageError;
use crate::commit::apply::CommitTime;
use crate::commit::derived::RaisedLogTimes;
use crate::commit::lists;
use crate::commit::overlay::{UncommittedChanges, WriteOverlay};
use crate::commit::resolve::ResolvedMutation;
use crate::commit::skipped::{FailedRows, name};
use crate::commit::write::{self, AppliedWrite};
use crate::engine::{Engine, EntryBatch};
use crate::key::term::StoredEntry;
use crate::key::{KeyParts, ROW};
use crate::layout::{ResolvedSchema, TableSchema};
use crate::mutation::PartitionChange;
use crate::read::Cell;
use crate::record::{self, Liveness, RowRecord};
use crate::shared::OpenStorage;

/// Bytes of rows that are read, of derived rows and of keys after which a step ends.
const BYTES_A_STEP: usize = 1 << 20;

/// The entry of a time that has come.
pub(super) struct DueEntry {
    /// The key of the entry.
    pub key: Bytes,
    /// The key of the row; `None` if the entry is damaged.
    pub row: Option<Bytes>,
}

impl DueEntry {
    /// Reads an entry.
    pub(super) fn read(key: Bytes, value: &[u8]) -> DueEntry {
        let stored = StoredEntry::read(value).filter(|stored| stored.term <= key.len());
        DueEntry {
            row: stored.map(|stored| key.slice(stored.term..)),
            key,
        }
    }

    /// The first key after the entry.
    pub(super) fn behind(&self) -> Vec<u8> {
        [&self.key[..], &[0]].concat()
    }
}

/// The deletions of a step.
#[derive(Default)]
pub(super) struct ExpiredRowDeletions {
    pub changes: UncommittedChanges,
    pub derived: EntryBatch,
    pub grown: RaisedLogTimes,
    /// The rows that are deleted.
    pub count: u64,
    /// The entries that were looked at, from the first on.
    pub looked: usize,
    /// The bytes by which tables in memory grow.
    growth: i64,
    bytes: usize,
    skipped: FailedRows,
}

impl ExpiredRowDeletions {
    /// The deletions of the first of these rows whose time has come, as many as one step takes.
    pub(super) fn of(
        shared: &OpenStorage,
        schema: &ResolvedSchema,
        table: &TableSchema,
        due: &[DueEntry],
        moment: CommitTime,
    ) -> Result<ExpiredRowDeletions, StorageError> {
        let mut step = ExpiredRowDeletions::default();
        for entry in due {
            let added = match step.prepare(shared, schema, table, entry, moment) {
                Ok(Some(prepared)) => step.add(&shared.engine, schema, entry, prepared),
                Ok(None) => Ok(()),
                // It would hold up all rows after it.
                Err(error @ (StorageError::Corrupt(_) | StorageError::Invalid(_))) => {
                    step.skipped
                        .add(entry.row.as_ref().unwrap_or(&entry.key), error);
                    Ok(())
                }
                Err(error) => Err(error),
            };
            match added {
                Ok(()) => step.looked += 1,
                Err(error) if step.looked == 0 => return Err(error),
                // The next step begins here, and reports the error.
                Err(_) => break,
            }
            if step.bytes > BYTES_A_STEP {
                break;
            }
        }
        step.skipped.log(
            table,
            "rows whose time has come stay, as they can't be deleted. They are tried again after a restart",
        );
        Ok(step)
    }

    /// Prepares the deletion of a row; `None` if its time has not come.
    fn prepare(
        &mut self,
        shared: &OpenStorage,
        schema: &ResolvedSchema,
        table: &TableSchema,
        entry: &DueEntry,
        moment: CommitTime,
    ) -> Result<Option<AppliedWrite>, StorageError> {
        let (engine, gate, before) = (&shared.engine, &shared.gate, &self.changes);
        let key = entry.row.as_ref().ok_or_else(|| damaged_entry(table))?;
        let parts = table.keys.split(key).filter(|parts| parts.kind == ROW);
        let parts = parts.ok_or_else(|| damaged_entry(table))?;
        let (partition, suffix) = (parts.partition, parts.suffix);
        let overlay = WriteOverlay::new(engine, before);
        let now_s = moment.now_s;
        let (record, liveness) = lists::find_row(&overlay, table, partition, suffix, now_s)?;
        self.bytes += record.bytes();
        let Some(deletion) = deletion(table, parts, record, liveness, moment)? else {
            return Ok(None);
        };
        write::prepare_expiry(engine, schema, gate, before, deletion, moment).map(Some)
    }

    fn add(
        &mut self,
        engine: &Engine,
        schema: &ResolvedSchema,
        entry: &DueEntry,
        prepared: AppliedWrite,
    ) -> Result<(), StorageError> {
        let added = prepared
            .changes
            .resident_growth(engine, schema, Some(&self.changes))?;
        let growth = self.growth + added;
        engine.check_resident_room(growth, true)?;
        self.growth = growth;
        let derived = prepared.derived.batch;
        let bytes = |(_, key, value): &(_, Bytes, Option<Bytes>)| {
            key.len() + value.as_ref().map_or(0, Bytes::len)
        };
        self.bytes += entry.key.len() + derived.iter().map(bytes).sum::<usize>();
        self.changes.absorb(prepared.changes);
        self.derived.extend(derived);
        self.grown.extend(prepared.derived.grown);
        self.count += 1;
        Ok(())
    }
}

fn damaged_entry(table: &TableSchema) -> StorageError {
    StorageError::Corrupt(format!(
        "an entry of a time at which a row of {} expires can't be read: ALTER TABLE ... TTL NULL, then ALTER TABLE ... \
         TTL with the column makes the entries anew",
        name(table)
    ))
}

fn damaged_row(table: &TableSchema) -> StorageError {
    StorageError::Corrupt(format!(
        "the key of a row of {} can't be read: its bytes are damaged",
        name(table)
    ))
}

/// The deletion of a row with this key; `None` if it is not there, or has a later time by now.
fn deletion<'s>(
    table: &'s TableSchema,
    key: KeyParts<'_>,
    record: RowRecord,
    liveness: Liveness,
    moment: CommitTime,
) -> Result<Option<ResolvedMutation<'s>>, StorageError> {
    let cells = liveness.row(&record, &table.live).unwrap_or_default();
    let is_due = table.table.row_ttl_column().is_some_and(|column| {
        cells.iter().any(|(id, cell)| match cell {
            Cell::Simple(cell) if *id == column.id => {
                has_come(&column.cql_type, &cell.value, moment)
            }
            _ => false,
        })
    });
    if !is_due {
        return Ok(None);
    }
    let decoded = table.keys.decode_partition(key.partition);
    let (token, partition_key) = decoded.ok_or_else(|| damaged_row(table))?;
    let timestamp = timestamp(&record, liveness, &cells, moment);
    let clustering = match record.clustering {
        Some(given) => given,
        None => {
            let decoded = table.keys.decode_clustering(key.suffix);
            decoded.ok_or_else(|| damaged_row(table))?
        }
    };
    Ok(Some(ResolvedMutation {
        table,
        partition_key,
        partition: key.partition.to_vec(),
        token,
        changes: vec![PartitionChange::DeleteRow {
            clustering,
            timestamp,
        }],
    }))
}

/// The timestamp of the deletion of a row, given its live cells: the newest in the row. What is
/// dead need not be deleted. It counts only if it is not from the future, as the deletion would
/// hide what is written until then.
fn timestamp(
    record: &RowRecord,
    liveness: Liveness,
    cells: &[(schema::ColumnId, Cell)],
    moment: CommitTime,
) -> i64 {
    let newest = record.newest();
    if newest <= moment.now_micros {
        return newest;
    }
    let marker = record.marker.filter(|marker| {
        marker.timestamp > liveness.deleted_to
            && !record::is_expired(&marker.lifetime, liveness.now_s)
    });
    let cells = cells.iter().flat_map(|(_, cell)| match cell {
        Cell::Simple(cell) => vec![cell.timestamp],
        Cell::Elements(cells) => cells.iter().map(|(_, cell)| cell.timestamp).collect(),
    });
    let marker = marker.map(|marker| marker.timestamp);
    cells.chain(marker).max().unwrap_or(newest)
}
