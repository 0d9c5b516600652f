//! Backups, restores and drills of a server, as tasks that can be followed and stopped.
//!
//! ```text
//!   routes, schedules ---> BackupRunner: one piece of work at a time, as a task
//!                             |
//!      back_up: state -> checkpoint (hard links) -> backup::BackupLocation::back_up -> retain
//!      restore: BackupLocation::download -> a read-only storage -> Storage::adopt_table
//!      drill:   BackupLocation::download -> a read-only storage -> counts and digests compared
//! ```
//!
//! The crate `backup` knows locations and files, and nothing of tables; the storage knows tables,
//! and nothing of locations. This crate joins them. What is backed up is a [`BackedUpState`]: the
//! whole database ([`DatabaseState`]), or what an index service before a cluster has of its own.
//!
//! Three ways lead back: into a running server next to its tables ([`BackupRunner`]), into the
//! directory of a new one ([`restore_directory`]), and by CQL into any cluster ([`CqlRestore`]).
//!
//! **Nothing half done is seen.** A restore works in a directory of its own, which a start removes;
//! a table appears with its last row ([`storage::Storage::adopt_table`]), and the tables of a
//! restore that ended early are removed again.
//!
//! **Queries go first.** Before each piece a transfer waits while queries want the machine
//! ([`QueriesFirst`]), and its work is on threads of a low priority.

#![warn(clippy::unwrap_used)]

mod back_up;
mod background;
mod book;
mod bounds;
mod by_cql;
mod choice;
mod digests;
mod drill;
mod error;
mod files;
mod metrics;
mod order;
mod pace;
mod restore;
mod room;
mod routes;
mod schedule;
mod service;
mod state;
mod transfer;

pub use bounds::RequestBounds;
pub use by_cql::{CqlRestore, CqlRestoreReport, CqlSchemaRule};
pub use choice::TableChoice;
pub use error::BackupTaskError;
pub use order::location_options;
pub use pace::{ClientWork, QueriesFirst};
pub use restore::{RestoredDirectory, restore_directory};
pub use service::{BackupRunner, BackupRunnerOptions};
pub use state::{BackedUpState, CapturedState, DatabaseState, SnapshotLinker, checkpoint};
