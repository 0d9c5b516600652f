//! The CQL server on embedded storage.
//!
//! A statement passes these stages: bytes → [`server`] (frames, connections, admission), which
//! knows no database → `requests` (prepared statements, the audit log, traces) → `cql::parser` →
//! [`planner`] (resolves it against the catalog into a plan that can be printed) → the plan's own
//! module, which executes it: [`select`], [`modify`], [`schema`], [`describe`] or
//! [`security::roles`]. A query with `ANN OF` gets primary keys from the index service
//! (`store_api::IndexServices`), and reads the rows here. Routes of HTTP (`http`) send statements
//! through `requests`, too, by the logins of their clients.

#![warn(clippy::unwrap_used)]

pub mod database;
pub mod describe;
pub mod guardrails;
mod http;
mod lifecycle;
pub mod modify;
pub mod planner;
mod requests;
pub mod schema_changes;
pub mod security;
pub mod select;
pub mod server;
pub mod statement;
pub mod system;

#[cfg(test)]
mod fixtures;

pub use http::{HttpTables, HttpTablesOptions};
pub use lifecycle::{Node, NodeOptions};
pub use net::listener::BindError;
pub use requests::{InternalExecutor, statement_families};
pub use security::HttpLogins;
pub use server::{ConnectionOptions, CounterValues, CqlListenerOptions, LiveCounters};
pub use statement::DefaultTimeouts;
pub use system::DATA_CENTER;
