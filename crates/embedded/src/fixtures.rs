//! A table for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use schema::{Column, ColumnId, ColumnKind, SearchIndexMetadata, Table, TableId};
use uuid::Uuid;
use value::{CqlType, token::Partitioner};

pub const VECTOR: ColumnId = ColumnId(2);
pub const NUMBER: ColumnId = ColumnId(3);
pub const STATIC: ColumnId = ColumnId(4);

/// The table `ks.t (p int, c int, v vector<float, 2>, n int, s text static, d duration)` with the
/// index `i` on `v`, with this local key and these filter columns.
pub fn table(local_key: &[&str], filter_columns: &[&str]) -> Table {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
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
        ("s", ColumnKind::Static, CqlType::Text),
        ("d", ColumnKind::Regular, CqlType::Duration),
    ];
    let columns = (0..).zip(columns);
    let columns = columns.map(|(id, (name, kind, cql_type))| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        kind,
        cql_type,
    });
    let index = SearchIndexMetadata {
        name: "i".to_owned(),
        target: String::new(),
        column: "v".to_owned(),
        local_key: owned(local_key),
        filter_columns: owned(filter_columns),
        options: BTreeMap::new(),
        class_name: "vector_index".to_owned(),
        version: Uuid::from_u128(7),
    };
    Table {
        id: TableId(Uuid::from_u128(1)),
        keyspace: "ks".to_owned(),
        name: "t".to_owned(),
        columns: columns.collect(),
        next_column: ColumnId(6),
        dropped_columns: BTreeMap::new(),
        partitioner: Partitioner::Murmur3,
        default_ttl_s: 0,
        row_ttl: None,
        gc_grace_s: 864_000,
        options: BTreeMap::new(),
        indexes: BTreeMap::from([("i".to_owned(), Arc::new(index))]),
        secondary_indexes: BTreeMap::new(),
        cdc: None,
        log: None,
        log_of: None,
        truncated_at_ms: None,
    }
}
