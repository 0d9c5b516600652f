//! The system tables about other nodes, of which there are none, and about the distribution of
//! data.

use super::definition::{VirtualTable, none};

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable {
        cql: "CREATE TABLE system.peers (
            peer inet PRIMARY KEY,
            data_center text,
            host_id uuid,
            preferred_ip inet,
            rack text,
            release_version text,
            rpc_address inet,
            schema_version uuid,
            tokens set<text>)",
        records: none,
    },
    VirtualTable {
        cql: "CREATE TABLE system.peers_v2 (
            peer inet,
            peer_port int,
            data_center text,
            host_id uuid,
            native_address inet,
            native_port int,
            preferred_ip inet,
            preferred_port int,
            rack text,
            release_version text,
            schema_version uuid,
            tokens set<text>,
            PRIMARY KEY (peer, peer_port))",
        records: none,
    },
    VirtualTable {
        cql: "CREATE TABLE system.size_estimates (
            keyspace_name text,
            table_name text,
            range_start text,
            range_end text,
            mean_partition_size bigint,
            partitions_count bigint,
            PRIMARY KEY (keyspace_name, table_name, range_start, range_end))",
        records: none,
    },
    VirtualTable {
        cql: "CREATE TABLE system.table_estimates (
            keyspace_name text,
            table_name text,
            range_type text,
            range_start text,
            range_end text,
            mean_partition_size bigint,
            partitions_count bigint,
            PRIMARY KEY (keyspace_name, table_name, range_type, range_start, range_end))",
        records: none,
    },
    VirtualTable {
        cql: "CREATE TABLE system.tablets (
            table_id uuid,
            last_token bigint,
            keyspace_name text STATIC,
            table_name text STATIC,
            tablet_count int STATIC,
            replicas frozen<list<frozen<tuple<uuid, int>>>>,
            PRIMARY KEY (table_id, last_token))",
        records: none,
    },
];
