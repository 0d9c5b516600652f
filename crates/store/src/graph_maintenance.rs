//! The task that does what changes leave to do in the structure of an index. In a graph it mends
//! dead slots out of the links, and renews codes and links. In an index on texts it writes segments
//! of the texts that have come, and merges segments.
//!
//! The task begins once no change has come for a while, as changes do a part of that work
//! themselves, and as many changes are mended in one go. Where changes never pause, it begins all
//! the same after some time, does a bounded number of pieces, and rests again. It begins at once
//! when the changes that wait take much memory. Each piece takes a turn in the background, and a
//! long one, such as a merge, gives it back now and then. A task without work waits for the next
//! change, and has no timer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tasks::{Task, TaskRegistry};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::compute::{CpuExecutor, ServiceStopping};
use crate::identity::StructureClass;
use crate::indexes::IndexHandle;
use crate::long_work;

/// The time without changes after which the work begins.
const QUIET: Duration = Duration::from_secs(1);

/// The longest wait for such a time.
const QUIET_WITHIN: Duration = Duration::from_secs(10);

/// The number of calls of the engine in a piece. A piece holds a thread for some milliseconds, as
/// one of a build does.
const CALLS_OF_A_PIECE: usize = 8;

/// The number of pieces after which the task rests if changes have come meanwhile. They take about
/// a second, so that changes without a pause are tended in a tenth of the time of one thread.
const PIECES_AT_A_TIME: usize = 128;

/// The time after which merges are shown as a task.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// The task that maintains one index.
pub(crate) struct IndexMaintainer {
    /// The index.
    pub index: Arc<IndexHandle>,
    /// The threads on which it is maintained.
    pub compute: CpuExecutor,
    /// The registry that shows long merges as tasks.
    pub work: TaskRegistry,
    /// Cancelled when the index goes, which ends a piece of work.
    pub cancel: CancellationToken,
}

/// Merges that are shown as a task once they last.
struct ShownMerges {
    index: Arc<IndexHandle>,
    work: TaskRegistry,
    began: Instant,
    task: Mutex<Option<Task>>,
}

impl ShownMerges {
    /// Begins the task if the merges have lasted. The mending of a graph goes on in the status of
    /// its index alone.
    fn show(&self) {
        let is_of_texts = self.index.identity.options.class() == StructureClass::FullText;
        if !is_of_texts || self.began.elapsed() < SHOWN_AFTER {
            return;
        }
        let mut task = self.task();
        task.get_or_insert_with(|| self.work.start(long_work::merge(&self.index.identity)));
    }

    /// Notes that a piece is done.
    fn add(&self, pieces: usize) {
        if let Some(task) = &*self.task() {
            task.add(pieces as u64);
        }
    }

    /// Ends the task, if it began.
    fn done(&self) {
        if let Some(task) = self.task().take() {
            task.done();
        }
    }

    fn task(&self) -> std::sync::MutexGuard<'_, Option<Task>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IndexMaintainer {
    /// Tends the index whenever there is something to do. Ends only with the process.
    pub(crate) async fn run(self) -> Result<(), ServiceStopping> {
        let tending = &self.index.tending;
        let mut has_worked = false;
        loop {
            tending.woken().await;
            self.until_quiet().await;
            let wakings = tending.wakings();
            if self.tend_some(&mut has_worked).await? {
                tending.done(wakings, has_worked);
                has_worked = false;
            }
        }
    }

    /// Waits until no change has come for a while, for a bounded time.
    async fn until_quiet(&self) {
        let tending = &self.index.tending;
        let latest = Instant::now() + QUIET_WITHIN;
        loop {
            let before = tending.wakings();
            tokio::select! {
                biased;
                () = tending.hurried() => return,
                () = sleep(QUIET) => {}
            }
            if tending.wakings() == before || Instant::now() >= latest {
                return;
            }
        }
    }

    /// Tends the index until nothing is left to do, or for a while if changes come. Returns whether
    /// nothing is left, and sets `has_worked` if there was anything.
    async fn tend_some(&self, has_worked: &mut bool) -> Result<bool, ServiceStopping> {
        let before = self.index.tending.wakings();
        let mut pieces = 0;
        let shown = Arc::new(ShownMerges {
            index: self.index.clone(),
            work: self.work.clone(),
            began: Instant::now(),
            task: Mutex::default(),
        });
        let is_done = loop {
            let (content, cancel) = (self.index.content.clone(), self.cancel.clone());
            let showing = shown.clone();
            let calls = self.compute.long_background(move |turn| {
                let pace = || {
                    showing.show();
                    turn.share();
                    !cancel.is_cancelled()
                };
                let calls = 0..CALLS_OF_A_PIECE;
                let calls = calls.take_while(|_| content.tend(&pace)).count();
                showing.add(calls);
                calls
            });
            let calls = calls.await?;
            self.index.tending.advance();
            *has_worked |= calls > 0;
            if calls < CALLS_OF_A_PIECE {
                break true;
            }
            pieces += 1;
            let is_quiet = self.index.tending.wakings() == before;
            if !is_quiet && pieces >= PIECES_AT_A_TIME {
                break false;
            }
        };
        shown.done();
        Ok(is_done)
    }
}

#[cfg(test)]
mod tests {
    use cpu_scheduler::{CpuScheduler, WorkClass};
    use index::Quantization;

    use super::*;
    use crate::compute::INLINE_WITHIN;
    use crate::indexes::tests::{identity, in_memory, insert};
    use crate::items::ChangeKind;
    use crate::metrics::ServiceMetrics;

    /// The longest wait, by the clock that goes on when no task has anything to do.
    const WAIT: Duration = Duration::from_secs(60);

    /// An index of so many vectors, whose codes are none of their own, with its task.
    fn start(turns: &CpuScheduler, vectors: u32) -> Arc<IndexHandle> {
        let mut identity = identity("idx");
        identity.options.vector().dimensions = 65;
        identity.options.vector().quantization = Quantization::Bf16;
        let metrics = ServiceMetrics::new().index(&identity.name);
        let index = Arc::new(IndexHandle::new(identity, &in_memory(), metrics).unwrap());
        let mut state = 1u64;
        let mut element = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as f32
        };
        for id in 0..vectors {
            let vector: Vec<f32> = (0..65).map(|_| element()).collect();
            insert(&index.content, id, &vector);
        }
        let tender = IndexMaintainer {
            index: index.clone(),
            compute: CpuExecutor::new(turns.clone(), INLINE_WITHIN),
            work: TaskRegistry::default(),
            cancel: CancellationToken::new(),
        };
        tokio::spawn(tender.run());
        index
    }

    fn remove(index: &IndexHandle, ids: std::ops::Range<u32>) {
        for id in ids {
            let removed = index.content.change(id, ChangeKind::Remove, None);
            assert_eq!(removed, Ok(()));
        }
    }

    async fn ended(index: &IndexHandle) {
        let ended = tokio::time::timeout(WAIT, index.tending.ended()).await;
        assert!(ended.is_ok(), "the index is tended");
    }

    #[tokio::test(start_paused = true)]
    async fn an_index_is_tended_to_the_end_after_a_pause() {
        let turns = CpuScheduler::of_threads(1);
        let index = start(&turns, 6000);
        index.tending.wake();
        ended(&index).await;
        assert_eq!(index.tending.rounds(), 0, "nothing is left to do");
        // So many that all the others are renewed.
        remove(&index, 0..1600);
        index.tending.wake();
        assert!(index.tending.is_under_way());
        let began = Instant::now();
        ended(&index).await;
        assert!(began.elapsed() >= QUIET, "changes come first");
        assert_eq!(
            (index.tending.rounds(), index.content.tend(&|| true)),
            (1, false)
        );
        assert!(turns.counts(WorkClass::Background).given > 0);
        assert!(!index.status(Duration::ZERO).tending);
        // Without changes nothing is done.
        let given = turns.counts(WorkClass::Background).given;
        tokio::time::sleep(WAIT).await;
        assert_eq!(turns.counts(WorkClass::Background).given, given);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_without_a_pause_do_not_keep_it_from_being_tended() {
        let index = start(&CpuScheduler::of_threads(1), 6000);
        remove(&index, 0..1600);
        index.tending.wake();
        let changed = index.clone();
        let changes = tokio::spawn(async move {
            loop {
                sleep(QUIET / 3).await;
                changed.tending.wake();
            }
        });
        let began = Instant::now();
        while index.tending.rounds() == 0 {
            assert!(began.elapsed() < WAIT, "the index is tended");
            sleep(QUIET / 10).await;
        }
        assert!(began.elapsed() >= QUIET_WITHIN);
        assert!(index.tending.is_under_way(), "changes have come since");
        changes.abort();
        ended(&index).await;
    }
}
