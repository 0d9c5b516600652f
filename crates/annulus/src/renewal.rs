//! Files that are read again while a server runs: when, and what the log says of it.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior};

use crate::exit::Failure;

/// The times at which files are read again: at intervals, and on SIGHUP.
pub struct Checks {
    hang_up: Signal,
    interval: Interval,
}

impl Checks {
    /// Catches SIGHUP from now on. The first check is due at once.
    ///
    /// # Errors
    /// If signals can't be received.
    pub fn start(every: Duration) -> io::Result<Checks> {
        let mut interval = tokio::time::interval(every);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Checks {
            hang_up: signal(SignalKind::hangup())?,
            interval,
        })
    }

    /// Waits for the next check. Returns whether a signal asked for it.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.hang_up.recv() => true,
            _ = self.interval.tick() => false,
        }
    }
}

/// The fault of some files at the last check, so that it is logged once and not at every check.
#[derive(Default)]
pub struct Failures {
    last: Option<String>,
}

impl Failures {
    /// Logs the result of a check: whether `what` is another one now.
    pub fn tell(&mut self, renewed: Result<bool, Failure>, asked_for: bool, what: &str) {
        let is_new = matches!(renewed, Ok(true));
        let failure = renewed.err().map(|error| error.to_string());
        match &failure {
            None if is_new => {
                tracing::info!("{what} changed, and is in effect for new connections");
            }
            Some(error) if asked_for || failure != self.last => {
                tracing::error!(error, "{what} can't be used; all stays as it was");
            }
            _ => {}
        }
        self.last = failure;
    }
}
