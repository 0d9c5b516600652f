//! The server side of the native protocol.
//!
//! ```text
//! socket -> entrance: addresses, TLS
//!             -> connection: frames, STARTUP, admission -> Service::answer, a task each
//!                                                              |
//! socket <- outbox: one writer, several frames a write <-------+
//! ```
//!
//! [`BoundListener`] and [`serve`] turn any [`CqlService`] into a server. The service answers the
//! statements; the server knows nothing of their meaning, nor of what they are executed on.
//! [`CqlListenerOptions`] bounds everything that a client can make the server hold.

mod admission;
mod batch;
mod connection;
mod counters;
mod framing;
mod listener;
mod options;
mod outbox;
mod peer;
mod request;
mod service;
mod shared;
mod tls_handshake;
mod unread;

pub use counters::{CounterValues, LiveCounters};
pub use listener::{BoundListener, CqlServer, serve};
pub use options::{ConnectionOptions, CqlListenerOptions};
pub use peer::ConnectionInfo;
pub(crate) use request::KIND_BYTES;
pub use service::{CqlService, ShedReason, StatementReply};
