//! Programs that a user runs against a CQL server: `annulus shell`, `import`, `export` and `mcp`.
//!
//! They are clients like any other: each opens a session of the driver ([`connection`]) and knows
//! of the server only what CQL shows. So they work with `annulus serve`, with a gateway, and with
//! Cassandra and ScyllaDB.

#![warn(clippy::unwrap_used)]

pub mod connection;
pub mod cql_json;
mod error;
pub mod export;
pub mod import;
pub mod mcp;
pub mod server_error;
pub mod shell;
pub mod table_name;
mod table_schema;

pub use connection::CqlFlags;
pub use error::{ToolError, exit_code};
