//! The clock that dates the rows of change logs.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use clock::{Clock, ServerClock, SystemClock};
use cql::error::{CqlError, ErrorKind};
use uuid::Uuid;
use value::timeuuid;

/// The bit of a timeuuid's node that marks it as no network card's address: the lowest bit of its
/// first byte.
const MULTICAST: u64 = 1 << 40;

/// Makes timeuuids of the present. Each is greater than the one before, and no other gateway makes
/// the same.
///
/// `cdc$time` is the time at which the gateway makes the log row, not the write's timestamp:
/// readers pass each time of a log once, so they would miss a row that a client has dated back. For
/// the same reason the time goes on when the machine's clock is set back ([`ServerClock`]), and no
/// row may be dated while this clock is known to be [wrong](LogClock::check).
#[derive(Debug)]
pub(crate) struct LogClock {
    /// The machine's clock.
    machine: Arc<dyn Clock>,
    /// The present source of timeuuids, replaced by [`LogClock::reset`].
    source: ArcSwap<TimeuuidClock>,
    /// The reason why no row may be dated now; `None` if rows may be.
    wrong: ArcSwapOption<String>,
}

/// A clock that never goes back, with the constant part of its timeuuids.
#[derive(Debug)]
struct TimeuuidClock {
    clock: Arc<ServerClock>,
    /// The lower half of the timeuuids: clock sequence and node, both random.
    clock_and_node: u64,
}

impl TimeuuidClock {
    /// A source with a random clock sequence and node.
    fn new(machine: Arc<dyn Clock>) -> TimeuuidClock {
        let (_, random) = Uuid::new_v4().as_u64_pair();
        TimeuuidClock {
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
    /// Makes a clock that begins at the time of `machine`.
    pub(crate) fn new(machine: Arc<dyn Clock>) -> LogClock {
        LogClock {
            source: ArcSwap::from_pointee(TimeuuidClock::new(machine.clone())),
            machine,
            wrong: ArcSwapOption::empty(),
        }
    }

    /// A timeuuid of now, or of the microsecond after the last one if the clock has not moved
    /// since.
    pub(crate) fn next(&self) -> Uuid {
        let source = self.source.load();
        timeuuid::from_micros(source.clock.next_write_micros(), source.clock_and_node)
            .expect("bug: the present lies outside of the years 1582 to 5236")
    }

    /// The present by which log rows are dated. Microseconds since the epoch.
    pub(crate) fn now_micros(&self) -> i64 {
        self.source.load().clock.now_micros()
    }

    /// The time by which this clock is ahead of the machine's clock, because that was set back.
    /// Microseconds.
    pub(crate) fn lead_micros(&self) -> i64 {
        self.source.load().clock.ahead_micros()
    }

    /// Starts over at the time of the machine's clock, which was set forward by mistake and is
    /// right again. Later timeuuids have another node, as if another gateway made them.
    pub(crate) fn reset(&self) {
        self.source
            .store(Arc::new(TimeuuidClock::new(self.machine.clone())));
    }

    /// Sets the reason why the clock is wrong; `None` if it is right.
    pub(crate) fn set_wrong(&self, why: Option<String>) {
        self.wrong.store(why.map(Arc::new));
    }

    /// Checks that log rows may be dated.
    ///
    /// # Errors
    /// If the clock is wrong, so that readers would miss the rows. Upon this error drivers try
    /// another gateway.
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
    use clock::ManualClock;

    use super::*;

    const START: i64 = 1_700_000_000_000_000;

    fn clocks() -> (Arc<ManualClock>, LogClock) {
        let hand = ManualClock::new(START);
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
        // The clock goes on, a sixteenth more slowly.
        hand.advance_micros(16_000);
        assert_eq!(next(), START + 15_000);
        assert_eq!(clock.lead_micros(), START + 15_000 - 16_005);
    }

    #[test]
    fn a_clock_that_was_ahead_is_reset_as_another_one() {
        let (hand, clock) = clocks();
        hand.set_micros(2 * START);
        let ahead = clock.next();
        hand.set_micros(START);
        clock.reset();
        let now = clock.next();
        assert_eq!(timeuuid::unix_micros(&now), START);
        assert_ne!(now.as_u64_pair().1, ahead.as_u64_pair().1);
    }

    #[test]
    fn two_gateways_never_give_out_the_same() {
        let hand = ManualClock::new(START);
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
