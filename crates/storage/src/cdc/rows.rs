//! Turns changes into log rows.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use schema::log_table::column;
use schema::{CdcOptions, Column, ColumnId, ColumnKind, DeltaMode, ImageMode};
use uuid::Uuid;
use value::{join_elements, join_entries};

use crate::StorageError;
use crate::layout::TableSchema;
use crate::mutation::{CellChange, CellOperation, PartitionChange};
use crate::read::{Cell, CellExpiry, ClusteringBound};
use crate::record::{CellContent, CellLifetime, CellRecord, RowRecord, StoredColumn};

/// The values of `cdc$operation`.
mod operation {
    pub(super) const PRE_IMAGE: i8 = 0;
    pub(super) const UPDATE: i8 = 1;
    pub(super) const INSERT: i8 = 2;
    pub(super) const ROW_DELETE: i8 = 3;
    pub(super) const PARTITION_DELETE: i8 = 4;
    pub(super) const RANGE_START_INCLUSIVE: i8 = 5;
    pub(super) const RANGE_START_EXCLUSIVE: i8 = 6;
    pub(super) const RANGE_END_INCLUSIVE: i8 = 7;
    pub(super) const RANGE_END_EXCLUSIVE: i8 = 8;
    pub(super) const POST_IMAGE: i8 = 9;
    /// Deletions of rows that have expired ([`super::WriteOrigin::Expiry`]).
    pub(super) const EXPIRED_ROW_DELETE: i8 = -3;
    pub(super) const EXPIRED_PARTITION_DELETE: i8 = -4;
}

/// The maker of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOrigin {
    Client,
    /// The deletion of rows whose time has come, which the log marks as such.
    Expiry,
}

/// The state of a row before or after the write. It is the static row if `clustering` is `None`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageRow<'a> {
    pub clustering: Option<&'a [Bytes]>,
    pub cells: &'a [(ColumnId, Cell)],
}

#[derive(Debug, Default)]
pub(crate) struct RowImages<'a> {
    pub before: Vec<ImageRow<'a>>,
    pub after: Vec<ImageRow<'a>>,
}

/// The outcome of a deletion after which the row lives on, in a log that only an index needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeleteFate {
    /// The row lives on as it was, as all of it is newer than the deletion.
    Lost,
    /// The row lives on without these columns.
    Nulled(Vec<ColumnId>),
}

/// The parts of one group.
pub(crate) struct LogRowGroup<'a> {
    pub base: &'a TableSchema,
    pub log: &'a TableSchema,
    pub options: &'a CdcOptions,
    pub stream: &'a Bytes,
    pub time: Uuid,
    pub partition_key: &'a [Bytes],
    pub changes: &'a [&'a PartitionChange],
    /// The fates of deletions after which the row lives on, by the position of the change.
    pub fates: HashMap<usize, DeleteFate>,
    pub images: RowImages<'a>,
    pub origin: WriteOrigin,
    pub now_micros: i64,
}

impl LogRowGroup<'_> {
    /// The keys and records of the log rows, in order.
    pub(crate) fn log_rows(self) -> Result<Vec<(Vec<u8>, RowRecord)>, StorageError> {
        let mut rows = Vec::with_capacity(self.changes.len());
        let touched = self.touched();
        for image in &self.images.before {
            rows.push(self.image(operation::PRE_IMAGE, image, touched.as_ref()));
        }
        for (at, change) in self.changes.iter().enumerate() {
            match self.fates.get(&at) {
                Some(DeleteFate::Lost) => {}
                Some(DeleteFate::Nulled(columns)) => rows.push(self.nulled(change, columns)),
                None => self.change(change, &mut rows),
            }
        }
        for image in &self.images.after {
            rows.push(self.image(operation::POST_IMAGE, image, None));
        }
        let lifetime = self.lifetime();
        let last = rows.len().saturating_sub(1);
        let (_, partition) = self.log.keys.partition(std::slice::from_ref(self.stream))?;
        let mut records = Vec::with_capacity(rows.len());
        for (number, mut row) in rows.into_iter().enumerate() {
            if number == last {
                row.set(column::END_OF_BATCH, vec![1]);
            }
            let sequence = i32::try_from(number).map_err(|_| {
                StorageError::Invalid("a write has too many changes for one CDC batch".to_owned())
            })?;
            let clustering = [
                Bytes::copy_from_slice(self.time.as_bytes()),
                Bytes::copy_from_slice(&sequence.to_be_bytes()),
            ];
            let suffix = self.log.keys.clustering(&clustering)?;
            let key = crate::key::join(&partition, crate::key::ROW, &suffix)?;
            records.push((key, row.record(self.now_micros, lifetime)));
        }
        Ok(records)
    }

    fn lifetime(&self) -> CellLifetime {
        (self.options.ttl_s > 0).then(|| CellExpiry {
            ttl_s: self.options.ttl_s,
            at_s: crate::clock::seconds(self.now_micros) + i64::from(self.options.ttl_s),
        })
    }

    fn row(&self, operation: i8) -> LogRowBuilder<'_> {
        let mut row = LogRowBuilder {
            log: self.log,
            cells: Vec::new(),
        };
        row.set(column::OPERATION, vec![operation as u8]);
        let columns = self.base.table.partition_key();
        for (column, value) in columns.iter().zip(self.partition_key) {
            row.set(&column.name, value.clone());
        }
        row
    }

    fn set_clustering(&self, row: &mut LogRowBuilder<'_>, clustering: &[Bytes]) {
        let columns = self.base.table.clustering_key();
        for (column, value) in columns.iter().zip(clustering) {
            row.set(&column.name, value.clone());
        }
    }

    /// An update that sets columns to null.
    fn nulled(&self, change: &PartitionChange, columns: &[ColumnId]) -> LogRowBuilder<'_> {
        let mut row = self.row(operation::UPDATE);
        if let PartitionChange::DeleteRow { clustering, .. } = change {
            self.set_clustering(&mut row, clustering);
        }
        for base in columns.iter().filter_map(|id| self.base.column(*id)) {
            row.set(&column::deleted(&base.name), vec![1]);
        }
        row
    }

    fn change<'s>(&'s self, change: &PartitionChange, rows: &mut Vec<LogRowBuilder<'s>>) {
        match change {
            PartitionChange::Row {
                clustering,
                cells,
                ttl_s,
                marker,
                ..
            } => {
                let operation = if *marker {
                    operation::INSERT
                } else {
                    operation::UPDATE
                };
                let mut row = self.row(operation);
                self.set_clustering(&mut row, clustering);
                self.set_delta(&mut row, cells, *ttl_s);
                rows.push(row);
            }
            PartitionChange::Static { cells, ttl_s, .. } => {
                let mut row = self.row(operation::UPDATE);
                self.set_delta(&mut row, cells, *ttl_s);
                rows.push(row);
            }
            PartitionChange::DeleteRow { clustering, .. } if self.base.keys.has_clustering() => {
                let mut row = self.row(match self.origin {
                    WriteOrigin::Client => operation::ROW_DELETE,
                    WriteOrigin::Expiry => operation::EXPIRED_ROW_DELETE,
                });
                self.set_clustering(&mut row, clustering);
                rows.push(row);
            }
            // Without clustering columns the row is the partition.
            PartitionChange::DeleteRow { .. } | PartitionChange::DeletePartition { .. } => {
                rows.push(self.row(match self.origin {
                    WriteOrigin::Client => operation::PARTITION_DELETE,
                    WriteOrigin::Expiry => operation::EXPIRED_PARTITION_DELETE,
                }));
            }
            PartitionChange::DeleteRange { start, end, .. } => {
                rows.push(self.bound(
                    start,
                    operation::RANGE_START_INCLUSIVE,
                    operation::RANGE_START_EXCLUSIVE,
                ));
                rows.push(self.bound(
                    end,
                    operation::RANGE_END_INCLUSIVE,
                    operation::RANGE_END_EXCLUSIVE,
                ));
            }
        }
    }

    fn bound(&self, bound: &ClusteringBound, inclusive: i8, exclusive: i8) -> LogRowBuilder<'_> {
        let (operation, prefix) = match bound {
            ClusteringBound::Unbounded => (inclusive, &[][..]),
            ClusteringBound::Inclusive(prefix) => (inclusive, prefix.as_slice()),
            ClusteringBound::Exclusive(prefix) => (exclusive, prefix.as_slice()),
        };
        let mut row = self.row(operation);
        self.set_clustering(&mut row, prefix);
        row
    }

    fn set_delta(&self, row: &mut LogRowBuilder<'_>, cells: &[CellChange], ttl_s: Option<u32>) {
        if self.options.delta == DeltaMode::Keys {
            return;
        }
        if let Some(ttl_s) = ttl_s.filter(|ttl| *ttl > 0) {
            row.set(column::TTL, i64::from(ttl_s).to_be_bytes().to_vec());
        }
        for CellChange { column: id, change } in cells {
            let Some(base) = self.base.column(*id) else {
                continue;
            };
            let name = &base.name;
            match change {
                CellOperation::Set(value) => row.set(name, value.clone()),
                CellOperation::Delete => row.set(&column::deleted(name), vec![1]),
                CellOperation::ReplaceElements(elements) => {
                    row.set(&column::deleted(name), vec![1]);
                    if !elements.is_empty() {
                        row.set(name, frozen(base, pairs(elements)));
                    }
                }
                CellOperation::PutElements(elements) => {
                    if !elements.is_empty() {
                        row.set(name, frozen(base, pairs(elements)));
                    }
                }
                CellOperation::DeleteElements(paths) => {
                    if !paths.is_empty() {
                        let mut paths: Vec<&Bytes> = paths.iter().collect();
                        sort_paths(base, &mut paths, |path| path);
                        let set = join_elements(paths.iter().map(|path| &path[..]));
                        row.set(&column::deleted_elements(name), set);
                    }
                }
                // Tables of counters have no log.
                CellOperation::AddToCounter(_) => {}
                // These were turned into operations by path before.
                CellOperation::SetListIndex { .. }
                | CellOperation::DeleteListIndex { .. }
                | CellOperation::RemoveListValues(_) => {}
            }
        }
    }

    /// The image of a row: with `touched` of the columns that are changed, else of all.
    fn image(
        &self,
        operation: i8,
        image: &ImageRow<'_>,
        touched: Option<&TouchedColumns<'_>>,
    ) -> LogRowBuilder<'_> {
        let mut row = self.row(operation);
        if let Some(clustering) = image.clustering {
            self.set_clustering(&mut row, clustering);
        }
        // A row that is deleted is not among them: all its columns are shown.
        let touched = touched.and_then(|touched| touched.get(&image.clustering));
        for (id, cell) in image.cells {
            let Some(base) = self.base.column(*id) else {
                continue;
            };
            if touched.is_some_and(|touched| !touched.contains(id)) {
                continue;
            }
            let value = match cell {
                Cell::Simple(cell) => cell.value.clone(),
                Cell::Elements(elements) => frozen(
                    base,
                    elements
                        .iter()
                        .map(|(path, cell)| (path, &cell.value))
                        .collect(),
                ),
            };
            row.set(&base.name, value);
        }
        row
    }

    /// The columns that pre-images show of the rows that are changed; `None` for all of all rows.
    fn touched(&self) -> Option<TouchedColumns<'_>> {
        if self.options.preimage == ImageMode::Full || self.images.before.is_empty() {
            return None;
        }
        let mut touched = TouchedColumns::new();
        for change in self.changes {
            let (row, cells) = match change {
                PartitionChange::Row {
                    clustering, cells, ..
                } => (Some(&clustering[..]), cells),
                PartitionChange::Static { cells, .. } => (None, cells),
                PartitionChange::DeletePartition { .. } => return None,
                PartitionChange::DeleteRow { .. } | PartitionChange::DeleteRange { .. } => continue,
            };
            let columns = cells.iter().map(|cell| cell.column);
            touched.entry(row).or_default().extend(columns);
        }
        for change in self.changes {
            if let PartitionChange::DeleteRow { clustering, .. } = change {
                touched.remove(&Some(&clustering[..]));
            }
        }
        Some(touched)
    }
}

/// Columns by the clustering values of their row; those of the static row are under `None`.
type TouchedColumns<'a> = HashMap<Option<&'a [Bytes]>, HashSet<ColumnId>>;

struct LogRowBuilder<'a> {
    log: &'a TableSchema,
    cells: Vec<(ColumnId, Bytes)>,
}

impl LogRowBuilder<'_> {
    /// Sets a column of the log row. A column that the log lacks, as it was made before the base
    /// column, is left out.
    fn set(&mut self, name: &str, value: impl Into<Bytes>) {
        if let Some(column) = self.log.table.column(name)
            && column.kind == ColumnKind::Regular
        {
            self.cells.push((column.id, value.into()));
        }
    }

    fn record(mut self, timestamp: i64, lifetime: CellLifetime) -> RowRecord {
        // A later value of the same column wins, as in the write.
        self.cells.reverse();
        self.cells.sort_by_key(|(id, _)| *id);
        self.cells.dedup_by_key(|(id, _)| *id);
        RowRecord {
            marker: Some(crate::record::RowMarker {
                timestamp,
                lifetime,
            }),
            cells: self
                .cells
                .into_iter()
                .map(|(id, value)| {
                    let content = CellContent::Value { value, lifetime };
                    (id, StoredColumn::Simple(CellRecord { timestamp, content }))
                })
                .collect(),
            ..RowRecord::default()
        }
    }
}

fn pairs(elements: &[(Bytes, Bytes)]) -> Vec<(&Bytes, &Bytes)> {
    elements.iter().map(|(path, value)| (path, value)).collect()
}

/// Elements as one value of the column's type in the log: a set of the paths if the column is a
/// set, the fields of a user type, else a map from path to value.
fn frozen(base: &Column, mut elements: Vec<(&Bytes, &Bytes)>) -> Bytes {
    sort_paths(base, &mut elements, |(path, _)| path);
    let elements = elements.iter().map(|(path, value)| (&path[..], &value[..]));
    match &base.cql_type {
        value::CqlType::Set { .. } => {
            let paths: Vec<&[u8]> = elements.map(|(path, _)| path).collect();
            join_elements(paths.into_iter())
        }
        value::CqlType::UserType { definition, .. } => definition.join(elements),
        _ => {
            let elements: Vec<_> = elements.collect();
            join_entries(elements.into_iter())
        }
    }
}

/// Sorts by path; of equal paths the last stays.
fn sort_paths<T>(base: &Column, items: &mut Vec<T>, path: impl Fn(&T) -> &Bytes) {
    let path_type = base.cql_type.path_type();
    let compare = |a: &T, b: &T| value::compare(path_type, path(a), path(b));
    items.reverse();
    items.sort_by(compare);
    items.dedup_by(|a, b| compare(a, b).is_eq());
}
