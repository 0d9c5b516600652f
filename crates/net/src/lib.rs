//! Sockets of servers and of their clients, without the protocols that run over them.
//!
//! - [`address`]: addresses of clients.
//! - [`listener`]: listening, and accepting connections up to a limit.
//! - [`reactors`]: threads that keep their connections.
//! - [`log_limiter`]: lines about clients that are logged once in a while.
//! - [`sockets`]: the options of a socket, and its end.
//! - [`pending_connections`]: connections that have not begun, of which some give way.
//! - [`stream`]: a connected socket, in clear or under TLS.
//! - [`tls`]: configurations for either side, which may be renewed.

#![warn(clippy::unwrap_used)]

pub mod address;
pub mod listener;
pub mod log_limiter;
pub mod pending_connections;
pub mod reactors;
pub mod sockets;
pub mod stream;
pub mod tls;
