//! The pace of transfers: queries go first.
//!
//! A transfer reads the disk, computes digests and uses the network, as queries do, and a low
//! priority of its threads does not keep them apart there. So it waits before each piece.
//! If requests came or were computed since the last one, pieces go one at a time, each after a
//! pause without any, or at the latest after a time that makes a low rate.
//! So a backup of a busy server ends, too. Without queries nothing waits.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backup::TransferPace;
use cpu_scheduler::{CpuScheduler, WorkClass};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http_server::MaintenanceMode;
use tokio::time::Instant;

const MIB: u64 = 1 << 20;

/// The rate by which a piece waits no longer, while queries always want the machine. Reading,
/// digests and compression of so many bytes take a tenth of a core.
const FLOOR_BYTES_PER_S: u64 = 32 * MIB;

/// The interval at which a transfer looks whether queries were computed.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The classes of work for which clients wait.
const OF_CLIENTS: [WorkClass; 3] = [WorkClass::Query, WorkClass::Read, WorkClass::Write];

/// The work that clients wait for, which transfers come after. Cheap to clone; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct ClientWork {
    /// The turns on the processor, of which searches and long reads and writes take some.
    pub turns: CpuScheduler,
    /// The requests, of which most are answered at once, without a turn.
    pub requests: MaintenanceMode,
}

impl ClientWork {
    /// The turns and requests so far, and whether one of those turns is held or waited for.
    fn look(&self) -> (u64, bool) {
        let counts = OF_CLIENTS.map(|class| self.turns.counts(class));
        let given: u64 = counts.iter().map(|counts| counts.given).sum();
        let is_busy = counts
            .iter()
            .any(|counts| counts.running + counts.waiting > 0);
        (given + self.requests.begun(), is_busy)
    }
}

/// The pace of one transfer: see the module.
#[derive(Debug)]
pub struct QueriesFirst {
    clients: ClientWork,
    /// Held while a piece waits for queries, so that pieces go one at a time then.
    gate: tokio::sync::Mutex<()>,
    /// The turns and requests of clients when a piece last went.
    seen: AtomicU64,
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
    /// The pace next to this work, with a bound of MiB in a second.
    pub fn new(clients: ClientWork, max_mib_per_second: Option<u64>) -> QueriesFirst {
        QueriesFirst {
            gate: tokio::sync::Mutex::new(()),
            seen: AtomicU64::new(clients.look().0),
            clients,
            bound: max_mib_per_second.map(|mib| RateBound {
                bytes_per_s: mib.max(1).saturating_mul(MIB),
                next: Mutex::new(Instant::now()),
            }),
        }
    }

    /// Waits until clients want nothing for a moment, or the floor's time for so many bytes is up.
    async fn wait_for_clients(&self, bytes: u64) {
        let began = Instant::now();
        let longest = time_of(bytes, FLOOR_BYTES_PER_S);
        let _one_at_a_time = self.gate.lock().await;
        let (mut seen, _) = self.clients.look();
        let mut was_busy = true;
        while was_busy && began.elapsed() < longest {
            tokio::time::sleep(LOOK_EVERY).await;
            let (now_seen, is_busy) = self.clients.look();
            was_busy = is_busy || now_seen != seen;
            seen = now_seen;
        }
        self.seen.store(seen, Ordering::Relaxed);
        // A turn of the background comes only if the shares of others allow it. It is given back at
        // once, as its holder may not wait for the network.
        drop(self.clients.turns.acquire(WorkClass::Background).await);
    }
}

impl TransferPace for QueriesFirst {
    fn before(&self, bytes: u64) -> BoxFuture<'_, ()> {
        async move {
            if let Some(bound) = &self.bound {
                tokio::time::sleep_until(bound.take(bytes)).await;
            }
            // Most requests take microseconds: that none is computed at this moment says little.
            let (seen, is_busy) = self.clients.look();
            if is_busy || seen != self.seen.load(Ordering::Relaxed) {
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

    fn clients_with(turns: &CpuScheduler) -> ClientWork {
        ClientWork {
            turns: turns.clone(),
            ..ClientWork::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_waits_without_queries() {
        let pace = QueriesFirst::new(clients_with(&CpuScheduler::of_threads(1)), None);
        let began = Instant::now();
        for _ in 0..100 {
            pace.before(8 * MIB).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_waits_for_a_query_and_for_no_longer_than_the_floor() {
        let turns = CpuScheduler::of_threads(1);
        let pace = QueriesFirst::new(clients_with(&turns), None);
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
        let clients = clients_with(&turns);
        a_piece_waits_for(&clients, async || {
            drop(turns.acquire(WorkClass::Read).await);
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_waits_for_a_moment_without_requests_that_take_no_turn() {
        let clients = ClientWork::default();
        let requests = clients.requests.clone();
        a_piece_waits_for(&clients, async || drop(requests.begin().unwrap())).await;
    }

    /// Checks that a piece goes after requests that are so short that none is ever seen to be
    /// computed, and that no later one waits.
    async fn a_piece_waits_for(clients: &ClientWork, request: impl AsyncFn()) {
        let pace = QueriesFirst::new(clients.clone(), None);
        let ended = tokio_util::sync::CancellationToken::new();
        let requests = async {
            for _ in 0..50 {
                request().await;
                tokio::time::sleep(LOOK_EVERY / 2).await;
            }
            ended.cancel();
        };
        let piece = async {
            tokio::time::sleep(LOOK_EVERY).await;
            pace.before(FLOOR_BYTES_PER_S).await;
            assert!(ended.is_cancelled(), "a piece went between requests");
        };
        tokio::join!(requests, piece);
        let began = Instant::now();
        pace.before(8 * MIB).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "no query since");
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_is_bounded() {
        let pace = QueriesFirst::new(clients_with(&CpuScheduler::of_threads(1)), Some(8));
        let began = Instant::now();
        for _ in 0..5 {
            pace.before(8 * MIB).await;
        }
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(4), "{took:?}");
        assert!(took < Duration::from_millis(4100), "{took:?}");
    }
}
