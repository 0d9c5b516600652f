//! The queries of drivers, cqlsh and CDC readers when they connect, word for word.

use cql::error::ErrorKind;

use crate::client::literals;
use crate::real::start_with_keyspace;

/// Queries of the Python, Java, Go and Rust drivers, cqlsh, and the CDC library.
const QUERIES: &[&str] = &[
    "SELECT * FROM system.local WHERE key='local'",
    "select * from system.local where key = 'local'",
    "SELECT host_id FROM system.local",
    "SELECT cluster_name FROM system.local",
    "SELECT schema_version FROM system.local WHERE key='local'",
    "SELECT rpc_address FROM system.local WHERE key='local'",
    "SELECT host_id, rpc_address, data_center, rack, tokens, cluster_name FROM system.local WHERE key='local'",
    "SELECT host_id, cluster_name, data_center, rack, partitioner, release_version, schema_version FROM system.local WHERE key='local'",
    "SELECT * FROM system.peers",
    "SELECT COUNT(*) FROM system.peers",
    "SELECT peer, data_center, host_id, rack, release_version, rpc_address, schema_version, tokens FROM system.peers",
    "SELECT host_id, rpc_address, data_center, rack, tokens FROM system.peers",
    "SELECT host_id, peer, data_center, rack, rpc_address, rpc_address, release_version, schema_version FROM system.peers",
    "SELECT peer, host_id, rpc_address, schema_version FROM system.peers",
    "SELECT * FROM system_schema.keyspaces",
    "SELECT * FROM system_schema.tables",
    "SELECT * FROM system_schema.columns",
    "SELECT * FROM system_schema.types",
    "SELECT * FROM system_schema.functions",
    "SELECT * FROM system_schema.aggregates",
    "SELECT * FROM system_schema.triggers",
    "SELECT * FROM system_schema.indexes",
    "SELECT * FROM system_schema.views",
    "SELECT * FROM system_schema.dropped_columns",
    "SELECT * FROM system.peers_v2",
    "SELECT host_id, peer, peer_port, native_address, native_port, schema_version FROM system.peers_v2",
    "SELECT * from system_virtual_schema.keyspaces",
    "SELECT * from system_virtual_schema.tables",
    "SELECT * from system_virtual_schema.columns",
    "SELECT * FROM system_schema.keyspaces WHERE keyspace_name = 'k'",
    "SELECT * FROM system_schema.tables WHERE keyspace_name = 'k' AND table_name = 't'",
    "SELECT * FROM system_schema.views WHERE keyspace_name = 'k' AND view_name = 't'",
    "SELECT keyspace_name, replication, durable_writes FROM system_schema.keyspaces",
    "SELECT keyspace_name, type_name, field_names, field_types FROM system_schema.types",
    "SELECT keyspace_name, table_name FROM system_schema.tables",
    "SELECT keyspace_name, view_name, base_table_name FROM system_schema.views",
    "SELECT keyspace_name, table_name, column_name, kind, position, type FROM system_schema.columns",
    "SELECT keyspace_name, table_name, partitioner FROM system_schema.scylla_tables",
    "SELECT keyspace_name, initial_tablets, consistency FROM system_schema.scylla_keyspaces",
    "SELECT initial_tablets FROM system_schema.scylla_keyspaces WHERE keyspace_name = 'k'",
    "SELECT table_name, bloom_filter_fp_chance, caching, comment, compaction, compression, crc_check_chance, dclocal_read_repair_chance, default_time_to_live, extensions, gc_grace_seconds, id, max_index_interval, memtable_flush_period_in_ms, min_index_interval, read_repair_chance, speculative_retry FROM system_schema.tables WHERE keyspace_name = 'k'",
    "SELECT keyspace_name, index_name, table_name, options FROM system_schema.indexes WHERE kind = 'CUSTOM' ALLOW FILTERING",
    "SELECT options FROM system_schema.indexes WHERE keyspace_name = 'k' AND table_name = 't' AND index_name = 'i'",
    "SELECT type FROM system_schema.columns WHERE keyspace_name = 'k' AND table_name = 't' AND column_name = 'v'",
    "SELECT state_id FROM system.group0_history WHERE key = 'history' ORDER BY state_id DESC LIMIT 1",
    "SELECT version FROM system.versions WHERE key = 'local'",
    "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'",
    "SELECT timestamp FROM system.cdc_timestamps WHERE keyspace_name = 'k' AND table_name = 't' AND timestamp <= '2100-01-01' ORDER BY timestamp DESC LIMIT 1",
    "SELECT timestamp FROM system.cdc_timestamps WHERE keyspace_name = 'k' AND table_name = 't' AND timestamp > 0 ORDER BY timestamp ASC LIMIT 1",
    "SELECT stream_id FROM system.cdc_streams WHERE keyspace_name = 'k' AND table_name = 't' AND timestamp = 0 AND stream_state = 0",
    "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'",
    "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps' AND time <= '2100-01-01' ORDER BY time DESC LIMIT 1",
    "SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps' AND time > 0 ORDER BY time ASC LIMIT 1",
    "SELECT streams FROM system_distributed.cdc_streams_descriptions_v2 WHERE time = 0",
    "SELECT client, command, coordinator, duration, parameters, request, started_at FROM system_traces.sessions WHERE session_id = 123e4567-e89b-12d3-a456-426614174000",
    "SELECT event_id, activity, source, source_elapsed, thread FROM system_traces.events WHERE session_id = 123e4567-e89b-12d3-a456-426614174000",
    "SELECT range_start, range_end, partitions_count, mean_partition_size FROM system.size_estimates WHERE keyspace_name = 'k' AND table_name = 't'",
];

/// Queries with bind markers of the Rust driver, the CDC library and the index service, with the
/// types of the markers.
const PREPARED: &[(&str, &[&str])] = &[
    (
        "SELECT keyspace_name, table_name FROM system_schema.tables where keyspace_name in ?",
        &["list<text>"],
    ),
    (
        "SELECT keyspace_name, replication, durable_writes FROM system_schema.keyspaces where keyspace_name in ?",
        &["list<text>"],
    ),
    (
        "SELECT initial_tablets FROM system_schema.scylla_keyspaces WHERE keyspace_name = ?",
        &["text"],
    ),
    (
        "\n        SELECT timestamp\n        FROM system.cdc_timestamps\n        WHERE keyspace_name = ? AND table_name = ? AND timestamp <= ?\n        ORDER BY timestamp DESC\n        LIMIT 1;\n        ",
        &["text", "text", "timestamp"],
    ),
    (
        "\n        SELECT stream_id\n        FROM system.cdc_streams\n        WHERE keyspace_name = ? AND table_name = ? AND timestamp = ? AND stream_state = ?;\n        ",
        &["text", "text", "timestamp", "tinyint"],
    ),
    (
        "\n        SELECT streams\n        FROM system_distributed.cdc_streams_descriptions_v2\n        WHERE time = ?;",
        &["timestamp"],
    ),
    (
        "SELECT * FROM \"k\".\"t_scylla_cdc_log\" WHERE \"cdc$stream_id\" in ? AND \"cdc$time\" >= minTimeuuid(?) AND \"cdc$time\" < minTimeuuid(?)  BYPASS CACHE",
        &["list<blob>", "timestamp", "timestamp"],
    ),
    (
        "SELECT id FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?",
        &["text", "text"],
    ),
    (
        "SELECT truncated_at FROM system.truncated WHERE table_uuid = ? LIMIT 1",
        &["uuid"],
    ),
    (
        "SELECT \"p\", \"v\", WRITETIME(\"v\"), TTL(\"v\") FROM \"k\".\"t\" WHERE token(\"p\") >= ? AND token(\"p\") <= ? BYPASS CACHE",
        &["bigint", "bigint"],
    ),
];

/// Queries of tables that drivers do without if the answer is Invalid.
const ABSENT: &[&str] =
    &["SELECT connection_id, host_id, address, port, tls_port FROM system.client_routes"];

fn thawed(cql_type: &str) -> &str {
    cql_type
        .strip_prefix("frozen<")
        .and_then(|inner| inner.strip_suffix('>'))
        .unwrap_or(cql_type)
}

#[tokio::test]
async fn each_is_answered() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (p int PRIMARY KEY, v vector<float, 3>)")
        .await;
    client
        .run("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
        .await;
    for query in QUERIES {
        literals(client.run(query).await);
        client.prepare(query).await;
    }
    for (query, types) in PREPARED {
        let prepared = client.prepare(query).await;
        let markers = prepared.bind.columns.iter();
        let told: Vec<String> = markers.map(|marker| marker.cql_type.to_string()).collect();
        // The type of a list that is bound as a whole may be frozen or not.
        let told: Vec<&str> = told.iter().map(|name| thawed(name)).collect();
        assert_eq!(told, *types, "{query}");
    }
    for query in ABSENT {
        assert_eq!(client.fail(query).await.kind, ErrorKind::Invalid, "{query}");
    }
}

#[tokio::test]
async fn an_index_is_discovered_with_its_log() {
    let (_node, mut client) = start_with_keyspace().await;
    client
        .run("CREATE TABLE t (p int PRIMARY KEY, v vector<float, 3>)")
        .await;
    let version = "SELECT state_id FROM system.group0_history WHERE key = 'history' ORDER BY state_id DESC LIMIT 1";
    let before = client.rows(version).await;
    assert_eq!(client.rows(version).await, before);
    client
        .run("CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'")
        .await;
    assert_ne!(client.rows(version).await, before);
    let indexes = client
        .rows("SELECT index_name, table_name FROM system_schema.indexes WHERE kind = 'CUSTOM' ALLOW FILTERING")
        .await;
    assert_eq!(indexes, [["'i'", "'t'"]]);
    let cql_type = client
        .rows("SELECT type FROM system_schema.columns WHERE keyspace_name = 'k' AND table_name = 't' AND column_name = 'v'")
        .await;
    assert_eq!(cql_type, [["'vector<float, 3>'"]]);
    let log = client
        .rows("SELECT partitioner FROM system_schema.scylla_tables WHERE keyspace_name = 'k' AND table_name = 't_scylla_cdc_log'")
        .await;
    assert_eq!(log, [["'com.scylladb.dht.CDCPartitioner'"]]);
    let streams = client
        .rows("SELECT time FROM system_distributed.cdc_generation_timestamps WHERE key = 'timestamps'")
        .await;
    assert_eq!(streams.len(), 1);
}
