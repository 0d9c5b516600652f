//! Common parts of the tests of several crates. Only tests depend on it.
//!
//! A test doesn't sleep: it waits for what it needs, by [`eventually`], [`until_ok`], [`steady`]
//! and [`soon`], or by [`blocking`] on a thread that no runtime needs. Their pauses are the only
//! ones, and each names what didn't come. A process that a test starts is [`Running`] and ends with
//! the test.

#![warn(clippy::unwrap_used)]

pub mod blocking;
mod running;
mod waiting;

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

pub use running::Running;
pub use waiting::{eventually, soon, steady, until_ok};

/// The longest wait for an event; far longer than it takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A free port on the loopback address.
///
/// # Panics
/// If there is none.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound")
}
