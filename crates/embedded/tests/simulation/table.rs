//! The simulated table, with its writes and reads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use schema::{
    Catalog, Column, ColumnId, ColumnKind, IndexedPart, Keyspace, SearchIndexMetadata,
    SecondaryIndex, Table, TableId,
};
use storage::mutation::{
    AtomicWrite, CellChange, CellOperation, PartitionChange, PartitionMutation,
};
use storage::read::{
    Cell, ClusteringBound, IndexRequest, IndexedValues, PartitionSelection, ReadRequest, Row,
};
use storage::{Storage, StorageError};
use uuid::Uuid;
use value::{CqlType, token::Partitioner};

use crate::model::{Effect, Key, Shown};

const ID: TableId = TableId(Uuid::from_u128(77));
pub const KEYSPACE: &str = "ks";
pub const NAME: &str = "ks.t";
pub const INDEX: &str = "i";
pub const TEXT_INDEX: &str = "words";
/// Numbers are below it.
pub const NUMBERS_BELOW: u64 = 10;
/// The bit by which the version of the index on texts differs from that of the other.
const TEXT_VERSION: u128 = 1 << 100;
const VECTOR: ColumnId = ColumnId(2);
/// The columns of the numbers of a row, in their order: `n`, which may have an index of its own,
/// `d`, which the index on `v` names, and `u`.
const NUMBERS: [ColumnId; 3] = [ColumnId(3), ColumnId(4), ColumnId(5)];
/// The column of a text, which says what `u` is and is written with it.
const TEXT: ColumnId = ColumnId(6);

/// `CREATE TABLE ks.t (p int, c int, v vector<float, 2>, n int, d int, u int, w text, PRIMARY KEY
/// (p, c))`, an index of that version on `v` that names `d`, and one on the words of `w`.
pub fn create(catalog: &mut Catalog, version: u128) -> Result<(), ()> {
    let keyspace = Keyspace {
        name: KEYSPACE.to_owned(),
        replication: BTreeMap::new(),
        durable_writes: true,
        tablets: version.is_multiple_of(2),
        types: Default::default(),
        tables: BTreeMap::new(),
    };
    catalog
        .keyspaces
        .insert(KEYSPACE.to_owned(), Arc::new(keyspace));
    let vector = CqlType::Vector {
        element: Box::new(CqlType::Float),
        dimensions: 2,
    };
    let clustering = ColumnKind::Clustering {
        position: 0,
        descending: false,
    };
    let columns = [
        ("p", ColumnKind::PartitionKey { position: 0 }, CqlType::Int),
        ("c", clustering, CqlType::Int),
        ("v", ColumnKind::Regular, vector),
        ("n", ColumnKind::Regular, CqlType::Int),
        ("d", ColumnKind::Regular, CqlType::Int),
        ("u", ColumnKind::Regular, CqlType::Int),
        ("w", ColumnKind::Regular, CqlType::Text),
    ];
    let columns = columns.into_iter().enumerate();
    let columns = columns.map(|(at, (name, kind, cql_type))| Column {
        id: ColumnId(u32::try_from(at).unwrap()),
        name: name.to_owned(),
        kind,
        cql_type,
    });
    let mut table = Table {
        id: ID,
        keyspace: KEYSPACE.to_owned(),
        name: "t".to_owned(),
        columns: columns.collect(),
        next_column: ColumnId(7),
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
    };
    add_index(&mut table, version);
    catalog.put_table(table);
    Ok(())
}

fn add_index(table: &mut Table, version: u128) {
    let options = [("similarity_function", "euclidean")];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let index = SearchIndexMetadata {
        name: INDEX.to_owned(),
        target: r#"{"tc":"v","fc":["d"]}"#.to_owned(),
        column: "v".to_owned(),
        local_key: Vec::new(),
        filter_columns: vec!["d".to_owned()],
        options: BTreeMap::from(options),
        class_name: "vector_index".to_owned(),
        version: Uuid::from_u128(version),
    };
    let texts = SearchIndexMetadata {
        name: TEXT_INDEX.to_owned(),
        target: "w".to_owned(),
        column: "w".to_owned(),
        filter_columns: Vec::new(),
        options: BTreeMap::new(),
        class_name: "fulltext_index".to_owned(),
        version: Uuid::from_u128(version | TEXT_VERSION),
        ..index.clone()
    };
    for index in [index, texts] {
        table.indexes.insert(index.name.clone(), Arc::new(index));
    }
}

/// The word of all texts.
pub const COMMON_WORD: &str = "number";

/// The word of the texts of one number.
pub fn word_of(number: i32) -> String {
    format!("is{number}")
}

/// Drops the index, and with it the log, and creates another one if a version is given.
pub fn change_index(catalog: &mut Catalog, version: Option<u128>) -> Result<(), ()> {
    let table = catalog.table(KEYSPACE, "t").ok_or(())?;
    let mut table = Table::clone(table);
    table.indexes.clear();
    catalog.put_table(table);
    if let Some(version) = version {
        let mut table = Table::clone(catalog.table(KEYSPACE, "t").ok_or(())?);
        add_index(&mut table, version);
        catalog.put_table(table);
    }
    Ok(())
}

/// Drops the secondary index on `n`, if there is one, or makes one of that version.
pub fn change_secondary(catalog: &mut Catalog, version: u128) -> Result<(), ()> {
    let mut table = Table::clone(catalog.table(KEYSPACE, "t").ok_or(())?);
    if table.secondary_indexes.is_empty() {
        let index = SecondaryIndex {
            name: "by_n".to_owned(),
            column: NUMBERS[0],
            part: IndexedPart::Value,
            is_local: false,
            class_name: Some("sai".to_owned()),
            options: BTreeMap::new(),
            version: Uuid::from_u128(version),
        };
        let name = index.name.clone();
        table.secondary_indexes.insert(name, Arc::new(index));
    } else {
        table.secondary_indexes.clear();
    }
    catalog.put_table(table);
    Ok(())
}

/// The version of the secondary index, if there is one.
pub fn secondary(storage: &Storage) -> Option<Uuid> {
    let catalog = storage.catalog();
    let indexes = &catalog.table(KEYSPACE, "t")?.secondary_indexes;
    Some(indexes.get("by_n")?.version)
}

/// The rows that the secondary index has under a number, dead ones among them.
pub fn keys_of(storage: &Storage, index: Uuid, number: i32) -> Result<BTreeSet<Key>, StorageError> {
    let request = IndexRequest {
        index,
        values: IndexedValues::one(int(number)),
        tokens: (Bound::Unbounded, Bound::Unbounded),
        from: None,
    };
    let view = storage.view(ID)?;
    let positions = view.positions(&request)?;
    let keys = positions.map(|position| {
        let key = view.key_at(&position?)?;
        let clustering = key.clustering.expect("no static columns");
        Ok((int_of(&key.partition_key[0]), int_of(&clustering[0])))
    });
    keys.collect()
}

pub fn id() -> TableId {
    ID
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// The number of a serialised int.
pub fn int_of(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes.try_into().expect("an int"))
}

/// The floats of a vector of the model.
pub fn floats(vector: [i8; 2]) -> [f32; 2] {
    vector.map(f32::from)
}

fn vector(vector: [i8; 2]) -> Bytes {
    let elements = floats(vector);
    elements.iter().flat_map(|of| of.to_be_bytes()).collect()
}

/// The vector of the model that is serialised so.
pub fn vector_of(bytes: &[u8]) -> [i8; 2] {
    let (elements, _) = bytes.as_chunks::<4>();
    [0, 1].map(|at: usize| f32::from_be_bytes(elements[at]) as i8)
}

/// The write that has this effect.
pub fn write(effect: &Effect, timestamp: i64) -> AtomicWrite {
    let (partition, change) = match effect {
        Effect::Row {
            key,
            vector: of_vector,
            numbers,
            marker,
            ttl_s,
        } => {
            let cell = |column, value: Option<Bytes>| CellChange {
                column,
                change: value.map_or(CellOperation::Delete, CellOperation::Set),
            };
            let of_vector = of_vector.map(|value| cell(VECTOR, value.map(vector)));
            let of_text = numbers[2].map(|number| {
                let text = number.map(|number| format!("{COMMON_WORD} {}", word_of(number)));
                cell(TEXT, text.map(Bytes::from))
            });
            let of_numbers = NUMBERS.into_iter().zip(numbers);
            let of_numbers =
                of_numbers.filter_map(|(column, number)| Some(cell(column, (*number)?.map(int))));
            let change = PartitionChange::Row {
                clustering: vec![int(key.1)],
                cells: of_vector
                    .into_iter()
                    .chain(of_numbers)
                    .chain(of_text)
                    .collect(),
                timestamp,
                ttl_s: *ttl_s,
                marker: *marker,
            };
            (key.0, change)
        }
        Effect::DeleteRow(key) => {
            let clustering = vec![int(key.1)];
            let change = PartitionChange::DeleteRow {
                clustering,
                timestamp,
            };
            (key.0, change)
        }
        Effect::DeletePartition(partition) => {
            (*partition, PartitionChange::DeletePartition { timestamp })
        }
        Effect::DeleteRange(partition, first, last) => {
            let change = PartitionChange::DeleteRange {
                start: ClusteringBound::Inclusive(vec![int(*first)]),
                end: ClusteringBound::Inclusive(vec![int(*last)]),
                timestamp,
            };
            (*partition, change)
        }
    };
    AtomicWrite {
        mutations: vec![PartitionMutation {
            table: ID,
            partition_key: vec![int(partition)],
            changes: vec![change],
        }],
        condition: None,
    }
}

fn all_of(storage: &Storage, table: TableId) -> Result<Vec<Row>, StorageError> {
    let rows = storage.read(ReadRequest {
        table,
        partitions: PartitionSelection::Tokens(Bound::Unbounded, Bound::Unbounded),
        slices: Vec::new(),
        reversed: false,
        resume_after: None,
        static_only_rows: false,
    })?;
    rows.collect()
}

fn simple(row: &Row, column: ColumnId) -> Option<&Bytes> {
    match row.cell(column)? {
        Cell::Simple(cell) => Some(&cell.value),
        Cell::Elements(_) => None,
    }
}

/// All rows of the table.
pub fn rows(storage: &Storage) -> Result<BTreeMap<Key, Shown>, StorageError> {
    let rows = all_of(storage, ID)?.into_iter().map(|row| {
        let clustering = row.clustering.as_ref().expect("no static columns");
        let key = (int_of(&row.partition.key[0]), int_of(&clustering[0]));
        let number = |column| simple(&row, column).map(|bytes| int_of(bytes));
        let shown = Shown {
            vector: simple(&row, VECTOR).map(|bytes| vector_of(bytes)),
            numbers: NUMBERS.map(number),
        };
        (key, shown)
    });
    Ok(rows.collect())
}

/// The table that is the log, if there is one.
pub fn log(storage: &Storage) -> Option<TableId> {
    let catalog = storage.catalog();
    let log = catalog.table(KEYSPACE, "t")?.log.as_ref()?;
    Some(log.table)
}

/// The times of all rows of the log, in microseconds since the epoch, and their places.
pub fn log_rows(storage: &Storage, log: TableId) -> Result<Vec<(i64, Bytes)>, StorageError> {
    let rows = all_of(storage, log)?.into_iter().map(|row| {
        let clustering = row.clustering.as_ref().expect("a time");
        let time = Uuid::from_slice(&clustering[0]).expect("a timeuuid");
        (value::timeuuid::unix_micros(&time), row.position.0)
    });
    Ok(rows.collect())
}
