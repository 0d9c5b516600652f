//! Runs searches, builds and work in the background. Long computations don't run on the threads
//! that serve sockets.
//!
//! Handing a search over to another thread and its answer back costs two wake-ups. On a busy server
//! that is about a fifth of the processor time of a search of 20,000 x 1,536 for ten rows
//! (docs/benchmarks/serving.md). So a search for few rows is computed on the thread that
//! took it in, as long as recent searches took no longer than [`INLINE_WITHIN`]; sockets wait for
//! no more than that. If a large limit, a disk or a scan makes searches slow, they go to threads of
//! their own again.
//!
//! A search waits for a turn of its class ([`cpu_scheduler`]), but only until its deadline. The
//! number of waiting searches and the duration of recent ones show how long a new search would
//! wait. If that is too long, the search is refused before it waits. So the latency of answers is
//! bounded however many clients search.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cpu_scheduler::{CpuScheduler, Permit, WorkClass};
use platform::aside;
use tokio::task::JoinError;
use tokio::time::Instant;

/// The weight of one search in the running mean: one part in this many.
const MEAN_WEIGHT: u64 = 16;

/// The largest number of rows for a search on the thread that took it in. A search for more rows
/// takes longer than most, and so does writing its answer.
const INLINE_ROWS_MAX: usize = 128;

/// The time for which a long piece of work in the background keeps a turn. Then others may come
/// first.
const BACKGROUND_TURN: Duration = Duration::from_millis(5);

/// The default of [`crate::StoreOptions::inline_searches_within`]: a search runs on the thread that
/// took it in as long as recent searches took no longer than this.
pub const INLINE_WITHIN: Duration = Duration::from_millis(1);

/// Runs searches, builds and work in the background, each with turns of its own class.
#[derive(Clone, Debug)]
pub(crate) struct CpuExecutor {
    turns: CpuScheduler,
    inline_within: Duration,
    queue: Arc<SearchQueue>,
}

/// The state from which the waiting time of a search follows.
#[derive(Debug, Default)]
struct SearchQueue {
    waiting: AtomicUsize,
    /// The running mean of the duration of searches; 0 before the first.
    mean_ns: AtomicU64,
}

/// The work was not done because the process is ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the index service is stopping")]
pub(crate) struct ServiceStopping;

/// The reason why a search was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotSearched {
    /// The search could not begin before its deadline.
    #[error("no time is left for the search")]
    TooLate,
    /// The process is ending.
    #[error(transparent)]
    Stopped(#[from] ServiceStopping),
    /// The search panicked, which is a bug. Other searches of the same connection go on.
    #[error("the search broke off: this is a bug of the index service, and its log says where")]
    Panicked,
}

impl CpuExecutor {
    /// Searches and pieces of builds take their turns from `turns`. `inline_within` takes the place
    /// of [`INLINE_WITHIN`]; with zero all searches are handed over.
    pub(crate) fn new(turns: CpuScheduler, inline_within: Duration) -> CpuExecutor {
        CpuExecutor {
            turns,
            inline_within,
            queue: Arc::default(),
        }
    }

    /// The number of pieces into which a build is worth splitting.
    pub(crate) fn threads(&self) -> usize {
        self.turns.concurrency_limit(WorkClass::Ingest)
    }

    /// Runs a search for `rows` rows, unless it can't begin before the deadline. It yields once
    /// before, so that requests in flight get on first.
    pub(crate) async fn search<T, F>(
        &self,
        deadline: Instant,
        rows: usize,
        work: F,
    ) -> Result<T, NotSearched>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let turn = self.turn(deadline).await?;
        let queue = self.queue.clone();
        let work = move || {
            let began = Instant::now();
            if began >= deadline {
                return None;
            }
            let result = work();
            queue.took(began.elapsed());
            Some(result)
        };
        if self.is_inline(rows) {
            let result = catch_unwind(AssertUnwindSafe(work));
            drop(turn);
            let result = result.map_err(|_| NotSearched::Panicked)?;
            return result.ok_or(NotSearched::TooLate);
        }
        match run(turn, work).await {
            Ok(result) => result.ok_or(NotSearched::TooLate),
            Err(error) if error.is_panic() => Err(NotSearched::Panicked),
            Err(_) => Err(NotSearched::Stopped(ServiceStopping)),
        }
    }

    /// Runs a piece of a build.
    pub(crate) async fn build<T, F>(&self, work: F) -> Result<T, ServiceStopping>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let turn = self.turns.acquire(WorkClass::Ingest).await;
        done(run(turn, work).await)
    }

    /// Runs a piece of work that no request waits for and that may last. It calls
    /// [`BackgroundTurn::share`] every few milliseconds.
    pub(crate) async fn long_background<T, F>(&self, work: F) -> Result<T, ServiceStopping>
    where
        T: Send + 'static,
        F: FnOnce(&BackgroundTurn) -> T + Send + 'static,
    {
        let turn = self.turns.acquire(WorkClass::Background).await;
        let turn = BackgroundTurn {
            turns: self.turns.clone(),
            held: Mutex::new(HeldTurn {
                turn: Some(turn),
                since: Instant::now(),
            }),
        };
        done(aside(move || work(&turn)).await)
    }

    /// Whether a search for `rows` rows is computed on the thread that took it in.
    fn is_inline(&self, rows: usize) -> bool {
        let mean = self.queue.mean();
        // Before the first search the mean is zero, and the duration is not known.
        rows <= INLINE_ROWS_MAX && mean > Duration::ZERO && mean <= self.inline_within
    }

    async fn turn(&self, deadline: Instant) -> Result<Permit, NotSearched> {
        let waiting = QueuePosition::join(&self.queue);
        let at_once = self.turns.concurrency_limit(WorkClass::Query);
        if Instant::now() + self.queue.wait(waiting.before, at_once) > deadline {
            return Err(NotSearched::TooLate);
        }
        // Searches that are computed inline wait at this point.
        tokio::task::yield_now().await;
        if let Some(turn) = self.turns.try_acquire(WorkClass::Query) {
            return Ok(turn);
        }
        tokio::time::timeout_at(deadline, self.turns.acquire(WorkClass::Query))
            .await
            .map_err(|_| NotSearched::TooLate)
    }
}

/// The turn of a long piece of work in the background.
pub(crate) struct BackgroundTurn {
    turns: CpuScheduler,
    held: Mutex<HeldTurn>,
}

struct HeldTurn {
    turn: Option<Permit>,
    since: Instant,
}

impl BackgroundTurn {
    /// Gives the turn back if it was held for some milliseconds, and waits for another one. Only
    /// threads for blocking work may do so. A simulation has no such threads; its clock stands
    /// still while the work runs, so that it never gives the turn back.
    pub(crate) fn share(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.since.elapsed() < BACKGROUND_TURN {
            return;
        }
        // Before another one is taken, which may be the only one.
        drop(held.turn.take());
        held.turn = Some(self.turns.acquire_blocking(WorkClass::Background));
        held.since = Instant::now();
    }
}

impl SearchQueue {
    fn took(&self, time: Duration) {
        let took_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        // A sample that is lost between the load and the store does no harm.
        let mean_ns = self.mean_ns.load(Ordering::Relaxed);
        let mean_ns = match mean_ns {
            0 => took_ns,
            _ => mean_ns - mean_ns / MEAN_WEIGHT + took_ns / MEAN_WEIGHT,
        };
        self.mean_ns.store(mean_ns, Ordering::Relaxed);
    }

    /// The time that a search waits for `before` others, of which so many run at once.
    fn wait(&self, before: usize, at_once: usize) -> Duration {
        let rounds = u32::try_from(before / at_once).unwrap_or(u32::MAX);
        self.mean().saturating_mul(rounds)
    }

    /// The mean duration of recent searches; zero before the first.
    fn mean(&self) -> Duration {
        Duration::from_nanos(self.mean_ns.load(Ordering::Relaxed))
    }
}

/// The place of a search among those that wait.
struct QueuePosition<'a> {
    queue: &'a SearchQueue,
    /// The number of searches that came before.
    before: usize,
}

impl<'a> QueuePosition<'a> {
    fn join(queue: &'a SearchQueue) -> QueuePosition<'a> {
        let before = queue.waiting.fetch_add(1, Ordering::Relaxed);
        QueuePosition { queue, before }
    }
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        self.queue.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The result of work that ran aside. Its panic goes on here.
fn done<T>(result: Result<T, JoinError>) -> Result<T, ServiceStopping> {
    result.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => ServiceStopping,
    })
}

async fn run<T, F>(turn: Permit, work: F) -> Result<T, JoinError>
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    aside(move || {
        let result = work();
        drop(turn);
        result
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(20);

    fn soon() -> Instant {
        Instant::now() + LONG
    }

    /// Keeps the only thread busy until the returned sender is dropped.
    fn busy(compute: &CpuExecutor) -> std::sync::mpsc::SyncSender<()> {
        let (end, ended) = std::sync::mpsc::sync_channel(1);
        let turn = compute.turns.try_acquire(WorkClass::Query).unwrap();
        tokio::spawn(run(turn, move || {
            let _: Result<(), _> = ended.recv();
        }));
        end
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn no_more_searches_run_than_threads() {
        let compute = CpuExecutor::new(CpuScheduler::of_threads(2), NEVER);
        let running = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let searches = (0..8).map(|_| {
            let (running, most) = (running.clone(), most.clone());
            compute.search(soon(), 1, move || {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // The first waits for the second, and all last for so long that a third would be
                // seen.
                let began = Instant::now();
                while most.load(Ordering::SeqCst) < 2 && began.elapsed() < LONG {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_millis(5));
                running.fetch_sub(1, Ordering::SeqCst);
            })
        });
        futures::future::join_all(searches).await;
        assert_eq!(most.load(Ordering::SeqCst), 2);
        assert_eq!(compute.queue.waiting.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_search_that_panics_is_an_error_and_leaves_its_place() {
        let compute = CpuExecutor::new(CpuScheduler::of_threads(1), NEVER);
        let panicked = compute
            .search(soon(), 1, || -> u8 { panic!("a bug") })
            .await;
        assert_eq!(panicked, Err(NotSearched::Panicked));
        assert_eq!(compute.search(soon(), 1, || 7).await, Ok(7));
    }

    /// Whether a search for `rows` rows runs on the thread that calls for it.
    async fn is_here(compute: &CpuExecutor, rows: usize) -> bool {
        let here = std::thread::current().id();
        let there = compute.search(soon(), rows, || std::thread::current().id());
        there.await.unwrap() == here
    }

    #[tokio::test]
    async fn short_searches_stay_where_they_came_in() {
        let compute = CpuExecutor::new(CpuScheduler::of_threads(1), INLINE_WITHIN);
        assert!(!is_here(&compute, 10).await, "nothing is known yet");
        compute.queue.mean_ns.store(100_000, Ordering::Relaxed);
        assert!(is_here(&compute, INLINE_ROWS_MAX).await);
        assert!(!is_here(&compute, INLINE_ROWS_MAX + 1).await);
        compute.queue.mean_ns.store(50_000_000, Ordering::Relaxed);
        assert!(!is_here(&compute, 1).await, "searches have become slow");
        let never = CpuExecutor::new(CpuScheduler::of_threads(1), NEVER);
        never.queue.mean_ns.store(1, Ordering::Relaxed);
        assert!(!is_here(&never, 1).await);
    }

    #[tokio::test]
    async fn a_panic_where_it_came_in_is_an_error_too() {
        let compute = CpuExecutor::new(CpuScheduler::of_threads(1), INLINE_WITHIN);
        compute.queue.mean_ns.store(100_000, Ordering::Relaxed);
        let panicked = compute
            .search(soon(), 1, || -> u8 { panic!("a bug") })
            .await;
        assert_eq!(panicked, Err(NotSearched::Panicked));
        assert!(is_here(&compute, 1).await, "its place is free again");
        let passed = Instant::now();
        let late = compute.search(passed, 1, || ()).await;
        assert_eq!(late, Err(NotSearched::TooLate));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_search_waits_no_longer_than_it_has_time() {
        let compute = CpuExecutor::new(CpuScheduler::of_threads(1), NEVER);
        let end = busy(&compute);
        let deadline = Instant::now() + Duration::from_millis(20);
        let late = compute.search(deadline, 1, || ()).await;
        assert_eq!(late, Err(NotSearched::TooLate));
        assert!(Instant::now() >= deadline);
        drop(end);
        assert_eq!(compute.search(soon(), 1, || 7).await, Ok(7));
        let passed = Instant::now();
        assert_eq!(
            compute.search(passed, 1, || 7).await,
            Err(NotSearched::TooLate),
            "even if a thread is free"
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_search_that_would_wait_too_long_does_not_wait_at_all() {
        let compute = CpuExecutor::new(CpuScheduler::of_threads(1), NEVER);
        let end = busy(&compute);
        compute.queue.took(Duration::from_secs(3600));
        let first = compute.search(soon(), 1, || 1);
        tokio::pin!(first);
        assert!(futures::poll!(&mut first).is_pending(), "it yields");
        assert!(futures::poll!(&mut first).is_pending(), "it waits");
        let began = Instant::now();
        let second = compute.search(soon(), 1, || 2).await;
        assert_eq!(second, Err(NotSearched::TooLate));
        assert!(began.elapsed() < Duration::from_secs(10));
        drop(end);
        assert_eq!(first.await, Ok(1));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn long_work_in_the_background_shares_its_turn() {
        let turns = CpuScheduler::of_threads(1);
        let compute = CpuExecutor::new(turns.clone(), NEVER);
        let worked = compute.long_background(|turn| {
            let began = Instant::now();
            while began.elapsed() < 4 * BACKGROUND_TURN {
                turn.share();
            }
        });
        worked.await.unwrap();
        assert!(turns.counts(WorkClass::Background).given >= 3);
    }

    #[test]
    fn the_mean_follows_what_searches_take() {
        let queue = SearchQueue::default();
        assert_eq!(queue.wait(100, 2), Duration::ZERO);
        queue.took(Duration::from_millis(1));
        assert_eq!(queue.wait(100, 2), Duration::from_millis(50));
        for _ in 0..1000 {
            queue.took(Duration::from_millis(3));
        }
        let wait = queue.wait(2, 2);
        assert!(wait.abs_diff(Duration::from_millis(3)) < Duration::from_micros(1));
    }
}
