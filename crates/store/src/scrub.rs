//! Scrubs: reading every file and checking it against its checksums, before a reader or a start
//! meets damage.
//!
//! One scrub runs at a time, as a task. Its rate is limited, as users read from the same disk. It
//! reads the files of a database in the same process ([`SourceDatabase::check_files`]) and the
//! snapshots of indexes ([`files`]). It changes nothing, and reports faults in the log and in the
//! task.

mod files;
mod pace;
mod schedule;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ::tasks::{CompletionState, Task, TaskRegistry};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::database::{CheckedFiles, SourceDatabase};
use crate::long_work;
use crate::options::ScrubOptions;

pub use files::check_snapshots;
pub use pace::ReadRateLimiter;

/// The counters of a scrub in its task.
const COUNTERS: &[&str] = &[FILES, DAMAGED];
const FILES: &str = "files";
const DAMAGED: &str = "damaged";

/// The number of faults that the end of a task names. The log names all of them.
const NAMED_MAX: usize = 10;

/// The error for a scrub that is requested while another one runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scrub is running: wait until it has ended, or abort it")]
pub(crate) struct AlreadyScrubbing;

/// The scrubs of a service. Clones are cheap and share the state.
#[derive(Clone)]
pub(crate) struct Scrubs {
    inner: Arc<SharedScrubs>,
}

struct SharedScrubs {
    database: Arc<dyn SourceDatabase>,
    /// The directory for the files of indexes.
    directory: PathBuf,
    options: ScrubOptions,
    work: TaskRegistry,
    tasks: TaskTracker,
    /// Cancelled when the service ends.
    cancel: CancellationToken,
    last: Mutex<Option<Uuid>>,
}

impl Scrubs {
    /// Makes the scrubs of a service, of which none runs yet. `directory` has the files of indexes,
    /// and `work` shows scrubs.
    pub(crate) fn new(
        database: Arc<dyn SourceDatabase>,
        directory: PathBuf,
        options: ScrubOptions,
        work: TaskRegistry,
        tasks: TaskTracker,
        cancel: CancellationToken,
    ) -> Scrubs {
        Scrubs {
            inner: Arc::new(SharedScrubs {
                database,
                directory,
                options,
                work,
                tasks,
                cancel,
                last: Mutex::default(),
            }),
        }
    }

    /// Begins a scrub and returns the id of its task. `bytes_a_second` takes the place of the rate
    /// in the options.
    ///
    /// # Errors
    /// If a scrub is running.
    pub(crate) fn start(&self, bytes_a_second: Option<u64>) -> Result<Uuid, AlreadyScrubbing> {
        let inner = &self.inner;
        let mut last = inner.last.lock().unwrap_or_else(PoisonError::into_inner);
        let state = last.and_then(|last| inner.work.status(last));
        if state.is_some_and(|status| status.state == CompletionState::Running) {
            return Err(AlreadyScrubbing);
        }
        let task = inner.work.start(long_work::scrub(COUNTERS));
        let id = task.id();
        *last = Some(id);
        let rate = bytes_a_second.unwrap_or(inner.options.bytes_a_second);
        let scrubs = self.clone();
        inner.tasks.spawn_blocking(move || scrubs.run(task, rate));
        Ok(id)
    }

    fn run(&self, task: Task, bytes_a_second: u64) {
        let SharedScrubs {
            database,
            directory,
            cancel,
            ..
        } = &*self.inner;
        tracing::info!(task = %task.id(), "scrub begins");
        task.set_total(database.file_bytes() + files::bytes_of(directory));
        let is_wanted = || !task.abort_requested() && !cancel.is_cancelled();
        let mut pace = ReadRateLimiter::new(Some(bytes_a_second));
        let mut pass = |bytes| {
            task.add(bytes);
            pace.keep(bytes, &is_wanted)
        };
        let mut found = CheckedFiles::default();
        match database.check_files(&mut pass) {
            Some(Ok(checked)) => found.add(checked),
            Some(Err(error)) => found.faults.push(error.to_string()),
            None => {}
        }
        if is_wanted() {
            found.add(check_snapshots(directory, &mut pass));
        }
        if is_wanted() {
            // Files may have been created, deleted or grown since they were counted.
            task.set_total(task.status().progress_completed);
        }
        task.count(FILES, found.files);
        task.count(DAMAGED, found.faults.len() as u64);
        for fault in &found.faults {
            tracing::error!(%fault, "scrub: a file is not as it was written");
        }
        let (files, damaged) = (found.files, found.faults.len());
        tracing::info!(task = %task.id(), files, damaged, "scrub ends");
        if !is_wanted() {
            task.stopped();
        } else if found.faults.is_empty() {
            task.done();
        } else {
            found.faults.truncate(NAMED_MAX);
            task.failed(found.faults.join("; "));
        }
    }
}
