//! The index service. It keeps the vectors of a database's tables searchable, and serves the HTTP
//! API that a CQL node calls. The trait [`database::SourceDatabase`] represents the database; next
//! to a cluster the service is an ordinary CQL client.
//!
//! The service consists of small tasks that each own their state and talk over bounded channels. A
//! full channel holds the sender up, so nothing is dropped.
//!
//! ```text
//!                 schema_watch --- starts and ends ---> table (one for each indexed table)
//!                       |  schema                         |
//!                       v                                 |       rows
//!                 indexes: all of them, their status      |  scan ------> apply
//!                       ^                                 |                ^   | changes
//!                       | reads                           | hints          |   v
//!   sockets -> routes --+--> index: search     feed::log ------> reread ---+  index
//! ```
//!
//! The service also saves each index now and then ([`snapshot`]), so that a restart needs no scan.
//!
//! A row of the log is only a hint, and the base row is the truth. [`items`] argues why the index
//! ends up equal to the table. [`routes`] has the API, and [`Store::start`] starts the service.

#![warn(clippy::unwrap_used, unreachable_pub)]

mod apply;
mod cluster;
mod compute;
mod counters;
pub mod database;
mod feed;
mod filter;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod graph_maintenance;
mod identity;
mod index_options;
mod indexes;
mod items;
mod keys;
mod long_work;
mod maps;
mod memory;
mod message;
mod metrics;
mod observed;
mod options;
mod own_state;
mod present;
mod recall_checks;
mod repair;
mod routes;
mod rows;
mod schema_watch;
mod scrub;
mod search;
mod service;
mod snapshot;
mod start_error;
mod table;

pub use compute::INLINE_WITHIN;
pub use cql::secret::Secret;
pub use memory::{default_limit_bytes, half_of_machine_bytes};
pub use metrics::described as described_metrics;
pub use options::{
    ApiSocketOptions, BytesToCome, Consistency, DatabaseOptions, FullVectorPlacement,
    IndexesOptions, LogReadingOptions, MemoryOptions, PeriodicRepair, PreferredNodes,
    ReaderOptions, RecallCheckOptions, RepairOptions, ScanOptions, ScrubOptions,
    SessionCredentials, ShortAnswerPolicy, SnapshotOptions, StoreOptions, UnknownKeyRule,
};
pub use own_state::OwnIndexState;
pub use routes::{openapi, shown_task};
pub use scrub::{ReadRateLimiter, check_snapshots};
pub use service::{ApiListeners, Store, StoreHandle};
pub use snapshot::LinkedSnapshots;
pub use start_error::StartError;
