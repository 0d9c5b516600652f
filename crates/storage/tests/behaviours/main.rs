//! The storage as its users see it, with a file for each behaviour. It is one program, so that it
//! links once. It starts no process: see `processes`.

#[path = "../support/mod.rs"]
mod support;

mod adoption;
mod batch_bytes;
mod cdc_log_table;
mod cdc_rows;
mod checkpoints;
mod clock_set_back;
mod conditions;
mod damage;
mod directories;
mod dropped_futures;
mod equal_keys;
mod in_memory_restarts;
mod in_memory_tables;
mod index_log_deletes;
mod late_writes;
mod model;
mod partition_sizes;
mod positions;
mod purging;
mod range_deletions;
mod refusals;
mod reopen;
mod schema_changes;
mod secondary_indexes;
mod settle_log;
mod sweeping;
mod write_buffers;
mod write_permits;
