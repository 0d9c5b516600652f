//! Up to when the rows of a log go, for who waits for the next.

use tokio::sync::watch;

/// The latest `cdc$time` given to a row of one log since the storage was opened, in microseconds.
#[derive(Debug)]
pub(crate) struct Growth(watch::Sender<i64>);

impl Default for Growth {
    fn default() -> Growth {
        Growth(watch::Sender::new(i64::MIN))
    }
}

impl Growth {
    /// A commit has given a row this time. It may be under way still, and may fail.
    pub(crate) fn reach(&self, micros: i64) {
        self.0.send_if_modified(|latest| {
            let is_later = *latest < micros;
            *latest = micros.max(*latest);
            is_later
        });
    }

    /// Waits for a time at or after `from_micros`, or for the end of the log.
    pub(crate) fn reached(&self, from_micros: i64) -> impl Future<Output = ()> + use<> {
        let mut latest = self.0.subscribe();
        // An error is the end.
        async move { drop(latest.wait_for(|latest| *latest >= from_micros).await) }
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
    fn a_log_is_waited_for_until_it_reaches_a_time_or_ends() {
        let growth = Growth::default();
        let mut reached = pin!(growth.reached(1_500));
        growth.reach(1_499);
        assert!(!is_ready(reached.as_mut()));
        growth.reach(1_500);
        assert!(is_ready(reached));
        // What comes with an earlier time takes nothing back, and later ones need not wait.
        growth.reach(1_000);
        assert!(is_ready(pin!(growth.reached(1_500))));
        let mut later = pin!(growth.reached(1_501));
        assert!(!is_ready(later.as_mut()));
        drop(growth);
        assert!(is_ready(later));
    }
}
