//! One run: processes of the service on one disk, one after another, and all that happens to them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cql::error::CqlError;
use embedded::Embedded;
use index::Metric;
use index::score::score;
use machine::Simulation;
use node::database::Database;
use node::system::SystemTables;
use schema::TableId;
use storage::{Health, REPAIR_COUNTERS, SimulatedDisk, Storage, StorageError, StorageOptions};
use store::{
    IndexesOptions, Listeners, MemoryOptions, Placement, Store, StoreHandle, StoreOptions,
};
use store_api::{KeyValue, LocalStore, Neighbours, Stores, VectorSearch};
use tasks::{Registry, Scope, Spec};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use turns::{Class, Turn, Turns};
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
    placement: Placement,
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
    local: Arc<dyn LocalStore>,
    /// The parts of the node that answer statements.
    node: Database,
    turns: Turns,
    /// The only turn for changes of graphs, while none gets any.
    held: Option<Turn>,
}

impl World {
    pub fn new(seed: u64, broken: Broken) -> World {
        let mut random = Random::new(seed);
        let disk = SimulatedDisk::new(random.seed());
        match broken {
            Broken::DiskLies => disk.lie(),
            Broken::TimeIsForgotten => disk.forget_at_crashes(b"cdc-mark"),
            _ => {}
        }
        // The files lie in memory, where the machine has such a place.
        let shared_memory = PathBuf::from("/dev/shm");
        let directory = match shared_memory.is_dir() {
            true => tempfile::tempdir_in(shared_memory),
            false => tempfile::tempdir(),
        };
        let placement = match random.one_in(3) {
            true => Placement::File,
            false => Placement::Memory,
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
                    None => process.turns.try_take(Class::Ingest),
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
        let turns = Turns::of_threads(1);
        let options = StorageOptions {
            turns: turns.clone(),
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
        let bound = Listeners::bind(&[]).await.expect("no listener");
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
            told_bytes: Some(self.used_bytes.clone()),
            ..MemoryOptions::default()
        };
        let database = Embedded::new(storage.clone());
        let database = Faulty::new(database, self.random.seed(), self.broken);
        let store = Store::start_with(bound, Arc::new(database), options);
        let store = store.map_err(|error| format!("the index service does not start: {error}"))?;
        let node = Database {
            storage: storage.clone(),
            system: SystemTables::new(),
            stores: Stores::Local(local.clone()),
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

    async fn act(&mut self, process: &mut Process) -> Result<(), Failure> {
        match self.random.below(100) {
            0..55 => {
                let answers = self.send_some(process)?;
                if self.random.one_in(3) {
                    self.search_filtered(process).await?;
                }
                all(answers).await;
                if self.random.one_in(2) {
                    self.search(process).await?;
                    self.search_filtered(process).await?;
                }
            }
            55..75 => {
                let millis = self.random.below(3000);
                pass(millis).await;
            }
            75..78 => self.step_clock(),
            78..82 => {
                let batches = self.random.below(4);
                self.tell(format!("-- a write fails after {batches} batches"));
                self.disk.fail_after(batches);
            }
            82..84 => {
                self.tell("-- the disk is full".to_owned());
                self.disk.set_full(true);
                self.files.set_full(true);
                all(self.send_some(process)?).await;
                let millis = self.random.below(4000);
                pass(millis).await;
                self.disk.set_full(false);
                self.files.set_full(false);
                self.tell("-- there is room again".to_owned());
            }
            84..88 => {
                let steps = self.random.below(30);
                self.tell(format!("-- a file fails after {steps} steps"));
                self.files.fail_after(steps);
            }
            88..91 => {
                self.search(process).await?;
                self.search_filtered(process).await?;
            }
            91..94 => self.read_log(process).await?,
            94 => self.change_index(process).await,
            95 => self.change_secondary(process).await,
            96 => {
                let truncated = process.storage.truncate(table::id()).await;
                self.tell(format!("truncated: {:?}", truncated.is_ok()));
                if truncated.is_ok() {
                    lock(&self.model).truncate();
                    self.search(process).await?;
                }
            }
            _ => {
                self.heal(process).await?;
                self.check_all(process).await?;
            }
        }
        Ok(())
    }

    /// Drops the index, and mostly creates another one in its place.
    async fn change_index(&mut self, process: &Process) {
        self.version += 1;
        let version = (!self.random.one_in(4)).then_some(self.version);
        let changed = process
            .storage
            .change_catalog(move |catalog| table::change_index(catalog, version))
            .await;
        self.tell(format!("index {version:?}: {}", changed.is_ok()));
        if changed.is_ok() {
            self.has_index = version.is_some();
        }
    }

    /// Makes or drops the secondary index, whose column the other index keeps, too.
    async fn change_secondary(&mut self, process: &Process) {
        self.version += 1;
        let version = self.version;
        let changed = process
            .storage
            .change_catalog(move |catalog| table::change_secondary(catalog, version))
            .await;
        self.tell(format!("secondary index: {}", changed.is_ok()));
    }

    /// The effect of some kind of write.
    fn effect(&mut self) -> Effect {
        let key = (
            self.random.below(PARTITIONS) as i32,
            self.random.below(CLUSTERINGS) as i32,
        );
        match self.random.below(20) {
            0..2 => Effect::DeleteRow(key),
            2 => Effect::DeletePartition(key.0),
            3 => {
                let last = key.1 + self.random.below(3) as i32;
                Effect::DeleteRange(key.0, key.1, last)
            }
            4 => Effect::Row {
                key,
                vector: Some(None),
                numbers: [None; 3],
                marker: false,
                ttl_s: None,
            },
            5 | 6 => Effect::Row {
                key,
                vector: None,
                numbers: self.numbers(1),
                marker: self.random.one_in(2),
                ttl_s: self.ttl_s(),
            },
            _ => {
                let element = |random: &mut Random| random.below(200) as i8;
                let vector = [element(&mut self.random), element(&mut self.random)];
                Effect::Row {
                    key,
                    vector: Some(Some(vector)),
                    numbers: self.numbers(2),
                    marker: !self.random.one_in(3),
                    ttl_s: self.ttl_s(),
                }
            }
        }
    }

    /// The numbers of a write: one column in `one_in` gets one, or loses it.
    fn numbers(&mut self, one_in: u64) -> [Option<Option<i32>>; 3] {
        let random = &mut self.random;
        [(); 3].map(|()| {
            let number = random.below(table::NUMBERS_BELOW) as i32;
            let is_there = !random.one_in(8);
            random.one_in(one_in).then_some(is_there.then_some(number))
        })
    }

    fn ttl_s(&mut self) -> Option<u32> {
        let is_to_expire = self.random.one_in(5);
        is_to_expire.then(|| 1 + self.random.below(20) as u32)
    }

    /// Sends some writes at once. The results end with their answers.
    fn send_some(&mut self, process: &Process) -> Result<Vec<JoinHandle<()>>, Failure> {
        let count = 1 + self.random.below(4);
        let mut sent = Vec::new();
        for _ in 0..count {
            let effect = self.effect();
            self.writes += 1;
            let clock = process.storage.clock();
            let is_given = !self.random.one_in(5);
            let timestamp = if is_given {
                clock.next_write_micros()
            } else {
                // This is a time that a client gives; no other write has the same.
                let around_s = match effect.deletes_rows() && self.random.one_in(2) {
                    // The log row of such a deletion is dated ahead.
                    true => self.random.below(5) as i64,
                    false => self.random.below(8000) as i64 - 6000,
                };
                (clock.now_micros() + around_s * S) / S * S + self.writes * 37 % S
            };
            let before = self.given.load(Ordering::Relaxed);
            if is_given && timestamp <= before {
                return Err(format!(
                    "time went back: a write gets {timestamp}, and one was acknowledged with {before}"
                ));
            }
            sent.push(self.send(process, effect, timestamp, is_given));
        }
        Ok(sent)
    }

    fn send(
        &self,
        process: &Process,
        effect: Effect,
        timestamp: i64,
        is_given: bool,
    ) -> JoinHandle<()> {
        let given = self.given.clone();
        let (model, trace) = (self.model.clone(), self.trace.clone());
        let storage = process.storage.clone();
        let number = self.writes;
        let from_s = storage.clock().now_s();
        let at = {
            let mut model = lock(&model);
            model.sent.push(Sent {
                effect: effect.clone(),
                timestamp,
                fate: Fate::Unknown,
                within_s: (from_s, i64::MAX / 2),
            });
            model.sent.len() - 1
        };
        trace.tell(format!("write {number} at {timestamp}: {effect:?}"));
        tokio::spawn(async move {
            let answer = storage.write(table::write(&effect, timestamp)).await;
            let fate = match &answer {
                Ok(_) => Fate::Acknowledged,
                Err(StorageError::Closed) => Fate::Unknown,
                Err(_) => Fate::Refused,
            };
            trace.tell(format!("write {number}: {fate:?}"));
            if is_given && fate == Fate::Acknowledged {
                given.fetch_max(timestamp, Ordering::Relaxed);
            }
            let mut model = lock(&model);
            // The model may have been emptied meanwhile.
            if let Some(sent) = model
                .sent
                .get_mut(at)
                .filter(|sent| sent.timestamp == timestamp)
            {
                sent.fate = fate;
                sent.within_s.1 = storage.clock().now_s();
            }
        })
    }

    /// Searches, and checks that the answer, if there is one, is made of the table as it is: all
    /// writes up to here are in it, and none is on its way.
    async fn search(&mut self, process: &Process) -> Result<(), Failure> {
        let before = table::rows(&process.storage);
        let found = process
            .local
            .search(
                table::KEYSPACE,
                table::INDEX,
                VectorSearch::new(vec![1.0, 1.0], 1000),
            )
            .await;
        let after = table::rows(&process.storage);
        self.tell(format!("a search: {}", found.is_ok()));
        // Rows that expire meanwhile may be in the answer or not.
        if let (Ok(found), Ok(before), Ok(after)) = (found, before, after)
            && before == after
        {
            let is_short = found.is_short;
            let (found, expected) = (found_scores(&found), scores(&before));
            // What has had no room is missing, and the answer says so.
            let fits = match is_short {
                true => is_part_of(&found, &expected),
                false => found == expected,
            };
            if !fits {
                return Err(format!(
                    "a search of the index finds {found:?} where the table has {expected:?}"
                ));
            }
            self.tell(format!("it finds the {} rows of the table", found.len()));
        }
        Ok(())
    }

    /// Searches with a filter, and checks the answer, if there is one. Writes may be on their way.
    async fn search_filtered(&mut self, process: &Process) -> Result<(), Failure> {
        let has_own_index = table::secondary(&process.storage).is_some();
        let search = Search::random(&mut self.random, has_own_index);
        // There may be no index, or none yet, or it waits for reads that fail.
        self.ask(process, &search).await.map(drop)
    }

    /// Asks for the answer to a search, and checks it.
    async fn ask(
        &mut self,
        process: &Process,
        search: &Search,
    ) -> Result<Result<Vec<Found>, CqlError>, Failure> {
        let clock = process.storage.clock();
        let (open, from_s) = (lock(&self.model).open(), clock.now_s());
        self.tell(format!("{search}"));
        let answer = search.ask(&process.node).await;
        let seen = lock(&self.model).seen(&open, from_s, clock.now_s());
        match &answer {
            Ok(found) => {
                let keys: Vec<Key> = found.iter().map(|found| found.key).collect();
                self.tell(format!("it finds {keys:?}"));
                if let Some(fault) = search.fault(found, &seen) {
                    return Err(format!("a wrong answer of {search}: {fault}"));
                }
                *self.found.entry(search.kind()).or_default() += found.len();
            }
            Err(error) => self.tell(format!("it fails: {error}")),
        }
        Ok(answer)
    }

    /// Reads the log up to the present, up to which it is complete from then on.
    async fn read_log(&mut self, process: &Process) -> Result<(), Failure> {
        let Some(log) = table::log(&process.storage) else {
            return Ok(());
        };
        let settled = process.storage.settle_log_to_end(log).await;
        let settled = settled.map_err(|error| format!("the log can't be read: {error}"))?;
        let up_to_micros = settled.kept_micros;
        let rows = table::log_rows(&process.storage, log);
        let mut rows = rows.map_err(|error| format!("the log can't be read: {error}"))?;
        rows.retain(|(time, _)| *time <= up_to_micros);
        self.tell(format!(
            "{} rows in the log up to {up_to_micros}",
            rows.len()
        ));
        self.reads.push(Read {
            log,
            up_to_micros,
            rows,
        });
        self.check_log(process)
    }

    /// Checks that the log still has exactly the rows that were read of it.
    fn check_log(&self, process: &Process) -> Result<(), Failure> {
        let log = table::log(&process.storage);
        let Some(log) = log.filter(|log| self.reads.iter().any(|read| read.log == *log)) else {
            return Ok(());
        };
        let rows = table::log_rows(&process.storage, log);
        let rows = rows.map_err(|error| format!("the log can't be read: {error}"))?;
        for read in self.reads.iter().filter(|read| read.log == log) {
            let now = rows.iter().filter(|(time, _)| *time <= read.up_to_micros);
            if !now.clone().eq(&read.rows) {
                return Err(format!(
                    "the log had {} rows up to {} when it was read, and has {}",
                    read.rows.len(),
                    read.up_to_micros,
                    now.count()
                ));
            }
        }
        Ok(())
    }

    /// Has the storage take writes again, and the graphs of indexes too.
    async fn heal(&mut self, process: &mut Process) -> Result<(), Failure> {
        process.held = None;
        if self.memory_is_out() {
            self.set_memory_out(false);
        }
        let healed = async {
            while process.storage.health() != Health::Writable {
                pass(500).await;
            }
            // A fault that is still to come comes now.
            process.storage.settle_log(i64::MAX).await
        };
        let healed = tokio::time::timeout(PATIENCE, healed).await;
        let healed = healed.map_err(|_| "the storage takes no writes any more".to_owned())?;
        healed
            .map(drop)
            .map_err(|error| format!("the log can't be settled: {error}"))
    }

    async fn check_all(&mut self, process: &Process) -> Result<(), Failure> {
        self.check_table(process).await?;
        self.check_log(process)?;
        self.check_secondary(process).await?;
        self.check_index(process).await?;
        self.check_filters(process).await
    }

    /// Checks that the table is what the writes have made of it.
    async fn check_table(&mut self, process: &Process) -> Result<(), Failure> {
        for sent in &mut lock(&self.model).sent {
            // Nobody answers any more.
            sent.within_s.1 = sent.within_s.1.min(process.storage.clock().now_s());
        }
        loop {
            let now_s = process.storage.clock().now_s();
            let rows = table::rows(&process.storage);
            let rows = rows.map_err(|error| format!("the table can't be read: {error}"))?;
            let explained = lock(&self.model).explains(&rows, now_s);
            match explained {
                Some(true) => {
                    self.tell(format!("the table has {} rows, as it should", rows.len()));
                    return Ok(());
                }
                Some(false) => {
                    let expected = lock(&self.model).expected(now_s);
                    return Err(format!(
                        "the table is not what was written: {rows:?}, where it should be {expected:?}"
                    ));
                }
                // Something is about to expire.
                None => pass(1000).await,
            }
        }
    }

    /// Checks that the secondary index lacks no row, and has no others but those that wait to be
    /// swept.
    async fn check_secondary(&self, process: &Process) -> Result<(), Failure> {
        let storage = &process.storage;
        let Some(index) = table::secondary(storage) else {
            return Ok(());
        };
        let built = tokio::time::timeout(PATIENCE, storage.index_built(index)).await;
        built.map_err(|_| "the secondary index is not built".to_owned())?;
        let failed = |error| format!("the secondary index can't be read: {error}");
        let rows = table::rows(storage).map_err(failed)?;
        let numbers: BTreeSet<i32> = rows.values().filter_map(|shown| shown.numbers[0]).collect();
        for number in numbers {
            let of_number = rows
                .iter()
                .filter(|(_, shown)| shown.numbers[0] == Some(number));
            let expected: BTreeSet<Key> = of_number.map(|(key, _)| *key).collect();
            let found = table::keys_of(storage, index, number).map_err(failed)?;
            let is_swept = storage.statistics().sweeps_waiting == 0;
            if !found.is_superset(&expected) || (is_swept && found != expected) {
                return Err(format!(
                    "the secondary index has {found:?} under {number}, not {expected:?}"
                ));
            }
        }
        self.check_entries(storage, index).await?;
        self.tell("the secondary index has its rows, as it should".to_owned());
        Ok(())
    }

    /// Checks that a repair of the secondary index finds nothing to mend.
    async fn check_entries(&self, storage: &Storage, index: Uuid) -> Result<(), Failure> {
        let task = Registry::default().start(Spec {
            kind: "repair",
            scope: Scope::default(),
            units: "keys",
            total: None,
            counters: REPAIR_COUNTERS,
            abortable: true,
        });
        let repaired = storage.repair_index(table::id(), index, &task).await;
        repaired.map_err(|error| format!("the secondary index can't be repaired: {error}"))?;
        for counter in ["entries_added", "entries_mended", "entries_removed"] {
            let count = task.counter(counter);
            if count > 0 {
                return Err(format!(
                    "a repair found entries at fault: {counter} {count}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that searches with filters are answered, and rightly.
    async fn check_filters(&mut self, process: &Process) -> Result<(), Failure> {
        if !self.has_index {
            return Ok(());
        }
        let has_own_index = table::secondary(&process.storage).is_some();
        for _ in 0..FILTERS_CHECKED {
            let search = Search::random(&mut self.random, has_own_index);
            let answered = async {
                while self.ask(process, &search).await?.is_err() {
                    pass(700).await;
                }
                Ok::<(), Failure>(())
            };
            let answered = tokio::time::timeout(PATIENCE, answered).await;
            answered.map_err(|_| format!("nobody answers {search}"))??;
        }
        Ok(())
    }

    /// Checks that the index holds the rows of the table with a vector, once it has had the time.
    async fn check_index(&mut self, process: &Process) -> Result<(), Failure> {
        if !self.has_index {
            return Ok(());
        }
        let mut last = String::new();
        let equal = async {
            loop {
                let rows = table::rows(&process.storage);
                let rows = rows.map_err(|error| format!("the table can't be read: {error}"))?;
                let expected = scores(&rows);
                let found = process
                    .local
                    .search(
                        table::KEYSPACE,
                        table::INDEX,
                        VectorSearch::new(vec![1.0, 1.0], 1000),
                    )
                    .await;
                match found {
                    Ok(found) => {
                        let is_short = found.is_short;
                        let found = found_scores(&found);
                        if found == expected && !is_short {
                            return Ok(expected.len());
                        }
                        last = format!("it holds {found:?} where the table has {expected:?}");
                    }
                    Err(error) => last = error.to_string(),
                }
                pass(700).await;
            }
        };
        let equal = tokio::time::timeout(PATIENCE, equal).await;
        let rows: Result<usize, Failure> =
            equal.map_err(|_| format!("the index does not become equal to the table: {last}"))?;
        let rows = rows?;
        self.tell(format!("the index has {rows} rows, as it should"));
        Ok(())
    }
}

/// The similarity scores of the rows that have a vector.
fn scores(rows: &BTreeMap<Key, Shown>) -> BTreeMap<Key, f32> {
    let with_vector = rows.iter().filter_map(|(key, shown)| {
        let [x, y] = table::floats(shown.vector?);
        let distance = (x - 1.0).powi(2) + (y - 1.0).powi(2);
        let scored = score(Metric::Euclidean, 2, distance).expect("a distance that can be");
        Some((*key, scored.similarity))
    });
    with_vector.collect()
}

/// Whether all that was found is expected, with that score.
fn is_part_of(found: &BTreeMap<Key, f32>, expected: &BTreeMap<Key, f32>) -> bool {
    let mut found = found.iter();
    found.all(|(key, score)| expected.get(key) == Some(score))
}

fn found_scores(found: &Neighbours) -> BTreeMap<Key, f32> {
    let int = |value: &KeyValue| match value {
        KeyValue::Cql(value) => i32::from_be_bytes(value[..].try_into().expect("an int")),
        KeyValue::Json(json) => panic!("{json} is of no answer in one process"),
    };
    let rows = found.keys.iter().zip(&found.similarity_scores);
    rows.map(|(key, score)| ((int(&key[0]), int(&key[1])), *score))
        .collect()
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
