//! The tables of `system_schema` for objects that do not exist here, such as views and functions.
//! They are empty, but drivers read all of them.

use super::definition::{VirtualTable, none};

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable {
        cql: "CREATE TABLE system_schema.views (
            keyspace_name text,
            view_name text,
            additional_write_policy text,
            allow_auto_snapshot boolean,
            base_table_id uuid,
            base_table_name text,
            bloom_filter_fp_chance double,
            caching frozen<map<text, text>>,
            cdc boolean,
            comment text,
            compaction frozen<map<text, text>>,
            compression frozen<map<text, text>>,
            crc_check_chance double,
            dclocal_read_repair_chance double,
            default_time_to_live int,
            extensions frozen<map<text, blob>>,
            gc_grace_seconds int,
            id uuid,
            include_all_columns boolean,
            incremental_backups boolean,
            max_index_interval int,
            memtable text,
            memtable_flush_period_in_ms int,
            min_index_interval int,
            read_repair text,
            read_repair_chance double,
            speculative_retry text,
            where_clause text,
            PRIMARY KEY (keyspace_name, view_name))",
        records: none,
    },
    VirtualTable {
        cql: "CREATE TABLE system_schema.functions (
            keyspace_name text,
            function_name text,
            argument_types frozen<list<text>>,
            argument_names frozen<list<text>>,
            body text,
            called_on_null_input boolean,
            language text,
            return_type text,
            PRIMARY KEY (keyspace_name, function_name, argument_types))",
        records: none,
    },
    VirtualTable {
        cql: "CREATE TABLE system_schema.aggregates (
            keyspace_name text,
            aggregate_name text,
            argument_types frozen<list<text>>,
            final_func text,
            initcond text,
            return_type text,
            state_func text,
            state_type text,
            PRIMARY KEY (keyspace_name, aggregate_name, argument_types))",
        records: none,
    },
    VirtualTable {
        cql: "CREATE TABLE system_schema.triggers (
            keyspace_name text,
            table_name text,
            trigger_name text,
            options frozen<map<text, text>>,
            PRIMARY KEY (keyspace_name, table_name, trigger_name))",
        records: none,
    },
];
