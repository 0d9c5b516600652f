//! Helpers that make tables, writes and reads for the tests of this folder.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use schema::{
    CdcOptions, Column, ColumnId, ColumnKind, DeltaMode, ImageMode, Keyspace, Table, TableId,
};
use storage::clock::Clock;
pub use storage::clock::ManualClock;
use storage::mutation::{
    AtomicWrite, CellChange, CellOperation, PartitionChange, PartitionMutation, WriteOutcome,
};
use storage::read::{Cell, ClusteringBound, ClusteringSlice, PartitionSelection, ReadRequest, Row};
use storage::{Storage, StorageError, StorageOptions};
use value::{CqlType, token::Partitioner};

/// 2023-11-14, the time at which tests begin.
pub const START_MICROS: i64 = 1_700_000_000_000_000;

pub fn options() -> StorageOptions {
    StorageOptions {
        cache_bytes: 8 << 20,
        ..StorageOptions::default()
    }
}

/// Written while a process starts, read while a storage is opened. Until it runs its program, a
/// process that starts holds the locks of all directories that were open here, also of those that
/// are closed meanwhile. They could not be opened again until then.
pub static STARTING: RwLock<()> = RwLock::new(());

pub fn open_with(directory: &Path, options: StorageOptions) -> Result<Storage, StorageError> {
    let _held = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    Storage::open(directory, options)
}

pub fn open(directory: &Path) -> Storage {
    open_with(directory, options()).expect("the directory opens")
}

pub fn open_at(directory: &Path, clock: &Arc<ManualClock>) -> Storage {
    let clock: Arc<dyn Clock> = clock.clone();
    let _held = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    Storage::open_with_clock(directory, options(), clock).expect("the directory opens")
}

pub fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime starts")
        .block_on(future)
}

/// Waits until a condition holds. Panics with `what` if it does not hold in time.
#[track_caller]
pub fn eventually(what: &str, is_so: impl FnMut() -> bool) {
    test_support::blocking::eventually(what, is_so);
}

pub fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

pub fn bigint(value: i64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

pub fn text(value: &str) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// A table under construction; columns get the ids 0, 1, ... in the order of their definition.
pub struct TableBuilder(Table);

impl TableBuilder {
    pub fn new(keyspace: &str, name: &str) -> TableBuilder {
        TableBuilder(Table {
            id: TableId(uuid::Uuid::new_v4()),
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            columns: Vec::new(),
            next_column: ColumnId(0),
            dropped_columns: BTreeMap::new(),
            partitioner: Partitioner::Murmur3,
            default_ttl_s: 0,
            row_ttl: None,
            gc_grace_s: 864_000,
            options: BTreeMap::new(),
            indexes: BTreeMap::new(),
            secondary_indexes: BTreeMap::new(),
            cdc: None,
            log: None,
            log_of: None,
            truncated_at_ms: None,
        })
    }

    fn column(mut self, name: &str, kind: ColumnKind, cql_type: CqlType) -> Self {
        let id = self.0.next_column;
        self.0.next_column.0 += 1;
        self.0.columns.push(Column {
            id,
            name: name.to_owned(),
            kind,
            cql_type,
        });
        self
    }

    pub fn partition(self, name: &str, cql_type: CqlType) -> Self {
        let position = self.0.partition_key().len();
        self.column(name, ColumnKind::PartitionKey { position }, cql_type)
    }

    pub fn clustering(self, name: &str, cql_type: CqlType, descending: bool) -> Self {
        let position = self.0.clustering_key().len();
        let kind = ColumnKind::Clustering {
            position,
            descending,
        };
        self.column(name, kind, cql_type)
    }

    pub fn statics(self, name: &str, cql_type: CqlType) -> Self {
        self.column(name, ColumnKind::Static, cql_type)
    }

    pub fn regular(self, name: &str, cql_type: CqlType) -> Self {
        self.column(name, ColumnKind::Regular, cql_type)
    }

    pub fn gc_grace(mut self, seconds: u32) -> Self {
        self.0.gc_grace_s = seconds;
        self
    }

    pub fn cdc(mut self, options: CdcOptions) -> Self {
        self.0.cdc = Some(options);
        self
    }

    pub fn build(self) -> Table {
        self.0
    }
}

pub fn cdc_options() -> CdcOptions {
    CdcOptions {
        enabled: true,
        preimage: ImageMode::Off,
        postimage: false,
        delta: DeltaMode::Full,
        ttl_s: 86_400,
    }
}

pub fn keyspace(name: &str, tablets: bool) -> Keyspace {
    Keyspace {
        name: name.to_owned(),
        replication: BTreeMap::new(),
        durable_writes: true,
        tablets,
        types: Default::default(),
        tables: BTreeMap::new(),
    }
}

/// Puts a table into its keyspace, which is made if it does not exist.
pub fn create(storage: &Storage, table: &Table, tablets: bool) {
    let table = table.clone();
    block_on(storage.change_catalog(move |catalog| {
        catalog
            .keyspaces
            .entry(table.keyspace.clone())
            .or_insert_with(|| Arc::new(keyspace(&table.keyspace, tablets)));
        catalog.put_table(table);
        Ok::<(), ()>(())
    }))
    .expect("the table is created");
}

/// Makes a table that does not exist yet one whose rows are held in memory.
pub fn hold_in_memory(table: &mut Table) {
    table
        .options
        .insert("in_memory".to_owned(), "true".to_owned());
}

/// A table `ks.t` with an int key, an int clustering column and a text value.
pub fn simple_table() -> Table {
    TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("v", CqlType::Text)
        .build()
}

/// The column `v` of [`simple_table`].
pub const V: ColumnId = ColumnId(2);

pub fn set(column: ColumnId, value: Bytes) -> CellChange {
    CellChange {
        column,
        change: CellOperation::Set(value),
    }
}

pub fn cell(column: ColumnId, change: CellOperation) -> CellChange {
    CellChange { column, change }
}

pub fn insert(clustering: Vec<Bytes>, cells: Vec<CellChange>, timestamp: i64) -> PartitionChange {
    PartitionChange::Row {
        clustering,
        cells,
        timestamp,
        ttl_s: None,
        marker: true,
    }
}

pub fn update(clustering: Vec<Bytes>, cells: Vec<CellChange>, timestamp: i64) -> PartitionChange {
    PartitionChange::Row {
        clustering,
        cells,
        timestamp,
        ttl_s: None,
        marker: false,
    }
}

pub fn write_of(
    table: &Table,
    partition: Vec<Bytes>,
    changes: Vec<PartitionChange>,
) -> AtomicWrite {
    AtomicWrite {
        mutations: vec![PartitionMutation {
            table: table.id,
            partition_key: partition,
            changes,
        }],
        condition: None,
    }
}

pub fn try_write(
    storage: &Storage,
    table: &Table,
    partition: Vec<Bytes>,
    changes: Vec<PartitionChange>,
) -> Result<WriteOutcome, StorageError> {
    block_on(storage.write(write_of(table, partition, changes)))
}

pub fn write(
    storage: &Storage,
    table: &Table,
    partition: Vec<Bytes>,
    changes: Vec<PartitionChange>,
) {
    let outcome = try_write(storage, table, partition, changes).expect("the write succeeds");
    assert!(matches!(outcome, WriteOutcome::Applied));
}

pub fn request(table: &Table, partitions: PartitionSelection) -> ReadRequest {
    ReadRequest {
        table: table.id,
        partitions,
        slices: Vec::new(),
        reversed: false,
        resume_after: None,
        static_only_rows: true,
    }
}

pub fn whole_ring() -> PartitionSelection {
    use std::ops::Bound::Unbounded;
    PartitionSelection::Tokens(Unbounded, Unbounded)
}

pub fn read(storage: &Storage, request: ReadRequest) -> Vec<Row> {
    storage
        .read(request)
        .expect("the read starts")
        .collect::<Result<_, _>>()
        .expect("the read succeeds")
}

pub fn read_all(storage: &Storage, table: &Table) -> Vec<Row> {
    read(storage, request(table, whole_ring()))
}

pub fn read_partition(storage: &Storage, table: &Table, partition: Vec<Bytes>) -> Vec<Row> {
    read(storage, request(table, PartitionSelection::One(partition)))
}

pub fn slice(start: ClusteringBound, end: ClusteringBound) -> ClusteringSlice {
    ClusteringSlice { start, end }
}

/// The slice of a single row.
pub fn point(clustering: Vec<Bytes>) -> ClusteringSlice {
    slice(
        ClusteringBound::Inclusive(clustering.clone()),
        ClusteringBound::Inclusive(clustering),
    )
}

pub fn simple_value(row: &Row, column: ColumnId) -> Option<Bytes> {
    match row.cell(column)? {
        Cell::Simple(cell) => Some(cell.value.clone()),
        Cell::Elements(_) => None,
    }
}

/// Partition int, clustering int and text value of a row of [`simple_table`].
pub fn shown(row: &Row) -> (i32, Option<i32>, Option<String>) {
    let int_of = |bytes: &Bytes| i32::from_be_bytes(bytes[..].try_into().expect("an int"));
    (
        int_of(&row.partition.key[0]),
        row.clustering.as_ref().map(|values| int_of(&values[0])),
        simple_value(row, V).map(|value| String::from_utf8(value.to_vec()).expect("text")),
    )
}
