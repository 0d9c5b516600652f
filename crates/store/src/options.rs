//! The options of the index service.

mod database;
mod listener;
mod recall_check;
mod repair;
mod scrub;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use client_memory::MemoryShares;
use cpu_scheduler::CpuScheduler;
use http_server::MaintenanceMode;
use slow_statements::SlowQueries;
use tasks::TaskRegistry;

use crate::compute::INLINE_WITHIN;

pub use database::{DatabaseOptions, PreferredNodes, SessionCredentials};
pub use listener::{ApiSocketOptions, UnknownKeyRule};
pub use recall_check::RecallCheckOptions;
pub use repair::{PeriodicRepair, RepairOptions};
pub use scrub::ScrubOptions;
pub use scylla::statement::Consistency;

/// All options of the index service. The defaults are those of a service next to a cluster.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The name of the service in `/api/v1/info`.
    pub service: String,
    /// The version of the service in `/api/v1/info`.
    pub version: String,
    /// The address of the database, and the way to talk to it.
    pub database: DatabaseOptions,
    /// The listeners of the HTTP API. All of them serve the same API.
    pub listeners: Vec<ApiSocketOptions>,
    /// The interval at which the database is queried for changes of its schema.
    pub discovery_interval: Duration,
    /// Whether indexes on texts are built. If not, they are as if they were not there. A database
    /// in the same process has all its indexes built.
    pub full_text_indexes: bool,
    /// The options for following the log.
    pub cdc: LogReadingOptions,
    /// The options for scans of tables.
    pub scan: ScanOptions,
    /// The place where indexes keep their vectors.
    pub indexes: IndexesOptions,
    /// The options for saving indexes, so that a restart needs no scan.
    pub snapshots: SnapshotOptions,
    /// The options for comparing indexes with their tables.
    pub repair: RepairOptions,
    /// The options for reading and checking files.
    pub scrub: ScrubOptions,
    /// The options for checking the recall of indexes by schedule.
    pub recall_checks: RecallCheckOptions,
    /// Whether the process takes no new requests. A database in the same process shares it.
    pub maintenance: MaintenanceMode,
    /// The memory that the process may take.
    pub memory: MemoryOptions,
    /// The turns on the processor for searches and builds. A database in the same process may share
    /// them.
    pub turns: CpuScheduler,
    /// The tasks, as requests list them. A database in the same process may add its own.
    pub tasks: TaskRegistry,
    /// A search for few rows runs on the thread of its socket while recent searches took no longer
    /// than this. Zero hands all searches over to other threads.
    pub inline_searches_within: Duration,
    /// The most values that a filter of a search may have. A tuple counts by its elements.
    pub filter_values_max: usize,
    /// The outcome of a search whose answer may lack rows.
    pub when_short: ShortAnswerPolicy,
    /// The log of slow searches.
    pub slow_searches: Arc<SlowQueries>,
    /// Whether the HTTP API has the test hooks under `/api/internals`.
    pub internals: bool,
    /// The longest time that requests in flight may go on after a shutdown was requested.
    pub shutdown_timeout: Duration,
}

/// The options for following the log.
#[derive(Clone, Debug)]
pub struct LogReadingOptions {
    /// The readers. Each of them reads the whole log of every table.
    pub readers: Vec<ReaderOptions>,
    /// The time before the discovery of an index from which on its log is read.
    pub lookback: Duration,
    /// The pause before a reader that ended is started again.
    pub restart_interval: Duration,
}

/// The options of one reader of a log.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// The name of the reader in metrics.
    pub name: String,
    /// The age that rows of the log must have before they are read.
    pub safety_interval: Duration,
    /// The pause between two reads.
    pub sleep_interval: Duration,
}

/// The options for scans of tables.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// The number of token ranges that are read at a time; 0 for three for each shard of the
    /// cluster.
    pub concurrency: usize,
    /// The smallest number of ranges into which the ring is split.
    pub ranges_min: usize,
    /// The approximate number of bytes in a page of a scan.
    pub page_bytes: usize,
}

/// The memory that the process may take. At the limit new rows wait; the metric
/// `index_rows_without_room` counts them.
#[derive(Clone, Debug)]
pub struct MemoryOptions {
    /// The limit for memory that the system can't take back. `None` for the memory of the machine
    /// or the control group, less a hundredth of it or 200 MB, whichever is more.
    pub limit_bytes: Option<u64>,
    /// The interval at which memory use is measured.
    pub check_interval: Duration,
    /// Returns memory that the allocator keeps free to the system. It is called while the use is
    /// near the limit.
    pub give_back: fn(),
    /// The bytes that other parts of the process may still take. Rows of indexes leave them free.
    pub to_come: Option<BytesToCome>,
    /// The bytes in use as another source reports them, in tests; `None` if they are measured.
    pub reported_bytes: Option<Arc<AtomicU64>>,
}

/// Tells the bytes that parts of the process may take in addition to those that they take now.
#[derive(Clone)]
pub struct BytesToCome(Arc<dyn Fn() -> u64 + Send + Sync>);

impl BytesToCome {
    /// Makes it of a function, which is called at each measurement.
    pub fn new(bytes: impl Fn() -> u64 + Send + Sync + 'static) -> BytesToCome {
        BytesToCome(Arc::new(bytes))
    }

    /// The bytes now.
    pub fn now(&self) -> u64 {
        (self.0)()
    }

    fn address(&self) -> *const () {
        Arc::as_ptr(&self.0).cast()
    }
}

impl fmt::Debug for BytesToCome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BytesToCome").finish_non_exhaustive()
    }
}

impl PartialEq for MemoryOptions {
    fn eq(&self, other: &MemoryOptions) -> bool {
        let told = |options: &MemoryOptions| options.reported_bytes.as_ref().map(Arc::as_ptr);
        let to_come = |options: &MemoryOptions| options.to_come.as_ref().map(BytesToCome::address);
        (self.limit_bytes, self.check_interval) == (other.limit_bytes, other.check_interval)
            && std::ptr::fn_addr_eq(self.give_back, other.give_back)
            && told(self) == told(other)
            && to_come(self) == to_come(other)
    }
}

/// The outcome of a search whose answer may lack rows, as the index has had no room for some.
/// Where the rows are in this process they are read, and no answer lacks any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShortAnswerPolicy {
    /// The answer says so.
    #[default]
    Answer,
    /// The search is refused.
    Error,
}

/// The place of full vectors, from which answers are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullVectorPlacement {
    /// Nameless files that are mapped into memory. Their pages stay in memory while there is room,
    /// and the system may take them back at any time.
    File,
    /// Memory that the system can only swap out.
    Memory,
}

/// The place of indexes. The graphs of vectors, with compact codes of these, are in memory in any
/// case.
#[derive(Clone, Debug)]
pub struct IndexesOptions {
    /// The directory for the files of indexes, created if it is missing. Files in use have no
    /// names, so that the system frees them when the process ends. Snapshots are in a directory
    /// within.
    pub directory: PathBuf,
    /// Whether full vectors are in such a file, which is mapped into memory, or only in memory.
    pub vectors: FullVectorPlacement,
    /// About the most bytes that changes of an index take while the index has not linked their
    /// vectors yet. Each search measures them all, so more of them make searches slower. In
    /// `annulus serve` writers of the table are slowed from half of this on. An index has a part in
    /// 64 of the memory limit if that is less, and all indexes together have a part in 16.
    pub fresh_bytes_max: usize,
}

/// The options for saving indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// The time from one snapshot to the next, if something has changed. `None` means that none is
    /// taken or opened. An index is also saved when its build ends and when the service stops.
    pub interval: Option<Duration>,
    /// The longest time that the opening of a snapshot waits for memory that is about to be freed.
    /// It waits on a thread of its own, in real time.
    pub memory_wait: Duration,
}

impl Default for SnapshotOptions {
    fn default() -> SnapshotOptions {
        SnapshotOptions {
            interval: Some(Duration::from_secs(300)),
            memory_wait: Duration::from_secs(5),
        }
    }
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            service: "annulus-store".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            database: DatabaseOptions::default(),
            listeners: vec![ApiSocketOptions::new(SocketAddr::from((
                [127, 0, 0, 1],
                6080,
            )))],
            discovery_interval: Duration::from_secs(1),
            full_text_indexes: true,
            cdc: LogReadingOptions::default(),
            scan: ScanOptions::default(),
            indexes: IndexesOptions::default(),
            snapshots: SnapshotOptions::default(),
            repair: RepairOptions::default(),
            scrub: ScrubOptions::default(),
            recall_checks: RecallCheckOptions::default(),
            maintenance: MaintenanceMode::default(),
            memory: MemoryOptions::default(),
            turns: CpuScheduler::default(),
            tasks: TaskRegistry::default(),
            inline_searches_within: INLINE_WITHIN,
            filter_values_max: 100_000,
            when_short: ShortAnswerPolicy::default(),
            slow_searches: Arc::new(SlowQueries::never()),
            internals: false,
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

impl StoreOptions {
    /// Options for a service in the process of the database ([`crate::Store::start_with`]).
    ///
    /// `http` is the address of the API. Searches of the database itself come in by
    /// [`crate::ApiListeners::local`].
    pub fn embedded(http: SocketAddr, indexes: IndexesOptions) -> StoreOptions {
        StoreOptions {
            listeners: vec![ApiSocketOptions::new(http)],
            cdc: LogReadingOptions {
                lookback: Duration::from_secs(5),
                restart_interval: Duration::from_millis(100),
                ..LogReadingOptions::default()
            },
            scan: ScanOptions {
                concurrency: 4,
                ..ScanOptions::default()
            },
            indexes,
            // The database stops after the service, and the process has ten seconds for both.
            shutdown_timeout: Duration::from_secs(4),
            ..StoreOptions::default()
        }
    }
}

impl StoreOptions {
    /// Divides the memory that clients may pin among the listeners.
    pub fn share_memory(&mut self) {
        let limit_bytes = self.memory.limit_bytes.or_else(crate::default_limit_bytes);
        let shares = limit_bytes.map_or_else(MemoryShares::default, MemoryShares::of_limit);
        let count = self.listeners.len().max(1);
        for listener in &mut self.listeners {
            *listener = listener.clone().with_memory(shares, count);
        }
    }
}

impl Default for LogReadingOptions {
    fn default() -> LogReadingOptions {
        let reader = |name: &str, safety_ms, sleep_ms| ReaderOptions {
            name: name.to_owned(),
            safety_interval: Duration::from_millis(safety_ms),
            sleep_interval: Duration::from_millis(sleep_ms),
        };
        LogReadingOptions {
            // One reader for correctness, when replicas have settled, and one for low latency.
            readers: vec![reader("wide", 30_000, 10_000), reader("fine", 100, 500)],
            lookback: Duration::from_secs(600),
            restart_interval: Duration::from_secs(5),
        }
    }
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        ScanOptions {
            concurrency: 0,
            ranges_min: 16,
            page_bytes: 1 << 20,
        }
    }
}

impl Default for MemoryOptions {
    fn default() -> MemoryOptions {
        MemoryOptions {
            limit_bytes: None,
            check_interval: Duration::from_secs(1),
            give_back: || {},
            to_come: None,
            reported_bytes: None,
        }
    }
}

impl Default for IndexesOptions {
    fn default() -> IndexesOptions {
        IndexesOptions {
            directory: "annulus-indexes".into(),
            vectors: FullVectorPlacement::File,
            fresh_bytes_max: 16 << 20,
        }
    }
}
