//! The official Rust driver and the official CDC library, with all that applications do by them.
//!
//! Like the suites of the other drivers this one starts a server of its own unless `CQL_SERVER=host:port` names
//! another. tests/cluster names a gateway before a real Cassandra there, and runs the tests that are ignored otherwise:
//! those of what `annulus serve` does not have, and of the change log that a gateway writes.
//!
//! The driver speaks no custom payloads, so there are none here.

mod beyond_serve;
mod change_log;
mod routing;
mod schema;
mod statements;
mod target;
mod values;
mod vector_indexes;
