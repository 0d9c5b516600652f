//! Logged tables for tests.

use std::sync::Arc;

use uuid::Uuid;
use value::CqlType;

use crate::catalog::{GenerationStreams, LogStreams, LoggedColumn, LoggedColumnKind, LoggedTable};

fn table(
    name: &str,
    partition: &[&str],
    clustering: &[&str],
    others: &[(&str, LoggedColumnKind)],
) -> LoggedTable {
    let column = |name: &str, kind, cql_type| LoggedColumn {
        name: name.to_owned(),
        kind,
        cql_type: Some(cql_type),
    };
    let mut columns = Vec::new();
    columns.extend(
        partition
            .iter()
            .map(|name| column(name, LoggedColumnKind::PartitionKey, CqlType::Int)),
    );
    columns.extend(
        clustering
            .iter()
            .map(|name| column(name, LoggedColumnKind::Clustering, CqlType::Int)),
    );
    columns.extend(
        others
            .iter()
            .map(|(name, kind)| column(name, *kind, CqlType::Text)),
    );
    let streams = LogStreams::new(vec![GenerationStreams {
        from_ms: 0,
        ids: (0..4).map(|at| [at; 16]).collect(),
    }]);
    LoggedTable {
        keyspace: "shop".to_owned(),
        name: name.to_owned(),
        id: Uuid::from_u128(name.len() as u128),
        columns,
        partition_key_count: partition.len(),
        clustering_key_count: clustering.len(),
        sai_columns: Vec::new(),
        masked_columns: Vec::new(),
        log_name: format!("{name}_scylla_cdc_log"),
        streams: Arc::new(streams.unwrap()),
    }
}

/// `shop.products (id PRIMARY KEY, name)`.
pub(crate) fn products() -> LoggedTable {
    table(
        "products",
        &["id"],
        &[],
        &[("name", LoggedColumnKind::Regular)],
    )
}

/// `shop.events (PRIMARY KEY ((tenant, day), hour, seq), owner static, v)`.
pub(crate) fn events() -> LoggedTable {
    table(
        "events",
        &["tenant", "day"],
        &["hour", "seq"],
        &[
            ("owner", LoggedColumnKind::Static),
            ("v", LoggedColumnKind::Regular),
        ],
    )
}
