//! The index service. It keeps the vectors of a database's tables searchable, and serves the HTTP
//! API that a CQL node asks. The trait [`database::Database`] stands for the database; beside a
//! cluster the service is an ordinary CQL client.
//!
//! The service consists of small tasks that each own their state and talk over bounded channels. A
//! full channel holds the sender up, so nothing is dropped.
//!
//! ```text
//!                 monitor_indexes --- starts and ends ---> table (one for each indexed table)
//!                       |  schema                            |
//!                       v                                    |    rows
//!                     engine: every index and its status     |  scan ------> monitor_items
//!                       ^                                    |                 ^    | changes
//!                       | reads                              | hints           |    v
//!   sockets --> httpd --+--> index_actor: search     cdc --------> reread -----+  index_actor
//! ```
//!
//! The service also saves each index now and then ([`snapshot`]), so that a restart needs no scan.
//!
//! A row of the log is only a hint, and the base row is the truth. [`items`] argues why the index
//! ends up equal to the table. [`httpd`] serves the API, and [`Store::start`] starts the service.

mod aside;
mod cdc;
mod cluster;
mod compute;
pub mod database;
mod engine;
mod found;
mod freshness;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod httpd;
mod identity;
mod index_actor;
mod index_options;
mod items;
mod keys;
mod long_work;
mod memory;
mod metrics;
mod monitor_indexes;
mod monitor_items;
mod options;
mod pages;
mod present;
mod repair;
mod reread;
mod rows;
mod scan;
mod scrub;
mod service;
mod snapshot;
mod start_error;
mod table;

pub use compute::INLINE_WITHIN;
pub use cql::secret::Secret;
pub use httpd::openapi;
pub use memory::{default_limit_bytes, half_of_machine_bytes};
pub use options::{
    CdcOptions, Consistency, Credentials, DatabaseOptions, IndexesOptions, ListenerOptions,
    MemoryOptions, Placement, Preferred, ReaderOptions, RepairOptions, RepairSchedule, ScanOptions,
    ScrubOptions, SnapshotOptions, StoreOptions,
};
pub use scrub::{Pace, check_snapshots};
pub use service::{Listeners, Store, StoreHandle};
pub use start_error::StartError;
