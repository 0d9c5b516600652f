//! A naive model of Cassandra's semantics: it keeps every change for ever, and looks at all of them
//! for every read.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bytes::Bytes;
use schema::{ColumnId, ColumnKind, Table};
use storage::mutation::{CellChange, CellOperation, PartitionChange};
use storage::read::{ClusteringBound, ClusteringSlice};
use value::{
    CqlType, compare,
    token::{Partitioner, Token, routing_key},
};

/// A cell: its value, write timestamp, and expiry as time to live and second of death.
pub type ShownCell = (Bytes, i64, Option<(u32, i64)>);

#[derive(Clone, Debug, PartialEq)]
pub enum ShownColumn {
    One(ShownCell),
    Many(Vec<(Bytes, ShownCell)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShownRow {
    pub partition: Bytes,
    pub clustering: Option<Vec<Bytes>>,
    pub statics: BTreeMap<u32, ShownColumn>,
    pub cells: BTreeMap<u32, ShownColumn>,
}

#[derive(Clone)]
pub struct Oracle {
    table: Table,
    /// Each change with the second in which it was made.
    log: Vec<(Bytes, PartitionChange, i64)>,
}

/// One statement about a cell.
#[derive(Clone, Debug)]
struct Fact {
    timestamp: i64,
    /// The value; `None` if the cell was deleted.
    value: Option<Bytes>,
    ttl_s: Option<u32>,
    /// The second of death or deletion; `None` for a value that stays.
    death_s: Option<i64>,
}

impl Fact {
    /// Whether this fact wins over another one about the same cell.
    fn beats(&self, other: &Fact) -> bool {
        if self.timestamp != other.timestamp {
            return self.timestamp > other.timestamp;
        }
        match (self.death_s, other.death_s) {
            (Some(_), None) => return true,
            (None, Some(_)) => return false,
            (Some(a), Some(b)) => {
                if self.value.is_none() != other.value.is_none() {
                    return self.value.is_none();
                }
                if a != b {
                    return a > b;
                }
            }
            (None, None) => {}
        }
        self.value > other.value
    }

    fn show(&self, now_s: i64) -> Option<ShownCell> {
        if self.death_s.is_some_and(|death| death <= now_s) {
            return None;
        }
        let value = self.value.clone()?;
        let expiry = self.ttl_s.zip(self.death_s);
        Some((value, self.timestamp, expiry))
    }
}

fn winner(facts: impl IntoIterator<Item = Fact>) -> Option<Fact> {
    facts
        .into_iter()
        .reduce(|a, b| if b.beats(&a) { b } else { a })
}

impl Oracle {
    pub fn new(table: Table) -> Oracle {
        Oracle {
            table,
            log: Vec::new(),
        }
    }

    pub fn apply(&mut self, partition: &Bytes, mut change: PartitionChange, now_s: i64) {
        if let PartitionChange::Row { cells, .. } | PartitionChange::Static { cells, .. } =
            &mut change
        {
            // Cells of columns that were dropped before are ignored.
            cells.retain(|cell| self.table.column_by_id(cell.column).is_some());
        }
        self.log.push((partition.clone(), change, now_s));
    }

    /// Drops a column, as ALTER TABLE DROP does.
    pub fn drop_column(&mut self, id: ColumnId) {
        self.table.columns.retain(|column| column.id != id);
    }

    pub fn forget_all(&mut self) {
        self.log.clear();
    }

    fn changes<'a>(
        &'a self,
        partition: &'a Bytes,
    ) -> impl Iterator<Item = (&'a PartitionChange, i64)> {
        self.log
            .iter()
            .filter(move |(of, ..)| of == partition)
            .map(|(_, change, now_s)| (change, *now_s))
    }

    pub fn partitions(&self) -> Vec<Bytes> {
        let mut all: Vec<_> = self
            .log
            .iter()
            .map(|(partition, ..)| partition.clone())
            .collect();
        all.sort_by_key(|partition| (token(partition), partition.clone()));
        all.dedup();
        all
    }

    pub fn order(&self, a: &[Bytes], b: &[Bytes]) -> Ordering {
        let columns = self.table.clustering_key();
        for ((a, b), column) in a.iter().zip(b).zip(columns) {
            let ColumnKind::Clustering { descending, .. } = column.kind else {
                unreachable!();
            };
            let order = compare(&column.cql_type, a, b);
            if order.is_ne() {
                return if descending { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }

    pub fn within(
        &self,
        clustering: &[Bytes],
        start: &ClusteringBound,
        end: &ClusteringBound,
    ) -> bool {
        let behind_start = match start {
            ClusteringBound::Unbounded => true,
            ClusteringBound::Inclusive(prefix) => self.order(clustering, prefix).is_ge(),
            ClusteringBound::Exclusive(prefix) => self.order(clustering, prefix).is_gt(),
        };
        let before_end = match end {
            ClusteringBound::Unbounded => true,
            ClusteringBound::Inclusive(prefix) => self.order(clustering, prefix).is_le(),
            ClusteringBound::Exclusive(prefix) => self.order(clustering, prefix).is_lt(),
        };
        behind_start && before_end
    }

    /// The timestamp of the newest deletion of the partition, or over the row if one is given;
    /// `i64::MIN` for none.
    fn deleted_to(&self, partition: &Bytes, row: Option<&[Bytes]>) -> i64 {
        self.changes(partition)
            .filter_map(|(change, _)| match change {
                PartitionChange::DeletePartition { timestamp } => Some(*timestamp),
                PartitionChange::DeleteRow {
                    clustering,
                    timestamp,
                } => row
                    .is_some_and(|row| self.order(row, clustering).is_eq())
                    .then_some(*timestamp),
                PartitionChange::DeleteRange {
                    start,
                    end,
                    timestamp,
                } => row
                    .is_some_and(|row| self.within(row, start, end))
                    .then_some(*timestamp),
                _ => None,
            })
            .max()
            .unwrap_or(i64::MIN)
    }

    /// The changes of a row, or of the static row with `None`: (cells, timestamp, ttl, now) of
    /// every change that names it.
    fn cell_changes<'a>(
        &'a self,
        partition: &'a Bytes,
        row: Option<&'a [Bytes]>,
    ) -> impl Iterator<Item = (&'a [CellChange], i64, Option<u32>, i64)> {
        self.changes(partition)
            .filter_map(move |(change, now_s)| match (change, row) {
                (
                    PartitionChange::Row {
                        clustering,
                        cells,
                        timestamp,
                        ttl_s,
                        ..
                    },
                    Some(row),
                ) if self.order(row, clustering).is_eq() => {
                    Some((cells.as_slice(), *timestamp, *ttl_s, now_s))
                }
                (
                    PartitionChange::Static {
                        cells,
                        timestamp,
                        ttl_s,
                    },
                    None,
                ) => Some((cells.as_slice(), *timestamp, *ttl_s, now_s)),
                _ => None,
            })
    }

    fn columns(
        &self,
        partition: &Bytes,
        row: Option<&[Bytes]>,
        now_s: i64,
    ) -> BTreeMap<u32, ShownColumn> {
        let deleted_to = self.deleted_to(partition, row);
        let kind = if row.is_some() {
            ColumnKind::Regular
        } else {
            ColumnKind::Static
        };
        let mut shown = BTreeMap::new();
        for column in self
            .table
            .columns
            .iter()
            .filter(|column| column.kind == kind)
        {
            let cells = if column.cql_type.is_multi_cell() {
                self.elements(
                    partition,
                    row,
                    column.id,
                    &column.cql_type,
                    deleted_to,
                    now_s,
                )
                .map(ShownColumn::Many)
            } else {
                self.simple(partition, row, column.id, deleted_to)
                    .and_then(|fact| fact.show(now_s))
                    .map(ShownColumn::One)
            };
            if let Some(cells) = cells {
                shown.insert(column.id.0, cells);
            }
        }
        shown
    }

    fn simple(
        &self,
        partition: &Bytes,
        row: Option<&[Bytes]>,
        id: ColumnId,
        deleted_to: i64,
    ) -> Option<Fact> {
        let mut facts = Vec::new();
        for (cells, timestamp, ttl_s, now_s) in self.cell_changes(partition, row) {
            for cell in cells.iter().filter(|cell| cell.column == id) {
                facts.push(match &cell.change {
                    CellOperation::Set(value) => fact(Some(value), timestamp, ttl_s, now_s),
                    CellOperation::Delete => fact(None, timestamp, None, now_s),
                    other => panic!("{other:?} of a simple column"),
                });
            }
        }
        winner(facts.into_iter().filter(|fact| fact.timestamp > deleted_to))
    }

    fn elements(
        &self,
        partition: &Bytes,
        row: Option<&[Bytes]>,
        id: ColumnId,
        cql_type: &CqlType,
        deleted_to: i64,
        now_s: i64,
    ) -> Option<Vec<(Bytes, ShownCell)>> {
        let mut deleted_to = deleted_to;
        let mut facts: Vec<(Bytes, Fact)> = Vec::new();
        for (cells, timestamp, ttl_s, now_s) in self.cell_changes(partition, row) {
            for cell in cells.iter().filter(|cell| cell.column == id) {
                match &cell.change {
                    CellOperation::Delete => deleted_to = deleted_to.max(timestamp),
                    CellOperation::ReplaceElements(elements) => {
                        deleted_to = deleted_to.max(timestamp - 1);
                        for (path, value) in elements {
                            facts.push((path.clone(), fact(Some(value), timestamp, ttl_s, now_s)));
                        }
                    }
                    CellOperation::PutElements(elements) => {
                        for (path, value) in elements {
                            facts.push((path.clone(), fact(Some(value), timestamp, ttl_s, now_s)));
                        }
                    }
                    CellOperation::DeleteElements(paths) => {
                        for path in paths {
                            facts.push((path.clone(), fact(None, timestamp, None, now_s)));
                        }
                    }
                    other => panic!("{other:?} is not by path"),
                }
            }
        }
        let path_type = match cql_type {
            CqlType::Set { element, .. } => element,
            CqlType::Map { key, .. } => key,
            _ => &CqlType::Timeuuid,
        };
        facts.retain(|(_, fact)| fact.timestamp > deleted_to);
        let mut paths: Vec<Bytes> = facts.iter().map(|(path, _)| path.clone()).collect();
        paths.sort_by(|a, b| compare(path_type, a, b));
        paths.dedup();
        let live: Vec<_> = paths
            .into_iter()
            .filter_map(|path| {
                let of_path = facts.iter().filter(|(other, _)| *other == path);
                let shown = winner(of_path.map(|(_, fact)| fact.clone()))?.show(now_s)?;
                Some((path, shown))
            })
            .collect();
        (!live.is_empty()).then_some(live)
    }

    fn is_marked(&self, partition: &Bytes, row: &[Bytes], now_s: i64) -> bool {
        let deleted_to = self.deleted_to(partition, Some(row));
        let markers = self
            .changes(partition)
            .filter_map(|(change, written_s)| match change {
                PartitionChange::Row {
                    clustering,
                    timestamp,
                    ttl_s,
                    marker: true,
                    ..
                } if self.order(row, clustering).is_eq() && *timestamp > deleted_to => {
                    let death_s = ttl_s.map(|ttl| written_s + i64::from(ttl));
                    Some((*timestamp, death_s))
                }
                _ => None,
            });
        // At equal timestamps a marker that dies wins, and of several the one that dies last.
        markers
            .max()
            .is_some_and(|(_, death_s)| death_s.is_none_or(|death| death > now_s))
    }

    /// Every row that was ever named, in order.
    fn named_rows(&self, partition: &Bytes) -> Vec<Vec<Bytes>> {
        let mut rows: Vec<Vec<Bytes>> = self
            .changes(partition)
            .filter_map(|(change, _)| match change {
                PartitionChange::Row { clustering, .. } => Some(clustering.clone()),
                _ => None,
            })
            .collect();
        rows.sort_by(|a, b| self.order(a, b));
        rows.dedup_by(|a, b| self.order(a, b).is_eq());
        rows
    }

    pub fn row(&self, partition: &Bytes, row: &[Bytes], now_s: i64) -> Option<ShownRow> {
        let cells = self.columns(partition, Some(row), now_s);
        if cells.is_empty() && !self.is_marked(partition, row, now_s) {
            return None;
        }
        Some(ShownRow {
            partition: partition.clone(),
            clustering: Some(row.to_vec()),
            statics: self.statics(partition, now_s),
            cells,
        })
    }

    pub fn statics(&self, partition: &Bytes, now_s: i64) -> BTreeMap<u32, ShownColumn> {
        self.columns(partition, None, now_s)
    }

    /// All live rows; if there are none, one row for the static content, if there is any.
    pub fn partition(&self, partition: &Bytes, now_s: i64) -> Vec<ShownRow> {
        let mut rows: Vec<_> = self
            .named_rows(partition)
            .iter()
            .filter_map(|row| self.row(partition, row, now_s))
            .collect();
        let statics = self.statics(partition, now_s);
        if rows.is_empty() && !statics.is_empty() {
            rows.push(ShownRow {
                partition: partition.clone(),
                clustering: None,
                statics,
                cells: BTreeMap::new(),
            });
        }
        rows
    }

    pub fn slices(
        &self,
        partition: &Bytes,
        slices: &[ClusteringSlice],
        now_s: i64,
    ) -> Vec<ShownRow> {
        self.partition(partition, now_s)
            .into_iter()
            .filter(|row| {
                row.clustering.as_ref().is_some_and(|clustering| {
                    slices
                        .iter()
                        .any(|slice| self.within(clustering, &slice.start, &slice.end))
                })
            })
            .collect()
    }

    pub fn all(&self, now_s: i64) -> Vec<ShownRow> {
        self.partitions()
            .iter()
            .flat_map(|partition| self.partition(partition, now_s))
            .collect()
    }

    /// The smallest timestamp that wins over all changes of a row.
    pub fn floor(&self, partition: &Bytes, row: Option<&[Bytes]>) -> i64 {
        let cells = self
            .cell_changes(partition, row)
            .flat_map(|(cells, timestamp, ..)| {
                cells
                    .iter()
                    .filter_map(move |cell| newest(&cell.change, timestamp))
            });
        let markers = self
            .changes(partition)
            .filter_map(|(change, _)| match change {
                PartitionChange::Row {
                    clustering,
                    timestamp,
                    marker: true,
                    ..
                } if row.is_some_and(|row| self.order(row, clustering).is_eq()) => Some(*timestamp),
                _ => None,
            });
        let newest = cells.chain(markers).max().unwrap_or(i64::MIN);
        newest
            .max(self.deleted_to(partition, row))
            .saturating_add(1)
    }
}

/// The greatest timestamp that an operation leaves; `None` if it leaves nothing.
fn newest(operation: &CellOperation, timestamp: i64) -> Option<i64> {
    match operation {
        CellOperation::ReplaceElements(elements) if elements.is_empty() => Some(timestamp - 1),
        CellOperation::PutElements(elements) if elements.is_empty() => None,
        CellOperation::DeleteElements(paths) if paths.is_empty() => None,
        _ => Some(timestamp),
    }
}

fn fact(value: Option<&Bytes>, timestamp: i64, ttl_s: Option<u32>, now_s: i64) -> Fact {
    Fact {
        timestamp,
        value: value.cloned(),
        ttl_s,
        death_s: match value {
            Some(_) => ttl_s.map(|ttl| now_s + i64::from(ttl)),
            None => Some(now_s),
        },
    }
}

pub fn token(partition: &Bytes) -> Token {
    Partitioner::Murmur3.token(&routing_key(std::slice::from_ref(partition)))
}
