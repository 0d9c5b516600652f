//! The engine below a storage: fjall on a disk, or its replacement in simulations.
//!
//! Without the feature `simulation` there is one variant, so the choice costs nothing. Only tests
//! turn the feature on, so no binary has the replacement.

use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use prometheus::Histogram;

#[cfg(feature = "simulation")]
use super::simulation;
use super::{
    CheckpointDraft, CheckpointFiles, CompactionFilterSource, DeadEntryScan, DiskEngine, DiskScan,
    DiskSizes, DiskSnapshot, EngineFigures, EngineOptions, EntryBatch, LockedDirectory,
    ResidentChange, SpaceId, SpaceOptions, SpaceSize, SyncTarget,
};
use crate::StorageError;

/// The engine that holds the rows.
pub(crate) enum Engine {
    Disk(Box<DiskEngine>),
    #[cfg(feature = "simulation")]
    Simulated(simulation::SimulatedEngine),
}

/// A snapshot of all spaces.
pub(crate) enum SpacesSnapshot {
    Disk(DiskSnapshot),
    #[cfg(feature = "simulation")]
    Simulated(simulation::SimulatedSnapshot),
}

/// A scan over the keys and values of a range, from either end.
pub(crate) enum EntryScan {
    Disk(DiskScan),
    #[cfg(feature = "simulation")]
    Simulated(simulation::SimulatedScan),
}

/// A scan over the keys of a range, each with the length of its value.
pub(crate) enum EntrySizeScan {
    Disk(DiskSizes),
    #[cfg(feature = "simulation")]
    Simulated(simulation::SimulatedScan),
}

/// Does the same work on either engine.
macro_rules! either {
    ($engine:expr, $of:ident => $work:expr) => {
        match $engine {
            Engine::Disk($of) => $work,
            #[cfg(feature = "simulation")]
            Engine::Simulated($of) => $work,
        }
    };
}

impl Engine {
    /// Opens fjall.
    pub(crate) fn open(
        directory: LockedDirectory,
        options: EngineOptions,
        examiners: CompactionFilterSource,
    ) -> Result<Engine, StorageError> {
        DiskEngine::open(directory, options, examiners).map(|disk| Engine::Disk(Box::new(disk)))
    }

    /// Opens a simulated disk. The second value says whether it is empty.
    #[cfg(feature = "simulation")]
    pub(crate) fn simulated(disk: &simulation::SimulatedDisk) -> (Engine, bool) {
        let (engine, is_new) = simulation::SimulatedEngine::open(disk);
        (Engine::Simulated(engine), is_new)
    }

    /// See [`DiskEngine::path`].
    pub(crate) fn path(&self) -> &Path {
        either!(self, of => of.path())
    }

    /// See [`DiskEngine::mark_made`].
    pub(crate) fn mark_made(&self) -> Result<(), StorageError> {
        either!(self, of => of.mark_made())
    }

    /// See [`DiskEngine::disk_takes_writes`].
    pub(crate) fn disk_takes_writes(&self) -> bool {
        either!(self, of => of.disk_takes_writes())
    }

    /// See [`DiskEngine::reopen`].
    pub(crate) fn reopen(&self) -> Result<(), StorageError> {
        either!(self, of => of.reopen())
    }

    /// See [`DiskEngine::close`].
    pub(crate) fn close(&self) {
        either!(self, of => of.close());
    }

    /// The ids of all spaces.
    pub(crate) fn spaces(&self) -> Result<Vec<SpaceId>, StorageError> {
        either!(self, of => of.spaces())
    }

    /// Makes a space, if it does not exist. It is on the disk when this returns.
    pub(crate) fn create_space(
        &self,
        id: SpaceId,
        options: SpaceOptions,
    ) -> Result<(), StorageError> {
        either!(self, of => of.create_space(id, options))
    }

    /// See [`DiskEngine::hold`]. A simulated disk is in memory anyway.
    pub(crate) fn hold(&self, spaces: &[SpaceId], now_micros: i64) -> Result<(), StorageError> {
        match self {
            Engine::Disk(of) => of.hold(spaces, now_micros),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => Ok(()),
        }
    }

    /// See [`DiskEngine::resident_growth`].
    pub(crate) fn resident_growth<'k>(
        &self,
        changes: impl Iterator<Item = ResidentChange<'k>>,
    ) -> i64 {
        match self {
            Engine::Disk(of) => of.resident_growth(changes),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => 0,
        }
    }

    /// See [`DiskEngine::check_resident_room`].
    pub(crate) fn check_resident_room(
        &self,
        growth: i64,
        is_deletion: bool,
    ) -> Result<(), StorageError> {
        match self {
            Engine::Disk(of) => of.check_resident_room(growth, is_deletion),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => Ok(()),
        }
    }

    /// See [`DiskEngine::resident_bytes`].
    pub(crate) fn resident_bytes(&self) -> u64 {
        match self {
            Engine::Disk(of) => of.resident_bytes(),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => 0,
        }
    }

    /// See [`DiskEngine::write_buffer_bytes`].
    pub(crate) fn write_buffer_bytes(&self) -> u64 {
        match self {
            Engine::Disk(of) => of.write_buffer_bytes(),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => 0,
        }
    }

    /// See [`DiskEngine::figures`].
    pub(crate) fn figures(&self) -> EngineFigures {
        match self {
            Engine::Disk(of) => of.figures(),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => EngineFigures::default(),
        }
    }

    /// The times of syncs to the disk; `None` in simulations.
    pub(crate) fn sync_durations(&self) -> Option<&Histogram> {
        match self {
            Engine::Disk(of) => Some(of.sync_durations()),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => None,
        }
    }

    /// See [`DiskEngine::bytes_to_come`].
    pub(crate) fn bytes_to_come(&self) -> u64 {
        match self {
            Engine::Disk(of) => of.bytes_to_come(),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => 0,
        }
    }

    /// See [`DiskEngine::write_out_idle`].
    pub(crate) fn write_out_idle(&self, calls: u32) {
        match self {
            Engine::Disk(of) => of.write_out_idle(calls),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => {}
        }
    }

    /// See [`DiskEngine::begin_dead_entry_scan`].
    pub(crate) fn begin_dead_entry_scan(&self) -> DeadEntryScan {
        match self {
            Engine::Disk(of) => of.begin_dead_entry_scan(),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => DeadEntryScan::over(Vec::new()),
        }
    }

    /// See [`DiskEngine::continue_dead_entry_scan`].
    pub(crate) fn continue_dead_entry_scan(
        &self,
        look: &mut DeadEntryScan,
        now_micros: i64,
    ) -> Result<bool, StorageError> {
        match self {
            Engine::Disk(of) => of.continue_dead_entry_scan(look, now_micros),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => Ok(true),
        }
    }

    /// See [`DiskEngine::drop_space`].
    pub(crate) fn drop_space(&self, id: SpaceId) -> Result<(), StorageError> {
        either!(self, of => of.drop_space(id))
    }

    /// See [`DiskEngine::commit`].
    pub(crate) fn commit(
        &self,
        batch: EntryBatch,
        sync: SyncTarget,
        now_micros: i64,
    ) -> Result<(), StorageError> {
        either!(self, of => of.commit(batch, sync, now_micros))
    }

    /// Commits the writes of clients. See [`DiskEngine::commit`]. In a simulation other tasks go on
    /// while the disk works, as other threads do otherwise.
    pub(crate) async fn commit_writes(
        &self,
        batch: EntryBatch,
        sync: SyncTarget,
        now_micros: i64,
    ) -> Result<(), StorageError> {
        match self {
            Engine::Disk(of) => of.commit(batch, sync, now_micros),
            #[cfg(feature = "simulation")]
            Engine::Simulated(of) => of.commit_slowly(batch, sync).await,
        }
    }

    /// See [`DiskEngine::sync`].
    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        either!(self, of => of.sync())
    }

    /// See [`DiskEngine::probe`].
    pub(crate) fn probe(&self) -> Result<(), StorageError> {
        either!(self, of => of.probe())
    }

    /// A snapshot of the present state.
    pub(crate) fn snapshot(&self) -> Result<SpacesSnapshot, StorageError> {
        match self {
            Engine::Disk(of) => of.snapshot().map(SpacesSnapshot::Disk),
            #[cfg(feature = "simulation")]
            Engine::Simulated(of) => of.snapshot().map(SpacesSnapshot::Simulated),
        }
    }

    /// See [`DiskEngine::get`].
    pub(crate) fn get(&self, space: SpaceId, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        either!(self, of => of.get(space, key))
    }

    /// The value of a key in a snapshot.
    pub(crate) fn get_at(
        &self,
        snapshot: &SpacesSnapshot,
        space: SpaceId,
        key: &[u8],
    ) -> Result<Option<Bytes>, StorageError> {
        match (self, snapshot) {
            (Engine::Disk(of), SpacesSnapshot::Disk(at)) => of.get_at(at, space, key),
            #[cfg(feature = "simulation")]
            (Engine::Simulated(of), SpacesSnapshot::Simulated(at)) => of.get_at(at, space, key),
            #[cfg(feature = "simulation")]
            _ => unreachable!("a snapshot of another engine"),
        }
    }

    /// The entries of a range in a snapshot.
    pub(crate) fn scan_at(
        &self,
        snapshot: &SpacesSnapshot,
        space: SpaceId,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Result<EntryScan, StorageError> {
        match (self, snapshot) {
            (Engine::Disk(of), SpacesSnapshot::Disk(at)) => {
                of.scan_at(at, space, range).map(EntryScan::Disk)
            }
            #[cfg(feature = "simulation")]
            (Engine::Simulated(of), SpacesSnapshot::Simulated(at)) => {
                of.scan_at(at, space, range).map(EntryScan::Simulated)
            }
            #[cfg(feature = "simulation")]
            _ => unreachable!("a snapshot of another engine"),
        }
    }

    /// The keys of a range in a snapshot, each with the length of its value. Values that are in
    /// files of their own are not read.
    pub(crate) fn sizes_at(
        &self,
        snapshot: &SpacesSnapshot,
        space: SpaceId,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Result<EntrySizeScan, StorageError> {
        match (self, snapshot) {
            (Engine::Disk(of), SpacesSnapshot::Disk(at)) => {
                of.sizes_at(at, space, range).map(EntrySizeScan::Disk)
            }
            #[cfg(feature = "simulation")]
            (Engine::Simulated(of), SpacesSnapshot::Simulated(at)) => {
                of.scan_at(at, space, range).map(EntrySizeScan::Simulated)
            }
            #[cfg(feature = "simulation")]
            _ => unreachable!("a snapshot of another engine"),
        }
    }

    /// See [`DiskEngine::compact`].
    pub(crate) fn compact(&self, space: SpaceId) -> Result<(), StorageError> {
        either!(self, of => of.compact(space))
    }

    /// See [`DiskEngine::begin_checkpoint`].
    pub(crate) fn begin_checkpoint(&self, root: &Path) -> Result<CheckpointDraft, StorageError> {
        match self {
            Engine::Disk(of) => of.begin_checkpoint(root),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => Err(no_checkpoint()),
        }
    }

    /// See [`DiskEngine::link_checkpoint`].
    pub(crate) fn link_checkpoint(&self, draft: &mut CheckpointDraft) -> Result<(), StorageError> {
        match self {
            Engine::Disk(of) => of.link_checkpoint(draft),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => Err(no_checkpoint()),
        }
    }

    /// See [`DiskEngine::finish_checkpoint`].
    pub(crate) fn finish_checkpoint(
        &self,
        draft: CheckpointDraft,
    ) -> Result<CheckpointFiles, StorageError> {
        match self {
            Engine::Disk(of) => of.finish_checkpoint(draft),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => Err(no_checkpoint()),
        }
    }

    /// The data directory; `None` in simulations.
    pub(crate) fn directory(&self) -> Option<&LockedDirectory> {
        match self {
            Engine::Disk(of) => Some(of.directory()),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => None,
        }
    }

    /// Counts the records of range deletions that were read.
    pub(crate) fn range_deletions_read(&self) -> &AtomicU64 {
        either!(self, of => &of.range_deletions_read)
    }

    /// Counts the rows that were looked up by their keys.
    pub(crate) fn rows_looked_up(&self) -> &AtomicU64 {
        either!(self, of => &of.rows_looked_up)
    }

    /// Bytes of journals that were replayed when the directory was opened.
    pub(crate) fn replayed_bytes(&self) -> u64 {
        match self {
            Engine::Disk(of) => of.replayed_bytes,
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => 0,
        }
    }

    /// See [`DiskEngine::space_size`].
    pub(crate) fn space_size(&self, space: SpaceId) -> SpaceSize {
        match self {
            Engine::Disk(of) => of.space_size(space),
            #[cfg(feature = "simulation")]
            Engine::Simulated(_) => SpaceSize::default(),
        }
    }

    /// Bytes of all files.
    pub(crate) fn disk_bytes(&self) -> u64 {
        either!(self, of => of.disk_bytes())
    }
}

#[cfg(feature = "simulation")]
fn no_checkpoint() -> StorageError {
    StorageError::Invalid("a simulated disk has no checkpoints".to_owned())
}

impl Iterator for EntryScan {
    type Item = Result<(Bytes, Bytes), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            EntryScan::Disk(of) => of.next(),
            #[cfg(feature = "simulation")]
            EntryScan::Simulated(of) => of.next(),
        }
    }
}

impl Iterator for EntrySizeScan {
    type Item = Result<(Bytes, u64), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            EntrySizeScan::Disk(of) => of.next(),
            #[cfg(feature = "simulation")]
            EntrySizeScan::Simulated(of) => {
                let entry = of.next()?;
                Some(entry.map(|(key, value)| (key, value.len() as u64)))
            }
        }
    }
}

impl DoubleEndedIterator for EntryScan {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            EntryScan::Disk(of) => of.next_back(),
            #[cfg(feature = "simulation")]
            EntryScan::Simulated(of) => of.next_back(),
        }
    }
}
