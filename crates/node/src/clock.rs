//! The clock of writes and statements.
//!
//! Write timestamps and timeuuids made by this process never repeat and never go back, whatever
//! the clock of the machine does: two writes that follow each other are ordered by them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;

/// 100-ns ticks between the epoch of timeuuids (1582-10-15) and the Unix epoch.
const UUID_EPOCH_OFFSET_TICKS: i64 = 0x01b2_1dd2_1381_4000;
const TICKS_PER_MICRO: i64 = 10;

/// The last write timestamp given out. Microseconds since the Unix epoch.
static LAST_WRITE_MICROS: AtomicI64 = AtomicI64::new(0);
/// The last tick given to a timeuuid. 100-ns units since the Unix epoch.
static LAST_TICK: AtomicI64 = AtomicI64::new(0);

/// Time as one statement sees it: the present stands still, but every timeuuid is another.
#[derive(Clone, Copy, Debug)]
pub struct StatementClock {
    micros: i64,
}

impl StatementClock {
    /// The clock of a statement that begins now.
    pub fn start() -> Self {
        StatementClock {
            micros: now_micros(),
        }
    }

    /// The present. Microseconds since the Unix epoch.
    pub fn micros(&self) -> i64 {
        self.micros
    }

    /// A timeuuid that no other call gets (`now()`).
    pub fn timeuuid(&self) -> Uuid {
        timeuuid()
    }
}

/// The machine's clock. Microseconds since the Unix epoch.
pub fn now_micros() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| {
            i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX)
        })
}

/// The timestamp of a write whose client gave none: later than all given out before.
pub fn next_write_micros() -> i64 {
    reserve(&LAST_WRITE_MICROS, now_micros(), 1)
}

/// A timeuuid of the present, later than all made before.
pub fn timeuuid() -> Uuid {
    timeuuid_at(reserve_ticks(1))
}

/// Takes `count` consecutive ticks that no other timeuuid has; returns the first.
/// 100-ns units since the Unix epoch.
pub fn reserve_ticks(count: i64) -> i64 {
    reserve(
        &LAST_TICK,
        now_micros().saturating_mul(TICKS_PER_MICRO),
        count,
    )
}

/// The timeuuid of a tick (100-ns units since the Unix epoch), with this process's node id.
pub fn timeuuid_at(tick: i64) -> Uuid {
    static NODE: OnceLock<[u8; 8]> = OnceLock::new();
    let node = NODE.get_or_init(|| {
        let random = *Uuid::new_v4().as_bytes();
        let mut node = [0; 8];
        node.copy_from_slice(&random[8..]);
        // The multicast bit marks a node id that is no network card's address.
        node[2] |= 1;
        node
    });
    let ticks = tick.wrapping_add(UUID_EPOCH_OFFSET_TICKS) as u64;
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&(ticks as u32).to_be_bytes());
    bytes[4..6].copy_from_slice(&((ticks >> 32) as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&(((ticks >> 48) as u16 & 0x0fff) | 0x1000).to_be_bytes());
    bytes[8..].copy_from_slice(node);
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid::from_bytes(bytes)
}

/// Takes `count` consecutive numbers that begin at `now` or behind the last one taken.
fn reserve(last: &AtomicI64, now: i64, count: i64) -> i64 {
    let mut seen = last.load(Ordering::Relaxed);
    loop {
        let first = now.max(seen + 1);
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

    #[test]
    fn write_timestamps_rise() {
        let before = now_micros();
        let taken: Vec<i64> = (0..1000).map(|_| next_write_micros()).collect();
        assert!(taken[0] >= before);
        assert!(taken.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn reserved_ticks_do_not_overlap() {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| (0..1000).map(|_| reserve_ticks(3)).collect::<Vec<_>>()))
            .collect();
        let mut firsts: Vec<i64> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        firsts.sort_unstable();
        assert!(firsts.windows(2).all(|pair| pair[1] - pair[0] >= 3));
    }

    #[test]
    fn a_timeuuid_tells_its_tick() {
        let tick = 17_000_000_000_000_123;
        let made = timeuuid_at(tick);
        assert_eq!(made.get_version_num(), 1);
        let ticks = made.get_timestamp().unwrap().to_gregorian().0;
        assert_eq!(ticks as i64 - UUID_EPOCH_OFFSET_TICKS, tick);
    }
}
