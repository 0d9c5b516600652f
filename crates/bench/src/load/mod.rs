//! The load generator: workers that each send one request after the other.
//!
//! In a **closed loop** a worker sends its next request when the last one is answered, so a slow
//! server is sent fewer. In an **open loop** requests are due at a fixed rate whatever the server
//! does. The latency of a request counts from when it was due, even if all workers were busy then.
//! So every request that a stall delays shows it (no coordinated omission). The delay of the load
//! generator's own pacer is part of those latencies, and is also recorded on its own.

mod pacer;
mod recall;
mod recorder;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use indicatif::ProgressBar;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use recall::AnswerJudge;
use recorder::LatencyRecorder;
pub use recorder::{TrafficResults, latencies};

use crate::proc::StolenTime;

/// A plan of a load.
#[derive(Clone, Debug)]
pub struct TrafficPlan {
    /// Requests a second in an open loop. `None` is a closed loop.
    pub rate_per_s: Option<f64>,
    /// The end of the load.
    pub length: TrafficLength,
    /// The time of warm-up, which does not count.
    pub warm_up: Duration,
    /// Whether the results keep when each request was due and when it ended.
    pub keep_requests: bool,
}

/// The end of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrafficLength {
    /// No request is sent after this time. Requests under way are waited for.
    Duration(Duration),
    /// The load ends after this many requests.
    Requests(u64),
}

impl TrafficLength {
    /// Counts the requests of a load that sends this many a second.
    fn requests_at(self, rate_per_s: f64) -> u64 {
        match self {
            TrafficLength::Duration(duration) => {
                (duration.as_secs_f64() * rate_per_s).round() as u64
            }
            TrafficLength::Requests(count) => count,
        }
    }
}

/// The request that a worker sends again and again.
pub trait RepeatedRequest: Send + 'static {
    /// Sends the `number`th request, counted over all workers. Must end by itself, at the latest by
    /// a timeout.
    fn perform(
        &mut self,
        number: u64,
    ) -> impl Future<Output = Result<AnsweredRequest, RequestFailure>> + Send;
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredRequest {
    /// The time when the answer had arrived, before it was read.
    pub answered: Instant,
    /// The share of the expected rows that were found; `None` if that is not judged.
    pub recall: Option<f64>,
    /// Whether the answer has fewer rows than were requested.
    pub short: bool,
}

impl AnsweredRequest {
    /// An answer without rows that has arrived just now.
    pub fn now() -> AnsweredRequest {
        AnsweredRequest {
            answered: Instant::now(),
            recall: None,
            short: false,
        }
    }
}

/// A failed request. The text is the same for all requests that fail in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestFailure(pub String);

/// Makes a load: first the warm-up, whose answers are left out, and then the load that counts.
///
/// Up to as many requests are under way at once as there are workers. `progress` counts tenths of
/// seconds, or requests.
pub async fn run<W: RepeatedRequest>(
    plan: &TrafficPlan,
    workers: Vec<W>,
    progress: &ProgressBar,
) -> anyhow::Result<TrafficResults> {
    ensure!(!workers.is_empty(), "the concurrency must be at least 1");
    if let Some(rate) = plan.rate_per_s {
        ensure!(rate > 0.0 && rate.is_finite(), "the rate must be above 0");
    }
    let next = Arc::new(AtomicU64::new(0));
    // Recorders are made, and used once, before the load that counts. The memory of hundreds of
    // histograms takes a machine some 40 ms. In that time an open loop has as many requests due as
    // make its P99.
    let mut workers: Vec<(W, LatencyRecorder)> = workers
        .into_iter()
        .map(|worker| (worker, LatencyRecorder::new()))
        .collect();
    if plan.warm_up > Duration::ZERO {
        progress.set_message("warm-up");
        let warm_up = TrafficPlan {
            length: TrafficLength::Duration(plan.warm_up),
            keep_requests: false,
            ..plan.clone()
        };
        let phase = TrafficPhase::new(&warm_up, &next);
        workers = phase.run(workers, progress).await?.0;
    }
    progress.set_message("");
    let phase = TrafficPhase::new(plan, &next);
    let (_, measured) = phase.run(workers, progress).await?;
    Ok(measured)
}

/// Processor time that this process has taken.
pub fn process_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Processor time that this thread has taken.
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// The present by the system's monotonic clock, which other programs read too, in nanoseconds.
fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A stretch of load, with the state that its workers share.
struct TrafficPhase {
    rate_per_s: Option<f64>,
    length: TrafficLength,
    keep_requests: bool,
    /// The number of the first request.
    first: u64,
    /// The number of the next request, over all phases.
    next: Arc<AtomicU64>,
    completed: Arc<AtomicU64>,
}

impl TrafficPhase {
    fn new(plan: &TrafficPlan, next: &Arc<AtomicU64>) -> TrafficPhase {
        TrafficPhase {
            rate_per_s: plan.rate_per_s,
            length: plan.length,
            keep_requests: plan.keep_requests,
            first: next.load(Ordering::Relaxed),
            next: Arc::clone(next),
            completed: Arc::new(AtomicU64::new(0)),
        }
    }

    async fn run<W: RepeatedRequest>(
        self,
        mut workers: Vec<(W, LatencyRecorder)>,
        progress: &ProgressBar,
    ) -> anyhow::Result<(Vec<(W, LatencyRecorder)>, TrafficResults)> {
        let concurrency = workers.len();
        for (_, recorder) in &mut workers {
            recorder.reset(self.keep_requests);
        }
        let stolen = StolenTime::now();
        let begin = Instant::now();
        let begin_ns = monotonic_ns();
        let cpu = process_cpu_time();
        let deadline = match self.length {
            TrafficLength::Duration(duration) => Some(begin + duration),
            TrafficLength::Requests(_) => None,
        };
        let due = Arc::new(Semaphore::new(0));
        let pacer = self.rate_per_s.map(|rate| {
            let total = self.length.requests_at(rate);
            pacer::start(Arc::clone(&due), begin, rate, total, concurrency)
        });
        let total = match (&pacer, self.length) {
            (Some(pacer), _) => pacer.total,
            (None, TrafficLength::Requests(count)) => count,
            (None, TrafficLength::Duration(_)) => u64::MAX,
        };
        let turn = RequestDispenser {
            begin,
            deadline,
            first: self.first,
            total,
            rate_per_s: self.rate_per_s,
            due,
            next: self.next,
            completed: Arc::clone(&self.completed),
        };
        let turn = Arc::new(turn);
        let intervals = recorder::IntervalHistograms::new(begin, self.length);
        let mut tasks = JoinSet::new();
        for (worker, recorder) in workers {
            tasks.spawn(work(Arc::clone(&turn), intervals.clone(), worker, recorder));
        }
        let ticker = tokio::spawn(tick(
            progress.clone(),
            begin,
            self.length,
            Arc::clone(&self.completed),
        ));
        let mut done = Vec::with_capacity(concurrency);
        let mut measured = TrafficResults::empty();
        while let Some(task) = tasks.join_next().await {
            done.push(task?);
        }
        ticker.abort();
        let elapsed = begin.elapsed();
        let cpu = process_cpu_time() - cpu;
        for (_, recorder) in &mut done {
            measured.add(recorder, &intervals);
        }
        if let Some(pacer) = pacer {
            let started = turn.next.load(Ordering::Relaxed) - self.first;
            measured.not_sent = pacer.total.saturating_sub(started);
            measured.pacer_lateness = Some(pacer.join());
        }
        measured.begin_ns = begin_ns;
        measured.stolen_share = StolenTime::now()
            .zip(stolen)
            .map(|(now, before)| now.share_since(&before));
        measured.finish(elapsed, cpu, intervals);
        // Workers take turns in vain at the end. The next phase begins with the number after the
        // last request of this one.
        turn.next
            .fetch_min(self.first.saturating_add(total), Ordering::Relaxed);
        Ok((done, measured))
    }
}

/// Gives each worker the number of its next request, and waits until that is due.
struct RequestDispenser {
    begin: Instant,
    deadline: Option<Instant>,
    first: u64,
    /// The number of requests of this phase.
    total: u64,
    rate_per_s: Option<f64>,
    /// Has a permit for every request that is due in an open loop.
    due: Arc<Semaphore>,
    next: Arc<AtomicU64>,
    completed: Arc<AtomicU64>,
}

impl RequestDispenser {
    /// The number of the next request and the time from which its latency counts; `None` if there
    /// is no more.
    async fn take(&self) -> Option<(u64, Instant)> {
        if self.rate_per_s.is_some() {
            self.due.acquire().await.ok()?.forget();
        }
        if self
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let of_phase = number - self.first;
        if of_phase >= self.total {
            return None;
        }
        let start = match self.rate_per_s {
            Some(rate) => self.begin + pacer::due_after(of_phase, rate),
            None => Instant::now(),
        };
        Some((number, start))
    }
}

async fn work<W: RepeatedRequest>(
    turn: Arc<RequestDispenser>,
    intervals: recorder::IntervalHistograms,
    mut worker: W,
    mut recorder: LatencyRecorder,
) -> (W, LatencyRecorder) {
    while let Some((number, start)) = turn.take().await {
        match worker.perform(number).await {
            Ok(done) => recorder.done(&intervals, start, &done),
            Err(failure) => recorder.failed(&intervals, start, failure),
        }
        turn.completed.fetch_add(1, Ordering::Relaxed);
    }
    (worker, recorder)
}

/// Moves the progress bar until this task is aborted.
async fn tick(bar: ProgressBar, begin: Instant, length: TrafficLength, completed: Arc<AtomicU64>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    loop {
        ticks.tick().await;
        match length {
            TrafficLength::Duration(duration) => {
                bar.set_length(duration.as_millis() as u64 / 100);
                bar.set_position(begin.elapsed().as_millis() as u64 / 100);
            }
            TrafficLength::Requests(count) => {
                bar.set_length(count);
                bar.set_position(completed.load(Ordering::Relaxed));
            }
        }
    }
}
