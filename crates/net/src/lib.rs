//! Sockets of servers and of their clients, without the protocols that run over them.
//!
//! - [`listener`]: listening, and accepting connections up to a limit.
//! - [`reactors`]: threads that keep their connections.
//! - [`sockets`]: the options of a socket, and its end.
//! - [`tls`]: configurations for either side, which may be renewed.

#![warn(clippy::unwrap_used)]

pub mod listener;
pub mod reactors;
pub mod sockets;
pub mod tls;
