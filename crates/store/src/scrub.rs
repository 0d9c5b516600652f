//! Reading every file and holding it against its checksums, before damage is met by a reader or a start.
//!
//! One scrub runs at a time, as a task, and no faster than it is told to: users read from the same disk. It reads what
//! the database has in this process ([`Database::check_files`]) and the snapshots of indexes ([`files`]). It changes nothing: what
//! it finds is in the log and in the task.

mod files;
mod pace;
mod schedule;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ::tasks::{Registry, State, Task};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::database::Database;
use crate::long_work;
use crate::options::ScrubOptions;

pub use files::{CheckedFiles, check_snapshots};
pub use pace::Pace;

/// What a scrub counts.
pub const COUNTERS: &[&str] = &[FILES, DAMAGED];
const FILES: &str = "files";
const DAMAGED: &str = "damaged";

/// Faults that the end of a task names; the log names all.
const NAMED_MAX: usize = 10;

/// One runs already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a scrub is running: wait until it has ended, or abort it")]
pub struct Busy;

/// The scrubs of a service. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Scrubs {
    inner: Arc<Inner>,
}

struct Inner {
    database: Arc<dyn Database>,
    /// The indexes'.
    directory: PathBuf,
    options: ScrubOptions,
    work: Registry,
    tasks: TaskTracker,
    /// The end of the service.
    cancel: CancellationToken,
    last: Mutex<Option<Uuid>>,
}

impl Scrubs {
    /// None yet. `directory`: where the files of indexes lie. `work`: where scrubs are seen.
    pub fn new(
        database: Arc<dyn Database>,
        directory: PathBuf,
        options: ScrubOptions,
        work: Registry,
        tasks: TaskTracker,
        cancel: CancellationToken,
    ) -> Scrubs {
        Scrubs {
            inner: Arc::new(Inner {
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

    /// Begins one; the name of its task. `bytes_a_second`: if not as fast as the options say.
    pub fn start(&self, bytes_a_second: Option<u64>) -> Result<Uuid, Busy> {
        let inner = &self.inner;
        let mut last = inner.last.lock().unwrap_or_else(PoisonError::into_inner);
        let state = last.and_then(|last| inner.work.status(last));
        if state.is_some_and(|status| status.state == State::Running) {
            return Err(Busy);
        }
        let task = inner.work.start(long_work::scrub());
        let id = task.id();
        *last = Some(id);
        let rate = bytes_a_second.unwrap_or(inner.options.bytes_a_second);
        let scrubs = self.clone();
        inner.tasks.spawn_blocking(move || scrubs.run(task, rate));
        Ok(id)
    }

    fn run(&self, task: Task, bytes_a_second: u64) {
        let Inner {
            database,
            directory,
            cancel,
            ..
        } = &*self.inner;
        tracing::info!(task = %task.id(), "scrub begins");
        task.set_total(database.file_bytes() + files::bytes_of(directory));
        let is_wanted = || !task.abort_requested() && !cancel.is_cancelled();
        let mut pace = Pace::new(Some(bytes_a_second));
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
