//! The pace of transfers: queries go first.
//!
//! A transfer has no thread of its own that a scheduler of the system could hold back: it reads
//! the disk, computes digests and uses the network, as queries do. So it waits before each piece.
//! If searches, reads or writes were computed since the last one, pieces go one at a time, each
//! after a pause in which no turn was given, or at the latest after a time that makes a low rate.
//! The low rate is a floor, so that a backup of a busy server ends. Without queries nothing waits.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backup::TransferPace;
use cpu_scheduler::{CpuScheduler, WorkClass};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::time::Instant;

const MIB: u64 = 1 << 20;

/// The rate that a transfer has while queries always want the machine. Reading, digests and
/// compression of so many bytes take a tenth of a core.
const FLOOR_BYTES_PER_S: u64 = 32 * MIB;

/// The interval at which a transfer looks whether queries were computed.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The classes of work for which clients wait.
const OF_CLIENTS: [WorkClass; 3] = [WorkClass::Query, WorkClass::Read, WorkClass::Write];

/// The pace of one transfer: see the module.
#[derive(Debug)]
pub struct QueriesFirst {
    turns: CpuScheduler,
    /// Held while a piece waits for queries, so that pieces go one at a time then.
    gate: tokio::sync::Mutex<()>,
    /// The turns that clients' work had been given when a piece last went.
    given: AtomicU64,
    bound: Option<RateBound>,
}

/// A bound of a rate, independent of queries.
#[derive(Debug)]
struct RateBound {
    bytes_per_s: u64,
    /// The time at which the next piece may go.
    next: Mutex<Instant>,
}

impl QueriesFirst {
    /// The pace next to these turns, with a bound of MiB in a second.
    pub fn new(turns: CpuScheduler, max_mib_per_second: Option<u64>) -> QueriesFirst {
        let pace = QueriesFirst {
            turns,
            gate: tokio::sync::Mutex::new(()),
            given: AtomicU64::new(0),
            bound: max_mib_per_second.map(|mib| RateBound {
                bytes_per_s: mib.max(1).saturating_mul(MIB),
                next: Mutex::new(Instant::now()),
            }),
        };
        pace.given.store(pace.look().0, Ordering::Relaxed);
        pace
    }

    /// The turns that clients' work was given, and whether some of it is computed or waits.
    fn look(&self) -> (u64, bool) {
        let counts = OF_CLIENTS.map(|class| self.turns.counts(class));
        let given = counts.iter().map(|counts| counts.given).sum();
        let is_busy = counts
            .iter()
            .any(|counts| counts.running + counts.waiting > 0);
        (given, is_busy)
    }

    /// Waits until clients want nothing for a moment, or the floor's time for so many bytes is up.
    async fn wait_for_clients(&self, bytes: u64) {
        let began = Instant::now();
        let longest = time_of(bytes, FLOOR_BYTES_PER_S);
        let _one_at_a_time = self.gate.lock().await;
        let (mut given, _) = self.look();
        let mut was_busy = true;
        while was_busy && began.elapsed() < longest {
            tokio::time::sleep(LOOK_EVERY).await;
            let (now_given, is_busy) = self.look();
            was_busy = is_busy || now_given != given;
            given = now_given;
        }
        self.given.store(given, Ordering::Relaxed);
        // A turn of the background comes only if the shares of others allow it. It is given back at
        // once, as its holder may not wait for the network.
        drop(self.turns.acquire(WorkClass::Background).await);
    }
}

impl TransferPace for QueriesFirst {
    fn before(&self, bytes: u64) -> BoxFuture<'_, ()> {
        async move {
            if let Some(bound) = &self.bound {
                tokio::time::sleep_until(bound.take(bytes)).await;
            }
            // Most requests take microseconds: that none is computed at this moment says little.
            let (given, is_busy) = self.look();
            if is_busy || given != self.given.load(Ordering::Relaxed) {
                self.wait_for_clients(bytes).await;
            }
        }
        .boxed()
    }
}

impl RateBound {
    /// The time at which so many bytes may go, which later pieces come after.
    fn take(&self, bytes: u64) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (*next).max(Instant::now());
        *next = at + time_of(bytes, self.bytes_per_s);
        at
    }
}

/// The time of so many bytes at a rate.
fn time_of(bytes: u64, bytes_per_s: u64) -> Duration {
    let micros = u128::from(bytes) * 1_000_000 / u128::from(bytes_per_s.max(1));
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_waits_without_queries() {
        let pace = QueriesFirst::new(CpuScheduler::of_threads(1), None);
        let began = Instant::now();
        for _ in 0..100 {
            pace.before(8 * MIB).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_waits_for_a_query_and_for_no_longer_than_the_floor() {
        let turns = CpuScheduler::of_threads(1);
        let pace = QueriesFirst::new(turns.clone(), None);
        let query = turns.acquire(WorkClass::Query).await;
        let began = Instant::now();
        pace.before(FLOOR_BYTES_PER_S).await;
        let waited = began.elapsed();
        assert!(waited >= Duration::from_secs(1), "{waited:?}");
        assert!(waited < Duration::from_millis(1100), "{waited:?}");
        let piece = pace.before(FLOOR_BYTES_PER_S);
        let query_ends = async {
            tokio::time::sleep(Duration::from_millis(95)).await;
            drop(query);
        };
        let began = Instant::now();
        tokio::join!(piece, query_ends);
        let waited = began.elapsed();
        assert!(waited >= Duration::from_millis(95), "{waited:?}");
        assert!(waited < Duration::from_millis(200), "{waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_waits_for_a_moment_without_queries() {
        let turns = CpuScheduler::of_threads(1);
        let pace = QueriesFirst::new(turns.clone(), None);
        let ended = tokio_util::sync::CancellationToken::new();
        // Reads that are so short that none is ever seen to be computed.
        let reads = async {
            for _ in 0..50 {
                drop(turns.acquire(WorkClass::Read).await);
                tokio::time::sleep(LOOK_EVERY / 2).await;
            }
            ended.cancel();
        };
        let piece = async {
            tokio::time::sleep(LOOK_EVERY).await;
            pace.before(FLOOR_BYTES_PER_S).await;
            assert!(ended.is_cancelled(), "a piece went between reads");
        };
        tokio::join!(reads, piece);
        let began = Instant::now();
        pace.before(8 * MIB).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "no query since");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_bounded() {
        let pace = QueriesFirst::new(CpuScheduler::of_threads(1), Some(8));
        let began = Instant::now();
        for _ in 0..5 {
            pace.before(8 * MIB).await;
        }
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(4), "{took:?}");
        assert!(took < Duration::from_millis(4100), "{took:?}");
    }
}
