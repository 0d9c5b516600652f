//! A small schema for unit tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use schema::{
    Catalog, CdcLog, CdcOptions, Column, ColumnId, ColumnKind, DeltaMode, ImageMode, Keyspace,
    SearchIndexMetadata, StreamGeneration, Table, TableId,
};
use uuid::Uuid;
use value::{CqlType, token::Partitioner};

/// The version `n` of a catalog or index, as a timeuuid. A greater `n` is later.
pub fn version(n: u32) -> Uuid {
    Uuid::from_u128(u128::from(n) << 96 | 0x1000 << 64 | 0x80 << 56)
}

/// A catalog with two keyspaces: `shop` with tablets, and `old` without tablets and without tables.
/// `shop` has the table `films` (with a static column, descending clustering, a vector index and a
/// CDC log) and the table `"Odd Names"`.
pub fn catalog() -> Catalog {
    let films = films();
    let log = log_of(&films);
    Catalog {
        version: version(1),
        host_id: Uuid::from_u128(0x1234),
        cluster_name: "Test Cluster".to_owned(),
        created_at_ms: 1_700_000_000_000,
        vnode_streams: generation(2),
        keyspaces: [
            keyspace(
                "shop",
                "SimpleStrategy",
                true,
                vec![films, log, odd_names()],
            ),
            keyspace("old", "NetworkTopologyStrategy", false, vec![]),
        ]
        .into_iter()
        .map(|keyspace| (keyspace.name.clone(), Arc::new(keyspace)))
        .collect(),
        roles: Default::default(),
    }
}

/// Edits a table in place.
pub fn edit_table(
    catalog: &mut Catalog,
    keyspace: &str,
    name: &str,
    edit: impl FnOnce(&mut Table),
) {
    let keyspace = Arc::make_mut(catalog.keyspaces.get_mut(keyspace).unwrap());
    edit(Arc::make_mut(keyspace.tables.get_mut(name).unwrap()));
}

fn keyspace(name: &str, class: &str, tablets: bool, tables: Vec<Table>) -> Keyspace {
    Keyspace {
        name: name.to_owned(),
        replication: BTreeMap::from([
            ("class".to_owned(), class.to_owned()),
            ("replication_factor".to_owned(), "3".to_owned()),
        ]),
        durable_writes: true,
        tablets,
        types: Default::default(),
        tables: tables
            .into_iter()
            .map(|mut table| {
                table.keyspace = name.to_owned();
                (table.name.clone(), Arc::new(table))
            })
            .collect(),
    }
}

fn generation(streams: i64) -> StreamGeneration {
    StreamGeneration {
        since_ms: 1_700_000_000_000,
        streams: (1..=streams)
            .map(|n| {
                let mut id = [0; 16];
                id[..8].copy_from_slice(&(i64::MAX / streams * n).to_be_bytes());
                id[15] = 1;
                Bytes::copy_from_slice(&id)
            })
            .collect(),
    }
}

/// A table whose columns have ids from 1.
pub fn table(name: &str, id: u128, columns: &[(&str, ColumnKind, CqlType)]) -> Table {
    Table {
        id: TableId(Uuid::from_u128(id)),
        keyspace: String::new(),
        name: name.to_owned(),
        columns: columns
            .iter()
            .zip(1..)
            .map(|((name, kind, cql_type), id)| Column {
                id: ColumnId(id),
                name: (*name).to_owned(),
                kind: *kind,
                cql_type: cql_type.clone(),
            })
            .collect(),
        next_column: ColumnId(columns.len() as u32 + 1),
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
    }
}

#[expect(
    clippy::too_many_lines,
    reason = "one table with a column of each kind"
)]
fn films() -> Table {
    let vector = CqlType::Vector {
        element: Box::new(CqlType::Float),
        dimensions: 3,
    };
    let tags = CqlType::Set {
        element: Box::new(CqlType::Text),
        frozen: false,
    };
    let mut films = table(
        "films",
        0xf11,
        &[
            (
                "studio",
                ColumnKind::PartitionKey { position: 0 },
                CqlType::Text,
            ),
            (
                "year",
                ColumnKind::PartitionKey { position: 1 },
                CqlType::Int,
            ),
            (
                "released",
                ColumnKind::Clustering {
                    position: 0,
                    descending: true,
                },
                CqlType::Timestamp,
            ),
            (
                "id",
                ColumnKind::Clustering {
                    position: 1,
                    descending: false,
                },
                CqlType::Int,
            ),
            ("founder", ColumnKind::Static, CqlType::Text),
            ("tags", ColumnKind::Regular, tags),
            ("plot", ColumnKind::Regular, vector),
        ],
    );
    let index = SearchIndexMetadata {
        name: "films_plot".to_owned(),
        target: r#"{"tc":"plot","fc":["id","tags"],"pk":["studio","year"]}"#.to_owned(),
        column: "plot".to_owned(),
        local_key: vec!["studio".to_owned(), "year".to_owned()],
        filter_columns: vec!["id".to_owned(), "tags".to_owned()],
        options: BTreeMap::from([("similarity_function".to_owned(), "COSINE".to_owned())]),
        class_name: "vector_index".to_owned(),
        version: version(7),
    };
    let options = CdcOptions {
        enabled: true,
        preimage: ImageMode::Full,
        postimage: false,
        delta: DeltaMode::Full,
        ttl_s: 86_400,
    };
    films.indexes.insert(index.name.clone(), Arc::new(index));
    films
        .options
        .insert("comment".to_owned(), "'it''s all'".to_owned());
    films
        .options
        .insert("bloom_filter_fp_chance".to_owned(), "0.5".to_owned());
    films.options.insert(
        "compaction".to_owned(),
        "{'class': 'LeveledCompactionStrategy'}".to_owned(),
    );
    films.cdc = Some(options.clone());
    films.log = Some(CdcLog {
        table: TableId(Uuid::from_u128(0x106)),
        options,
        streams: Some(generation(3)),
    });
    films
}

fn log_of(films: &Table) -> Table {
    let mut log = table(
        "films_scylla_cdc_log",
        0x106,
        &[
            (
                "cdc$stream_id",
                ColumnKind::PartitionKey { position: 0 },
                CqlType::Blob,
            ),
            (
                "cdc$time",
                ColumnKind::Clustering {
                    position: 0,
                    descending: false,
                },
                CqlType::Timeuuid,
            ),
        ],
    );
    log.partitioner = Partitioner::Cdc;
    log.log_of = Some(films.id);
    log
}

fn odd_names() -> Table {
    table(
        "Odd Names",
        0x0dd,
        &[
            (
                "select",
                ColumnKind::PartitionKey { position: 0 },
                CqlType::Int,
            ),
            ("Value \"x\"", ColumnKind::Regular, CqlType::Text),
        ],
    )
}
