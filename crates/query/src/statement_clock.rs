//! The time of a statement, the timestamps and timeuuids that it gives out, and the work that its
//! functions may do.
//!
//! Write timestamps and timeuuids never repeat and never go back, not even after a restart or when
//! the machine's clock is set back (`::clock::ServerClock`). So they order two writes that
//! follow each other.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use ::clock::ServerClock;
use cql::error::CqlError;
use uuid::Uuid;

/// 100-ns ticks between the epoch of timeuuids (1582-10-15) and the Unix epoch.
const UUID_EPOCH_OFFSET_TICKS: i64 = 0x01b2_1dd2_1381_4000;

/// The most work of functions for the terms of a statement, or for one of its rows: the sum of the
/// squares of the digits that they compute. A logarithm of 500 digits takes a tenth of a second, so
/// one statement could hold a core for hours.
const WORK_MAX: usize = 8 * 500 * 500;

/// The most bytes of the functions' results for the terms of a statement, or for one of its rows,
/// each at every level at which it is nested. `tojson` of a text of quotes doubles it, and a
/// statement can name one value many times.
const RESULT_BYTES_MAX: usize = 16 << 20;

/// The bytes of such results in all statements of a batch, about as many as a batch may write.
const BATCH_RESULT_BYTES_MAX: usize = 64 << 20;

/// Results up to this many bytes aren't counted. Their number is bounded by the statement's length.
const RESULT_UNCOUNTED_BYTES: usize = 1 << 10;

/// The clock of one statement. Its present is fixed, but each timeuuid that it makes is new.
#[derive(Clone, Debug)]
pub struct StatementClock {
    clock: Arc<ServerClock>,
    micros: i64,
    client_now_s: Option<i64>,
    /// Copies of the clock share it.
    budget: Arc<FunctionBudget>,
}

/// The work and the results that functions may still make.
#[derive(Debug)]
struct FunctionBudget {
    work: AtomicUsize,
    result_bytes: AtomicUsize,
}

impl StatementClock {
    /// The clock of a statement that begins now.
    pub fn start(clock: &Arc<ServerClock>) -> Self {
        StatementClock {
            micros: clock.now_micros(),
            clock: Arc::clone(clock),
            client_now_s: None,
            budget: Arc::new(FunctionBudget {
                work: AtomicUsize::new(WORK_MAX),
                result_bytes: AtomicUsize::new(RESULT_BYTES_MAX),
            }),
        }
    }

    /// This clock for all statements of a batch.
    #[must_use]
    pub fn of_batch(self) -> Self {
        self.budget
            .result_bytes
            .store(BATCH_RESULT_BYTES_MAX, Ordering::Relaxed);
        self
    }

    /// This clock where the client may tell the present by which values expire, in seconds since
    /// the epoch. Functions of the present don't go by it.
    #[must_use]
    pub fn with_client_now(self, told_s: Option<i64>) -> Self {
        StatementClock {
            client_now_s: told_s,
            ..self
        }
    }

    /// The present by which values expire. Seconds since the epoch.
    pub fn expiry_s(&self) -> i64 {
        self.client_now_s
            .unwrap_or(self.micros.div_euclid(1_000_000))
    }

    /// A clock for evaluating terms that use no time, such as constants while a statement is
    /// prepared.
    pub fn of_none() -> Self {
        StatementClock::start(&ServerClock::of_machine())
    }

    /// Lets functions work for another row.
    pub fn begin_row(&self) {
        self.budget.work.store(WORK_MAX, Ordering::Relaxed);
        self.budget
            .result_bytes
            .store(RESULT_BYTES_MAX, Ordering::Relaxed);
    }

    /// Takes the work of computing a number of so many digits `times` times.
    ///
    /// # Errors
    /// If less is left to the statement's terms, or to the row.
    pub(crate) fn take_work(&self, digits: usize, times: usize) -> Result<(), CqlError> {
        let work = digits.saturating_mul(digits).saturating_mul(times);
        match take(&self.budget.work, work) {
            true => Ok(()),
            false => Err(CqlError::invalid(
                "the exponentials and logarithms of varints and decimals in one row have too many \
                 digits together; select fewer of them, or cast the numbers to double",
            )),
        }
    }

    /// Takes the bytes of a function's result.
    ///
    /// # Errors
    /// If fewer are left to the statement's terms, or to the row.
    pub(crate) fn take_result(&self, bytes: usize) -> Result<(), CqlError> {
        if bytes <= RESULT_UNCOUNTED_BYTES || take(&self.budget.result_bytes, bytes) {
            return Ok(());
        }
        Err(CqlError::invalid(format!(
            "the results of functions take more bytes than are allowed: {RESULT_BYTES_MAX} in one \
             row or in one statement's terms, {BATCH_RESULT_BYTES_MAX} in a batch"
        )))
    }

    /// The time at which the statement began. Microseconds since the Unix epoch.
    pub fn micros(&self) -> i64 {
        self.micros
    }

    /// The time by which the clock of the server is ahead of the machine's clock. Microseconds.
    pub fn lead_micros(&self) -> i64 {
        self.clock.ahead_micros()
    }

    /// A timestamp for a write whose client gave none. It is later than all timestamps given out
    /// before.
    pub fn next_write_micros(&self) -> i64 {
        self.clock.next_write_micros()
    }

    /// A new timeuuid, the value of `now()`. It is later than all timeuuids made before.
    pub fn timeuuid(&self) -> Uuid {
        timeuuid(&self.clock)
    }

    /// Takes `count` consecutive ticks that no other timeuuid has, and returns the first. Ticks are
    /// 100-ns units since the Unix epoch.
    pub fn reserve_ticks(&self, count: i64) -> i64 {
        self.clock.reserve_ticks(count)
    }
}

/// Takes so much of what is left, if there is so much.
fn take(left: &AtomicUsize, amount: usize) -> bool {
    let taken = |left: usize| left.checked_sub(amount);
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken)
        .is_ok()
}

/// A timeuuid of the present. It is later than all timeuuids made before.
pub fn timeuuid(clock: &ServerClock) -> Uuid {
    timeuuid_at(clock.reserve_ticks(1))
}

/// The timeuuid of a tick (100-ns units since the Unix epoch) with the node id of this process.
pub fn timeuuid_at(tick: i64) -> Uuid {
    static NODE: OnceLock<[u8; 8]> = OnceLock::new();
    let node = NODE.get_or_init(|| {
        let random = *Uuid::new_v4().as_bytes();
        let mut node = [0; 8];
        node.copy_from_slice(&random[8..]);
        // The multicast bit says that the node id is not the address of a network card.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_bounded_for_each_row() {
        let clock = StatementClock::of_none();
        for _ in 0..3 {
            let taken = (0..100).filter(|_| clock.take_work(500, 2).is_ok());
            assert_eq!(taken.count(), 4);
            assert!(clock.clone().take_work(1, 1).is_err());
            assert!(clock.take_result(RESULT_BYTES_MAX).is_ok());
            assert!(
                clock
                    .clone()
                    .take_result(RESULT_UNCOUNTED_BYTES + 1)
                    .is_err()
            );
            assert!(clock.take_result(RESULT_UNCOUNTED_BYTES).is_ok());
            clock.begin_row();
        }
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
