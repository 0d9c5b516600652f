//! Records the results of requests. Each worker has a recorder of its own, and all are added up at
//! the end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::{AnsweredRequest, RequestFailure, TrafficLength};

/// The range in which latencies differ: from a microsecond up to ten minutes. Longer ones count as
/// ten minutes.
const LATENCY_MIN_NS: u64 = 1_000;
const LATENCY_MAX_NS: u64 = 600_000_000_000;
/// The digits of the histogram of all latencies, for a precision of 0.1 percent.
const DIGITS: u8 = 3;
/// The digits of the histogram of an interval, for a precision of 1 percent. A long run stays
/// small.
const INTERVAL_DIGITS: u8 = 2;
const INTERVALS_MAX: u32 = 300;
/// The most kinds of failures that are counted apart. Further kinds are counted together.
const FAILURE_KINDS_MAX: usize = 32;

/// Makes a histogram for latencies in nanoseconds. Its bounds are fixed: a histogram that grows
/// would record a value beyond its present size as that size, as [`Histogram::saturating_record`]
/// does.
pub fn latencies() -> Histogram<u64> {
    histogram(DIGITS)
}

fn histogram(digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(LATENCY_MIN_NS, LATENCY_MAX_NS, digits)
        .expect("the bounds are constant and valid")
}

/// The results of a load.
#[derive(Clone, Debug)]
pub struct TrafficResults {
    /// The time from the first request sent to the last answer.
    pub elapsed: Duration,
    /// The latencies of the answered requests, in nanoseconds.
    pub latencies: Histogram<u64>,
    /// The number of failed requests by kind.
    pub errors: BTreeMap<String, u64>,
    /// The number of requests of an open loop that were due but not sent when the time was up.
    pub not_sent: u64,
    /// How late the pacer of an open loop handed out its requests, in nanoseconds. It covers all
    /// requests: sent, failed and not sent. This delay is part of the latencies.
    pub pacer_lateness: Option<Histogram<u64>>,
    /// The number of answers with fewer rows than were requested.
    pub short_answers: u64,
    /// The processor time that this process took during the load.
    pub cpu_time: Duration,
    /// The share of the processor time of this machine that a hypervisor gave to others, if the
    /// system reports it.
    pub stolen_share: Option<f64>,
    /// The intervals of the load in order, of equal length.
    pub intervals: Vec<IntervalLatencies>,
    /// The time when the load began, by the system's monotonic clock.
    pub begin_ns: u64,
    /// The requests in the order in which they were due, if they were to be recorded.
    pub requests: Vec<RequestTimes>,
    recall_sum: f64,
    recall_count: u64,
}

/// A request, by times after the begin of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestTimes {
    /// The time from which its latency counts.
    pub due: Duration,
    /// The time when it was answered or had failed.
    pub ended: Duration,
    /// Whether the request was answered.
    pub answered: bool,
}

/// A part of the time of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IntervalLatencies {
    /// The time from the begin of the load to that of the interval.
    pub from: Duration,
    /// The length of the interval.
    pub length: Duration,
    /// The number of requests answered in the interval.
    pub operations: u64,
    /// Median latency.
    pub p50: Duration,
    /// The 99th percentile of the latencies.
    pub p99: Duration,
}

impl TrafficResults {
    /// A result without requests.
    pub fn empty() -> TrafficResults {
        TrafficResults {
            elapsed: Duration::ZERO,
            latencies: latencies(),
            errors: BTreeMap::new(),
            not_sent: 0,
            pacer_lateness: None,
            short_answers: 0,
            cpu_time: Duration::ZERO,
            stolen_share: None,
            intervals: Vec::new(),
            begin_ns: 0,
            requests: Vec::new(),
            recall_sum: 0.0,
            recall_count: 0,
        }
    }

    /// Answered requests a second.
    pub fn rate_per_s(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// The mean recall of all answers that could be judged; `None` if there is none.
    pub fn recall(&self) -> Option<f64> {
        (self.recall_count > 0).then(|| self.recall_sum / self.recall_count as f64)
    }

    /// Adds the records of a worker.
    pub(super) fn add(&mut self, recorder: &mut LatencyRecorder, intervals: &IntervalHistograms) {
        recorder.flush(intervals);
        self.latencies
            .add(&recorder.latencies)
            .expect("histograms of the same bounds");
        for (kind, count) in std::mem::take(&mut recorder.errors) {
            count_error(&mut self.errors, kind, count);
        }
        self.short_answers += recorder.short_answers;
        self.recall_sum += recorder.recall_sum;
        self.recall_count += recorder.recall_count;
        self.requests
            .extend(recorder.requests.take().into_iter().flatten());
    }

    pub(super) fn finish(
        &mut self,
        elapsed: Duration,
        cpu_time: Duration,
        intervals: IntervalHistograms,
    ) {
        self.requests.sort_unstable_by_key(|request| request.due);
        self.elapsed = elapsed;
        self.cpu_time = cpu_time;
        let slots = intervals
            .slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let length = intervals.length;
        self.intervals = slots
            .iter()
            .enumerate()
            .map(|(at, latencies)| {
                let from = length * at as u32;
                let rest = elapsed.saturating_sub(from);
                IntervalLatencies {
                    from,
                    length: match at == INTERVALS_MAX as usize {
                        true => rest,
                        false => rest.min(length),
                    },
                    operations: latencies.len(),
                    p50: Duration::from_nanos(latencies.value_at_quantile(0.5)),
                    p99: Duration::from_nanos(latencies.value_at_quantile(0.99)),
                }
            })
            .collect();
    }
}

fn count_error(errors: &mut BTreeMap<String, u64>, kind: String, count: u64) {
    let full = errors.len() >= FAILURE_KINDS_MAX && !errors.contains_key(&kind);
    let kind = if full { "other".to_owned() } else { kind };
    *errors.entry(kind).or_default() += count;
}

/// The latencies of each interval, over all workers.
#[derive(Clone)]
pub struct IntervalHistograms {
    begin: Instant,
    length: Duration,
    slots: Arc<Mutex<Vec<Histogram<u64>>>>,
}

impl IntervalHistograms {
    /// Makes intervals of a second, or longer ones if there would be too many.
    pub fn new(begin: Instant, length: TrafficLength) -> IntervalHistograms {
        let second = Duration::from_secs(1);
        let length = match length {
            TrafficLength::Duration(duration) => second.max(duration / INTERVALS_MAX),
            TrafficLength::Requests(_) => second,
        };
        IntervalHistograms {
            begin,
            length,
            slots: Arc::default(),
        }
    }

    /// The number of the interval that contains a time. A run that takes longer than planned has a
    /// long last interval.
    fn slot(&self, time: Instant) -> usize {
        let since = time.saturating_duration_since(self.begin);
        let slot = since.as_nanos() / self.length.as_nanos();
        slot.min(u128::from(INTERVALS_MAX)) as usize
    }
}

/// The records of one worker.
pub struct LatencyRecorder {
    latencies: Histogram<u64>,
    errors: BTreeMap<String, u64>,
    short_answers: u64,
    recall_sum: f64,
    recall_count: u64,
    /// The number of the interval that `current` belongs to.
    slot: usize,
    current: Histogram<u64>,
    /// The requests, if they are to be recorded.
    requests: Option<Vec<RequestTimes>>,
}

impl LatencyRecorder {
    /// A recorder without requests.
    pub fn new() -> LatencyRecorder {
        LatencyRecorder {
            latencies: latencies(),
            errors: BTreeMap::new(),
            short_answers: 0,
            recall_sum: 0.0,
            recall_count: 0,
            slot: 0,
            current: histogram(INTERVAL_DIGITS),
            requests: None,
        }
    }

    /// Empties the recorder but keeps its memory. `keep_requests` says whether each request is
    /// recorded.
    pub fn reset(&mut self, keep_requests: bool) {
        self.latencies.reset();
        self.errors.clear();
        self.short_answers = 0;
        self.recall_sum = 0.0;
        self.recall_count = 0;
        self.slot = 0;
        self.current.reset();
        self.requests = keep_requests.then(Vec::new);
    }

    /// Records an answered request whose latency counts from `start`.
    pub fn done(&mut self, intervals: &IntervalHistograms, start: Instant, done: &AnsweredRequest) {
        let latency = done.answered.saturating_duration_since(start).as_nanos() as u64;
        self.latencies.saturating_record(latency);
        let slot = intervals.slot(done.answered);
        if slot != self.slot {
            self.flush(intervals);
            self.slot = slot;
        }
        self.current.saturating_record(latency);
        self.keep(intervals, start, done.answered, true);
        self.short_answers += u64::from(done.short);
        if let Some(recall) = done.recall {
            self.recall_sum += recall;
            self.recall_count += 1;
        }
    }

    /// Records a failed request.
    pub fn failed(
        &mut self,
        intervals: &IntervalHistograms,
        start: Instant,
        failure: RequestFailure,
    ) {
        count_error(&mut self.errors, failure.0, 1);
        self.keep(intervals, start, Instant::now(), false);
    }

    fn keep(
        &mut self,
        intervals: &IntervalHistograms,
        start: Instant,
        end: Instant,
        answered: bool,
    ) {
        let begin = intervals.begin;
        if let Some(requests) = &mut self.requests {
            requests.push(RequestTimes {
                due: start.saturating_duration_since(begin),
                ended: end.saturating_duration_since(begin),
                answered,
            });
        }
    }

    /// Adds the current interval to that of all workers.
    fn flush(&mut self, intervals: &IntervalHistograms) {
        if self.current.is_empty() {
            return;
        }
        let mut slots = intervals
            .slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        while slots.len() <= self.slot {
            slots.push(histogram(INTERVAL_DIGITS));
        }
        slots[self.slot]
            .add(&self.current)
            .expect("histograms of the same bounds");
        self.current.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_failures_are_limited() {
        let mut errors = BTreeMap::new();
        for kind in 0..100 {
            count_error(&mut errors, kind.to_string(), 1);
        }
        assert_eq!(errors.len(), FAILURE_KINDS_MAX + 1);
        assert_eq!(errors.values().sum::<u64>(), 100);
    }

    #[test]
    fn a_latency_far_from_the_others_is_kept() {
        let mut all = latencies();
        all.saturating_record(2_000_000_000);
        let kept = all.value_at_quantile(1.0) as f64;
        assert!((kept / 2e9 - 1.0).abs() < 2e-3, "{kept}");
    }

    #[test]
    fn the_last_interval_of_a_run_that_nobody_foresaw_is_as_long_as_it_was() {
        let begin = Instant::now();
        let intervals = IntervalHistograms::new(begin, TrafficLength::Requests(2));
        let mut recorder = LatencyRecorder::new();
        for second in [0, 1000] {
            let start = begin + Duration::from_secs(second);
            let done = AnsweredRequest {
                answered: start + Duration::from_millis(5),
                recall: None,
                short: false,
            };
            recorder.done(&intervals, start, &done);
        }
        let mut measured = TrafficResults::empty();
        measured.add(&mut recorder, &intervals);
        measured.finish(Duration::from_secs(1001), Duration::ZERO, intervals);
        let all = &measured.intervals;
        assert_eq!(all.len(), INTERVALS_MAX as usize + 1);
        assert_eq!(all[0].length, Duration::from_secs(1));
        let last = all[INTERVALS_MAX as usize];
        assert_eq!((last.from.as_secs(), last.length.as_secs()), (300, 701));
        assert_eq!(last.operations, 1);
    }

    #[test]
    fn quantiles_are_right_to_a_thousandth() {
        let intervals = IntervalHistograms::new(Instant::now(), TrafficLength::Requests(1));
        let mut recorder = LatencyRecorder::new();
        let start = Instant::now();
        for micros in 1..=10_000 {
            let answered = start + Duration::from_micros(micros);
            let done = AnsweredRequest {
                answered,
                recall: None,
                short: false,
            };
            recorder.done(&intervals, start, &done);
        }
        let mut measured = TrafficResults::empty();
        measured.add(&mut recorder, &intervals);
        for (share, micros) in [
            (0.5, 5_000.0),
            (0.99, 9_900.0),
            (0.999, 9_990.0),
            (1.0, 10_000.0),
        ] {
            let found = measured.latencies.value_at_quantile(share) as f64 / 1e3;
            assert!((found / micros - 1.0).abs() < 2e-3, "{share}: {found}");
        }
    }
}
