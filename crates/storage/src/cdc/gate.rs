//! The meeting of the committer, which gives times to log rows, and the readers of a log, who ask
//! that nothing be added below a time any more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{CdcClock, LogTime};

#[derive(Debug)]
pub(crate) struct CdcGate {
    state: Mutex<State>,
    /// The number of the last commit that ended.
    ended: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    clock: CdcClock,
    /// The number of the last commit that began.
    begun: u64,
    /// The latest time given out, in microseconds.
    latest_micros: i64,
}

impl CdcGate {
    pub(crate) fn new(mark_micros: i64) -> CdcGate {
        CdcGate {
            state: Mutex::new(State {
                clock: CdcClock::new(mark_micros),
                begun: 0,
                latest_micros: i64::MIN,
            }),
            ended: watch::Sender::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A commit begins: times that it takes from now on are waited for by [`CdcGate::settle`].
    pub(crate) fn begin(&self) -> InFlight<'_> {
        let mut state = self.state();
        state.begun += 1;
        InFlight {
            gate: self,
            number: state.begun,
        }
    }

    pub(crate) fn take(&self, timestamp: i64, now_micros: i64) -> LogTime {
        let mut state = self.state();
        let time = state.clock.take(timestamp, now_micros);
        state.latest_micros = state.latest_micros.max(time.micros());
        time
    }

    pub(crate) fn persistent_mark(&self) -> i64 {
        self.state().clock.persistent_mark()
    }

    /// Raises the mark and waits for the commit in flight. Commits that begin later take later times.
    pub(crate) async fn settle(&self, mark_micros: i64) {
        let mut ended = self.ended.subscribe();
        let in_flight = {
            let mut state = self.state();
            state.clock.raise_mark(mark_micros);
            state.begun
        };
        // The sender lives as long as `self`.
        let _ = ended.wait_for(|ended| *ended >= in_flight).await;
    }

    /// Waits until a commit that took a time at or after `from_micros` has ended, or is about to.
    pub(crate) async fn grown(&self, from_micros: i64) {
        let mut ended = self.ended.subscribe();
        let _ = ended
            .wait_for(|_| self.state().latest_micros >= from_micros)
            .await;
    }
}

/// A commit between its first log time and its end, whatever that is.
#[derive(Debug)]
pub(crate) struct InFlight<'a> {
    gate: &'a CdcGate,
    number: u64,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.gate.ended.send_replace(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    use super::*;

    fn is_ready(future: Pin<&mut impl Future>) -> bool {
        future
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }

    #[test]
    fn a_log_has_grown_once_a_commit_took_a_time_that_late() {
        let gate = CdcGate::new(0);
        let mut grown = pin!(gate.grown(1_500));
        // One that takes no time, and one that takes an earlier one.
        drop(gate.begin());
        let commit = gate.begin();
        gate.take(1_499, 2_000);
        drop(commit);
        assert!(!is_ready(grown.as_mut()));

        let commit = gate.begin();
        gate.take(1_500, 2_000);
        drop(commit);
        assert!(is_ready(grown));
        // Later ones need not wait.
        assert!(is_ready(pin!(gate.grown(1_500))));
        assert!(!is_ready(pin!(gate.grown(1_501))));
    }
}
