//! A catalog for tests: two indexes on the column `v` of the table
//! `shop.films (id text PRIMARY KEY, name text, v vector<float, 3>, w vector<float, 3>)`.

use std::sync::Arc;

use cql::wire::ColumnSpec;
use index::target::StoredTarget;
use uuid::Uuid;
use value::{CqlType, timeuuid};

use crate::catalog::{
    DefinedIndex, GenerationStreams, IndexCatalogSnapshot, LogStreams, LoggedColumn,
    LoggedColumnKind, LoggedTable,
};

/// The table `shop.films` with these key columns, all of them texts.
pub(crate) fn table(partition: &[&str], clustering: &[&str]) -> LoggedTable {
    let of = |kind: LoggedColumnKind, cql_type: CqlType| {
        move |name: &&str| LoggedColumn {
            name: (*name).to_owned(),
            kind,
            cql_type: Some(cql_type.clone()),
        }
    };
    let vector = CqlType::Vector {
        element: Box::new(CqlType::Float),
        dimensions: 3,
    };
    let keys = partition
        .iter()
        .map(of(LoggedColumnKind::PartitionKey, CqlType::Text));
    let keys = keys.chain(
        clustering
            .iter()
            .map(of(LoggedColumnKind::Clustering, CqlType::Text)),
    );
    let names = ["name"]
        .iter()
        .map(of(LoggedColumnKind::Regular, CqlType::Text));
    let vectors = ["v", "w"].iter().map(of(LoggedColumnKind::Regular, vector));
    LoggedTable {
        keyspace: "shop".to_owned(),
        name: "films".to_owned(),
        id: Uuid::from_u128(1),
        columns: keys.chain(names).chain(vectors).collect(),
        partition_key_count: partition.len(),
        clustering_key_count: clustering.len(),
        sai_columns: Vec::new(),
        masked_columns: Vec::new(),
        log_name: "films_scylla_cdc_log".to_owned(),
        streams: Arc::new(
            LogStreams::new(vec![GenerationStreams {
                from_ms: 0,
                ids: vec![[1; 16]],
            }])
            .expect("one stream"),
        ),
    }
}

/// A snapshot with the indexes `older` and `newer` on `v`.
pub(crate) fn snapshot() -> IndexCatalogSnapshot {
    let table = table(&["id"], &[]);
    let indexes = [index(&table, "newer", 2_000), index(&table, "older", 1_000)];
    snapshot_of(table, indexes)
}

/// A snapshot with one table and these indexes.
pub(crate) fn snapshot_of(
    table: LoggedTable,
    indexes: impl IntoIterator<Item = DefinedIndex>,
) -> IndexCatalogSnapshot {
    IndexCatalogSnapshot::new([Arc::new(table)], indexes.into_iter().map(Arc::new))
}

/// An index on `v` that keeps the values of these columns with the vectors.
pub(crate) fn keeping(table: &LoggedTable, columns: &[&str]) -> DefinedIndex {
    let mut index = index(table, "keeping", 1_000);
    let columns = columns.iter().map(|column| (*column).to_owned());
    index.target.filter_columns = columns.collect();
    index
}

fn index(table: &LoggedTable, name: &str, micros: i64) -> DefinedIndex {
    DefinedIndex {
        keyspace: table.keyspace.clone(),
        table: table.name.clone(),
        name: name.to_owned(),
        class_name: "vector_index".to_owned(),
        target: StoredTarget::decode("v"),
        options: Default::default(),
        version: timeuuid::min_for_micros(micros).expect("a time that has a uuid"),
        table_id: table.id,
    }
}

/// A full-text index on a column.
pub(crate) fn full_text(table: &LoggedTable, name: &str, column: &str) -> DefinedIndex {
    DefinedIndex {
        class_name: index::full_text::CLASS.to_owned(),
        target: StoredTarget::decode(column),
        ..index(table, name, 1_000)
    }
}

/// A snapshot with the index `vectors` on `v`, which keeps `name`, and the full-text index `texts`
/// on `name`.
pub(crate) fn words_snapshot() -> IndexCatalogSnapshot {
    let table = table(&["id"], &[]);
    let mut vectors = keeping(&table, &["name"]);
    vectors.name = "vectors".to_owned();
    let indexes = [vectors, full_text(&table, "texts", "name")];
    snapshot_of(table, indexes)
}

/// A text column of a result.
pub(crate) fn column(name: &str) -> ColumnSpec {
    ColumnSpec {
        keyspace: "shop".into(),
        table: "films".into(),
        name: name.into(),
        cql_type: CqlType::Text,
    }
}
