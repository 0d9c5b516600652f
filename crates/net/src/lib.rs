//! Sockets of servers and of their clients, without the protocols that run over them.
//!
//! - [`reactors`]: threads that keep their connections.
//! - [`sockets`]: the options of a socket.
//! - [`tls`]: configurations for either side, which may be renewed.

#![warn(clippy::unwrap_used)]

pub mod reactors;
pub mod sockets;
pub mod tls;
