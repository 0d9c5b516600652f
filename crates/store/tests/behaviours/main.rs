//! The index service with its database, with a file for each behaviour. It is one program, so
//! that it links once.

mod common;

mod covering;
mod equals_the_table;
mod freshness;
mod guarded_database;
mod hybrid;
mod keys_of_every_type;
mod log_unknown;
mod long_work;
mod lost_database;
mod rebuild_over_restart;
mod repair;
mod schema_changes;
mod snapshots;
mod texts_in_keys;
mod without_room;
