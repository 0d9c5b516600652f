//! Tests the rows that each kind of write leaves in the CDC log, written out as text.

use std::collections::BTreeMap;

use bytes::Bytes;
use schema::{CdcOptions, ColumnId, ColumnKind, DeltaMode, ImageMode, Table};
use storage::Storage;
use storage::mutation::{CellOperation, PartitionChange};
use storage::read::{Cell, ClusteringBound, Row};
use value::{CqlType, Value};

use crate::support::*;

const S: ColumnId = ColumnId(2);
const A: ColumnId = ColumnId(3);
const SET: ColumnId = ColumnId(4);
const LIST: ColumnId = ColumnId(5);
const MAP: ColumnId = ColumnId(6);

fn table(options: CdcOptions) -> Table {
    let boxed = |cql_type| Box::new(cql_type);
    TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .statics("s", CqlType::Text)
        .regular("a", CqlType::Text)
        .regular(
            "ints",
            CqlType::Set {
                element: boxed(CqlType::Int),
                frozen: false,
            },
        )
        .regular(
            "list",
            CqlType::List {
                element: boxed(CqlType::Int),
                frozen: false,
            },
        )
        .regular(
            "map",
            CqlType::Map {
                key: boxed(CqlType::Text),
                value: boxed(CqlType::Int),
                frozen: false,
            },
        )
        .cdc(options)
        .build()
}

struct Logged {
    _directory: tempfile::TempDir,
    storage: Storage,
    table: Table,
}

impl Logged {
    fn new(options: CdcOptions) -> Logged {
        let directory = tempfile::tempdir().unwrap();
        let storage = open_at(directory.path(), &ManualClock::new(START_MICROS));
        let table = table(options);
        create(&storage, &table, true);
        Logged {
            _directory: directory,
            storage,
            table,
        }
    }

    fn write(&self, changes: Vec<PartitionChange>) {
        write(&self.storage, &self.table, vec![int(1)], changes);
    }

    fn log_table(&self) -> std::sync::Arc<Table> {
        let catalog = self.storage.catalog();
        catalog
            .table("ks", "t_scylla_cdc_log")
            .expect("the log exists")
            .clone()
    }

    fn log_rows(&self) -> Vec<Row> {
        read_all(&self.storage, &self.log_table())
    }

    /// The rows as text, without stream and time: `sequence: column=value ...`.
    fn log(&self) -> Vec<String> {
        let log = self.log_table();
        self.log_rows().iter().map(|row| show(&log, row)).collect()
    }
}

fn show(log: &Table, row: &Row) -> String {
    let key = row.clustering.as_ref().expect("a row");
    let sequence = i32::from_be_bytes(key[1][..].try_into().expect("an int"));
    let mut columns = BTreeMap::new();
    for (id, cell) in &row.cells {
        let column = log.column_by_id(*id).expect("a column of the log");
        let Cell::Simple(cell) = cell else {
            panic!("the log has frozen columns only");
        };
        let value = Value::deserialize(&column.cql_type, &cell.value).expect("a valid value");
        let text = match &column.cql_type {
            CqlType::Map { key, .. } if **key == CqlType::Timeuuid => format!("{value:?}"),
            _ => value.to_literal(),
        };
        columns.insert(column.name.clone(), text);
    }
    let operation = columns.remove("cdc$operation").expect("an operation");
    let mut text = format!("{sequence}: {operation}");
    for (name, value) in columns {
        text += &format!(" {name}={value}");
    }
    text
}

fn delta_only() -> CdcOptions {
    cdc_options()
}

#[test]
fn inserts_and_updates() {
    let logged = Logged::new(delta_only());
    logged.write(vec![insert(
        vec![int(2)],
        vec![set(A, text("x"))],
        START_MICROS,
    )]);
    logged.write(vec![update(
        vec![int(2)],
        vec![cell(A, CellOperation::Delete)],
        START_MICROS + 1,
    )]);
    logged.write(vec![PartitionChange::Row {
        clustering: vec![int(3)],
        cells: vec![set(A, text("y"))],
        timestamp: START_MICROS + 2,
        ttl_s: Some(60),
        marker: true,
    }]);
    logged.write(vec![PartitionChange::Static {
        cells: vec![set(S, text("z"))],
        timestamp: START_MICROS + 3,
        ttl_s: None,
    }]);
    assert_eq!(
        logged.log(),
        [
            "0: 2 a='x' c=2 cdc$end_of_batch=true p=1",
            "0: 1 c=2 cdc$deleted_a=true cdc$end_of_batch=true p=1",
            "0: 2 a='y' c=3 cdc$end_of_batch=true cdc$ttl=60 p=1",
            "0: 1 cdc$end_of_batch=true p=1 s='z'",
        ]
    );
}

/// A change to one collection of a row.
fn with(column: ColumnId, change: CellOperation, timestamp: i64) -> PartitionChange {
    update(
        vec![int(2)],
        vec![cell(column, change)],
        START_MICROS + timestamp,
    )
}

#[test]
fn sets_and_maps() {
    let logged = Logged::new(delta_only());
    logged.write(vec![with(
        SET,
        CellOperation::ReplaceElements(vec![(int(5), Bytes::new()), (int(-1), Bytes::new())]),
        0,
    )]);
    logged.write(vec![with(
        SET,
        CellOperation::PutElements(vec![(int(7), Bytes::new())]),
        1,
    )]);
    logged.write(vec![with(
        SET,
        CellOperation::DeleteElements(vec![int(7), int(5)]),
        2,
    )]);
    logged.write(vec![with(SET, CellOperation::Delete, 3)]);
    logged.write(vec![with(
        MAP,
        CellOperation::PutElements(vec![(text("k"), int(1))]),
        4,
    )]);
    assert_eq!(
        logged.log(),
        [
            "0: 1 c=2 cdc$deleted_ints=true cdc$end_of_batch=true ints={-1, 5} p=1",
            "0: 1 c=2 cdc$end_of_batch=true ints={7} p=1",
            "0: 1 c=2 cdc$deleted_elements_ints={5, 7} cdc$end_of_batch=true p=1",
            "0: 1 c=2 cdc$deleted_ints=true cdc$end_of_batch=true p=1",
            "0: 1 c=2 cdc$end_of_batch=true map={'k': 1} p=1",
        ]
    );
}

#[test]
fn lists() {
    let logged = Logged::new(delta_only());
    let path = |n: u8| Bytes::from(vec![0, 0, 0, n, 0, 0, 0x10, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]);
    logged.write(vec![with(
        LIST,
        CellOperation::PutElements(vec![(path(1), int(10)), (path(2), int(20))]),
        0,
    )]);
    logged.write(vec![with(
        LIST,
        CellOperation::SetListIndex {
            index: 1,
            value: int(21),
        },
        1,
    )]);
    logged.write(vec![with(
        LIST,
        CellOperation::RemoveListValues(vec![int(10)]),
        2,
    )]);
    let log = logged.log();
    let id = |n: u8| format!("Timeuuid({})", uuid::Uuid::from_slice(&path(n)).unwrap());
    let (first, second) = (id(1), id(2));
    let pairs = format!("list=Map([({first}, Int(10)), ({second}, Int(20))])");
    assert!(log[0].contains(&pairs), "{}", log[0]);
    assert!(
        log[1].contains(&format!("list=Map([({second}, Int(21))])")),
        "{}",
        log[1]
    );
    let deleted = uuid::Uuid::from_slice(&path(1)).unwrap();
    assert!(
        log[2].contains(&format!("cdc$deleted_elements_list={{{deleted}}}")),
        "{}",
        log[2]
    );
}

#[test]
fn deletes() {
    let logged = Logged::new(delta_only());
    let exclusive = |c| ClusteringBound::Exclusive(vec![int(c)]);
    let inclusive = |c| ClusteringBound::Inclusive(vec![int(c)]);
    let range = |start, end, timestamp| PartitionChange::DeleteRange {
        start,
        end,
        timestamp: START_MICROS + timestamp,
    };
    let row = PartitionChange::DeleteRow {
        clustering: vec![int(2)],
        timestamp: START_MICROS,
    };
    logged.write(vec![row]);
    logged.write(vec![range(inclusive(1), exclusive(4), 1)]);
    logged.write(vec![range(exclusive(1), ClusteringBound::Unbounded, 2)]);
    logged.write(vec![PartitionChange::DeletePartition {
        timestamp: START_MICROS + 3,
    }]);
    assert_eq!(
        logged.log(),
        [
            "0: 3 c=2 cdc$end_of_batch=true p=1",
            "0: 5 c=1 p=1",
            "1: 8 c=4 cdc$end_of_batch=true p=1",
            "0: 6 c=1 p=1",
            "1: 7 cdc$end_of_batch=true p=1",
            "0: 4 cdc$end_of_batch=true p=1",
        ]
    );
}

#[test]
fn changes_of_one_partition_and_time_share_a_batch() {
    let logged = Logged::new(delta_only());
    let inserted = |c, timestamp| insert(vec![int(c)], vec![], START_MICROS + timestamp);
    logged.write(vec![inserted(1, 0), inserted(2, 5), inserted(3, 0)]);
    assert_eq!(
        logged.log(),
        [
            "0: 2 c=1 p=1",
            "1: 2 c=3 cdc$end_of_batch=true p=1",
            "0: 2 c=2 cdc$end_of_batch=true p=1",
        ]
    );
    let rows = logged.log_rows();
    let time = |row: &Row| row.clustering.clone().unwrap()[0].clone();
    assert_eq!(time(&rows[0]), time(&rows[1]));
    assert_ne!(time(&rows[1]), time(&rows[2]));
}

#[test]
fn keys_only() {
    let logged = Logged::new(CdcOptions {
        delta: DeltaMode::Keys,
        ..delta_only()
    });
    let all = vec![set(A, text("x")), cell(SET, CellOperation::Delete)];
    logged.write(vec![insert(vec![int(2)], all, START_MICROS)]);
    assert_eq!(logged.log(), ["0: 2 c=2 cdc$end_of_batch=true p=1"]);
}

#[test]
fn images_before_and_after() {
    let logged = Logged::new(CdcOptions {
        preimage: ImageMode::On,
        postimage: true,
        delta: DeltaMode::Keys,
        ..delta_only()
    });
    let pairs = vec![(text("k"), int(1))];
    let both = vec![
        set(A, text("old")),
        cell(MAP, CellOperation::ReplaceElements(pairs)),
    ];
    logged.write(vec![insert(vec![int(2)], both, START_MICROS)]);
    let new = vec![set(A, text("new"))];
    logged.write(vec![update(vec![int(2)], new, START_MICROS + 1)]);
    let delete = PartitionChange::DeleteRow {
        clustering: vec![int(2)],
        timestamp: START_MICROS + 2,
    };
    logged.write(vec![delete]);
    assert_eq!(
        logged.log(),
        [
            "0: 2 c=2 p=1",
            "1: 9 a='old' c=2 cdc$end_of_batch=true map={'k': 1} p=1",
            "0: 0 a='old' c=2 p=1",
            "1: 1 c=2 p=1",
            "2: 9 a='new' c=2 cdc$end_of_batch=true map={'k': 1} p=1",
            "0: 0 a='new' c=2 map={'k': 1} p=1",
            "1: 3 c=2 cdc$end_of_batch=true p=1",
        ]
    );
}

#[test]
fn full_images_show_untouched_columns() {
    let logged = Logged::new(CdcOptions {
        preimage: ImageMode::Full,
        ..delta_only()
    });
    let statics = |value, timestamp| PartitionChange::Static {
        cells: vec![set(S, text(value))],
        timestamp: START_MICROS + timestamp,
        ttl_s: None,
    };
    logged.write(vec![insert(
        vec![int(2)],
        vec![set(A, text("x"))],
        START_MICROS,
    )]);
    logged.write(vec![update(
        vec![int(2)],
        vec![cell(
            MAP,
            CellOperation::PutElements(vec![(text("k"), int(1))]),
        )],
        START_MICROS + 1,
    )]);
    logged.write(vec![statics("s1", 2)]);
    logged.write(vec![statics("s2", 3)]);
    assert_eq!(
        logged.log()[1..],
        [
            "0: 0 a='x' c=2 p=1",
            "1: 1 c=2 cdc$end_of_batch=true map={'k': 1} p=1",
            "0: 1 cdc$end_of_batch=true p=1 s='s1'",
            "0: 0 p=1 s='s1'",
            "1: 1 cdc$end_of_batch=true p=1 s='s2'",
        ]
    );
}

#[test]
fn without_clustering_columns_a_deleted_row_is_a_deleted_partition() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let table = TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .regular("a", CqlType::Text)
        .cdc(delta_only())
        .build();
    create(&storage, &table, true);
    write(
        &storage,
        &table,
        vec![int(1)],
        vec![insert(vec![], vec![], 1)],
    );
    write(
        &storage,
        &table,
        vec![int(1)],
        vec![PartitionChange::DeletePartition { timestamp: 2 }],
    );
    let delete = PartitionChange::DeleteRow {
        clustering: vec![],
        timestamp: 3,
    };
    write(&storage, &table, vec![int(1)], vec![delete]);
    let log = storage
        .catalog()
        .table("ks", "t_scylla_cdc_log")
        .unwrap()
        .clone();
    let mut rows: Vec<_> = read_all(&storage, &log)
        .iter()
        .map(|row| show(&log, row))
        .collect();
    rows.sort();
    assert_eq!(
        rows,
        [
            "0: 2 cdc$end_of_batch=true p=1",
            "0: 4 cdc$end_of_batch=true p=1",
            "0: 4 cdc$end_of_batch=true p=1",
        ]
    );
    assert_eq!(read_all(&storage, &table), []);
}

#[test]
fn the_time_is_the_write_timestamp_unless_it_is_past_or_future() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let table = table(delta_only());
    clock.advance_seconds(10);
    create(&storage, &table, true);
    clock.advance_seconds(10);
    // The low-water mark stands at the start of the storage. The streams begin 10 seconds later.
    const SECOND: i64 = 1_000_000;
    let offsets = [
        -SECOND,
        9 * SECOND,
        11 * SECOND + 7,
        20 * SECOND,
        21 * SECOND,
    ];
    for (c, offset) in (0..).zip(offsets) {
        let change = insert(vec![int(c)], vec![], START_MICROS + offset);
        write(&storage, &table, vec![int(1)], vec![change]);
    }
    let log = storage
        .catalog()
        .table("ks", "t_scylla_cdc_log")
        .unwrap()
        .clone();
    let mut times: Vec<i64> = read_all(&storage, &log)
        .iter()
        .map(|row| {
            let time = &row.clustering.as_ref().unwrap()[0];
            let id = uuid::Uuid::from_slice(time).unwrap();
            value::timeuuid::unix_micros(&id) - START_MICROS
        })
        .collect();
    times.sort_unstable();
    let now = 20 * SECOND;
    assert_eq!(times, [11 * SECOND + 7, now, now, now, now]);
}

#[test]
fn log_rows_live_as_long_as_the_options_say() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let table = table(CdcOptions {
        ttl_s: 10,
        ..delta_only()
    });
    create(&storage, &table, true);
    write(
        &storage,
        &table,
        vec![int(1)],
        vec![insert(vec![int(1)], vec![], 1)],
    );
    let log = storage
        .catalog()
        .table("ks", "t_scylla_cdc_log")
        .unwrap()
        .clone();
    clock.advance_seconds(9);
    assert_eq!(read_all(&storage, &log).len(), 1);
    clock.advance_seconds(1);
    assert_eq!(read_all(&storage, &log).len(), 0);
    assert_eq!(read_all(&storage, &table).len(), 1);
}

#[test]
fn the_log_is_a_table_as_the_contract_draws_it() {
    let logged = Logged::new(delta_only());
    let log = logged.log_table();
    let columns: Vec<String> = log
        .columns
        .iter()
        .map(|column| format!("{} {}", column.name, column.cql_type))
        .collect();
    assert_eq!(
        columns,
        [
            "cdc$stream_id blob",
            "cdc$time timeuuid",
            "cdc$batch_seq_no int",
            "cdc$operation tinyint",
            "cdc$ttl bigint",
            "cdc$end_of_batch boolean",
            "p int",
            "c int",
            "s text",
            "cdc$deleted_s boolean",
            "a text",
            "cdc$deleted_a boolean",
            "ints frozen<set<int>>",
            "cdc$deleted_ints boolean",
            "cdc$deleted_elements_ints frozen<set<int>>",
            "list frozen<map<timeuuid, int>>",
            "cdc$deleted_list boolean",
            "cdc$deleted_elements_list frozen<set<timeuuid>>",
            "map frozen<map<text, int>>",
            "cdc$deleted_map boolean",
            "cdc$deleted_elements_map frozen<set<text>>",
        ]
    );
    let keys = log.partition_key().into_iter().chain(log.clustering_key());
    let keys: Vec<&str> = keys.map(|column| column.name.as_str()).collect();
    assert_eq!(keys, ["cdc$stream_id", "cdc$time", "cdc$batch_seq_no"]);
    let regular = log.columns[3..]
        .iter()
        .all(|column| column.kind == ColumnKind::Regular);
    assert!(regular, "static columns are ordinary in the log");
    assert_eq!(log.partitioner, value::token::Partitioner::Cdc);
}
