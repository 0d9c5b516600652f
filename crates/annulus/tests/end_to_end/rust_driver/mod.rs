//! The official Rust driver and the official CDC library, with everything that applications do with
//! them.
//!
//! Like the suites of the other drivers, this one starts a server of its own unless
//! `CQL_SERVER=host:port` names another. tests/cluster sets it to a gateway before a real
//! Cassandra, and also runs the tests that are otherwise ignored: those of features that
//! `annulus serve` does not have, and of the change log that a gateway writes.
//!
//! The driver has no custom payloads, so there are no tests of them here.

mod beyond_serve;
mod change_log;
mod routing;
mod schema;
mod statements;
mod target;
mod values;
mod vector_indexes;
