//! What the index service is started with.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use ann::Placement;
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
    /// How much memory the process may take.
    pub memory: MemoryOptions,
    /// Threads for searching and, besides, for building; 0: as many as there are cores.
    pub compute_threads: usize,
    /// How long requests in flight may go on after a shutdown was asked for.
    pub shutdown_timeout: Duration,
}

/// Where the database is and how to talk to it.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseOptions {
    /// `host:port` of nodes to begin with.
    pub contact_points: Vec<String>,
    /// Who to say we are.
    pub credentials: Option<Credentials>,
    /// How many replicas answer a scan or a re-read.
    pub consistency: Consistency,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long a statement may take.
    pub request_timeout: Duration,
    /// Connections to each node; absent: one to each shard.
    pub connections: Option<NonZeroUsize>,
    /// How long to wait before connecting again; from failure to failure longer, up to ten times
    /// this.
    pub reconnect_interval: Duration,
    /// Talk TLS alone, with nodes whose certificates one of these authorities has signed. The
    /// driver knows nodes by their addresses, so certificates have to name those.
    pub certificate_authorities: Option<Pem>,
    /// Ask nodes of this data centre, and of this rack of it, before others.
    pub preferred: Option<Preferred>,
    /// Addresses that nodes say they have, and the ones that they are reached at from here.
    pub address_map: HashMap<SocketAddr, SocketAddr>,
    /// How often a connection without traffic is tried; absent: the driver's default.
    pub keepalive_interval: Option<Duration>,
    /// How long the answer to that may take; absent: the driver's default.
    pub keepalive_timeout: Option<Duration>,
    /// How often the system tries a connection without traffic; absent: never.
    pub tcp_keepalive_interval: Option<Duration>,
}

/// Nodes to ask before others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preferred {
    /// The data centre.
    pub datacenter: String,
    /// A rack of it.
    pub rack: Option<String>,
}

/// Certificates or a key in the PEM format.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The text.
    pub bytes: Arc<[u8]>,
    /// Where it comes from, for messages.
    pub origin: String,
}

impl fmt::Debug for Pem {
    /// Without the text, which may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pem").field(&self.origin).finish()
    }
}

/// A user of the database.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The role.
    pub user: String,
    /// Its password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// A socket of the HTTP API.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerOptions {
    /// Where it listens; port 0 takes a free one.
    pub address: SocketAddr,
    /// With a certificate it speaks HTTPS too; absent: HTTP alone.
    pub tls: Option<TlsOptions>,
    /// Searches taken in at a time, waiting ones included; more are refused with 503.
    pub searches_max: usize,
    /// A search that can't begin within this is refused with 503, at once if that can be told.
    pub search_wait_max: Duration,
    /// Connections at a time; more wait until one ends.
    pub connections_max: usize,
    /// Bodies beyond this are refused with 413.
    pub body_bytes_max: usize,
    /// Bodies that take longer to arrive are refused with 408.
    pub body_timeout: Duration,
}

/// What a listener proves itself with, and whom it lets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// The listener's certificate, and those between it and the authority.
    pub certificates: Pem,
    /// The certificate's key.
    pub key: Pem,
    /// Who may come in.
    pub clients: TlsClients,
}

/// Who may come in to a listener with a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsClients {
    /// Everyone. Requests in clear are answered too, but not searches: those get 403.
    Anyone,
    /// Clients with a certificate that one of these authorities has signed.
    SignedBy(Pem),
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
    /// Where the files of indexes lie; made if it is missing. The files have no names: the system
    /// frees them when the process ends.
    pub directory: PathBuf,
    /// Whether full vectors are in such a file, which is mapped into memory, or in memory alone.
    pub vectors: Placement,
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
            memory: MemoryOptions::default(),
            compute_threads: 0,
            shutdown_timeout: Duration::from_secs(10),
        }
    }
}

impl StoreOptions {
    /// Options for a service in the same process as the database, which keeps a low-water mark
    /// for readers of its log: one reader that follows closely is enough.
    ///
    /// `cql`: a listener of the database that only this service uses. `http`: where the API is
    /// served, and where the database's own searches come in.
    pub fn embedded(
        cql: SocketAddr,
        http: SocketAddr,
        internal_http: SocketAddr,
        indexes: IndexesOptions,
    ) -> StoreOptions {
        StoreOptions {
            database: DatabaseOptions {
                contact_points: vec![cql.to_string()],
                consistency: Consistency::One,
                // Scans, re-reads and the log's readers each get on when another is waiting for
                // a large page.
                connections: NonZeroUsize::new(4),
                reconnect_interval: Duration::from_millis(100),
                ..DatabaseOptions::default()
            },
            listeners: vec![
                ListenerOptions::new(http),
                ListenerOptions::new(internal_http),
            ],
            discovery_interval: Duration::from_millis(50),
            cdc: CdcOptions {
                readers: vec![ReaderOptions {
                    name: "fine".to_owned(),
                    safety_interval: Duration::from_millis(5),
                    sleep_interval: Duration::from_millis(20),
                }],
                lookback: Duration::from_secs(5),
                restart_interval: Duration::from_millis(100),
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

impl Default for DatabaseOptions {
    fn default() -> DatabaseOptions {
        DatabaseOptions {
            contact_points: vec!["127.0.0.1:9042".to_owned()],
            credentials: None,
            consistency: Consistency::LocalQuorum,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            connections: None,
            reconnect_interval: Duration::from_secs(1),
            certificate_authorities: None,
            preferred: None,
            address_map: HashMap::new(),
            keepalive_interval: None,
            keepalive_timeout: None,
            tcp_keepalive_interval: None,
        }
    }
}

impl ListenerOptions {
    /// A listener with the default budgets.
    pub fn new(address: SocketAddr) -> ListenerOptions {
        ListenerOptions {
            address,
            tls: None,
            searches_max: 4096,
            search_wait_max: Duration::from_secs(2),
            connections_max: 16_384,
            // What the original's framework allows; 16,000 dimensions take about 340 KB.
            body_bytes_max: 2 << 20,
            body_timeout: Duration::from_secs(10),
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
