//! The signals that ask a server to stop.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals SIGINT and SIGTERM. They are caught from the moment that this exists. It is made
/// before anything else, so that a signal during the start also stops a server cleanly.
pub struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Catches the signals from now on.
    pub fn listen() -> io::Result<Stop> {
        Ok(Stop {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one of the signals, and returns its name.
    pub async fn asked_for(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
