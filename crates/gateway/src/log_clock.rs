//! The times of log rows.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use clock::{Clock, ServerClock, SystemClock};
use cql::error::{CqlError, ErrorKind};
use cql::value::timeuuid;
use uuid::Uuid;

/// The bit of a node that says that it is no network card's address: the lowest of its first byte.
const MULTICAST: u64 = 1 << 40;

/// Gives out timeuuids of the present, each greater than the one before, and none that another gateway gives out.
///
/// `cdc$time` is the time at which the gateway makes the log row, not the write's timestamp: readers of the log go
/// through time once, so a row that a client has dated back would be missed. For the same reason the time goes on when the
/// machine's clock is set back ([`ServerClock`]), and no row may be dated while this clock is known to be
/// [wrong](LogClock::check).
#[derive(Debug)]
pub(crate) struct LogClock {
    machine: Arc<dyn Clock>,
    source: ArcSwap<Source>,
    /// Why no row may be dated.
    wrong: ArcSwapOption<String>,
}

#[derive(Debug)]
struct Source {
    clock: Arc<ServerClock>,
    clock_and_node: u64,
}

impl Source {
    /// With a random node.
    fn new(machine: Arc<dyn Clock>) -> Source {
        let (_, random) = Uuid::new_v4().as_u64_pair();
        Source {
            clock: ServerClock::new(machine),
            clock_and_node: random | MULTICAST,
        }
    }
}

impl Default for LogClock {
    fn default() -> Self {
        LogClock::new(Arc::new(SystemClock))
    }
}

impl LogClock {
    /// A clock that begins where `machine` is.
    pub(crate) fn new(machine: Arc<dyn Clock>) -> LogClock {
        LogClock {
            source: ArcSwap::from_pointee(Source::new(machine.clone())),
            machine,
            wrong: ArcSwapOption::empty(),
        }
    }

    /// A timeuuid of now, or of the microsecond after the last one if the clock has not moved since.
    pub(crate) fn next(&self) -> Uuid {
        let source = self.source.load();
        timeuuid::from_micros(source.clock.next_write_micros(), source.clock_and_node)
            .expect("bug: the present lies outside of the years 1582 to 5236")
    }

    /// The present by which log rows are dated. Microseconds since the epoch.
    pub(crate) fn now_micros(&self) -> i64 {
        self.source.load().clock.now_micros()
    }

    /// How far that lies ahead of the machine's clock, as it was set back. Microseconds.
    pub(crate) fn lead_micros(&self) -> i64 {
        self.source.load().clock.lead_micros()
    }

    /// Begins anew where the machine's clock is, which was set forward by mistake and is right again. What is given out from now on
    /// has another node, as from another gateway.
    pub(crate) fn begin_anew(&self) {
        self.source
            .store(Arc::new(Source::new(self.machine.clone())));
    }

    /// Says that the clock is wrong, and why, or that it is not.
    pub(crate) fn set_wrong(&self, why: Option<String>) {
        self.wrong.store(why.map(Arc::new));
    }

    /// Whether rows may be dated.
    ///
    /// # Errors
    /// If they would be missed. Upon this drivers ask another gateway.
    pub(crate) fn check(&self) -> Result<(), CqlError> {
        match &*self.wrong.load() {
            None => Ok(()),
            Some(why) => Err(CqlError::new(
                ErrorKind::IsBootstrapping,
                format!(
                    "{why}: writes to tables with a vector index are refused until that is right; use another gateway"
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use clock::HandClock;

    use super::*;

    const START: i64 = 1_700_000_000_000_000;

    fn clocks() -> (Arc<HandClock>, LogClock) {
        let hand = HandClock::new(START);
        (hand.clone(), LogClock::new(hand))
    }

    #[test]
    fn times_grow_even_if_the_clock_goes_back() {
        let (hand, clock) = clocks();
        let next = || timeuuid::unix_micros(&clock.next());
        assert_eq!(next(), START);
        assert_eq!(next(), START + 1);
        hand.set_micros(5);
        assert_eq!(next(), START + 2);
        // It goes on, a sixteenth more slowly.
        hand.advance_micros(16_000);
        assert_eq!(next(), START + 15_000);
        assert_eq!(clock.lead_micros(), START + 15_000 - 16_005);
    }

    #[test]
    fn a_clock_that_was_ahead_begins_anew_as_another_one() {
        let (hand, clock) = clocks();
        hand.set_micros(2 * START);
        let ahead = clock.next();
        hand.set_micros(START);
        clock.begin_anew();
        let now = clock.next();
        assert_eq!(timeuuid::unix_micros(&now), START);
        assert_ne!(now.as_u64_pair().1, ahead.as_u64_pair().1);
    }

    #[test]
    fn two_gateways_never_give_out_the_same() {
        let hand = HandClock::new(START);
        let (one, other) = (LogClock::new(hand.clone()), LogClock::new(hand));
        assert_ne!(one.next(), other.next());
        assert_eq!(one.next().get_version_num(), 1);
    }

    #[test]
    fn a_wrong_clock_dates_nothing() {
        let (_, clock) = clocks();
        assert_eq!(clock.check(), Ok(()));
        clock.set_wrong(Some("it is wrong".to_owned()));
        let refusal = clock.check().unwrap_err();
        assert_eq!(refusal.kind, ErrorKind::IsBootstrapping);
        clock.set_wrong(None);
        assert_eq!(clock.check(), Ok(()));
    }
}
