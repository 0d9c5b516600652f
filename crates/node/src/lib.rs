//! The CQL server on embedded storage.
//!
//! A statement passes these stages: bytes → [`server`] (frames, admission, prepared statements) →
//! `cql::parser` → [`query`] (resolves it against the catalog into a plan that can be printed) →
//! the plan's own module, which executes it: [`select`], [`modify`], [`schema`] or [`describe`]. A
//! query with `ANN OF` asks the index service (`store_api::Stores`) for primary keys, and reads the
//! rows here.

#![warn(clippy::unwrap_used)]

pub mod access;
mod answer;
pub mod audit;
mod audited_login;
mod clients;
mod consistency;
mod database;
mod deadline;
pub mod describe;
pub mod failure;
pub mod guardrails;
mod http_logins;
mod local;
pub mod modify;
pub mod node;
mod parameters;
mod prepared_texts;
mod presence;
pub mod query;
pub mod resolve;
pub mod roles;
pub mod schema;
pub mod select;
pub mod server;
pub mod slices;
pub mod system;
mod timeouts;
mod unsupported;

#[cfg(test)]
mod fixtures;

pub use http_logins::HttpLogins;
pub use local::Local;
pub use net::listener::BindError;
pub use node::Node;
pub use server::{ConnectionOptions, ListenerOptions, NodeOptions};
pub use system::DATA_CENTER;
pub use timeouts::Timeouts;
