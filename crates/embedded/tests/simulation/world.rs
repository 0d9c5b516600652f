//! One run: processes of the service on one disk, one after another, and all that happens to them.

mod actions;
mod checks;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cpu_scheduler::{CpuScheduler, Permit, WorkClass};
use cql::error::CqlError;
use embedded::Embedded;
use index::SimilarityFunction;
use index::score::score;
use node::database::CqlDatabase;
use node::system::SystemTables;
use platform::Simulation;
use schema::TableId;
use storage::{
    REPAIR_COUNTERS, SimulatedDisk, Storage, StorageError, StorageOptions, WriteAvailability,
};
use store::{
    ApiListeners, FullVectorPlacement, IndexesOptions, MemoryOptions, Store, StoreHandle,
    StoreOptions,
};
use store_api::{
    InProcessService, IndexServices, KeyValue, NearestRows, VectorSearch, WordMatches,
};
use tasks::{TaskRegistry, TaskScope, TaskSpec};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::Broken;
use crate::clock::{SimulatedClock, pass};
use crate::database::Faulty;
use crate::model::{Effect, Fate, Key, Model, Sent, Shown};
use crate::random::Random;
use crate::searches::{Column, Found, Search};
use crate::table;
use crate::trace::Trace;

/// The most processes of a run.
const PROCESSES_MAX: u64 = 4;
/// The most actions of a process.
const ACTIONS_MAX: u64 = 30;
/// The time within which everything expected has to happen.
const PATIENCE: Duration = Duration::from_secs(180);
/// Number of searches with filters at the end of a run.
const FILTERS_CHECKED: usize = 4;
/// Number of partition keys: keys are below it.
const PARTITIONS: u64 = 3;
/// Number of clustering keys: keys are below it.
const CLUSTERINGS: u64 = 4;
/// The limit of the memory of a process.
const MEMORY_BYTES: u64 = 1 << 30;
const S: i64 = 1_000_000;

type Failure = String;

/// The rows of the log that were read up to a time.
struct Read {
    log: TableId,
    up_to_micros: i64,
    rows: Vec<(i64, Bytes)>,
}

/// A run.
pub struct World {
    random: Random,
    broken: Broken,
    disk: SimulatedDisk,
    files: Simulation,
    clock: Arc<SimulatedClock>,
    directory: TempDir,
    placement: FullVectorPlacement,
    model: Arc<Mutex<Model>>,
    trace: Trace,
    reads: Vec<Read>,
    /// The version of the last index.
    version: u128,
    has_index: bool,
    /// The memory in use, which goes up to the limit and beyond.
    used_bytes: Arc<AtomicU64>,
    /// The number of the last write.
    writes: i64,
    /// The latest timestamp of the server's own that was acknowledged.
    given: Arc<AtomicI64>,
    /// The number of rows that searches with filters have found, by the column and by whether the
    /// index may have answered alone.
    found: BTreeMap<(Column, bool), usize>,
}

/// The end of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Crash,
    Stop,
    Last,
}

/// The parts that run in a process.
struct Process {
    storage: Storage,
    store: StoreHandle,
    local: Arc<dyn InProcessService>,
    /// The parts of the node that answer statements.
    node: CqlDatabase,
    turns: CpuScheduler,
    /// The only turn for changes of graphs, while none gets any.
    held: Option<Permit>,
}

impl World {
    pub fn new(seed: u64, broken: Broken) -> World {
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(random.seed());
        match broken {
            Broken::DiskLies => disk.ignore_syncs(),
            Broken::TimeIsForgotten => disk.lose_key_at_crashes(b"cdc-mark"),
            _ => {}
        }
        // The files lie in memory, where the machine has such a place.
        let shared_memory = PathBuf::from("/dev/shm");
        let directory = match shared_memory.is_dir() {
            true => tempfile::tempdir_in(shared_memory),
            false => tempfile::tempdir(),
        };
        let placement = match random.one_in(3) {
            true => FullVectorPlacement::File,
            false => FullVectorPlacement::Memory,
        };
        let clock = SimulatedClock::new();
        World {
            files: Simulation::new(random.seed()),
            random,
            broken,
            disk,
            trace: Trace::new(clock.clone()),
            clock,
            directory: directory.expect("a directory"),
            placement,
            model: Arc::default(),
            reads: Vec::new(),
            version: 0,
            has_index: false,
            used_bytes: Arc::default(),
            writes: 0,
            given: Arc::new(AtomicI64::new(i64::MIN)),
            found: BTreeMap::new(),
        }
    }

    /// The trace, and the number of rows that searches with filters have found, by the column and
    /// by whether the index may have answered alone.
    pub fn into_results(self) -> (Vec<String>, BTreeMap<(Column, bool), usize>) {
        (self.trace.lines(), self.found)
    }

    fn tell(&self, line: String) {
        self.trace.tell(line);
    }

    /// Runs one process after another.
    pub fn run(&mut self) -> Result<(), Failure> {
        let entered = self.files.enter();
        let processes = 1 + self.random.below(PROCESSES_MAX);
        for process in 1..=processes {
            let end = match (process == processes, self.random.one_in(3)) {
                (true, _) => End::Last,
                (false, true) => End::Stop,
                (false, false) => End::Crash,
            };
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .expect("a runtime starts");
            let (clock, disk) = (self.clock.clone(), self.disk.clone());
            let ran = runtime.block_on(async {
                clock.begin();
                let ran = self.run_process(end).await;
                clock.end();
                ran
            });
            // Tasks that go on must not write any more.
            disk.crash();
            drop(runtime);
            ran?;
            let lost = self.files.crash();
            self.tell(format!(
                "-- the process ends with a {end:?}, {lost} files suffer"
            ));
            self.between_processes();
        }
        drop(entered);
        Ok(())
    }

    /// The machine is off for a while; files may rot, and its clock may be set.
    fn between_processes(&mut self) {
        if self.random.one_in(3) {
            self.step_clock();
        }
        let off_s = self.random.below(40) as i64;
        self.clock.step(off_s * S);
        if self.random.one_in(4) {
            let mut files = files_below(self.directory.path().join("snapshots"));
            files.sort();
            if !files.is_empty() {
                let at = self.random.below(files.len() as u64) as usize;
                self.rot(&files[at].clone());
            }
        }
    }

    fn rot(&mut self, path: &PathBuf) {
        let Ok(mut bytes) = fs::read(path) else {
            return;
        };
        if bytes.is_empty() {
            return;
        }
        let at = self.random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << self.random.below(8);
        // A file with two names rots under one of them alone.
        let _ = fs::remove_file(path);
        fs::write(path, bytes).expect("a file of our own");
        let name = path.file_name().map(|name| name.to_owned());
        self.tell(format!("-- {name:?} rots"));
    }

    fn step_clock(&mut self) {
        let seconds = self.random.below(7200) as i64 - 3600;
        self.clock.step(seconds * S);
        self.tell(format!("-- the clock is set by {seconds} s"));
    }

    fn memory_is_out(&self) -> bool {
        self.used_bytes.load(Ordering::Relaxed) > MEMORY_BYTES
    }

    /// Sets whether the process has more memory than it may have.
    fn set_memory_out(&self, is_out: bool) {
        let used_bytes = if is_out { 2 * MEMORY_BYTES } else { 0 };
        self.used_bytes.store(used_bytes, Ordering::Relaxed);
        self.tell(format!("-- memory is out: {is_out}"));
    }

    /// Runs a process from the opening of the disk to its end.
    async fn run_process(&mut self, end: End) -> Result<(), Failure> {
        let mut process = self.open().await?;
        self.check_table(&process).await?;
        self.check_log(&process)?;
        let actions = 5 + self.random.below(ACTIONS_MAX);
        for _ in 0..actions {
            if self.random.one_in(6) {
                // Graphs take nothing in for some actions.
                process.held = match process.held.take() {
                    Some(_) => None,
                    None => process.turns.try_acquire(WorkClass::Ingest),
                };
                self.tell(format!("-- the graph is held: {}", process.held.is_some()));
            }
            if self.random.one_in(8) {
                let is_out = self.memory_is_out();
                self.set_memory_out(!is_out);
            }
            self.act(&mut process).await?;
        }
        match end {
            End::Crash => {
                drop(self.send_some(&process)?);
                let millis = self.random.below(100);
                pass(millis).await;
                // Requests that were not answered by now are not answered any more.
                self.disk.crash();
                Ok(())
            }
            End::Stop => {
                process.held = None;
                self.stop(process).await;
                Ok(())
            }
            End::Last => {
                self.heal(&mut process).await?;
                self.check_all(&process).await?;
                self.stop(process).await;
                Ok(())
            }
        }
    }

    /// Stops in the order of the product. The disk may fail meanwhile.
    async fn stop(&self, process: Process) {
        process.store.shutdown().await;
        let closed = process.storage.close().await;
        self.tell(format!("closed: {}", closed.is_ok()));
    }

    async fn open(&mut self) -> Result<Process, Failure> {
        let turns = CpuScheduler::of_threads(1);
        let options = StorageOptions {
            cpu_scheduler: turns.clone(),
            ..StorageOptions::default()
        };
        let storage = Storage::open_simulated(&self.disk, options, self.clock.clone());
        let storage = storage.map_err(|error| format!("the storage does not open: {error}"))?;
        if storage.catalog().table(table::KEYSPACE, "t").is_none() {
            self.version += 1;
            let version = self.version;
            let made = storage.change_catalog(move |catalog| table::create(catalog, version));
            made.await
                .map_err(|error| format!("the table is not made: {error:?}"))?;
        }
        self.has_index = table::log(&storage).is_some();
        let bound = ApiListeners::bind(&[]).await.expect("no listener");
        let local = bound.local();
        let indexes = IndexesOptions {
            directory: self.directory.path().to_owned(),
            vectors: self.placement,
            // A few vectors or all of them may be fresh at a time.
            fresh_bytes_max: match self.random.one_in(3) {
                true => 1000,
                false => 1 << 20,
            },
        };
        let mut options = StoreOptions::embedded(([127, 0, 0, 1], 0).into(), indexes);
        options.turns = turns.clone();
        options.snapshots.interval = Some(Duration::from_secs(3));
        options.snapshots.memory_wait = Duration::ZERO;
        options.memory = MemoryOptions {
            limit_bytes: Some(MEMORY_BYTES),
            check_interval: Duration::from_millis(500),
            reported_bytes: Some(self.used_bytes.clone()),
            ..MemoryOptions::default()
        };
        let database = Embedded::new(storage.clone());
        let database = Faulty::new(database, self.random.seed(), self.broken);
        let store = Store::start_with(bound, Arc::new(database), options);
        let store = store.map_err(|error| format!("the index service does not start: {error}"))?;
        let node = CqlDatabase {
            storage: storage.clone(),
            system: SystemTables::new(),
            stores: IndexServices::Local(local.clone()),
            access: Default::default(),
            timeouts: Default::default(),
        };
        Ok(Process {
            storage,
            node,
            store,
            local,
            turns,
            held: None,
        })
    }
}

/// The similarity scores of the rows that have a vector.
fn scores(rows: &BTreeMap<Key, Shown>) -> BTreeMap<Key, f32> {
    let with_vector = rows.iter().filter_map(|(key, shown)| {
        let [x, y] = table::floats(shown.vector?);
        let distance = (x - 1.0).powi(2) + (y - 1.0).powi(2);
        let scored =
            score(SimilarityFunction::Euclidean, 2, distance).expect("a distance that can be");
        Some((*key, scored.similarity))
    });
    with_vector.collect()
}

/// Whether all that was found is expected, with that score.
fn is_part_of(found: &BTreeMap<Key, f32>, expected: &BTreeMap<Key, f32>) -> bool {
    let mut found = found.iter();
    found.all(|(key, score)| expected.get(key) == Some(score))
}

fn found_scores(found: &NearestRows) -> BTreeMap<Key, f32> {
    let rows = found.keys.iter().zip(&found.similarity_scores);
    rows.map(|(key, score)| (key_of(key), *score)).collect()
}

fn key_of(key: &[KeyValue]) -> Key {
    let int = |value: &KeyValue| match value {
        KeyValue::Cql(value) => i32::from_be_bytes(value[..].try_into().expect("an int")),
        KeyValue::Json(json) => panic!("{json} is of no answer in one process"),
    };
    (int(&key[0]), int(&key[1]))
}

async fn all(answers: Vec<JoinHandle<()>>) {
    for answered in answers {
        let _ = answered.await;
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn files_below(path: PathBuf) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(&path) else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files_below(path),
            false => vec![path],
        })
        .collect()
}
