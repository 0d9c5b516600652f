//! Files that are read again while a server runs: when, and what the log says of it.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior};

use crate::exit::ProcessFailure;

/// The times at which files are read again: at intervals, and on SIGHUP.
pub struct RereadSchedule {
    hang_up: Signal,
    interval: Interval,
}

impl RereadSchedule {
    /// Catches SIGHUP from now on. The first check is due at once.
    ///
    /// # Errors
    /// If signals can't be received.
    pub fn start(every: Duration) -> io::Result<RereadSchedule> {
        let mut interval = tokio::time::interval(every);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(RereadSchedule {
            hang_up: signal(SignalKind::hangup())?,
            interval,
        })
    }

    /// Waits for the next check. Returns whether a signal requested it.
    pub async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.hang_up.recv() => true,
            _ = self.interval.tick() => false,
        }
    }
}

/// The fault of some files at the last check, so that it is logged once and not at every check.
pub struct FileFaultLog {
    what: &'static str,
    /// The words for when a change counts.
    counts: &'static str,
    last: Option<String>,
}

impl FileFaultLog {
    /// Those of certificates or settings, by these words.
    pub fn of(what: &'static str) -> FileFaultLog {
        FileFaultLog {
            what,
            counts: "is in effect for new connections",
            last: None,
        }
    }

    /// Those of the file of tokens.
    pub fn of_tokens() -> FileFaultLog {
        FileFaultLog {
            what: "the file of tokens",
            counts: "counts from the next request on",
            last: None,
        }
    }

    /// Logs the result of a check: whether the files are others now.
    pub fn report(&mut self, renewed: Result<bool, ProcessFailure>, asked_for: bool) {
        let FileFaultLog { what, counts, last } = self;
        let is_new = matches!(renewed, Ok(true));
        let failure = renewed.err().map(|error| error.to_string());
        match &failure {
            None if is_new => tracing::info!("{what} changed, and {counts}"),
            Some(error) if asked_for || failure != *last => {
                tracing::error!(error, "{what} can't be used; all stays as it was");
            }
            _ => {}
        }
        *last = failure;
    }
}
