//! What the index service is started with.

mod database;
mod listener;
mod repair;
mod scrub;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use client_memory::Shares;

use crate::compute::INLINE_WITHIN;

pub use ann::Placement;
pub use database::{Credentials, DatabaseOptions, Preferred};
pub use listener::{ListenerOptions, Pem, TlsClients, TlsOptions};
pub use repair::{RepairOptions, RepairSchedule};
pub use scrub::ScrubOptions;
pub use scylla::statement::Consistency;

/// Everything that can be set. The defaults are those of a service beside a cluster.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// How the service calls itself in `/api/v1/info`.
    pub service: String,
    /// Its version there.
    pub version: String,
    /// Where the database is.
    pub database: DatabaseOptions,
    /// Where the HTTP API is served; all of them serve the same.
    pub listeners: Vec<ListenerOptions>,
    /// How often the database is asked whether its schema has changed.
    pub discovery_interval: Duration,
    /// How the log is followed.
    pub cdc: CdcOptions,
    /// How tables are scanned.
    pub scan: ScanOptions,
    /// Where indexes keep their vectors.
    pub indexes: IndexesOptions,
    /// How indexes are saved, so that a restart needs no scan.
    pub snapshots: SnapshotOptions,
    /// How indexes are compared with their tables.
    pub repair: RepairOptions,
    /// How files are read and checked.
    pub scrub: ScrubOptions,
    /// How much memory the process may take.
    pub memory: MemoryOptions,
    /// Threads for searching and, besides, for building; 0: as many as there are cores.
    pub compute_threads: usize,
    /// A search for few rows runs on the thread of its socket as long as searches lately took no longer;
    /// zero: never.
    pub inline_searches_within: Duration,
    /// How long requests in flight may go on after a shutdown was asked for.
    pub shutdown_timeout: Duration,
}

/// How the log is followed.
#[derive(Clone, Debug)]
pub struct CdcOptions {
    /// Each table's log is read by all of these.
    pub readers: Vec<ReaderOptions>,
    /// How long before the discovery of an index its log is read from.
    pub lookback: Duration,
    /// How long to wait before a reader that ended is started again.
    pub restart_interval: Duration,
}

/// A reader of a log.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// Its name in metrics.
    pub name: String,
    /// Rows younger than this aren't read yet.
    pub safety_interval: Duration,
    /// The pause between two reads.
    pub sleep_interval: Duration,
}

/// How tables are scanned.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    /// Token ranges read at a time; 0: three for each shard of the cluster.
    pub concurrency: usize,
    /// Into how many ranges the ring is split at least.
    pub ranges_min: usize,
    /// About how much a page of a scan should hold.
    pub page_bytes: usize,
}

/// How much memory the process may take. At the limit rows that come anew wait; see the metric
/// `index_rows_without_room`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Of memory that the system can't take back; absent: what the machine or the control group
    /// has, less a hundredth or 200 MB, whichever is more.
    pub limit_bytes: Option<u64>,
    /// How often that is looked at.
    pub check_interval: Duration,
}

/// Where indexes keep the full vectors that answers are measured from. Their graphs, with compact
/// codes of the vectors, are in memory in any case.
#[derive(Clone, Debug)]
pub struct IndexesOptions {
    /// Where the files of indexes lie; made if it is missing. Those that are in use have no names: the
    /// system frees them when the process ends. Snapshots lie in a directory within.
    pub directory: PathBuf,
    /// Whether full vectors are in such a file, which is mapped into memory, or in memory alone.
    pub vectors: Placement,
}

/// How indexes are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// How long after a snapshot the next one is taken, if something has changed; absent: none is taken or
    /// opened. An index is also saved when it has been built, and when the service stops.
    pub interval: Option<Duration>,
}

impl Default for SnapshotOptions {
    fn default() -> SnapshotOptions {
        SnapshotOptions {
            interval: Some(Duration::from_secs(300)),
        }
    }
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            service: "annulus-store".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            database: DatabaseOptions::default(),
            listeners: vec![ListenerOptions::new(SocketAddr::from((
                [127, 0, 0, 1],
                6080,
            )))],
            discovery_interval: Duration::from_secs(1),
            cdc: CdcOptions::default(),
            scan: ScanOptions::default(),
            indexes: IndexesOptions::default(),
            snapshots: SnapshotOptions::default(),
            repair: RepairOptions::default(),
            scrub: ScrubOptions::default(),
            memory: MemoryOptions::default(),
            compute_threads: 0,
            inline_searches_within: INLINE_WITHIN,
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

impl StoreOptions {
    /// Options for a service in the same process as the database ([`crate::Store::start_with`]).
    ///
    /// `http`: where the API is served. The database's own searches come in by [`crate::Listeners::local`].
    pub fn embedded(http: SocketAddr, indexes: IndexesOptions) -> StoreOptions {
        StoreOptions {
            listeners: vec![ListenerOptions::new(http)],
            cdc: CdcOptions {
                lookback: Duration::from_secs(5),
                restart_interval: Duration::from_millis(100),
                ..CdcOptions::default()
            },
            scan: ScanOptions {
                concurrency: 4,
                ..ScanOptions::default()
            },
            indexes,
            // The database has to stop after it within the ten seconds of the process.
            shutdown_timeout: Duration::from_secs(4),
            ..StoreOptions::default()
        }
    }
}

impl StoreOptions {
    /// Has the listeners share what clients may pin of the memory.
    pub fn share_memory(&mut self) {
        let limit_bytes = self.memory.limit_bytes.or_else(crate::default_limit_bytes);
        let shares = limit_bytes.map_or_else(Shares::default, Shares::of_limit);
        let count = self.listeners.len().max(1);
        for listener in &mut self.listeners {
            *listener = listener.clone().with_memory(shares, count);
        }
    }
}

impl Default for CdcOptions {
    fn default() -> CdcOptions {
        let reader = |name: &str, safety_ms, sleep_ms| ReaderOptions {
            name: name.to_owned(),
            safety_interval: Duration::from_millis(safety_ms),
            sleep_interval: Duration::from_millis(sleep_ms),
        };
        CdcOptions {
            // One for correctness, when replicas have settled, and one for latency.
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
        }
    }
}

impl Default for IndexesOptions {
    fn default() -> IndexesOptions {
        IndexesOptions {
            directory: "annulus-indexes".into(),
            vectors: Placement::File,
        }
    }
}
