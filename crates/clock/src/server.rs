//! The clock of a server, which never goes back.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Clock, SystemClock};

/// The least step back of the clock. A reading that is earlier by less was overtaken by another
/// thread.
const STEP_MIN_MICROS: i64 = 1_000;
/// Number of steps of 100 ns in a microsecond; timeuuids tell such steps apart.
const TICKS_PER_MICRO: i64 = 10;
/// While the clock below lags, this clock goes slower by one part in this many. So the clock below
/// catches up, and a time to live lasts longer by no more than that.
const HELD_BACK: i64 = 16;

/// The time of a [`Clock`], made so that it never goes back. When the clock is set back, this one
/// goes on from where it was, a sixteenth more slowly, until the other has caught up.
#[derive(Debug)]
pub struct ServerClock {
    clock: Arc<dyn Clock>,
    /// The latest time shown, in microseconds.
    latest_micros: AtomicI64,
    /// The latest time given to a write, in microseconds.
    latest_write: AtomicI64,
    /// The latest tick given out, in steps of 100 ns.
    latest_tick: AtomicI64,
    /// Whether there is an anchor.
    is_behind: AtomicBool,
    /// The time to go on from while the clock below lags.
    anchor: Mutex<Option<TimeAnchor>>,
}

#[derive(Clone, Copy, Debug)]
struct TimeAnchor {
    micros: i64,
    steady_micros: i64,
}

impl TimeAnchor {
    fn at(&self, steady_micros: i64) -> i64 {
        let passed = steady_micros.saturating_sub(self.steady_micros).max(0);
        self.micros.saturating_add(passed - passed / HELD_BACK)
    }
}

impl ServerClock {
    /// Makes a clock that begins where `clock` is.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<ServerClock> {
        Arc::new(ServerClock {
            clock,
            latest_micros: AtomicI64::new(i64::MIN),
            latest_write: AtomicI64::new(i64::MIN),
            latest_tick: AtomicI64::new(i64::MIN),
            is_behind: AtomicBool::new(false),
            anchor: Mutex::new(None),
        })
    }

    /// Makes a clock over that of the machine.
    pub fn of_machine() -> Arc<ServerClock> {
        ServerClock::new(Arc::new(SystemClock))
    }

    /// Makes sure that only times later than `floor_micros` are given out, which an earlier process
    /// gave out.
    pub fn raise(&self, floor_micros: i64) {
        // This is the last tick of that microsecond.
        let tick = floor_micros
            .saturating_mul(TICKS_PER_MICRO)
            .saturating_add(TICKS_PER_MICRO - 1);
        self.latest_micros
            .fetch_max(floor_micros, Ordering::Relaxed);
        self.latest_write.fetch_max(floor_micros, Ordering::Relaxed);
        self.latest_tick.fetch_max(tick, Ordering::Relaxed);
    }

    /// The present, in microseconds since the epoch. It is never earlier than the result of any
    /// other call.
    pub fn now_micros(&self) -> i64 {
        let below = self.clock.now_micros();
        if !self.is_behind.load(Ordering::Relaxed)
            && self.latest_micros.fetch_max(below, Ordering::Relaxed) <= below
        {
            return below;
        }
        self.go_on(below)
    }

    /// The present, in whole seconds since the epoch.
    pub fn now_s(&self) -> i64 {
        crate::seconds(self.now_micros())
    }

    /// The present while the clock below shows less than was returned before, or did at the last
    /// look.
    fn go_on(&self, below: i64) -> i64 {
        let mut anchor = self.anchor.lock().unwrap_or_else(PoisonError::into_inner);
        let steady_micros = self.clock.steady_micros();
        let latest = self.latest_micros.load(Ordering::Relaxed);
        if anchor.is_none() && latest.saturating_sub(below) < STEP_MIN_MICROS {
            return self
                .latest_micros
                .fetch_max(below, Ordering::Relaxed)
                .max(below);
        }
        let from_latest = TimeAnchor {
            micros: latest,
            steady_micros,
        };
        let from = anchor
            .filter(|anchor| anchor.at(steady_micros) >= latest)
            .unwrap_or(from_latest);
        let now = from.at(steady_micros);
        let is_behind = below < now;
        *anchor = is_behind.then_some(from);
        self.is_behind.store(is_behind, Ordering::Relaxed);
        let now = now.max(below);
        self.latest_micros
            .fetch_max(now, Ordering::Relaxed)
            .max(now)
    }

    /// A time for one write, in microseconds since the epoch. It is later than all that were given
    /// out before.
    pub fn next_write_micros(&self) -> i64 {
        reserve(&self.latest_write, self.now_micros(), 1)
    }

    /// Takes `count` consecutive ticks that no other call gets, and returns the first, in steps of
    /// 100 ns since the epoch.
    pub fn reserve_ticks(&self, count: i64) -> i64 {
        let now = self.now_micros().saturating_mul(TICKS_PER_MICRO);
        reserve(&self.latest_tick, now, count)
    }

    /// The latest time that was returned or given out, in microseconds since the epoch.
    pub fn latest_micros(&self) -> i64 {
        let tick = self.latest_tick.load(Ordering::Relaxed);
        self.latest_micros
            .load(Ordering::Relaxed)
            .max(self.latest_write.load(Ordering::Relaxed))
            .max(tick.div_euclid(TICKS_PER_MICRO))
    }

    /// Microseconds since some moment of the past, as the clock below shows them
    /// ([`Clock::steady_micros`]).
    pub fn steady_micros(&self) -> i64 {
        self.clock.steady_micros()
    }

    /// The lead of the present over the clock below, in microseconds. It is more than 0 after that
    /// clock was set back.
    pub fn ahead_micros(&self) -> i64 {
        self.now_micros()
            .saturating_sub(self.clock.now_micros())
            .max(0)
    }
}

/// This clock never jumps back.
impl Clock for ServerClock {
    fn now_micros(&self) -> i64 {
        ServerClock::now_micros(self)
    }

    fn steady_micros(&self) -> i64 {
        ServerClock::steady_micros(self)
    }
}

/// Takes `count` consecutive numbers that begin at `now` or after the last one taken.
fn reserve(last: &AtomicI64, now: i64, count: i64) -> i64 {
    let mut seen = last.load(Ordering::Relaxed);
    loop {
        let first = now.max(seen.saturating_add(1));
        match last.compare_exchange_weak(
            seen,
            first + count - 1,
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => return first,
            Err(other) => seen = other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManualClock;

    const START: i64 = 1_700_000_000_000_000;
    const HOUR: i64 = 3_600_000_000;

    fn clocks() -> (Arc<ManualClock>, Arc<ServerClock>) {
        let hand = ManualClock::new(START);
        let server = ServerClock::new(hand.clone());
        assert_eq!(server.now_micros(), START);
        (hand, server)
    }

    #[test]
    fn a_clock_that_is_set_back_is_left_behind_and_catches_up() {
        let (hand, server) = clocks();
        hand.set_micros(START - HOUR);
        assert_eq!(server.now_micros(), START);
        assert_eq!(server.ahead_micros(), HOUR);
        hand.advance_micros(16_000);
        assert_eq!(server.now_micros(), START + 15_000, "a sixteenth less");
        let mut last = server.now_micros();
        while server.ahead_micros() > 0 {
            hand.advance_micros(16_000_000);
            assert!(server.now_micros() - last <= 16_000_000);
            assert!(server.now_micros() - last >= 15_000_000);
            last = server.now_micros();
        }
        assert!((last - START - 15 * HOUR).abs() <= 16_000_000);
        hand.advance_micros(HOUR);
        assert_eq!(server.now_micros(), hand.now_micros());
        assert_eq!(server.ahead_micros(), 0);
    }

    #[test]
    fn each_step_back_goes_on_from_where_the_time_was() {
        let (hand, server) = clocks();
        let mut last = START;
        for step in 1..5 {
            hand.advance_micros(HOUR);
            assert_eq!(server.now_micros(), hand.now_micros().max(last));
            last = server.now_micros();
            hand.set_micros(hand.now_micros() - step * 1_000);
            assert_eq!(server.now_micros(), last, "step {step}");
            hand.advance_micros(160);
            assert_eq!(server.now_micros(), last + 150, "step {step}");
            last += 150;
        }
    }

    #[test]
    fn times_given_out_rise_whatever_the_clock_does() {
        let (hand, server) = clocks();
        let mut last = 0;
        for step in 0..1_000 {
            hand.set_micros(START + (step * 7_919) % 1_000 - step);
            let next = server.next_write_micros();
            assert!(next > last);
            last = next;
        }
        assert!(server.latest_micros() >= last);
        let first = server.reserve_ticks(1_000_000);
        assert!(server.reserve_ticks(1) >= first + 1_000_000);
        assert!(server.latest_micros() * 10 + 10 > first + 1_000_000);
    }

    #[test]
    fn a_floor_ahead_of_the_clock_is_where_it_begins() {
        let hand = ManualClock::new(START);
        let server = ServerClock::new(hand.clone());
        server.raise(START + HOUR);
        assert!(server.next_write_micros() > START + HOUR);
        assert_eq!(server.ahead_micros(), HOUR);
    }

    #[test]
    fn reserved_ticks_do_not_overlap() {
        let server = ServerClock::of_machine();
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let server = Arc::clone(&server);
                std::thread::spawn(move || {
                    (0..1000)
                        .map(|_| server.reserve_ticks(3))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let mut firsts: Vec<i64> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        firsts.sort_unstable();
        assert!(firsts.windows(2).all(|pair| pair[1] - pair[0] >= 3));
    }
}
