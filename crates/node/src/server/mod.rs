//! The server side of the native protocol.
//!
//! ```text
//! socket -> entrance: addresses, TLS
//!             -> connection: frames, STARTUP, admission -> Service::answer, a task each
//!                                                              |
//! socket <- outbox: one writer, several frames a write <-------+
//! ```
//!
//! [`BoundListener`] and [`serve`] turn any [`Service`] into a server, for example the embedded
//! database's or a gateway's. [`ListenerOptions`] bounds everything that a client can make the
//! server hold.

mod admission;
mod audited;
mod batch;
mod connection;
mod convert;
mod counters;
mod entrance;
mod events;
mod framing;
mod listener;
mod masked;
mod options;
mod outbox;
mod parsing;
mod peer;
mod prepared;
mod request;
mod service;
mod shared;
mod statements;
mod traced;
mod unread;
mod values;
mod weight;

pub use counters::CounterValues;
pub use listener::{BoundListener, Server, serve};
pub use options::{ConnectionOptions, ListenerOptions, NodeOptions};
pub use peer::Peer;
pub use service::{Reply, Service};
pub(crate) use statements::Statements;
