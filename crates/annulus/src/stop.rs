//! The signals that a server gets: those that request it to stop, and SIGHUP.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals SIGINT and SIGTERM. They are caught from the moment that this exists. It is made
/// before anything else, so that a signal during the start also stops a server cleanly.
pub struct TerminationSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl TerminationSignals {
    /// Catches the signals from now on.
    pub fn listen() -> io::Result<TerminationSignals> {
        Ok(TerminationSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one of the signals, and returns its name.
    pub async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// The signal SIGHUP, which ends no server from the moment that this exists.
pub struct HangUpSignal {
    signal: Signal,
}

impl HangUpSignal {
    /// Catches the signal from now on.
    pub fn listen() -> io::Result<HangUpSignal> {
        Ok(HangUpSignal {
            signal: signal(SignalKind::hangup())?,
        })
    }

    /// Logs each signal to a server that has no files to read again. Never ends.
    pub async fn note_all(mut self) -> ! {
        loop {
            self.signal.recv().await;
            tracing::info!("SIGHUP: there is no certificate to read again");
        }
    }
}
