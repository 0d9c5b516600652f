//! The progress of a reader through the log, for restarts and for a metric.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use scylla_cdc::cdc_types::{GenerationTimestamp, StreamID};
use scylla_cdc::checkpoints::{CDCCheckpointSaver, Checkpoint};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::catch_up::CatchUp;
use super::reader_series::ReaderSeries;
use super::streams::StreamTimes;
use crate::message::LogPosition;
use crate::present::TimeSource;

/// The time after which every stream of a generation has reported its progress, or its reader has
/// failed. A statement takes less than that.
const ALL_STREAMS_REPORTED: Duration = Duration::from_secs(90);

/// The reserve for clocks that differ, as one part in this many of the time for which log rows
/// live. Rows count as read in time if they are read before this last part.
const TTL_RESERVE: u32 = 40;

/// The progress of a reader. It is stored elsewhere, by those that know what became of the rows
/// that were handed over ([`crate::snapshot`]).
///
/// A reader that polls reports its progress again and again. A reader that is notified of rows has
/// nothing to report while there are none. So a task that needs a late position requests it
/// ([`ReaderProgress::request_progress`]).
pub(crate) struct ReaderProgress {
    present: TimeSource,
    state: Mutex<ReaderRunState>,
    series: Arc<ReaderSeries>,
    rewound: Notify,
    fell_behind: Notify,
    /// Whether the reader is notified of rows, and so reports only on request.
    is_notified: AtomicBool,
    /// The number of times that the reader's progress was requested.
    asked: watch::Sender<u64>,
    /// The number of the last request that the reader has answered.
    answered: AtomicU64,
    /// Wakes those that wait for an answer, in the order in which they came. A `watch` channel
    /// wakes them in a random order, which a simulation can't repeat.
    answers: Notify,
    catch_up: CatchUp,
    /// The time for which rows of the log live; `None` for ever.
    log_ttl: Option<Duration>,
}

/// The progress reports of one run of the reader, which the official library saves as checkpoints.
/// Reports that come after the reader had to start again are ignored, as they may go beyond what
/// the next run has read.
#[derive(Clone)]
pub struct RunCheckpoints {
    progress: Arc<ReaderProgress>,
    run: u64,
}

struct ReaderRunState {
    /// Counts the starts of the reader and the demands for one.
    run: u64,
    /// Everything has been handed over up to this time, whatever the streams report.
    floor: Duration,
    /// The time up to which each stream of the current generation has been read.
    streams: StreamTimes,
    generation_began: Instant,
    /// Whether rows may have expired unread. Nothing after that gap is confirmed.
    fell_behind: bool,
}

impl ReaderProgress {
    /// Makes the progress of a reader that has read nothing after `start`, a time since the epoch.
    /// `present` is the clock for the times of the log. `log_ttl_s` is the time for which rows of
    /// the log live, in seconds; 0 for ever.
    pub(crate) fn new(
        present: TimeSource,
        start: Duration,
        series: Arc<ReaderSeries>,
        catch_up: CatchUp,
        log_ttl_s: u64,
    ) -> ReaderProgress {
        ReaderProgress {
            present,
            state: Mutex::new(ReaderRunState {
                run: 0,
                floor: start,
                streams: StreamTimes::default(),
                generation_began: Instant::now(),
                fell_behind: false,
            }),
            series,
            rewound: Notify::new(),
            fell_behind: Notify::new(),
            is_notified: AtomicBool::new(false),
            asked: watch::Sender::new(0),
            answered: AtomicU64::new(0),
            answers: Notify::new(),
            catch_up,
            log_ttl: (log_ttl_s != 0).then_some(Duration::from_secs(log_ttl_s)),
        }
    }

    /// The time up to which all streams have certainly been read, since the epoch.
    pub(crate) fn confirmed(&self) -> Duration {
        self.state().confirmed()
    }

    /// The time up to which all streams have been read by the last report, since the epoch.
    pub(crate) fn read_up_to(&self) -> Duration {
        self.series.read_up_to()
    }

    /// The number of log rows that have been handed over.
    pub(crate) fn handed_over(&self) -> u64 {
        self.series.handed_over()
    }

    /// Requests the progress of a reader that is notified of rows. When this returns, the reader
    /// has read what was in the log when it was called. Returns at once for a reader that polls.
    pub(crate) async fn request_progress(&self) {
        if !self.is_notified.load(Ordering::Relaxed) {
            return;
        }
        let mut number = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        loop {
            // Before the look: it gets each call to wake from here on.
            let answer = self.answers.notified();
            if self.answered.load(Ordering::Acquire) >= number {
                return;
            }
            answer.await;
        }
    }

    /// Begins a run. It reads from the returned time on, which is the confirmed time less a margin.
    /// The confirmed time itself stays, or restarts in a row would take it back further and
    /// further.
    pub(crate) fn restart(
        self: &Arc<ReaderProgress>,
        margin: Duration,
    ) -> (Duration, RunCheckpoints) {
        let mut state = self.state();
        let confirmed = state.confirmed();
        state.begin_at(confirmed);
        let checkpoints = RunCheckpoints {
            progress: self.clone(),
            run: state.run,
        };
        drop(state);
        let start = confirmed.saturating_sub(margin);
        self.catch_up.begin(start, self.present.now());
        (start, checkpoints)
    }

    /// Takes the reader back, as an index needs the log from `position` on. From now on no later
    /// time is confirmed, and the reader starts again.
    ///
    /// Returns a number that is greater than that of each run that began before.
    pub(crate) fn rewind(&self, position: Duration) -> u64 {
        let mut state = self.state();
        let start = state.confirmed().min(position);
        state.begin_at(start);
        let run = state.run;
        drop(state);
        self.rewound.notify_one();
        run
    }

    /// Waits until the reader has to start again.
    pub(crate) async fn rewound(&self) {
        self.rewound.notified().await;
    }

    /// Waits until the reader is so late that rows of the log may have expired before it read them.
    /// No later time is confirmed from then on.
    pub(crate) async fn fell_behind(&self) {
        self.fell_behind.notified().await;
    }

    /// Notes, at the time `now`, up to which time a stream has been read. Returns the time up to
    /// which all streams have been read. Returns `None` if rows may have been missed, or if the
    /// report is of an earlier run.
    fn take_in(
        &self,
        run: u64,
        stream: &StreamID,
        read_up_to: Duration,
        now: Duration,
    ) -> Option<Duration> {
        let mut state = self.state();
        if run != state.run {
            return None;
        }
        let before = state.streams.of(stream).unwrap_or_default();
        // The rows between `before` and now were read after the report of `before`, and at the
        // latest now.
        let behind = now.saturating_sub(before.max(state.floor));
        state.fell_behind |= self.is_too_long(behind);
        if state.fell_behind {
            drop(state);
            self.fell_behind.notify_one();
            return None;
        }
        state.streams.set(stream, read_up_to);
        state.streams.slowest()
    }

    /// Notes, at the time `now`, that the whole log has been read up to `read_up_to`. Everything
    /// that was in the log at `unread_since` had been read before. Returns false if rows may have
    /// been missed, or if the report is of an earlier run.
    fn take_in_all(
        &self,
        run: u64,
        read_up_to: Duration,
        unread_since: Duration,
        now: Duration,
    ) -> bool {
        let mut state = self.state();
        if run != state.run {
            return false;
        }
        state.fell_behind |= self.is_too_long(now.saturating_sub(unread_since));
        if state.fell_behind {
            drop(state);
            self.fell_behind.notify_one();
            return false;
        }
        state.floor = state.floor.max(read_up_to);
        drop(state);
        self.series.set_read_up_to(read_up_to);
        self.catch_up.reached(read_up_to);
        true
    }

    /// Whether rows of the log may expire if they are read that long after they were written.
    fn is_too_long(&self, behind: Duration) -> bool {
        self.log_ttl
            .is_some_and(|ttl| behind > ttl - ttl / TTL_RESERVE)
    }

    fn state(&self) -> MutexGuard<'_, ReaderRunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunCheckpoints {
    /// The present as a time since the epoch.
    pub fn now(&self) -> Duration {
        self.progress.present.now()
    }

    /// Notes a report of [`super::LogRun::read_up_to`].
    pub fn all_read(&self, read_up_to: Duration, unread_since: Duration) -> bool {
        let now = self.now();
        self.progress
            .take_in_all(self.run, read_up_to, unread_since, now)
    }

    /// Notes which streams the present generation has.
    pub fn expect(&self, streams: HashSet<StreamID>) {
        let mut state = self.progress.state();
        if self.run == state.run {
            state.streams.expect(streams);
        }
    }

    /// The position that this run has reached by the reports of all streams. `None` after the
    /// reader had to start again.
    pub fn position(&self) -> Option<LogPosition> {
        let state = self.progress.state();
        // The library reports the first moment that it has not read.
        let read_up_to = state.confirmed().saturating_sub(Duration::from_micros(1));
        (self.run == state.run).then(|| LogPosition {
            run: self.run,
            time_us: i64::try_from(read_up_to.as_micros()).unwrap_or(i64::MAX),
        })
    }

    /// The number of the run.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The number of times that the reader's progress was requested. Marks it as a reader that is
    /// notified of rows.
    pub fn request_count(&self) -> u64 {
        self.progress.is_notified.store(true, Ordering::Relaxed);
        *self.progress.asked.borrow()
    }

    /// Waits until the progress has been requested more often than `before`.
    pub async fn wait_for_request(&self, before: u64) {
        let mut asked = self.progress.asked.subscribe();
        // The sender lives as long as `self`.
        let _ = asked.wait_for(|asked| *asked > before).await;
    }

    /// Answers all requests up to the number `request_count`.
    pub fn answer(&self, asked: u64) {
        self.progress.answered.fetch_max(asked, Ordering::AcqRel);
        self.progress.answers.notify_waiters();
    }
}

impl ReaderRunState {
    fn confirmed(&self) -> Duration {
        let all_have_reported = self.streams.all_have_reported()
            || self.generation_began.elapsed() >= ALL_STREAMS_REPORTED;
        match self.streams.slowest() {
            Some(slowest) if all_have_reported => slowest.max(self.floor),
            _ => self.floor,
        }
    }

    fn begin_generation(&mut self) {
        self.floor = self.confirmed();
        self.forget_streams();
    }

    /// Prepares for a run that begins, or has to begin.
    fn begin_at(&mut self, floor: Duration) {
        self.run += 1;
        self.floor = floor;
        self.forget_streams();
    }

    fn forget_streams(&mut self) {
        self.streams = StreamTimes::default();
        self.generation_began = Instant::now();
    }
}

#[async_trait]
impl CDCCheckpointSaver for RunCheckpoints {
    async fn save_checkpoint(&self, checkpoint: &Checkpoint) -> anyhow::Result<()> {
        let now = self.now();
        let (progress, stream) = (&self.progress, &checkpoint.stream_id);
        if let Some(slowest) = progress.take_in(self.run, stream, checkpoint.timestamp, now) {
            progress.series.set_read_up_to(slowest);
            progress.catch_up.reached(slowest);
        }
        Ok(())
    }

    async fn save_new_generation(&self, _: &GenerationTimestamp) -> anyhow::Result<()> {
        let mut state = self.progress.state();
        if self.run == state.run {
            state.begin_generation();
        }
        Ok(())
    }

    async fn load_last_generation(&self) -> anyhow::Result<Option<GenerationTimestamp>> {
        Ok(None)
    }

    async fn load_last_checkpoint(&self, _: &StreamID) -> anyhow::Result<Option<Duration>> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    fn progress(log_ttl_s: u64) -> Arc<ReaderProgress> {
        let progress = ReaderProgress::new(
            TimeSource::default(),
            10 * S,
            Arc::default(),
            CatchUp::of_nothing(),
            log_ttl_s,
        );
        Arc::new(progress)
    }

    /// Pretends that all streams have had the time to report.
    fn all_have_reported(progress: &ReaderProgress) {
        let long_ago = Instant::now().checked_sub(ALL_STREAMS_REPORTED + S);
        progress.state().generation_began = long_ago.unwrap();
    }

    #[test]
    fn the_slowest_stream_counts_once_all_have_reported() {
        let progress = progress(0);
        let stream = |n| StreamID::new(vec![n]);
        progress.state().streams.set(&stream(1), 30 * S);
        progress.state().streams.set(&stream(2), 20 * S);
        assert_eq!(progress.confirmed(), 10 * S);
        all_have_reported(&progress);
        assert_eq!(progress.confirmed(), 20 * S);
        // In another generation the confirmed time stays until its streams have reported.
        progress.state().begin_generation();
        progress.state().streams.set(&stream(3), 90 * S);
        assert_eq!(progress.confirmed(), 20 * S);
        assert_eq!(progress.restart(5 * S).0, 15 * S);
        assert_eq!(progress.confirmed(), 20 * S);
    }

    #[test]
    fn streams_that_are_known_are_not_waited_for_longer_than_they_take() {
        let progress = progress(0);
        let (_, run) = progress.restart(Duration::ZERO);
        let stream = |n| StreamID::new(vec![n]);
        let position = |of: &RunCheckpoints| of.position().map(|position| position.time_us);
        let report = |n, time: Duration| progress.take_in(run.run, &stream(n), time, time);
        run.expect([stream(1), stream(2)].into());
        report(1, 30 * S);
        assert_eq!(position(&run), Some(9_999_999), "the other is silent");
        report(2, 20 * S);
        assert_eq!(position(&run), Some(19_999_999));
        assert_eq!(progress.confirmed(), 20 * S);
        // The streams of the next generation are others.
        progress.state().begin_generation();
        report(3, 90 * S);
        assert_eq!(position(&run), Some(19_999_999));
        run.expect([stream(4)].into());
        report(4, 80 * S);
        assert_eq!(position(&run), Some(79_999_999));
        let (_, next) = progress.restart(Duration::ZERO);
        run.expect([stream(5)].into());
        assert_eq!(position(&run), None);
        assert_eq!(position(&next), Some(79_999_999));
    }

    #[tokio::test]
    async fn a_reader_that_comes_too_late_confirms_nothing_behind_the_gap() {
        let (one, other) = (StreamID::new(vec![1]), StreamID::new(vec![2]));
        let late = progress(4000);
        let take_in = |stream: &StreamID, read_up_to: u32, now: u32| {
            late.take_in(0, stream, read_up_to * S, now * S)
        };
        assert_eq!(take_in(&one, 900, 1000), Some(900 * S));
        // Each stream is late by itself.
        assert_eq!(take_in(&other, 20, 3900), Some(20 * S));
        assert_eq!(take_in(&one, 4700, 4800), Some(20 * S));
        assert_eq!(take_in(&other, 5000, 5100), None, "rows have expired");
        late.fell_behind().await;
        assert_eq!(take_in(&one, 5000, 5100), None);
        all_have_reported(&late);
        assert_eq!(late.confirmed(), 20 * S);

        let read = progress(0).take_in(0, &one, 9_000_000 * S, 10_000_000 * S);
        assert_eq!(read, Some(9_000_000 * S));
    }

    #[tokio::test]
    async fn a_reader_that_is_rewound_confirms_no_more_than_that() {
        let progress = progress(0);
        progress.rewind(30 * S);
        assert_eq!(progress.confirmed(), 10 * S, "it has not read as far");
        progress.rewound().await;
        progress.rewind(3 * S);
        assert_eq!(progress.confirmed(), 3 * S);
        // The reader learns of it even if it was not waiting.
        progress.rewound().await;
        assert_eq!(progress.restart(Duration::ZERO).0, 3 * S);
    }

    #[tokio::test]
    async fn the_lag_of_a_notified_reader_leaves_out_idle_time() {
        let progress = progress(4000);
        let told = |up_to: u32, unread_since: u32, now: u32| {
            progress.take_in_all(0, up_to * S, unread_since * S, now * S)
        };
        assert!(told(1000, 900, 1000));
        assert_eq!(progress.confirmed(), 1000 * S, "without a wait for streams");
        assert!(told(90_000, 90_000, 90_001), "nothing came for a day");
        assert_eq!(progress.confirmed(), 90_000 * S);
        assert!(!told(99_000, 95_000, 99_000));
        progress.fell_behind().await;
        assert_eq!(progress.confirmed(), 90_000 * S);
    }

    #[tokio::test]
    async fn a_notified_reader_reports_progress_on_request() {
        let progress = progress(0);
        progress.request_progress().await;
        let (_, run) = progress.restart(Duration::ZERO);
        let before = run.request_count();
        let mut look = std::pin::pin!(progress.request_progress());
        assert!(futures::poll!(&mut look).is_pending());
        run.wait_for_request(before).await;
        run.answer(before);
        assert!(futures::poll!(&mut look).is_pending(), "that was before");
        run.answer(run.request_count());
        look.await;
    }

    #[test]
    fn reports_of_a_run_from_before_a_rewind_confirm_nothing() {
        let progress = progress(0);
        let stream = StreamID::new(vec![1]);
        let (_, before) = progress.restart(Duration::ZERO);
        let take_in = |of: &RunCheckpoints, read_up_to: u32| {
            progress.take_in(of.run, &stream, read_up_to * S, 600 * S)
        };
        assert_eq!(take_in(&before, 500), Some(500 * S));
        progress.rewind(3 * S);
        assert_eq!(take_in(&before, 501), None);
        // The reader can't start again while the database is away.
        all_have_reported(&progress);
        assert_eq!(progress.confirmed(), 3 * S);
        let (start, now) = progress.restart(Duration::ZERO);
        assert_eq!(start, 3 * S, "the log is read from where it has to be");
        assert_eq!(take_in(&before, 502), None);
        assert_eq!(take_in(&now, 4), Some(4 * S));
        all_have_reported(&progress);
        assert_eq!(progress.confirmed(), 4 * S);
    }
}
