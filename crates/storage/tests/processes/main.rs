//! Tests that run a test as a process of its own, which is killed, loses power or has a full disk.
//!
//! They are a program apart from `behaviours`, as a process that starts holds, for a moment, the
//! locks of all directories that are open here. See [`support::STARTING`].

mod disk;
#[path = "../support/mod.rs"]
mod support;
mod workload;

mod counters;
mod dropped_tables;
mod full_disk;
mod kill;
mod power_cut;
mod replay;
mod row_ttl;
