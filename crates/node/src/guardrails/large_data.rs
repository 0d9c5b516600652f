//! Warnings in the log about large partitions, rows, cells and collections.
//!
//! They go to the operator alone: clients are neither warned nor refused. Lines have the module
//! `large_data` and name keyspace, table and column. Each place is logged at most once in ten
//! minutes; all of them are counted.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use schema::{Catalog, Table};
use storage::clock::{Clock, SystemClock};
use storage::mutation::{CellChange, CellOperation, PartitionChange, PartitionMutation};

use super::values::items;
use super::violations::{ExceedingValue, ViolationHistory};
use super::{Guardrail, ValueLocation, without_controls};

/// The sizes above which data is logged as large; 0 for never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeDataLimits {
    /// Bytes of a partition, by the walks over partitions.
    pub partition_bytes: u64,
    /// Bytes of a row in one write.
    pub row_bytes: u64,
    /// Bytes of a cell.
    pub cell_bytes: u64,
    /// Elements of a collection in one write.
    pub elements: u64,
}

impl Default for LargeDataLimits {
    /// The thresholds of ScyllaDB.
    fn default() -> LargeDataLimits {
        LargeDataLimits {
            partition_bytes: 1_000 << 20,
            row_bytes: 10 << 20,
            cell_bytes: 1 << 20,
            elements: 10_000,
        }
    }
}

/// A kind of large data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum LargeDataKind {
    /// A partition.
    Partition,
    /// A row.
    Row,
    /// A cell.
    Cell,
    /// A collection.
    Collection,
}

impl LargeDataKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [LargeDataKind; 4] = [
        LargeDataKind::Partition,
        LargeDataKind::Row,
        LargeDataKind::Cell,
        LargeDataKind::Collection,
    ];

    /// The name, as metrics have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LargeDataKind::Partition => "partition",
            LargeDataKind::Row => "row",
            LargeDataKind::Cell => "cell",
            LargeDataKind::Collection => "collection",
        }
    }

    /// The guardrail that looks at the same value, whose places are remembered alike.
    fn guardrail(self) -> Guardrail {
        match self {
            LargeDataKind::Partition => Guardrail::PartitionSize,
            LargeDataKind::Row => Guardrail::RowSize,
            LargeDataKind::Cell => Guardrail::ColumnValueSize,
            LargeDataKind::Collection => Guardrail::ItemsPerCollection,
        }
    }
}

/// The large data that was seen.
#[derive(Debug, Default)]
pub(super) struct LargeDataLog {
    limits: LargeDataLimits,
    counts: [AtomicU64; LargeDataKind::ALL.len()],
    seen: Mutex<ViolationHistory>,
}

impl LargeDataLog {
    pub(super) fn new(limits: LargeDataLimits) -> LargeDataLog {
        LargeDataLog {
            limits,
            ..LargeDataLog::default()
        }
    }

    pub(super) fn limits(&self) -> LargeDataLimits {
        self.limits
    }

    pub(super) fn counts(&self) -> [(LargeDataKind, u64); LargeDataKind::ALL.len()] {
        let count = |kind: LargeDataKind| self.counts[kind as usize].load(Ordering::Relaxed);
        LargeDataKind::ALL.map(|kind| (kind, count(kind)))
    }

    /// Looks at the rows and cells of a write. Nothing is allocated unless something is large.
    pub(super) fn look(&self, catalog: &Catalog, mutations: &[PartitionMutation]) {
        for mutation in mutations {
            for change in &mutation.changes {
                let (clustering, cells) = match change {
                    PartitionChange::Row {
                        clustering, cells, ..
                    } => (&clustering[..], cells),
                    PartitionChange::Static { cells, .. } => (&[][..], cells),
                    PartitionChange::DeleteRow { .. }
                    | PartitionChange::DeleteRange { .. }
                    | PartitionChange::DeletePartition { .. } => continue,
                };
                let table = || catalog.table_by_id(mutation.table).map(|table| &**table);
                let mut bytes: usize = clustering.iter().map(Bytes::len).sum();
                for cell in cells {
                    let size = CellSize::of(&cell.change);
                    bytes += size.bytes;
                    if is_above(size.cell, self.limits.cell_bytes)
                        || is_above(size.elements_at_most, self.limits.elements)
                    {
                        self.look_at_cell(table(), cell, size);
                    }
                }
                if is_above(bytes, self.limits.row_bytes)
                    && let Some(table) = table()
                {
                    let row = LargeDataKind::Row;
                    self.note(row, bytes as u64, self.limits.row_bytes, of(table));
                }
            }
        }
    }

    /// Looks at a cell that may be large. `table` is `None` if it was dropped meanwhile.
    fn look_at_cell(&self, table: Option<&Table>, cell: &CellChange, size: CellSize) {
        let column = table.and_then(|table| Some((table, table.column_by_id(cell.column)?)));
        let Some((table, column)) = column else {
            return;
        };
        let place = ValueLocation {
            column: &column.name,
            ..of(table)
        };
        if is_above(size.cell, self.limits.cell_bytes) {
            let limit = self.limits.cell_bytes;
            self.note(LargeDataKind::Cell, size.cell as u64, limit, place);
        }
        let elements = match &cell.change {
            CellOperation::Set(value) => items(&column.cql_type, value).unwrap_or(0),
            _ => size.elements_at_most,
        };
        if is_above(elements, self.limits.elements) {
            let limit = self.limits.elements;
            self.note(LargeDataKind::Collection, elements as u64, limit, place);
        }
    }

    /// Counts large data, and logs it unless its place was logged a moment ago.
    pub(super) fn note(
        &self,
        kind: LargeDataKind,
        value: u64,
        limit: u64,
        place: ValueLocation<'_>,
    ) {
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
        let seen = ExceedingValue {
            value,
            is_failure: false,
            is_refused: false,
        };
        let now_micros = SystemClock.now_micros();
        let is_logged = (self.seen.lock()).note(kind.guardrail(), place, seen, now_micros);
        if is_logged {
            let text = line(kind, value, limit, place);
            let text = without_controls(&text);
            tracing::warn!(target: "large_data", "{text}");
        }
    }
}

/// The sizes of a cell in a write.
#[derive(Clone, Copy, Debug, Default)]
struct CellSize {
    /// The bytes of the whole change.
    bytes: usize,
    /// The bytes of its largest cell. An element of a collection is a cell.
    cell: usize,
    /// The number of its elements, if it is a collection, or more.
    elements_at_most: usize,
}

impl CellSize {
    fn of(change: &CellOperation) -> CellSize {
        match change {
            CellOperation::Set(value) => CellSize {
                bytes: value.len(),
                cell: value.len(),
                // Each element of a frozen collection has its length in four bytes before it.
                elements_at_most: value.len() / size_of::<i32>(),
            },
            CellOperation::ReplaceElements(elements) | CellOperation::PutElements(elements) => {
                let sizes = elements
                    .iter()
                    .map(|(path, value)| path.len() + value.len());
                CellSize {
                    bytes: sizes.clone().sum(),
                    cell: sizes.max().unwrap_or(0),
                    elements_at_most: elements.len(),
                }
            }
            CellOperation::SetListIndex { value, .. } => CellSize {
                bytes: value.len(),
                cell: value.len(),
                elements_at_most: 0,
            },
            CellOperation::AddToCounter(_)
            | CellOperation::Delete
            | CellOperation::DeleteElements(_)
            | CellOperation::DeleteListIndex { .. }
            | CellOperation::RemoveListValues(_) => CellSize::default(),
        }
    }
}

/// Whether a size is above a limit, if there is one.
fn is_above(size: usize, limit: u64) -> bool {
    limit > 0 && size as u64 > limit
}

fn of(table: &Table) -> ValueLocation<'_> {
    ValueLocation {
        keyspace: &table.keyspace,
        table: &table.name,
        ..ValueLocation::default()
    }
}

/// The line of the log. Keys are not in it, as they may be about persons.
fn line(kind: LargeDataKind, value: u64, limit: u64, place: ValueLocation<'_>) -> String {
    let ValueLocation {
        keyspace,
        table,
        column,
        ..
    } = place;
    let name = kind.name();
    match kind {
        LargeDataKind::Partition | LargeDataKind::Row => {
            format!("Large {name} in {keyspace}.{table}: {value} bytes, above {limit}")
        }
        LargeDataKind::Cell => {
            format!(
                "Large cell in {keyspace}.{table}: column {column}, {value} bytes, above {limit}"
            )
        }
        LargeDataKind::Collection => format!(
            "Large collection in {keyspace}.{table}: column {column}, {value} elements, above {limit}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: ValueLocation<'_> = ValueLocation {
        keyspace: "shop",
        table: "products",
        column: "photo",
        partition: "'ann@example.com'",
    };

    #[test]
    fn a_line_names_the_place_and_no_key() {
        let of = |kind| line(kind, 2_097_152, 1_048_576, PLACE);
        assert_eq!(
            LargeDataKind::ALL.map(of),
            [
                "Large partition in shop.products: 2097152 bytes, above 1048576",
                "Large row in shop.products: 2097152 bytes, above 1048576",
                "Large cell in shop.products: column photo, 2097152 bytes, above 1048576",
                "Large collection in shop.products: column photo, 2097152 elements, above 1048576",
            ]
        );
    }

    #[test]
    fn cells_have_their_sizes() {
        let value = Bytes::from_static(b"12345678");
        let sizes = |change| {
            let CellSize {
                bytes,
                cell,
                elements_at_most,
            } = CellSize::of(&change);
            (bytes, cell, elements_at_most)
        };
        assert_eq!(sizes(CellOperation::Set(value.clone())), (8, 8, 2));
        let path = Bytes::from_static(b"k");
        let elements = vec![(path.clone(), value), (path, Bytes::new())];
        assert_eq!(sizes(CellOperation::PutElements(elements)), (10, 9, 2));
        assert_eq!(sizes(CellOperation::Delete), (0, 0, 0));
    }

    #[test]
    fn everything_large_is_counted() {
        let log = LargeDataLog::default();
        for kind in LargeDataKind::ALL {
            log.note(kind, 5, 4, PLACE);
            log.note(kind, 5, 4, PLACE);
        }
        assert_eq!(log.counts().map(|(_, count)| count), [2; 4]);
    }

    #[test]
    fn a_limit_of_zero_is_none() {
        assert!(is_above(5, 4));
        assert!(!is_above(4, 4));
        assert!(!is_above(usize::MAX, 0));
    }
}
