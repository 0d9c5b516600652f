//! A replacement for fjall in memory, on a disk that forgets what was not synced.
//!
//! It keeps what the storage relies on: batches are atomic, a snapshot does not change, synced
//! batches survive a crash, a refused batch is lost, and after a refusal nothing is written until
//! the engine is opened again. A seed decides the rest. At a crash the tail of the journal that was
//! not synced is lost, retained, or torn in a batch, which loses that batch and all after it. A
//! batch may take a while; meanwhile other tasks go on, and a crash may come.
//!
//! The disk outlives the engines that are opened on it, one after another. An engine that was open
//! at a crash can do nothing any more.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::{EntryBatch, SpaceId, SpaceOptions, SyncTarget};
use crate::StorageError;

/// The longest time that a slow batch takes.
const LATENCY_MICROS_MAX: u64 = 60_000;
/// One batch in this many is slow; others are done at once.
const SLOW_ONE_IN: u64 = 3;

type SpaceEntries = Arc<BTreeMap<Bytes, Bytes>>;
type SpaceContents = HashMap<SpaceId, SpaceEntries>;

/// The disk of a simulation. Clones are the same disk.
#[derive(Clone, Default)]
pub struct SimulatedDisk(Arc<Mutex<SimulatedDiskState>>);

#[derive(Default)]
struct SimulatedDiskState {
    /// The state of the random number generator.
    random: u64,
    /// The content that survives any crash.
    synced: SpaceContents,
    /// The batches since the last sync, in their order.
    tail: Vec<EntryBatch>,
    /// The batch that is in the journal, but is not yet seen by readers.
    in_flight: Option<EntryBatch>,
    /// The content that readers see: `synced` and `tail` without the batch in flight.
    seen: SpaceContents,
    /// Counts the engines that were opened, the crashes, and the openings after a failure.
    epoch: u64,
    is_full: bool,
    /// The number of batches that are taken before one is refused.
    fails_in: Option<u64>,
    /// Whether nothing is written until the engine is opened again.
    is_poisoned: bool,
    /// See [`SimulatedDisk::ignore_syncs`].
    ignores_syncs: bool,
    /// See [`SimulatedDisk::lose_key_at_crashes`].
    lost_key: Option<Vec<u8>>,
}

impl SimulatedDisk {
    /// Makes an empty disk. The seed decides what a crash loses and which batches are slow.
    pub fn new(seed: u64) -> SimulatedDisk {
        let disk = SimulatedDisk::default();
        disk.state().random = seed;
        disk
    }

    fn state(&self) -> MutexGuard<'_, SimulatedDiskState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the power fail. The open engine can do nothing any more, and some batches that were not
    /// synced are lost.
    pub fn crash(&self) {
        let mut state = self.state();
        state.epoch += 1;
        let batches = state.tail.len() as u64;
        let kept = state.below(batches + 1);
        let tail: Vec<EntryBatch> = state.tail.drain(..).take(kept as usize).collect();
        for batch in &tail {
            apply(&mut state.synced, batch);
        }
        let SimulatedDiskState {
            synced,
            lost_key: forgets,
            ..
        } = &mut *state;
        if let (Some(key), Some(meta)) = (forgets, synced.get_mut(&SpaceId::META)) {
            Arc::make_mut(meta).remove(key.as_slice());
        }
        state.seen = state.synced.clone();
        state.in_flight = None;
        state.is_poisoned = false;
        state.fails_in = None;
    }

    /// Sets whether the disk is full. A full disk refuses batches.
    pub fn set_full(&self, is_full: bool) {
        self.state().is_full = is_full;
    }

    /// Has the disk refuse one batch after this many more, as if it had failed for a moment.
    pub fn fail_after(&self, batches: u64) {
        self.state().fails_in = Some(batches);
    }

    /// Makes syncs return without an effect. For tests of a simulation, which must notice such a
    /// disk.
    pub fn ignore_syncs(&self) {
        self.state().ignores_syncs = true;
    }

    /// Makes each crash lose the value of a key of the meta space. For tests of a simulation, which
    /// must notice such a disk.
    pub fn lose_key_at_crashes(&self, key: &[u8]) {
        self.state().lost_key = Some(key.to_vec());
    }
}

impl SimulatedDiskState {
    /// A number below `end`, by SplitMix64.
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }

    fn sync(&mut self) {
        if !self.ignores_syncs {
            self.synced = self.seen.clone();
            if let Some(batch) = &self.in_flight {
                apply(&mut self.synced, batch);
            }
            self.tail.clear();
        }
    }

    fn check_writable(&mut self) -> Result<(), StorageError> {
        if self.is_poisoned {
            return Err(StorageError::ReadOnly("an earlier write failed".to_owned()));
        }
        let fails = match &mut self.fails_in {
            Some(0) => true,
            Some(batches) => {
                *batches -= 1;
                false
            }
            None => false,
        };
        if !fails && !self.is_full {
            return Ok(());
        }
        self.fails_in = None;
        self.is_poisoned = true;
        Err(StorageError::ReadOnly("no space left on device".to_owned()))
    }
}

fn apply(spaces: &mut SpaceContents, batch: &EntryBatch) {
    for (space, key, value) in batch {
        // The space may have been dropped since.
        let Some(space) = spaces.get_mut(space) else {
            continue;
        };
        let space = Arc::make_mut(space);
        match value {
            Some(value) => space.insert(key.clone(), value.clone()),
            None => space.remove(key),
        };
    }
}

/// An engine on a simulated disk.
pub(crate) struct SimulatedEngine {
    disk: SimulatedDisk,
    /// The epoch of the disk in which the engine was opened.
    epoch: Mutex<u64>,
    path: PathBuf,
    /// Range deletions that were read since the start. See [`super::Disk`].
    pub(crate) range_deletions_read: AtomicU64,
    /// Rows that were looked up by their keys since the start. See [`super::Disk`].
    pub(crate) rows_looked_up: AtomicU64,
}

pub(crate) struct SimulatedSnapshot {
    spaces: SpaceContents,
    epoch: u64,
}

pub(crate) struct SimulatedScan(VecDeque<(Bytes, Bytes)>);

impl SimulatedEngine {
    /// Opens a disk. The second value says whether it is empty.
    pub(crate) fn open(disk: &SimulatedDisk) -> (SimulatedEngine, bool) {
        let mut state = disk.state();
        state.epoch += 1;
        // fjall syncs what it reads at the start, and so does this.
        state.sync();
        let engine = SimulatedEngine {
            disk: disk.clone(),
            epoch: Mutex::new(state.epoch),
            path: PathBuf::from("a simulated disk"),
            range_deletions_read: AtomicU64::new(0),
            rows_looked_up: AtomicU64::new(0),
        };
        (engine, state.synced.is_empty())
    }

    fn epoch(&self) -> u64 {
        *self.epoch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(
        &self,
        work: impl FnOnce(&mut SimulatedDiskState) -> Result<R, StorageError>,
    ) -> Result<R, StorageError> {
        let mut state = self.disk.state();
        if state.epoch != self.epoch() {
            return Err(StorageError::Closed);
        }
        work(&mut state)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn mark_made(&self) -> Result<(), StorageError> {
        Ok(())
    }

    pub(crate) fn disk_takes_writes(&self) -> bool {
        self.with(|state| Ok(!state.is_full)).unwrap_or(false)
    }

    pub(crate) fn reopen(&self) -> Result<(), StorageError> {
        let mut epoch = self.epoch.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.disk.state();
        if state.epoch != *epoch {
            return Err(StorageError::Closed);
        }
        if state.is_full {
            return Err(StorageError::Io("no space left on device".to_owned()));
        }
        state.epoch += 1;
        *epoch = state.epoch;
        state.is_poisoned = false;
        state.sync();
        Ok(())
    }

    pub(crate) fn close(&self) {
        let _ = self.sync();
        let _ = self.with(|state| {
            state.epoch += 1;
            state.is_poisoned = false;
            Ok(())
        });
    }

    pub(crate) fn spaces(&self) -> Result<Vec<SpaceId>, StorageError> {
        self.with(|state| Ok(state.seen.keys().copied().collect()))
    }

    pub(crate) fn create_space(&self, id: SpaceId, _: SpaceOptions) -> Result<(), StorageError> {
        self.with(|state| {
            for spaces in [&mut state.synced, &mut state.seen] {
                spaces.entry(id).or_default();
            }
            Ok(())
        })
    }

    pub(crate) fn drop_space(&self, id: SpaceId) -> Result<(), StorageError> {
        self.with(|state| {
            state.synced.remove(&id);
            state.seen.remove(&id);
            Ok(())
        })
    }

    pub(crate) fn commit(
        &self,
        batch: EntryBatch,
        sync: SyncTarget,
        _: i64,
    ) -> Result<(), StorageError> {
        self.with(|state| {
            state.check_writable()?;
            apply(&mut state.seen, &batch);
            state.tail.push(batch);
            if sync == SyncTarget::Disk {
                state.sync();
            }
            Ok(())
        })
    }

    /// Commits a batch that may be in the journal for a while before it is synced, seen and
    /// acknowledged.
    pub(crate) async fn commit_slowly(
        &self,
        batch: EntryBatch,
        sync: SyncTarget,
    ) -> Result<(), StorageError> {
        let slow_micros = self.with(|state| {
            state.check_writable()?;
            state.tail.push(batch.clone());
            state.in_flight = Some(batch);
            Ok(match state.below(SLOW_ONE_IN) {
                0 => state.below(LATENCY_MICROS_MAX),
                _ => 0,
            })
        })?;
        if slow_micros > 0 {
            tokio::time::sleep(Duration::from_micros(slow_micros)).await;
        }
        self.with(|state| {
            if let Some(batch) = state.in_flight.take() {
                apply(&mut state.seen, &batch);
            }
            if sync == SyncTarget::Disk {
                state.sync();
            }
            Ok(())
        })
    }

    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        self.with(|state| {
            state.check_writable()?;
            state.sync();
            Ok(())
        })
    }

    pub(crate) fn probe(&self) -> Result<(), StorageError> {
        self.with(|state| match state.is_poisoned {
            true => Err(StorageError::ReadOnly("an earlier write failed".to_owned())),
            false => Ok(()),
        })
    }

    pub(crate) fn snapshot(&self) -> Result<SimulatedSnapshot, StorageError> {
        self.with(|state| {
            Ok(SimulatedSnapshot {
                spaces: state.seen.clone(),
                epoch: state.epoch,
            })
        })
    }

    pub(crate) fn get(&self, space: SpaceId, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        self.with(|state| Ok(space_of(&state.seen, space)?.get(key).cloned()))
    }

    pub(crate) fn get_at(
        &self,
        snapshot: &SimulatedSnapshot,
        space: SpaceId,
        key: &[u8],
    ) -> Result<Option<Bytes>, StorageError> {
        self.check(snapshot)?;
        Ok(space_of(&snapshot.spaces, space)?.get(key).cloned())
    }

    pub(crate) fn scan_at(
        &self,
        snapshot: &SimulatedSnapshot,
        space: SpaceId,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Result<SimulatedScan, StorageError> {
        self.check(snapshot)?;
        let (from, to) = &range;
        let is_empty = match (from, to) {
            (Bound::Included(from), Bound::Excluded(to) | Bound::Included(to))
            | (Bound::Excluded(from), Bound::Included(to)) => from > to,
            (Bound::Excluded(from), Bound::Excluded(to)) => from >= to,
            _ => false,
        };
        if is_empty {
            return Ok(SimulatedScan(VecDeque::new()));
        }
        let slices = (
            from.as_ref().map(Vec::as_slice),
            to.as_ref().map(Vec::as_slice),
        );
        let entries = space_of(&snapshot.spaces, space)?.range::<[u8], _>(slices);
        Ok(SimulatedScan(
            entries
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        ))
    }

    /// Fails for a snapshot from before a reopening, as such a snapshot takes no new reads with
    /// fjall.
    fn check(&self, snapshot: &SimulatedSnapshot) -> Result<(), StorageError> {
        self.with(|state| match state.epoch == snapshot.epoch {
            true => Ok(()),
            false => Err(StorageError::Io("the storage was reopened".to_owned())),
        })
    }

    pub(crate) fn compact(&self, _: SpaceId) -> Result<(), StorageError> {
        Ok(())
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        0
    }
}

fn space_of(spaces: &SpaceContents, id: SpaceId) -> Result<&SpaceEntries, StorageError> {
    spaces
        .get(&id)
        .ok_or_else(|| StorageError::NoSuchTable(id.table().0.to_string()))
}

impl Iterator for SimulatedScan {
    type Item = Result<(Bytes, Bytes), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.pop_front().map(Ok)
    }
}

impl DoubleEndedIterator for SimulatedScan {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.pop_back().map(Ok)
    }
}
