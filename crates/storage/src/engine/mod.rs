//! The engine below the storage. Only this module calls fjall, so that it can be replaced.
//!
//! The rest of the storage needs of an engine: ordered *spaces* of keys and values, batches that
//! are atomic over all spaces, snapshots, scans in both directions, and a hook that drops useless
//! entries when files are rewritten. One thread writes; any number read.
//!
//! After an I/O error fjall refuses every further write of the open database, while reads go on.
//! [`DiskEngine::reopen`] replaces it with a freshly opened one, and readers wait only for that.
//! Scans of the former database stay valid for the files that they hold; its snapshots take no new
//! reads.
//!
//! In simulations another engine takes fjall's place ([`dispatch`]).

mod directory;
mod dispatch;
mod error;
mod filter;
mod idle;
mod in_memory;
pub(crate) mod journal;
pub(crate) mod manifest;
mod refused_batches;
mod replay;
mod resident;
#[cfg(feature = "simulation")]
mod simulation;
mod space;

use std::collections::HashMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use fjall::{KeyspaceCreateOptions, KvSeparationOptions, PersistMode, Readable};

use crate::StorageError;
pub(crate) use directory::LockedDirectory;
pub(crate) use dispatch::{Engine, EntryScan, SpacesSnapshot};
pub(crate) use error::{damage_error, fault_error};
use error::{open_error, read_error, write_error};
pub(crate) use filter::{
    CompactionFilterFn, CompactionFilterSource, EntryLocation, EntryValue, EntryVerdict,
};
use idle::IdleSpaces;
pub(crate) use in_memory::{DeadEntryScan, ResidentChange};
use journal::ReplayableJournals;
use replay::JournalReadProgress;
use resident::{InMemorySpaces, ResidentMap, ResidentRange, SpacesVersion};
#[cfg(feature = "simulation")]
pub use simulation::SimulatedDisk;
pub(crate) use space::SpaceId;

/// Values of at least this size are stored apart from their keys, in spaces that separate values.
const SEPARATED_BYTES_MIN: u32 = 1024;
const WORKERS: usize = 2;
/// Bytes of journals above which fjall writes out the memtables that still need the old ones.
/// Journals are read at every start.
const JOURNALS_BYTES_MAX: u64 = 256 << 20;
/// The most memtables of a space that may wait to be written out when a commit begins. fjall stops
/// a writer at 4 until one is written, which is for ever if its workers have died of a full disk. A
/// commit adds at most two.
const SEALED_MEMTABLES_MAX: usize = 1;
/// The most sorted runs on the first level when a commit begins. fjall stops a writer at 30,
/// likewise.
const FIRST_LEVEL_RUNS_MAX: usize = 24;
/// Bytes that the space of the catalog gathers in memory. Each commit writes to it, and each change
/// of the schema, over what was there before.
const META_BYTES_MAX: u64 = 4 << 20;
/// The least bytes that fjall takes as the bound of all memtables.
const WRITE_BUFFER_BYTES_MIN: u64 = 1 << 20;
/// Bytes that an entry takes in memory besides its key and its value, about.
const ENTRY_BYTES: u64 = 128;
/// The most times that a snapshot is taken again, as a batch was written meanwhile.
const SNAPSHOT_TRIES_MAX: usize = 10_000;
/// Bytes of the newest journal up to which a start leaves it as it is. Reading so few takes a
/// moment; of more the next start shall read nothing again.
const REPLAYED_BYTES_LEFT: u64 = 1 << 20;
const BACK_PRESSURE_POLL: std::time::Duration = std::time::Duration::from_millis(2);

/// The options that count for all spaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineOptions {
    pub cache_bytes: u64,
    /// Bytes that a space gathers in memory before they are written out.
    pub memtable_bytes: u64,
    /// Bytes that all spaces together gather in memory. The largest are written out at half of it,
    /// and writes wait beyond it.
    pub write_buffer_bytes: u64,
    /// Bytes that the spaces in memory may take together.
    pub resident_bytes: u64,
}

/// The options of a new space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpaceOptions {
    /// Whether large values are stored apart, so that rewriting keys does not move them.
    pub separate_values: bool,
    /// Whether all entries are held in memory, too, where reads find them.
    pub resident: bool,
}

/// The place that a batch must have reached when its commit returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncTarget {
    /// The disk.
    Disk,
    /// The kernel's memory.
    Kernel,
}

/// Changes to any spaces that are applied together; `None` removes a key.
pub(crate) type EntryBatch = Vec<(SpaceId, Bytes, Option<Bytes>)>;

/// A database of fjall in a data directory.
pub(crate) struct DiskEngine {
    directory: LockedDirectory,
    options: EngineOptions,
    examiners: CompactionFilterSource,
    /// The open database; `None` after a reopening that failed, and once it is closed.
    open: RwLock<Option<OpenDatabase>>,
    idle: Mutex<IdleSpaces>,
    resident: InMemorySpaces,
    /// Counts the reopenings, so that old snapshots are recognised.
    incarnation: AtomicU64,
    is_closed: AtomicBool,
    /// The number of the last batch that was acknowledged.
    written: AtomicU64,
    /// The number of a batch up to which all batches are on the disk.
    synced: AtomicU64,
    /// Bytes of journals that were replayed when the directory was opened.
    pub(crate) replayed_bytes: u64,
    /// Range deletions that were read since the start.
    pub(crate) range_deletions_read: AtomicU64,
    /// Rows that were looked up by their keys since the start.
    pub(crate) rows_looked_up: AtomicU64,
}

/// The occasion on which a database is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenReason {
    /// The start of the process.
    First,
    /// After an I/O error. The disk may have no room for what is in memory.
    Again,
}

struct OpenDatabase {
    database: fjall::Database,
    spaces: HashMap<SpaceId, fjall::Keyspace>,
}

/// A snapshot of all spaces.
pub(crate) struct DiskSnapshot {
    snapshot: fjall::Snapshot,
    incarnation: u64,
    /// The spaces in memory at that moment; `None` if there are none.
    resident: Option<Arc<SpacesVersion>>,
}

/// A scan over the keys and values of a range, from either end.
pub(crate) enum DiskScan {
    Files(fjall::Iter),
    Resident(ResidentRange),
}

/// A scan over the keys of a range, each with the length of its value.
pub(crate) enum DiskSizes {
    /// The range twice, as one pass gives either the key or the length, unless it reads the value.
    Files {
        keys: fjall::Iter,
        lengths: fjall::Iter,
    },
    Resident(ResidentRange),
}

impl DiskEngine {
    pub(crate) fn open(
        directory: LockedDirectory,
        options: EngineOptions,
        examiners: CompactionFilterSource,
    ) -> Result<DiskEngine, StorageError> {
        let (opened, prepared) =
            OpenDatabase::open(&directory, options, &examiners, OpenReason::First)?;
        let number = prepared.last_number;
        Ok(DiskEngine {
            directory,
            options,
            examiners,
            open: RwLock::new(Some(opened)),
            idle: Mutex::default(),
            resident: InMemorySpaces::new(options.resident_bytes),
            incarnation: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            written: AtomicU64::new(number),
            // fjall syncs the journal when it opens.
            synced: AtomicU64::new(number),
            replayed_bytes: prepared.bytes,
            range_deletions_read: AtomicU64::new(0),
            rows_looked_up: AtomicU64::new(0),
        })
    }

    fn directory(&self) -> &LockedDirectory {
        &self.directory
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Marks the directory as one that holds data from now on.
    pub(crate) fn mark_made(&self) -> Result<(), StorageError> {
        self.directory.mark_made()
    }

    /// Whether the disk takes writes.
    pub(crate) fn disk_takes_writes(&self) -> bool {
        directory::probe_disk(self.directory.path()).is_ok()
    }

    /// Closes the database and opens it again, so that it takes writes again after an I/O error. A
    /// refused batch is dropped. If opening fails, the database stays closed until the next
    /// attempt. No space is in memory afterwards ([`DiskEngine::hold`]).
    pub(crate) fn reopen(&self) -> Result<(), StorageError> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        // fjall writes what it had buffered of a refused batch when it closes the journal.
        refused_batches::note(self.path(), self.written.load(Ordering::Acquire))
            .map_err(|error| open_error(self.path(), fjall::Error::Io(error)))?;
        self.incarnation.fetch_add(1, Ordering::Relaxed);
        // The old database must let go of its files first.
        *open = None;
        self.resident.clear();
        let (opened, prepared) = OpenDatabase::open(
            &self.directory,
            self.options,
            &self.examiners,
            OpenReason::Again,
        )?;
        let number = prepared.last_number;
        *open = Some(opened);
        self.written.store(number, Ordering::Release);
        self.synced.store(number, Ordering::Release);
        Ok(())
    }

    /// Writes out what is in memory, closes the database for good and unlocks the directory. If
    /// writing out succeeds, the journals are emptied and the next start reads none; if not, they
    /// stay.
    pub(crate) fn close(&self) {
        let flushed = self.flush();
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        self.is_closed.store(true, Ordering::Relaxed);
        let database = self.directory.database();
        let settled = if flushed.is_ok() {
            *open = None;
            journal::empty(&database)
        } else {
            let acknowledged = self.written.load(Ordering::Acquire);
            let noted = refused_batches::note(self.path(), acknowledged);
            *open = None;
            // If there is no room for the note, refused batches are cut off all the same.
            noted
                .and_then(|()| refused_batches::settle(self.path(), &database))
                .or_else(|_| journal::cut_refused(&database, acknowledged).map(drop))
        };
        if let Err(error) = settled {
            tracing::warn!(%error, "the journals could not be put in order when the storage was closed");
        }
        self.directory.unlock();
    }

    /// Writes out what all spaces hold in memory, and waits until it is on the disk.
    fn flush(&self) -> Result<(), StorageError> {
        self.with(|open| {
            for keyspace in open.spaces.values() {
                keyspace.rotate_memtable().map_err(write_error)?;
            }
            while open
                .spaces
                .values()
                .any(|keyspace| keyspace.sealed_memtable_count() > 0)
            {
                // An error here says that the workers have died.
                open.database
                    .persist(PersistMode::Buffer)
                    .map_err(write_error)?;
                std::thread::sleep(BACK_PRESSURE_POLL);
            }
            Ok(())
        })
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<OpenDatabase>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(
        &self,
        work: impl FnOnce(&OpenDatabase) -> Result<R, StorageError>,
    ) -> Result<R, StorageError> {
        match &*self.read() {
            Some(open) => work(open),
            None => Err(self.not_open()),
        }
    }

    fn not_open(&self) -> StorageError {
        if self.is_closed.load(Ordering::Relaxed) {
            return StorageError::Closed;
        }
        StorageError::Io(format!(
            "{} could not be opened again after a disk error; opening is tried every second",
            self.path().display()
        ))
    }

    pub(crate) fn spaces(&self) -> Result<Vec<SpaceId>, StorageError> {
        self.with(|open| Ok(open.spaces.keys().copied().collect()))
    }

    pub(crate) fn create_space(
        &self,
        id: SpaceId,
        options: SpaceOptions,
    ) -> Result<(), StorageError> {
        let keyspace = self.with(|open| {
            if open.spaces.contains_key(&id) {
                return Ok(None);
            }
            let create_options = || create_options(options, self.options.memtable_bytes);
            let keyspace = open
                .database
                .keyspace(&id.name(), create_options)
                .map_err(write_error)?;
            // fjall syncs what is in the new folder, but not the folders' own entries.
            let folder = keyspace.path();
            [Some(folder), folder.parent()]
                .into_iter()
                .flatten()
                .try_for_each(directory::sync_folder)
                .map_err(|error| write_error(error.into()))?;
            Ok(Some(keyspace))
        })?;
        // One that is there without being held was left by an attempt that failed, without rows.
        if options.resident && self.resident.newest().space(id).is_none() {
            self.resident.add(id, self.resident.builder().build());
        }
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if let (Some(open), Some(keyspace)) = (&mut *open, keyspace) {
            open.spaces.insert(id, keyspace);
        }
        Ok(())
    }

    /// Drops a space. Its files are removed once they have no readers.
    pub(crate) fn drop_space(&self, id: SpaceId) -> Result<(), StorageError> {
        // The lock is released before `with`, which takes it again.
        let removed = {
            let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
            open.as_mut().and_then(|open| open.spaces.remove(&id))
        };
        self.resident.drop_space(id);
        match removed {
            Some(keyspace) => {
                self.with(|open| open.database.delete_keyspace(keyspace).map_err(write_error))
            }
            None => Ok(()),
        }
    }

    /// Applies a batch, whole or not at all. After an error it is not applied, unless the process
    /// is killed before the journal can be changed again. Only one thread may call this.
    pub(crate) fn commit(
        &self,
        batch: EntryBatch,
        sync: SyncTarget,
        now_micros: i64,
    ) -> Result<(), StorageError> {
        self.with(|open| {
            let mut touched: Vec<SpaceId> = batch.iter().map(|(space, ..)| *space).collect();
            touched.sort_unstable();
            touched.dedup();
            open.wait_for_write_buffers(self.options.write_buffer_bytes, &batch)?;
            for space in touched {
                open.wait_for_room(space)?;
            }
            let count = batch.len() + 1;
            let mut all = fjall::OwnedWriteBatch::with_capacity(open.database.clone(), count)
                .durability(Some(match sync {
                    SyncTarget::Disk => PersistMode::SyncData,
                    SyncTarget::Kernel => PersistMode::Buffer,
                }));
            let number = self.written.load(Ordering::Acquire) + 1;
            // Before the commit: a reader may take a snapshot that shows the batch before `commit`
            // returns.
            let is_resident = self.resident.prepare(number, &batch);
            let record = journal::BatchRecord {
                number,
                synced_through: self.synced.load(Ordering::Acquire),
                sequence_floor: open.database.seqno(),
                time_micros: now_micros,
            };
            all.insert(
                open.space(SpaceId::META)?,
                journal::RECORD_KEY,
                record.encode(),
            );
            for (space, key, value) in batch {
                let keyspace = open.space(space)?;
                match value {
                    Some(value) => all.insert(keyspace, key, value),
                    None => all.remove(keyspace, key),
                }
            }
            match all.commit() {
                Ok(()) => {
                    self.written.store(number, Ordering::Release);
                    if is_resident {
                        self.resident.settle();
                    }
                    if sync == SyncTarget::Disk {
                        self.synced.fetch_max(number, Ordering::AcqRel);
                    }
                    Ok(())
                }
                Err(error) => {
                    if is_resident {
                        self.resident.withdraw();
                    }
                    self.withdraw(number - 1);
                    Err(write_error(error))
                }
            }
        })
    }

    /// Takes a refused batch out of the journal before its writer gets the error, so that it has no
    /// effect after a kill. If the disk refuses that too, it is done when the engine is closed or
    /// opened again.
    fn withdraw(&self, acknowledged: u64) {
        if let Err(error) = journal::cut_refused(&self.directory.database(), acknowledged) {
            tracing::warn!(%error, "a refused write could not be taken out of the journal yet");
        }
    }

    /// Syncs all committed batches to the disk.
    pub(crate) fn sync(&self) -> Result<(), StorageError> {
        self.with(|open| {
            let number = self.written.load(Ordering::Acquire);
            open.database
                .persist(PersistMode::SyncData)
                .map_err(write_error)?;
            self.synced.fetch_max(number, Ordering::AcqRel);
            Ok(())
        })
    }

    /// Fails if the engine would take no write, as after its workers have died.
    pub(crate) fn probe(&self) -> Result<(), StorageError> {
        self.with(|open| {
            open.database
                .persist(PersistMode::Buffer)
                .map_err(write_error)
        })
    }

    pub(crate) fn snapshot(&self) -> Result<DiskSnapshot, StorageError> {
        self.with(|open| {
            for _ in 0..SNAPSHOT_TRIES_MAX {
                let snapshot = open.database.snapshot();
                let resident = match self.resident.is_empty() {
                    true => None,
                    // A batch may have been written since. Then it is too old.
                    false => match self.resident.at(number_in(open, &snapshot)?) {
                        Some(state) => Some(state),
                        None => continue,
                    },
                };
                return Ok(DiskSnapshot {
                    snapshot,
                    incarnation: self.incarnation.load(Ordering::Relaxed),
                    resident,
                });
            }
            Err(StorageError::Io(
                "writes went on too fast to see one moment of all tables: read again".to_owned(),
            ))
        })
    }

    /// The newest value of a key. Only the thread that writes may get those of spaces in memory.
    pub(crate) fn get(&self, space: SpaceId, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        if let Some(map) = self.resident.newest().space(space) {
            return Ok(map.get(key).cloned());
        }
        self.with(|open| {
            let value = open.space(space)?.get(key).map_err(read_error)?;
            Ok(value.map(Bytes::from))
        })
    }

    pub(crate) fn get_at(
        &self,
        snapshot: &DiskSnapshot,
        space: SpaceId,
        key: &[u8],
    ) -> Result<Option<Bytes>, StorageError> {
        self.with_snapshot(snapshot, |open| {
            if let Some(map) = snapshot.held(space) {
                return Ok(map.get(key).cloned());
            }
            let value = snapshot
                .snapshot
                .get(open.space(space)?, key)
                .map_err(read_error)?;
            Ok(value.map(Bytes::from))
        })
    }

    pub(crate) fn scan_at(
        &self,
        snapshot: &DiskSnapshot,
        space: SpaceId,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Result<DiskScan, StorageError> {
        self.with_snapshot(snapshot, |open| {
            if let Some(map) = snapshot.held(space) {
                return Ok(DiskScan::Resident(map.range(range)));
            }
            let keyspace = open.space(space)?;
            let files = snapshot.snapshot.range::<Vec<u8>, _>(keyspace, range);
            Ok(DiskScan::Files(files))
        })
    }

    pub(crate) fn sizes_at(
        &self,
        snapshot: &DiskSnapshot,
        space: SpaceId,
        range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> Result<DiskSizes, StorageError> {
        self.with_snapshot(snapshot, |open| {
            if let Some(map) = snapshot.held(space) {
                return Ok(DiskSizes::Resident(map.range(range)));
            }
            let keyspace = open.space(space)?;
            let snapshot = &snapshot.snapshot;
            Ok(DiskSizes::Files {
                keys: snapshot.range::<Vec<u8>, _>(keyspace, range.clone()),
                lengths: snapshot.range::<Vec<u8>, _>(keyspace, range),
            })
        })
    }

    fn with_snapshot<R>(
        &self,
        snapshot: &DiskSnapshot,
        work: impl FnOnce(&OpenDatabase) -> Result<R, StorageError>,
    ) -> Result<R, StorageError> {
        self.with(|open| {
            if snapshot.incarnation != self.incarnation.load(Ordering::Relaxed) {
                return Err(StorageError::Io(
                    "the storage was reopened after a disk error while this was read: read again"
                        .to_owned(),
                ));
            }
            work(open)
        })
    }

    /// Writes out what a space holds in memory, and rewrites all its files without the entries that
    /// may be dropped.
    pub(crate) fn compact(&self, space: SpaceId) -> Result<(), StorageError> {
        // Cloned, as a lock held during the whole compaction would keep the database from being
        // reopened.
        let keyspace = self.with(|open| open.space(space).cloned())?;
        keyspace.rotate_memtable().map_err(write_error)?;
        while keyspace.sealed_memtable_count() > 0 {
            self.probe()?;
            std::thread::sleep(BACK_PRESSURE_POLL);
        }
        keyspace.major_compact().map_err(write_error)
    }

    /// Bytes of rows that are in memory: those that have not been written out, and those that were
    /// while readers hold them.
    pub(crate) fn write_buffer_bytes(&self) -> u64 {
        self.with(|open| Ok(open.database.memtable_bytes()))
            .unwrap_or(0)
    }

    /// Bytes that rows waiting to be written out, and cached blocks, may take in addition to those
    /// that they take now.
    pub(crate) fn bytes_to_come(&self) -> u64 {
        let bound_bytes = self.options.write_buffer_bytes.max(WRITE_BUFFER_BYTES_MIN);
        let to_come = self.with(|open| {
            let buffers = bound_bytes.saturating_sub(open.database.memtable_bytes());
            let cache = open.database.cache_capacity();
            Ok(buffers + cache.saturating_sub(open.database.cache_size()))
        });
        // A database that is not open takes nothing.
        to_come.unwrap_or(0)
    }

    /// Has each space written out that was not written to for so many calls, and that of the
    /// catalog where it is large. Lets go of what was written out while a reader needed it.
    pub(crate) fn write_out_idle(&self, calls: u32) {
        // A database that is not open has nothing in memory.
        let _ = self.with(|open| {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            for space in idle.poll(&open.spaces, calls) {
                open.space(space)?.request_flush();
            }
            let meta = open.space(SpaceId::META)?;
            if meta.active_memtable_bytes() > META_BYTES_MAX {
                meta.request_flush();
            }
            open.database.release_flushed();
            Ok(())
        });
    }

    pub(crate) fn disk_bytes(&self) -> u64 {
        self.with(|open| open.database.disk_space().map_err(read_error))
            .unwrap_or(0)
    }
}

impl OpenDatabase {
    fn open(
        directory: &LockedDirectory,
        options: EngineOptions,
        examiners: &CompactionFilterSource,
        opening: OpenReason,
    ) -> Result<(OpenDatabase, ReplayableJournals), StorageError> {
        let path: PathBuf = directory.database();
        refused_batches::settle(directory.path(), &path)
            .map_err(|error| open_error(&path, fjall::Error::Io(error)))?;
        // fjall deletes and cuts what it does not understand, so manifests and journals are judged
        // before.
        manifest::verify(&path).map_err(fault_error)?;
        let failed = |error| open_error(&path, fjall::Error::Io(error));
        let on_disk = journal::bytes_on_disk(&path).map_err(failed)?;
        let check = JournalReadProgress::begin("checking the journals", on_disk);
        let prepared = journal::prepare(&path, &mut |bytes| check.add(bytes))
            .map_err(failed)?
            .map_err(|damage| damage_error(directory.path(), &damage))?;
        let replay = Arc::new(JournalReadProgress::begin(
            "replaying the journals",
            prepared.bytes,
        ));
        let replayed = Arc::clone(&replay);
        let mut builder = fjall::Database::builder(&path)
            .cache_size(options.cache_bytes)
            .worker_threads(WORKERS)
            .max_journaling_size(JOURNALS_BYTES_MAX)
            .max_write_buffer_size(Some(options.write_buffer_bytes.max(WRITE_BUFFER_BYTES_MIN)))
            .journal_compression(fjall::CompressionType::None)
            .with_compaction_filter_factories(filter::assigner(Arc::clone(examiners)))
            .on_replay(Arc::new(move |bytes| replayed.add(bytes)));
        if opening == OpenReason::First {
            builder = builder.flush_replayed_above(REPLAYED_BYTES_LEFT);
        }
        let database = builder.open().map_err(|error| open_error(&path, error))?;
        replay.end("the journals are replayed");
        let mut spaces = HashMap::new();
        for name in database.list_keyspace_names() {
            let id = SpaceId::parse(&name).ok_or_else(|| {
                StorageError::Corrupt(format!("{} holds a foreign space {name:?}", path.display()))
            })?;
            let keyspace = database
                .keyspace(&name, KeyspaceCreateOptions::default)
                .map_err(|error| open_error(&path, error))?;
            spaces.insert(id, keyspace);
        }
        Ok((OpenDatabase { database, spaces }, prepared))
    }

    fn space(&self, id: SpaceId) -> Result<&fjall::Keyspace, StorageError> {
        self.spaces
            .get(&id)
            .ok_or_else(|| StorageError::NoSuchTable(id.table().0.to_string()))
    }

    /// Waits until the spaces together have room in memory for a batch.
    fn wait_for_write_buffers(
        &self,
        bound_bytes: u64,
        batch: &EntryBatch,
    ) -> Result<(), StorageError> {
        let most_bytes = most_before(batch, bound_bytes.max(WRITE_BUFFER_BYTES_MIN));
        while self.database.unflushed_bytes() > most_bytes {
            // An error here says that the workers have died.
            self.database
                .persist(PersistMode::Buffer)
                .map_err(write_error)?;
            self.database.relieve_write_buffers();
            std::thread::sleep(BACK_PRESSURE_POLL);
        }
        Ok(())
    }

    fn wait_for_room(&self, id: SpaceId) -> Result<(), StorageError> {
        let keyspace = self.space(id)?;
        while keyspace.sealed_memtable_count() > SEALED_MEMTABLES_MAX
            || keyspace.l0_table_count() > FIRST_LEVEL_RUNS_MAX
        {
            // An error here says that the workers have died.
            self.database
                .persist(PersistMode::Buffer)
                .map_err(write_error)?;
            std::thread::sleep(BACK_PRESSURE_POLL);
        }
        Ok(())
    }
}

impl Iterator for DiskScan {
    type Item = Result<(Bytes, Bytes), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            DiskScan::Files(files) => files.next().map(pair),
            DiskScan::Resident(range) => range.next().map(Ok),
        }
    }
}

impl DoubleEndedIterator for DiskScan {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            DiskScan::Files(files) => files.next_back().map(pair),
            DiskScan::Resident(range) => range.next_back().map(Ok),
        }
    }
}

impl Iterator for DiskSizes {
    type Item = Result<(Bytes, u64), StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            DiskSizes::Files { keys, lengths } => Some(size(keys.next()?, lengths.next()?)),
            DiskSizes::Resident(range) => {
                let (key, value) = range.next()?;
                Some(Ok((key, value.len() as u64)))
            }
        }
    }
}

impl DiskSnapshot {
    /// A space that is in memory.
    fn held(&self, space: SpaceId) -> Option<&ResidentMap> {
        self.resident.as_ref()?.space(space)
    }
}

/// The number of the last batch that a snapshot shows.
fn number_in(open: &OpenDatabase, snapshot: &fjall::Snapshot) -> Result<u64, StorageError> {
    let record = snapshot
        .get(open.space(SpaceId::META)?, journal::RECORD_KEY)
        .map_err(read_error)?;
    Ok(record
        .and_then(|bytes| journal::BatchRecord::decode(&bytes))
        .map_or(0, |record| record.number))
}

fn pair(guard: fjall::Guard) -> Result<(Bytes, Bytes), StorageError> {
    let (key, value) = guard.into_inner().map_err(read_error)?;
    Ok((key.into(), value.into()))
}

fn size(key: fjall::Guard, length: fjall::Guard) -> Result<(Bytes, u64), StorageError> {
    let key = key.key().map_err(read_error)?;
    let length = length.size().map_err(read_error)?;
    Ok((key.into(), u64::from(length)))
}

/// The most bytes of rows that may wait to be written out when a batch comes to them. A wait leaves
/// a quarter of the bound at most, so no batch needs more than half.
fn most_before(batch: &EntryBatch, bound_bytes: u64) -> u64 {
    let entries = batch.iter().map(|(_, key, value)| {
        let value = value.as_ref().map_or(0, Bytes::len);
        (key.len() + value) as u64 + ENTRY_BYTES
    });
    bound_bytes - entries.sum::<u64>().min(bound_bytes / 2)
}

fn create_options(options: SpaceOptions, memtable_bytes: u64) -> KeyspaceCreateOptions {
    let all = KeyspaceCreateOptions::default().max_memtable_size(memtable_bytes);
    if options.separate_values {
        all.with_kv_separation(Some(
            KvSeparationOptions::default()
                .separation_threshold(SEPARATED_BYTES_MIN)
                .compression(fjall::CompressionType::None)
                // By default fjall passes over three quarters of the files with garbage, and over
                // all of them if they are few.
                .age_cutoff(1.0),
        ))
    } else {
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_has_its_room_before_it_is_written() {
        const BOUND: u64 = 1 << 20;
        let entry = |bytes| {
            let value = Bytes::from(vec![0; bytes]);
            (SpaceId::META, Bytes::from_static(b"key"), Some(value))
        };
        assert_eq!(most_before(&Vec::new(), BOUND), BOUND);
        let batch = vec![entry(1_000), entry(2_000)];
        let bytes = 3_006 + 2 * ENTRY_BYTES;
        assert_eq!(most_before(&batch, BOUND), BOUND - bytes);
        // A larger one waits until hardly any row waits, and no longer.
        assert_eq!(most_before(&Vec::from([entry(2 << 20)]), BOUND), BOUND / 2);
    }
}
