//! Compares the storage with a naive model of Cassandra's semantics, under random changes of every
//! kind. In between time passes, columns are dropped, tables are emptied, and the storage is closed
//! and opened. Secondary indexes come and go meanwhile. Every other table is held in memory.

mod indexes;
mod operations;
mod oracle;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use operations::{Op, clustering, ops};
use oracle::{Oracle, ShownCell, ShownColumn, ShownRow, token};
use proptest::collection::vec;
use proptest::prelude::*;
use schema::{ColumnId, Table};
use storage::mutation::{
    AtomicWrite, CellChange, CellOperation, PartitionChange, PartitionMutation, RowCondition,
    RowPredicate, WriteCondition, WriteOutcome,
};
use storage::read::{
    Cell, ClusteringBound, ClusteringSlice, LiveCell, NextRow, PartitionSelection, ReadRequest, Row,
};
use storage::{Durability, Storage, StorageOptions};
use value::CqlType;

use crate::support::*;

const S: ColumnId = ColumnId(3);
const S_SET: ColumnId = ColumnId(4);
const A: ColumnId = ColumnId(5);
const B: ColumnId = ColumnId(6);
const LIST: ColumnId = ColumnId(7);
const MAP: ColumnId = ColumnId(8);

fn boxed(cql_type: CqlType) -> Box<CqlType> {
    Box::new(cql_type)
}

fn table() -> Table {
    let list = CqlType::List {
        element: boxed(CqlType::Int),
        frozen: false,
    };
    let set = CqlType::Set {
        element: boxed(CqlType::Int),
        frozen: false,
    };
    let map = CqlType::Map {
        key: boxed(CqlType::Text),
        value: boxed(CqlType::Int),
        frozen: false,
    };
    TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .clustering("c1", CqlType::Int, false)
        .clustering("c2", CqlType::Text, true)
        .statics("s", CqlType::Int)
        .statics("s_set", set)
        .regular("a", CqlType::Text)
        .regular("b", CqlType::Int)
        .regular("list", list)
        .regular("map", map)
        .build()
}

fn show_cell(cell: &LiveCell) -> ShownCell {
    let expiry = cell.expiry.map(|expiry| (expiry.ttl_s, expiry.at_s));
    (cell.value.clone(), cell.timestamp, expiry)
}

fn show_cells(cells: &[(ColumnId, Cell)]) -> BTreeMap<u32, ShownColumn> {
    cells
        .iter()
        .map(|(id, cell)| {
            let shown = match cell {
                Cell::Simple(cell) => ShownColumn::One(show_cell(cell)),
                Cell::Elements(elements) => ShownColumn::Many(
                    elements
                        .iter()
                        .map(|(path, cell)| (path.clone(), show_cell(cell)))
                        .collect(),
                ),
            };
            (id.0, shown)
        })
        .collect()
}

fn show(row: &Row) -> ShownRow {
    assert_eq!(row.partition.token, token(&row.partition.key[0]));
    ShownRow {
        partition: row.partition.key[0].clone(),
        clustering: row.clustering.clone(),
        statics: show_cells(&row.partition.static_cells),
        cells: show_cells(&row.cells),
    }
}

/// The state of the test. All cases share one storage, as making a directory takes many syncs. Each
/// case has a table of its own.
struct World {
    directory: tempfile::TempDir,
    clock: Arc<ManualClock>,
    storage: Option<Storage>,
    table: Table,
    oracle: Oracle,
    b_is_dropped: bool,
    cases: usize,
}

impl World {
    fn new() -> World {
        let mut world = World {
            directory: tempfile::tempdir().expect("a directory"),
            clock: ManualClock::new(START_MICROS),
            storage: None,
            table: table(),
            oracle: Oracle::new(table()),
            b_is_dropped: false,
            cases: 0,
        };
        world.open();
        world
    }

    /// Replaces the table by an empty one.
    fn renew(&mut self) {
        let former = self.table.name.clone();
        let mut table = table();
        // Some are there from the beginning, others are made of rows.
        self.cases += 1;
        for number in [self.cases, self.cases + 1] {
            indexes::toggle(&mut table, number % indexes::COUNT);
        }
        // Every other table is held in memory.
        if self.cases.is_multiple_of(2) {
            hold_in_memory(&mut table);
        }
        self.table = table.clone();
        self.oracle = Oracle::new(table.clone());
        self.b_is_dropped = false;
        block_on(self.storage().change_catalog(move |catalog| {
            catalog.remove_table("ks", &former);
            Ok::<(), ()>(())
        }))
        .expect("the table is dropped");
        create(self.storage(), &table, true);
    }

    fn open(&mut self) {
        self.storage = None;
        let options = StorageOptions {
            // This test cuts no power, so writes need not wait for the disk.
            durability: Durability::Buffered {
                sync_interval: std::time::Duration::from_secs(60),
            },
            ..options()
        };
        let clock: Arc<dyn storage::clock::Clock> = self.clock.clone();
        let opened = Storage::open_with_clock(self.directory.path(), options, clock);
        self.storage = Some(opened.expect("it opens"));
    }

    fn storage(&self) -> &Storage {
        self.storage.as_ref().expect("it is open")
    }

    fn now_s(&self) -> i64 {
        self.clock.now_s()
    }

    fn run(&mut self, op: Op) {
        match op {
            Op::Write(mutations) => self.write(mutations),
            Op::InsertIfNotExists(partition, key, changes) => {
                self.insert_if_not_exists(int(partition), key, changes);
            }
            Op::Advance(seconds) => self.clock.advance_seconds(seconds),
            Op::Reopen => self.open(),
            Op::Truncate => {
                block_on(self.storage().truncate(self.table.id)).expect("it is emptied");
                self.oracle.forget_all();
            }
            Op::ToggleIndex(number) => {
                self.change_table(move |table| indexes::toggle(table, number));
            }
            Op::DropColumnB => {
                self.change_table(|table| table.columns.retain(|column| column.id != B));
                self.oracle.drop_column(B);
                self.b_is_dropped = true;
            }
        }
    }

    fn change_table(&self, change: impl FnOnce(&mut Table) + Send + 'static) {
        let (keyspace, name) = (self.table.keyspace.clone(), self.table.name.clone());
        block_on(self.storage().change_catalog(move |catalog| {
            let mut table = (**catalog.table(&keyspace, &name).expect("it exists")).clone();
            change(&mut table);
            catalog.put_table(table);
            Ok::<(), ()>(())
        }))
        .expect("the table is changed");
    }

    fn write(&mut self, mutations: Vec<(i32, Vec<PartitionChange>)>) {
        let write = AtomicWrite {
            mutations: mutations
                .iter()
                .map(|(partition, changes)| PartitionMutation {
                    table: self.table.id,
                    partition_key: vec![int(*partition)],
                    changes: changes.clone(),
                })
                .collect(),
            condition: None,
        };
        let outcome = block_on(self.storage().write(write));
        // List operations refer to the list as it was before the write.
        let resolved: Option<Vec<_>> = mutations
            .into_iter()
            .map(|(partition, changes)| {
                let partition = int(partition);
                let changes = changes
                    .into_iter()
                    .map(|change| self.resolve(&partition, change))
                    .collect::<Option<Vec<_>>>()?;
                Some((partition, changes))
            })
            .collect();
        match resolved {
            None => assert!(
                matches!(outcome, Err(storage::StorageError::Invalid(_))),
                "a list index out of bounds is refused, got {outcome:?}"
            ),
            Some(resolved) => {
                assert!(matches!(outcome, Ok(WriteOutcome::Applied)), "{outcome:?}");
                let now_s = self.now_s();
                for (partition, changes) in resolved {
                    for change in changes {
                        self.oracle.apply(&partition, change, now_s);
                    }
                }
            }
        }
    }

    /// Turns list operations into operations by path, each on the list that those before it leave;
    /// `None` if a list index is out of bounds.
    fn resolve(&self, partition: &Bytes, mut change: PartitionChange) -> Option<PartitionChange> {
        let PartitionChange::Row {
            clustering,
            cells,
            timestamp,
            ttl_s,
            ..
        } = &mut change
        else {
            return Some(change);
        };
        let now_s = self.now_s();
        let mut oracle = self.oracle.clone();
        for cell in cells {
            let row = oracle.row(partition, clustering, now_s);
            let list = match row.and_then(|mut row| row.cells.remove(&LIST.0)) {
                Some(ShownColumn::Many(list)) => list,
                _ => Vec::new(),
            };
            let path_at = |index: u32| list.get(index as usize).map(|(path, _)| path.clone());
            cell.change = match &cell.change {
                CellOperation::SetListIndex { index, value } => {
                    CellOperation::PutElements(vec![(path_at(*index)?, value.clone())])
                }
                CellOperation::DeleteListIndex { index } => {
                    CellOperation::DeleteElements(vec![path_at(*index)?])
                }
                CellOperation::RemoveListValues(values) => CellOperation::DeleteElements(
                    list.iter()
                        .filter(|(_, (value, ..))| values.contains(value))
                        .map(|(path, _)| path.clone())
                        .collect(),
                ),
                other => other.clone(),
            };
            let one = PartitionChange::Row {
                clustering: clustering.clone(),
                cells: vec![cell.clone()],
                timestamp: *timestamp,
                ttl_s: *ttl_s,
                marker: false,
            };
            oracle.apply(partition, one, now_s);
        }
        Some(change)
    }

    fn insert_if_not_exists(
        &mut self,
        partition: Bytes,
        key: Option<Vec<Bytes>>,
        changes: Vec<PartitionChange>,
    ) {
        let now_s = self.now_s();
        let existing = match &key {
            Some(key) => self.oracle.row(&partition, key, now_s),
            None => {
                let statics = self.oracle.statics(&partition, now_s);
                (!statics.is_empty()).then(|| ShownRow {
                    partition: partition.clone(),
                    clustering: None,
                    statics,
                    cells: BTreeMap::new(),
                })
            }
        };
        let write = AtomicWrite {
            mutations: vec![PartitionMutation {
                table: self.table.id,
                partition_key: vec![partition.clone()],
                changes: changes.clone(),
            }],
            condition: Some(WriteCondition {
                table: self.table.id,
                partition_key: vec![partition.clone()],
                rows: vec![RowCondition {
                    clustering: key.clone().unwrap_or_default(),
                    predicate: RowPredicate::NotExists,
                }],
                columns: None,
            }),
        };
        let outcome = block_on(self.storage().write(write)).expect("it is decided");
        match (outcome, existing) {
            (WriteOutcome::NotApplied { standing }, Some(expected)) => {
                assert_eq!(standing.iter().map(show).collect::<Vec<_>>(), [expected]);
            }
            (WriteOutcome::Applied, None) => {
                let floor = self.oracle.floor(&partition, key.as_deref());
                for mut change in changes {
                    match &mut change {
                        PartitionChange::Row { timestamp, .. }
                        | PartitionChange::Static { timestamp, .. } => {
                            *timestamp = floor.max(*timestamp);
                        }
                        other => panic!("{other:?}"),
                    }
                    // By the raised time: what comes first in the change is seen by what follows.
                    let change = self.resolve(&partition, change).expect("no index in it");
                    self.oracle.apply(&partition, change, now_s);
                }
                if let Some(key) = &key {
                    assert!(self.oracle.row(&partition, key, now_s).is_some());
                }
            }
            (outcome, expected) => panic!("got {outcome:?}, expected {expected:?}"),
        }
    }

    fn check(&self, slices: &[ClusteringSlice], page: usize, middle: i64) {
        let now_s = self.now_s();
        let expected = self.oracle.all(now_s);
        indexes::check(self.storage(), &self.table, &expected, self.b_is_dropped);
        let shown = |rows: Vec<Row>| rows.iter().map(show).collect::<Vec<_>>();
        assert_eq!(shown(read_all(self.storage(), &self.table)), expected);
        assert_eq!(
            self.paged(request(&self.table, whole_ring()), page),
            expected
        );

        let (mut low, high): (Vec<_>, Vec<_>) = expected
            .iter()
            .cloned()
            .partition(|row| token(&row.partition).0 <= middle);
        let middle = value::token::Token(middle);
        let part = |low, high| {
            read(
                self.storage(),
                request(&self.table, PartitionSelection::Tokens(low, high)),
            )
        };
        let below = part(Bound::Unbounded, Bound::Included(middle));
        assert_eq!(shown(below), low);
        low.extend(shown(part(Bound::Excluded(middle), Bound::Unbounded)));
        assert_eq!(low.len(), expected.len());
        assert_eq!(low[low.len() - high.len()..], high[..]);

        for partition in [int(0), int(1), int(2)] {
            let mut whole = request(
                &self.table,
                PartitionSelection::One(vec![partition.clone()]),
            );
            let mut rows = self.oracle.partition(&partition, now_s);
            assert_eq!(shown(read(self.storage(), whole.clone())), rows);
            assert_eq!(self.paged(whole.clone(), page), rows);
            whole.reversed = true;
            rows.reverse();
            assert_eq!(self.paged(whole.clone(), page), rows);

            let mut sliced = whole;
            sliced.slices = slices.to_vec();
            let mut rows = self.oracle.slices(&partition, slices, now_s);
            rows.reverse();
            assert_eq!(self.paged(sliced.clone(), page), rows);
            sliced.reversed = false;
            rows.reverse();
            assert_eq!(self.paged(sliced.clone(), page), rows);
            assert_eq!(shown(read(self.storage(), sliced)), rows);

            for row in rows {
                let mut one = request(
                    &self.table,
                    PartitionSelection::One(vec![partition.clone()]),
                );
                one.slices = vec![point(row.clustering.clone().expect("a row"))];
                assert_eq!(shown(read(self.storage(), one)), [row]);
            }
            let view = self.storage().view(self.table.id).expect("a view");
            for slice in slices {
                for bound in [&slice.start, &slice.end] {
                    let (ClusteringBound::Inclusive(key) | ClusteringBound::Exclusive(key)) = bound
                    else {
                        panic!("{bound:?} is not of a key");
                    };
                    let row = view.row(vec![partition.clone()], key).expect("a look-up");
                    let expected = self.oracle.row(&partition, key, now_s);
                    assert_eq!(row.as_ref().map(show), expected);
                }
            }
        }
    }

    /// Checks that a stream which is let go around each row gives the same rows, and has passed the
    /// same tombstones.
    fn check_let_go(&self, request: &ReadRequest) {
        let open = || self.storage().read(request.clone());
        let mut whole = open().expect("the read starts");
        let expected = whole.by_ref().collect::<Result<Vec<Row>, _>>();
        let expected = expected.expect("the read succeeds");
        for (record_bytes_max, lets_go_before) in [(usize::MAX, false), (0, false), (0, true)] {
            let mut stream = open().expect("the read starts");
            let mut rows = Vec::new();
            loop {
                let mut next = stream.advance(record_bytes_max);
                if matches!(next, Ok(NextRow::Large)) {
                    if lets_go_before {
                        stream.let_go();
                    }
                    next = stream.advance(usize::MAX);
                }
                match next.expect("the read succeeds") {
                    NextRow::Row(mut row) => {
                        // A copy in other memory is the same row.
                        row.detach();
                        rows.push(row);
                    }
                    NextRow::Nothing => break,
                    NextRow::Large => panic!("no record is larger"),
                }
                stream.let_go();
            }
            assert_eq!(rows, expected);
            assert_eq!(stream.tombstones(), whole.tombstones());
        }
    }

    /// The whole result of a request, read in pages.
    fn paged(&self, mut request: ReadRequest, page: usize) -> Vec<ShownRow> {
        self.check_let_go(&request);
        let mut all = Vec::new();
        loop {
            let rows: Vec<Row> = self
                .storage()
                .read(request.clone())
                .expect("the read starts")
                .take(page)
                .collect::<Result<_, _>>()
                .expect("the read succeeds");
            all.extend(rows.iter().map(show));
            match rows.last() {
                Some(last) if rows.len() == page => {
                    request.resume_after = Some(last.position.clone());
                }
                _ => return all,
            }
        }
    }
}

/// Slices that are disjoint and in order.
fn disjoint(oracle: &Oracle, points: &mut Vec<Vec<Bytes>>) -> Vec<ClusteringSlice> {
    points.sort_by(|a, b| oracle.order(a, b));
    points.dedup_by(|a, b| oracle.order(a, b).is_eq());
    points
        .chunks(2)
        .map(|pair| match pair {
            [start, end] => slice(
                ClusteringBound::Inclusive(start.clone()),
                ClusteringBound::Exclusive(end.clone()),
            ),
            [single] => point(single.clone()),
            _ => unreachable!("chunks of two"),
        })
        .collect()
}

#[test]
fn storage_behaves_as_the_model() {
    let config = ProptestConfig {
        cases: 100,
        max_shrink_iters: 300,
        failure_persistence: None,
        ..Default::default()
    };
    let shared = Mutex::new(World::new());
    let arguments = (
        vec(ops(), 1..30),
        vec(clustering(), 1..6),
        1..5_usize,
        any::<i64>(),
    );
    proptest!(config, |((ops, mut points, page, middle) in arguments)| {
        let mut world = shared.lock().unwrap_or_else(PoisonError::into_inner);
        world.renew();
        let slices = disjoint(&world.oracle, &mut points);
        for (number, op) in ops.into_iter().enumerate() {
            world.run(op);
            if number % 4 == 0 {
                world.check(&slices, page, middle);
            }
        }
        world.check(&slices, page, middle);
        // Expired cells do not come back.
        world.clock.advance_seconds(10);
        world.check(&slices, page, middle);
    });
}
