//! Saves indexes, so that a restart takes seconds. Each is saved with the position in the log up to
//! which it is complete.
//!
//! # On the disk
//!
//! ```text
//! <index directory>/snapshots/
//!     lock                      one process at a time works here
//!     <index and token range>/
//!         current               the current generation, its index, and its position
//!         generation-<n>/
//!             graph, vectors-*  the index library's files (docs/snapshot-format.md)
//!             rows              keys, write times, expiries: see `rows`
//! ```
//!
//! A generation is written into a directory of its own, and its files and the directory are synced.
//! Then `current` is replaced by one rename, and other generations are deleted afterwards. So a
//! crash at any byte leaves the last good generation. Files of full vectors in which nothing has
//! changed are hard links to those of the generation before. If nothing at all has changed, only
//! `current` is replaced, with a later position. Every byte is under a checksum. `current` and
//! `rows` are verified as a whole when they are read. The library verifies its own files.
//!
//! # Why nothing is missed
//!
//! The *position* is a time. Everything that the log named before it is in the saved rows:
//!
//! 1. It is the least time that the table's readers of the log have confirmed. Up to there they
//!    have handed over all hints.
//! 2. Then a marker follows the hints, through the re-reader to the index. When it arrives, every
//!    hint handed over before has been read and applied.
//! 3. Only then the save begins. A change made while it runs may be in it or not, and has its log
//!    row after the position ([`crate::items`] says how half a change is excluded). Rows that are
//!    read without a log row (an expiry, a row without room) are saved as still to be read.
//!
//! A position that was right once stays right, as the index only gets newer. If the marker doesn't
//! arrive in time, because the database is away, the rows are saved with the last position.
//!
//! # Opening
//!
//! An index with the identity of the snapshot is opened and subscribes to the hints of its table.
//! It has the readers go back to its position ([`crate::database::ReaderProgress::rewind`]). Rows
//! that changed while the snapshot was taken are missing in it. The index serves as soon as these
//! have been read. Later writes come by the log. Rows that have expired since are dropped on
//! opening.
//!
//! If rows of the log may have expired since the position, or the clock was set back before it, the
//! rows are *reconciled*. The index scans the table as a new one does, and takes in the rows of the
//! scan as usual (most of them change nothing). Rows that neither scan nor log have shown by the
//! end of the scan are removed. Until then the index doesn't serve. The same is done when readers
//! lag that far while the service runs ([`crate::database::ReaderProgress::fell_behind`]).
//!
//! An index is not opened before the facts about its log are known ([`LogFacts`]). It is not opened
//! either if the process would exceed its memory limit. Then it is built again under that limit,
//! and the next save replaces the snapshot. Any other fault of a snapshot is logged with the name
//! of the file. The snapshot is deleted and the index built again. Full vectors are verified while
//! they are searched ([`verify()`]), and may become unreadable later ([`watch`]).

mod check;
mod directory;
mod fault;
mod frames;
mod link;
pub(crate) mod manifest;
mod open;
pub(crate) mod rows;
mod save_request;
mod saver;
mod verify;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch as watch_channel};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::database::LogFacts;
use crate::identity::IndexIdentity;
use crate::options::{IndexesOptions, SnapshotOptions};
pub(crate) use check::check_place;
use directory::IndexDirectory;
use fault::PersistenceError;
pub use link::LinkedSnapshots;
pub(crate) use open::ReopenOutcome;
pub(crate) use rows::{put_filters, put_row};
pub(crate) use save_request::{CopiedRows, SaveRequest, SaveStart};
pub(crate) use saver::{CurrentGeneration, IndexSaver};
pub(crate) use verify::{verify, watch};

/// The snapshots of all indexes.
pub(crate) struct Snapshots {
    root: PathBuf,
    /// The interval of saves; `None`: snapshots are neither saved nor used.
    interval: Option<Duration>,
    /// The longest wait for memory. An index that has just been given up is freed with the last
    /// search of it.
    memory_wait: Duration,
    /// The locked file, while this process works in the directory.
    lock: Mutex<Option<File>>,
    /// Held while a current snapshot is replaced or deleted.
    standing: Mutex<()>,
    /// Held while an index is saved. One is saved at a time, as disks are not quicker for two.
    turn: Semaphore,
    /// Cancelled when the last snapshots are to be taken.
    stopping: CancellationToken,
    /// The savers that may still take a snapshot.
    savers: TaskTracker,
    /// Counts the requests to save all indexes now.
    asked: watch_channel::Sender<u64>,
    /// Counts the saves that such requests have brought.
    answered: watch_channel::Sender<u64>,
}

impl Snapshots {
    /// The snapshots in the directory of the indexes.
    pub(crate) fn new(options: &SnapshotOptions, indexes: &IndexesOptions) -> Snapshots {
        Snapshots {
            root: indexes.directory.join("snapshots"),
            interval: options.interval,
            memory_wait: options.memory_wait,
            lock: Mutex::default(),
            standing: Mutex::default(),
            turn: Semaphore::new(1),
            stopping: CancellationToken::new(),
            savers: TaskTracker::new(),
            asked: watch_channel::Sender::new(0),
            answered: watch_channel::Sender::new(0),
        }
    }

    /// Has the last snapshots taken, and returns when that is done.
    pub(crate) async fn stop(&self) {
        self.stopping.cancel();
        self.savers.close();
        self.savers.wait().await;
    }

    /// Deletes the snapshot of an index, if there is one. Blocks. The saver of the index must have
    /// been cancelled before.
    pub(crate) fn remove(&self, identity: &IndexIdentity) {
        if self.interval.is_some() && self.enter().is_ok() {
            self.delete(&self.place(identity).path);
        }
    }

    /// Deletes the snapshots of all indexes but these. Blocks.
    pub(crate) fn retain(&self, identities: &[IndexIdentity]) {
        if self.interval.is_none() || self.enter().is_err() {
            return;
        }
        let stay: Vec<PathBuf> = identities
            .iter()
            .map(|identity| self.place(identity).path)
            .collect();
        let Ok(entries) = fs::read_dir(&self.root) else {
            return;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() && !stay.contains(&path) {
                tracing::info!(path = %path.display(), "the snapshot of an index that no longer exists is deleted");
                self.delete(&path);
            }
        }
    }

    fn place(&self, identity: &IndexIdentity) -> IndexDirectory {
        IndexDirectory::of(&self.root, identity)
    }

    /// Makes the directory, and locks it against other processes.
    fn enter(&self) -> Result<(), PersistenceError> {
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_some() {
            return Ok(());
        }
        fs::create_dir_all(&self.root).map_err(PersistenceError::io("make", &self.root))?;
        let path = self.root.join("lock");
        let file = File::create(&path).map_err(PersistenceError::io("make", &path))?;
        match file.try_lock() {
            Ok(()) => {
                *held = Some(file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(PersistenceError::InUse { path }),
            Err(TryLockError::Error(source)) => Err(PersistenceError::io("lock", &path)(source)),
        }
    }

    fn standing(&self) -> MutexGuard<'_, ()> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes a snapshot: first its manifest, so that it no longer counts, then the rest.
    fn delete(&self, path: &Path) {
        let _standing = self.standing();
        let deleted = directory::remove_if_there(&path.join(manifest::CURRENT)).and_then(|()| {
            match fs::remove_dir_all(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                deleted => deleted,
            }
        });
        if let Err(error) = deleted {
            tracing::warn!(path = %path.display(), %error, "a snapshot can't be deleted");
        }
    }
}
