//! Checks the condition of a write against the stored rows.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use schema::ColumnId;

use super::apply::CommitTime;
use super::overlay::WriteOverlay;
use crate::StorageError;
use crate::key::{self, HEADER, ROW};
use crate::layout::{ResolvedSchema, TableSchema};
use crate::mutation::{
    AtomicWrite, CellChange, CellOperation, PartitionChange, PartitionMutation, RowPredicate,
    WriteCondition,
};
use crate::read::{Cell, LiveCell, Partition, Row, RowPosition};
use crate::record::{Liveness, RowRecord};

/// The most bytes of rows that a condition may look at, unless it looks at only one row.
const BYTES_MAX: usize = 16 << 20;

/// The outcome of a check.
pub(super) enum CheckOutcome {
    /// The condition holds. Timestamps at or above `floor` win over everything that the rows have
    /// which are checked or written.
    Holds { floor: i64 },
    /// The condition fails. `standing` are the rows that
    /// [`crate::mutation::WriteOutcome::NotApplied`] returns, and `held` is the bytes of memory
    /// that they take.
    Fails { standing: Vec<Row>, held: usize },
}

/// Checks the condition of a write, all predicates of which must hold.
pub(super) fn check(
    overlay: &WriteOverlay<'_>,
    schema: &ResolvedSchema,
    condition: &WriteCondition,
    write: &AtomicWrite,
    moment: CommitTime,
) -> Result<CheckOutcome, StorageError> {
    let mut found = CheckedRows::new(overlay, schema, condition, moment)?;
    let mut holds = true;
    // All rows are read even after one has failed, as the answer shows them all.
    for checked in &condition.rows {
        let row = found.row(&checked.clustering)?;
        holds = holds
            && match &checked.predicate {
                RowPredicate::Exists => row.is_some(),
                RowPredicate::NotExists => row.is_none(),
                RowPredicate::Passes(test) => test.passes(row),
            };
    }
    if !holds {
        return Ok(CheckOutcome::Fails {
            held: found.held,
            standing: found.standing(),
        });
    }
    // What is applied has to be seen, so it is newer than everything in every row it writes.
    let own = |mutation: &&_| is_of(condition, mutation);
    for change in write.mutations.iter().filter(own).flat_map(|m| &m.changes) {
        match change {
            PartitionChange::Row { clustering, .. }
            | PartitionChange::DeleteRow { clustering, .. } => {
                found.note(clustering)?;
            }
            PartitionChange::Static { .. } => found.note(&[])?,
            PartitionChange::DeleteRange { .. } | PartitionChange::DeletePartition { .. } => {}
        }
    }
    if found.newest == i64::MAX && write.mutations.iter().filter(own).any(sets) {
        return Err(StorageError::Invalid(format!(
            "The condition holds, but nothing can be written: something of the row was written or \
             deleted with the timestamp {}, the greatest there is, so nothing is newer. Write the \
             row under another key, or drop and create the table",
            i64::MAX
        )));
    }
    Ok(CheckOutcome::Holds {
        floor: found.newest.saturating_add(1),
    })
}

/// Whether a mutation writes anything but deletions, which win over what has their timestamp.
fn sets(mutation: &PartitionMutation) -> bool {
    let are_set = |cells: &[CellChange]| {
        let mut cells = cells.iter();
        cells.any(|cell| match cell.change {
            CellOperation::Set(_)
            | CellOperation::AddToCounter(_)
            | CellOperation::ReplaceElements(_)
            | CellOperation::PutElements(_)
            | CellOperation::SetListIndex { .. } => true,
            CellOperation::Delete
            | CellOperation::DeleteElements(_)
            | CellOperation::DeleteListIndex { .. }
            | CellOperation::RemoveListValues(_) => false,
        })
    };
    mutation.changes.iter().any(|change| match change {
        PartitionChange::Row { cells, marker, .. } => *marker || are_set(cells),
        PartitionChange::Static { cells, .. } => are_set(cells),
        PartitionChange::DeleteRow { .. }
        | PartitionChange::DeleteRange { .. }
        | PartitionChange::DeletePartition { .. } => false,
    })
}

fn is_of(condition: &WriteCondition, mutation: &PartitionMutation) -> bool {
    mutation.table == condition.table && mutation.partition_key == condition.partition_key
}

/// The rows of a partition as a write finds them. Each is read once.
struct CheckedRows<'o> {
    overlay: &'o WriteOverlay<'o>,
    table: &'o TableSchema,
    partition: Vec<u8>,
    head: RowRecord,
    /// The parts that the rows share, with the live static cells.
    shared: Arc<Partition>,
    /// The static row; `None` if it has no live cell.
    static_row: Option<Row>,
    /// The live rows among those that were requested, by their keys within the partition.
    rows: BTreeMap<Vec<u8>, Option<Row>>,
    /// The columns that are looked at and shown; `None` for all.
    columns: Option<&'o HashSet<ColumnId>>,
    /// The bytes of the live rows.
    bytes: usize,
    /// The bytes of memory that the live rows take, elements of collections included.
    held: usize,
    /// The greatest timestamp of all that is stored of the rows that were requested; `i64::MIN` for
    /// none.
    newest: i64,
    moment: CommitTime,
}

impl<'o> CheckedRows<'o> {
    fn new(
        overlay: &'o WriteOverlay<'o>,
        schema: &'o ResolvedSchema,
        condition: &'o WriteCondition,
        moment: CommitTime,
    ) -> Result<CheckedRows<'o>, StorageError> {
        let table = schema.table(condition.table)?;
        let (token, partition) = table.keys.partition(&condition.partition_key)?;
        let head = overlay.head(table, &partition)?;
        let liveness = Liveness {
            deleted_to: i64::MIN,
            now_s: moment.client_now_s,
        };
        let columns = condition.columns.as_ref();
        let shared = Arc::new(Partition {
            token,
            key: condition.partition_key.clone(),
            static_cells: liveness.statics_with(&head, &table.live, |id| is_wanted(columns, id)),
        });
        let position = RowPosition(key::join(&partition, HEADER, &[])?.into());
        let static_row = (!shared.static_cells.is_empty()).then(|| Row {
            partition: Arc::clone(&shared),
            clustering: None,
            cells: Vec::new(),
            marker: None,
            position,
        });
        Ok(CheckedRows {
            overlay,
            table,
            partition,
            head,
            shared,
            static_row,
            rows: BTreeMap::new(),
            columns,
            bytes: 0,
            held: 0,
            newest: i64::MIN,
            moment,
        })
    }

    /// The live row with this clustering key; without one on a table with clustering columns, the
    /// static row.
    fn row(&mut self, clustering: &[Bytes]) -> Result<Option<&Row>, StorageError> {
        if clustering.is_empty() && self.table.keys.has_clustering() {
            self.newest = self.newest.max(self.head.newest());
            return Ok(self.static_row.as_ref());
        }
        let suffix = self.table.keys.clustering(clustering)?;
        if !self.rows.contains_key(&suffix) {
            let row = self.read(clustering, &suffix)?;
            self.rows.insert(suffix.clone(), row);
        }
        Ok(self.rows[&suffix].as_ref())
    }

    /// Notes the timestamps of a row that is written, as [`CheckedRows::row`] does.
    fn note(&mut self, clustering: &[Bytes]) -> Result<(), StorageError> {
        if clustering.is_empty() && self.table.keys.has_clustering() {
            self.newest = self.newest.max(self.head.newest());
            return Ok(());
        }
        let suffix = self.table.keys.clustering(clustering)?;
        self.record(&suffix).map(drop)
    }

    /// The record of a row, and the timestamp up to which a wider deletion covers it.
    fn record(&mut self, suffix: &[u8]) -> Result<(RowRecord, i64), StorageError> {
        let (overlay, table) = (self.overlay, self.table);
        let record = overlay.row(table, &self.partition, suffix)?;
        let deleted_to = overlay.deleted_to(table, &self.partition, &self.head, suffix)?;
        self.newest = self.newest.max(record.newest()).max(deleted_to);
        Ok((record, deleted_to))
    }

    fn read(&mut self, clustering: &[Bytes], suffix: &[u8]) -> Result<Option<Row>, StorageError> {
        let table = self.table;
        let (record, deleted_to) = self.record(suffix)?;
        let liveness = Liveness {
            deleted_to,
            now_s: self.moment.client_now_s,
        };
        let columns = self.columns;
        let cells = liveness.row_with(&record, &table.live, |id| is_wanted(columns, id));
        let Some(cells) = cells else {
            return Ok(None);
        };
        let bytes = cells.iter().map(|(_, cell)| size(cell)).sum::<usize>();
        let elements = cells.iter().map(|(_, cell)| match cell {
            Cell::Simple(_) => 0,
            Cell::Elements(elements) => elements.len(),
        });
        let elements = elements.sum::<usize>();
        self.bytes += bytes;
        self.held += bytes + elements * size_of::<(Bytes, LiveCell)>();
        if self.bytes > BYTES_MAX && !self.rows.is_empty() {
            return Err(StorageError::Invalid(format!(
                "The rows that the conditions of a batch look at hold more than {} MiB: make \
                 smaller batches",
                BYTES_MAX >> 20
            )));
        }
        let marker = liveness.marker(&record);
        let clustering = record.clustering.unwrap_or_else(|| clustering.to_vec());
        Ok(Some(Row {
            partition: Arc::clone(&self.shared),
            clustering: Some(clustering),
            cells,
            marker,
            position: RowPosition(key::join(&self.partition, ROW, suffix)?.into()),
        }))
    }

    fn standing(self) -> Vec<Row> {
        let rows: Vec<Row> = self.rows.into_values().flatten().collect();
        match rows.is_empty() {
            true => self.static_row.into_iter().collect(),
            false => rows,
        }
    }
}

/// Whether a column is looked at or shown.
fn is_wanted(columns: Option<&HashSet<ColumnId>>, id: ColumnId) -> bool {
    columns.is_none_or(|columns| columns.contains(&id))
}

/// Bytes of a live cell.
fn size(cell: &Cell) -> usize {
    match cell {
        Cell::Simple(cell) => cell.value.len(),
        Cell::Elements(elements) => {
            let elements = elements.iter();
            elements
                .map(|(path, cell)| path.len() + cell.value.len())
                .sum()
        }
    }
}
