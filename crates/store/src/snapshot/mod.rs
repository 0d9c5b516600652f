//! Restart in seconds: indexes are saved with the position in the log up to which they know it.
//!
//! # On the disk
//!
//! ```text
//! <index directory>/snapshots/
//!     lock                      one process at a time works here
//!     <index and token range>/
//!         current               which generation stands, of which index, and the position
//!         generation-<n>/
//!             graph, vectors-*  the index library's files (docs/snapshot-format.md)
//!             rows              keys, write times, expiries: see `rows`
//! ```
//!
//! A generation is written into a directory of its own, files and directory are synced, and then `current`
//! is replaced by one rename; what no longer stands is deleted afterwards. So a crash at any byte leaves the last
//! good one. Files of full vectors in which nothing has changed are hard links to those of the generation
//! before. If nothing at all has changed, `current` alone is replaced, with a later position.
//! Every byte is under a checksum: `current` and `rows` are read and verified as a whole, for the
//! library's files see there.
//!
//! # Why nothing is missed
//!
//! The *position* is a time before which everything that the log told is in the saved rows:
//!
//! 1. It is the least of what the table's readers of the log have confirmed: up to there they have handed
//!    over all hints.
//! 2. Then a marker goes the way of the hints, through the re-reader to the index. When it comes out, every
//!    hint handed over before has been read and taken in.
//! 3. Only then the save begins. What changes while it runs may be in it or not (see [`crate::items`] for how
//!    half a change is kept out), and has its log row behind the position. What is read without a log
//!    row (an expiry, a row without room) is saved as still to be read.
//!
//! A position that held once holds ever after, as the index only gets newer. If the marker does not come out
//! in time, because the database is away, the last position is saved with what there is.
//!
//! # Opening
//!
//! An index whose identity is that of the snapshot is opened, subscribes to the hints of its table, and has
//! the readers go back to its position ([`crate::cdc::Progress::rewind`]); it serves as soon as the rows that the
//! snapshot lacks, since they changed while it was taken, have been read. What was written since comes by the log,
//! what has expired since is dropped when it is opened. When rows of the log may have
//! expired since the position, or the clock was set back behind it, the rows are *reconciled*: the index scans the
//! table as a new one does, rows that the scan finds are taken in as ever (most of them change nothing), and
//! rows that neither scan nor log have shown by its end are removed. Until then it does not serve. The same is done
//! when readers fall behind so far while the service runs ([`crate::cdc::Progress::fell_behind`]).
//!
//! An index is not opened before it is known what its log is ([`LogFacts`]), nor where the process would overstep its
//! memory limit; it is built anew then, under that limit, and the next save takes the snapshot's place.
//! Anything else that is wrong with a snapshot is logged with the name of the file; the snapshot is deleted and
//! the index built anew. Full vectors are verified while they are searched ([`verify`]), and may become unreadable later ([`watch`]).

mod check;
mod fault;
mod frames;
mod manifest;
mod open;
mod place;
mod rows;
mod saver;
mod verify;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::database::LogFacts;
use crate::identity::IndexIdentity;
use crate::options::{IndexesOptions, SnapshotOptions};
pub use check::check_place;
use fault::Fault;
pub use open::Opened;
use place::Place;
pub use rows::put_row;
pub use saver::{Saved, Saver};
pub use verify::{verify, watch};

/// The snapshots of all indexes.
pub struct Snapshots {
    root: PathBuf,
    /// Absent: none are kept or used.
    interval: Option<Duration>,
    /// Held while this process works in the directory.
    lock: Mutex<Option<File>>,
    /// Held by whoever replaces or deletes what stands.
    standing: Mutex<()>,
    /// One index is saved at a time: disks are not quicker for two.
    turn: Semaphore,
    /// The last snapshots are to be taken.
    stopping: CancellationToken,
    /// Who may still take one.
    savers: TaskTracker,
}

impl Snapshots {
    /// In the directory of the indexes.
    pub fn new(options: &SnapshotOptions, indexes: &IndexesOptions) -> Snapshots {
        Snapshots {
            root: indexes.directory.join("snapshots"),
            interval: options.interval,
            lock: Mutex::default(),
            standing: Mutex::default(),
            turn: Semaphore::new(1),
            stopping: CancellationToken::new(),
            savers: TaskTracker::new(),
        }
    }

    /// Takes the last snapshots, and returns when that is done.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.savers.close();
        self.savers.wait().await;
    }

    /// Deletes the snapshot of an index, if there is one. Blocks. Whoever might still save the index has been
    /// cancelled before.
    pub fn remove(&self, identity: &IndexIdentity) {
        if self.interval.is_some() && self.enter().is_ok() {
            self.delete(&self.place(identity).path);
        }
    }

    /// Deletes the snapshots of all indexes but these. Blocks.
    pub fn retain(&self, identities: &[IndexIdentity]) {
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
                tracing::info!(path = %path.display(), "a snapshot of an index that is no more is deleted");
                self.delete(&path);
            }
        }
    }

    fn place(&self, identity: &IndexIdentity) -> Place {
        Place::of(&self.root, identity)
    }

    /// Makes sure that there is a directory, and that no other process works in it.
    fn enter(&self) -> Result<(), Fault> {
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_some() {
            return Ok(());
        }
        fs::create_dir_all(&self.root).map_err(Fault::io("make", &self.root))?;
        let path = self.root.join("lock");
        let file = File::create(&path).map_err(Fault::io("make", &path))?;
        match file.try_lock() {
            Ok(()) => {
                *held = Some(file);
                Ok(())
            }
            Err(TryLockError::WouldBlock) => Err(Fault::InUse { path }),
            Err(TryLockError::Error(source)) => Err(Fault::io("lock", &path)(source)),
        }
    }

    fn standing(&self) -> MutexGuard<'_, ()> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// First what makes it count, then all of it.
    fn delete(&self, path: &Path) {
        let _standing = self.standing();
        let deleted = place::remove_if_there(&path.join(manifest::CURRENT)).and_then(|()| {
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
