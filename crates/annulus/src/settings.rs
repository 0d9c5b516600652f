//! The settings of `annulus serve`: flags, environment and a TOML file. An earlier one wins over a
//! later one.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backup::LocationText;
use clap::ValueEnum;
use cpu_scheduler::SchedulingWeights;
use embeddings::EmbedderOptions;
use net::tls::TlsOptions;
use node::DefaultTimeouts;
use node::guardrails::{Guardrails, LargeDataLimits};
use node::security::audit::AuditOptions;
use serde::Deserialize;
use slow_statements::{SlowQueries, SlowQueryOptions};
use storage::Durability;
use store::{
    FullVectorPlacement, PeriodicRepair, RecallCheckOptions, RepairOptions, ScrubOptions,
    SnapshotOptions, StoreOptions,
};

use crate::audit_log;
use crate::backup_locations;
use crate::embedder_settings::{GivenEmbedder, without_query};
use crate::exit::ProcessFailure;
use crate::guardrail_settings::GuardrailSettings;
use crate::logging::{LogFormat, SyslogReceiver};
use crate::memory_limit::MemoryLimit;
use crate::settings_table::{none, path, settings_table, span, word};
use crate::size::ByteSize;
use crate::span::{HumanDuration, bounded, interval};
use crate::tls_files::{TlsFiles, check_interval};

/// The default log filter: facts of our own crates, and warnings of libraries. Of the driver only
/// errors are logged, as it warns of failures that its callers report themselves.
pub const DEFAULT_LOG: &str = "warn,annulus=info,node=info,storage=info,store=info,http_server=info,\
                               slow_query=info,scylla=error";

/// The time from one walk over all partitions to the next by default.
const PARTITION_WALK_INTERVAL: Duration = Duration::from_hours(24);

settings_table! {
    /// All settings. Each is optional here; [`Settings::resolve`] fills in the defaults.
    pub struct Settings => resolved: ResolvedSettings {
        /// Directory for the data; created if missing [default: annulus-data]
        #[arg(long, env = "ANNULUS_DATA_DIR", value_name = "DIR")]
        pub data_dir: Option<PathBuf> => "path", resolved.data_dir.display(),

        /// Address to listen on [default: 127.0.0.1]
        #[arg(long, env = "ANNULUS_LISTEN", value_name = "ADDRESS")]
        pub listen: Option<IpAddr> => "address", resolved.listen,

        /// Port for CQL drivers and cqlsh; 0 takes a free one [default: 9042]
        #[arg(long, env = "ANNULUS_CQL_PORT", value_name = "PORT")]
        pub cql_port: Option<u16> => "integer", resolved.cql_port,

        /// Port of the HTTP API and the metrics; 0 takes a free one [default: 6080]
        #[arg(long, env = "ANNULUS_HTTP_PORT", value_name = "PORT")]
        pub http_port: Option<u16> => "integer", resolved.http_port,

        /// Host names that the HTTP API answers to, separated by commas, besides those of the
        /// loopback address. On a loopback address it answers to no other name, elsewhere to any if
        /// none is given. This refuses web pages whose own host name resolves to this machine
        /// [default: none]
        #[arg(long, env = "ANNULUS_HTTP_HOST", value_name = "NAME,...")]
        pub http_host: Option<String> => "text", resolved.http_hosts.join(","),

        /// Server that makes embeddings of sentences, of OpenAI's form, such as
        /// http://127.0.0.1:8080/v1/embeddings: with it the console searches by a sentence
        /// [default: none]
        #[arg(long, env = "ANNULUS_EMBEDDINGS_URL", value_name = "URL")]
        pub embeddings_url: Option<String>
            => "text", resolved.of_embedder(|server| without_query(&server.url)),

        /// Model that the server is to use [default: text-embedding-3-small]
        #[arg(long, env = "ANNULUS_EMBEDDINGS_MODEL", value_name = "NAME")]
        pub embeddings_model: Option<String>
            => "text", resolved.of_embedder(|server| server.model.clone()),

        /// File with the key of that server's API
        #[arg(long, env = "ANNULUS_EMBEDDINGS_KEY_FILE", value_name = "FILE")]
        pub embeddings_key_file: Option<PathBuf>
            => "path", resolved.of_embedder(|server| path(server.key_file.as_deref())),

        /// Authorities that sign that server's certificate, PEM [default: those of the system]
        #[arg(long, env = "ANNULUS_EMBEDDINGS_CA", value_name = "FILE")]
        pub embeddings_ca: Option<PathBuf>
            => "path", resolved.of_embedder(|server| path(server.authorities.as_deref())),

        /// Let in only clients that log in, by CQL and HTTP. The first superuser comes from
        /// --superuser-file, or is made and printed once; it makes other roles with CREATE ROLE and
        /// GRANT [default: false]
        #[arg(long, env = "ANNULUS_LOGIN", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
        pub login: Option<bool> => "boolean", resolved.login,

        /// File with the name of the first superuser in its first line and its password in the
        /// second; read with --login while there is no superuser
        #[arg(long, env = "ANNULUS_SUPERUSER_FILE", value_name = "FILE")]
        pub superuser_file: Option<PathBuf> => "path", path(resolved.superuser_file.as_deref()),

        /// File to which requests and logins are logged, a line of JSON each, before they are
        /// answered; made with the mode 0600, and again if it is moved away [default: none]
        #[arg(long, env = "ANNULUS_AUDIT_LOG", value_name = "FILE")]
        pub audit_log: Option<PathBuf>
            => "path", resolved.of_audit(|audit| path(Some(&audit.file))),

        /// Categories of what is logged, separated by commas: ADMIN, AUTH, DCL, DDL, DML, ERROR,
        /// OTHER, PREPARE, QUERY [default: ADMIN,AUTH,DCL,DDL]
        #[arg(long, env = "ANNULUS_AUDIT_CATEGORIES", value_name = "NAME,...")]
        pub audit_categories: Option<String>
            => "text", resolved.of_audit(audit_log::category_names),

        /// Keyspaces whose data a request must be about to be logged, if it is about data at all
        /// [default: all but system, system_schema and system_virtual_schema]
        #[arg(long, env = "ANNULUS_AUDIT_KEYSPACES", value_name = "NAME,...")]
        pub audit_keyspaces: Option<String>
            => "text", resolved.of_audit(|audit| audit.keyspaces.join(",")),

        /// Roles whose requests are not logged, unless they are refused for want of a right
        /// [default: none]
        #[arg(long, env = "ANNULUS_AUDIT_EXCLUDE_ROLES", value_name = "NAME,...")]
        pub audit_exclude_roles: Option<String>
            => "text", resolved.of_audit(|audit| audit.roles_left_out.join(",")),

        /// Allow a listen address that is not loopback without --login and TLS
        #[arg(long, env = "ANNULUS_INSECURE", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
        pub insecure: Option<bool> => "boolean", resolved.insecure,

        /// Certificate of this server, PEM; with it CQL and HTTP are served under TLS only
        #[arg(long, env = "ANNULUS_TLS_CERT_PATH", value_name = "FILE")]
        pub tls_cert_path: Option<PathBuf>
            => "path", path(resolved.of_tls(|tls| Some(&tls.certificate))),

        /// Key of the certificate, PEM
        #[arg(long, env = "ANNULUS_TLS_KEY_PATH", value_name = "FILE")]
        pub tls_key_path: Option<PathBuf> => "path", path(resolved.of_tls(|tls| Some(&tls.key))),

        /// Authorities that sign clients' certificates, PEM; with it only clients with such a
        /// certificate are served, of CQL and of HTTP
        #[arg(long, env = "ANNULUS_TLS_CLIENT_CA_CERT_PATH", value_name = "FILE")]
        pub tls_client_ca_cert_path: Option<PathBuf>
            => "path", path(resolved.of_tls(|tls| tls.client_authorities.as_ref())),

        /// Interval at which the files of certificates are checked for changes; SIGHUP does it at
        /// once [default: 30s]
        #[arg(long, env = "ANNULUS_TLS_FILE_CHECK_INTERVAL", value_name = "DURATION")]
        pub tls_file_check_interval: Option<HumanDuration>
            => "duration", span(resolved.tls.as_ref().map(|tls| tls.check_interval)),

        /// Name of the data center, as drivers see it and replication options may give it [default:
        /// datacenter1]
        #[arg(long, env = "ANNULUS_DATACENTER", value_name = "NAME")]
        pub datacenter: Option<String> => "text", resolved.datacenter,

        /// Load a sample on start, unless it is loaded already
        #[arg(long, env = "ANNULUS_SAMPLE", value_name = "NAME")]
        pub sample: Option<SampleName> => "text", resolved.sample.map_or_else(none, word),

        /// Moment at which a write is acknowledged [default: synced]
        #[arg(long, env = "ANNULUS_DURABILITY", value_name = "WHEN")]
        pub durability: Option<DurabilityName> => "text", durability_word(resolved.durability),

        /// Milliseconds between syncs with --durability buffered [default: 1000]
        #[arg(long, env = "ANNULUS_SYNC_INTERVAL_MS", value_name = "MS")]
        pub sync_interval_ms: Option<u64> => "integer", sync_interval_ms(resolved.durability),

        /// Memory that the process may take without mapped files, such as 4GiB. At the limit new
        /// rows of indexes wait. Clients can pin 512 MiB of it, or a quarter if that is less
        /// [default: half of the memory of the machine or the control group]
        #[arg(long, env = "ANNULUS_MEMORY_LIMIT", value_name = "BYTES")]
        pub memory_limit: Option<ByteSize>
            => "bytes", resolved.memory.bytes.map_or_else(none, |bytes| bytes.to_string()),

        /// MiB of memory for cached blocks of rows [default: 256, or an eighth of --memory-limit if
        /// that is less]
        #[arg(long, env = "ANNULUS_CACHE_MIB", value_name = "MIB")]
        pub cache_mib: Option<u64> => "integer", resolved.cache_bytes >> 20,

        /// MiB of memory for tables made with in_memory = true; their rows must fit [default: 64,
        /// or a sixteenth of --memory-limit if that is less]
        #[arg(long, env = "ANNULUS_IN_MEMORY_STORAGE_SIZE_MB", value_name = "MIB")]
        pub in_memory_storage_size_mb: Option<u64> => "integer", resolved.resident_bytes >> 20,

        /// Largest frame of a CQL client in MiB; the memory that one client may pin, which is 128
        /// MiB and less with a small --memory-limit, binds first [default: 256]
        #[arg(long, env = "ANNULUS_MAX_FRAME_MIB", value_name = "MIB")]
        pub max_frame_mib: Option<u32> => "integer", resolved.max_frame_bytes >> 20,

        /// Requests of CQL clients in progress at a time; more get Overloaded [default: 32768]
        #[arg(long, env = "ANNULUS_MAX_REQUESTS", value_name = "N")]
        pub max_requests: Option<usize> => "integer", resolved.max_requests,

        /// Time that a page of a SELECT that names its partitions may take. Beyond it the client
        /// gets the rows so far if it can page on, else a timeout; USING TIMEOUT goes before
        /// it [default: 5s]
        #[arg(long, env = "ANNULUS_READ_REQUEST_TIMEOUT", value_name = "DURATION")]
        pub read_request_timeout: Option<HumanDuration> => "duration", span(resolved.timeouts.read),

        /// Time that a page of any other SELECT may take; an aggregate has it for each 10,000 rows
        /// [default: 10s]
        #[arg(long, env = "ANNULUS_RANGE_REQUEST_TIMEOUT", value_name = "DURATION")]
        pub range_request_timeout: Option<HumanDuration> => "duration", span(resolved.timeouts.range),

        /// Time that a write may wait until it begins. Beyond it the client gets a timeout, and
        /// nothing is written; USING TIMEOUT goes before it [default: 2s]
        #[arg(long, env = "ANNULUS_WRITE_REQUEST_TIMEOUT", value_name = "DURATION")]
        pub write_request_timeout: Option<HumanDuration> => "duration", span(resolved.timeouts.write),

        /// Place of the full vectors of indexes [default: file]
        #[arg(long, env = "ANNULUS_INDEX_VECTORS", value_name = "WHERE")]
        pub index_vectors: Option<IndexVectors> => "text", placement_word(resolved.index_vectors),

        /// Directory for the files of indexes; created if missing [default: indexes in the data
        /// directory]
        #[arg(long, env = "ANNULUS_INDEX_DIR", value_name = "DIR")]
        pub index_dir: Option<PathBuf> => "path", resolved.index_dir.display(),

        /// Time from a snapshot of an index to the next one, if something has changed. With 0s no
        /// snapshots are taken or used, and every start builds all indexes [default: 5m]
        #[arg(long, env = "ANNULUS_SNAPSHOT_INTERVAL", value_name = "DURATION")]
        pub snapshot_interval: Option<HumanDuration> => "duration", span(resolved.snapshots.interval),

        /// Searches done at a time, as many reads of rows, and threads that build indexes [default:
        /// the number of cores]
        #[arg(long, env = "ANNULUS_SEARCH_THREADS", value_name = "N")]
        pub search_threads: Option<usize> => "integer", resolved.search_threads,

        /// Weight of searches and of reads, each, against --ingest-share, where both want
        /// processors [default: 1]
        #[arg(long, env = "ANNULUS_SEARCH_SHARE", value_name = "N")]
        pub search_share: Option<u32> => "integer", resolved.shares.search,

        /// Weight of writes and of building indexes, each, against --search-share [default: 1]
        #[arg(long, env = "ANNULUS_INGEST_SHARE", value_name = "N")]
        pub ingest_share: Option<u32> => "integer", resolved.shares.ingest,

        /// Interval at which every index is compared with its table, such as 7d; differences are
        /// mended [default: never]
        #[arg(long, env = "ANNULUS_REPAIR_INTERVAL", value_name = "DURATION")]
        pub repair_interval: Option<HumanDuration>
            => "duration", span(resolved.repair.schedule.as_ref().map(|schedule| schedule.interval)),

        /// Interval at which all files are read and their checksums checked, such as 7d;
        /// `annulus scrub` does it at once [default: never]
        #[arg(long, env = "ANNULUS_SCRUB_INTERVAL", value_name = "DURATION")]
        pub scrub_interval: Option<HumanDuration> => "duration", span(resolved.scrub.interval),

        /// MiB that such a scrub may read in a second [default: 32]
        #[arg(long, env = "ANNULUS_SCRUB_RATE_MIB", value_name = "MIB")]
        pub scrub_rate_mib: Option<u64> => "integer", resolved.scrub.bytes_a_second >> 20,

        /// Interval at which the recall of every vector index is measured, such as 1d; `annulus
        /// check` does it at once [default: never]
        #[arg(long, env = "ANNULUS_CHECK_INTERVAL", value_name = "DURATION")]
        pub check_interval: Option<HumanDuration>
            => "duration", span(resolved.recall_checks.interval),

        /// Locations that requests for backups, restores, drills and local snapshots may name, with
        /// all below them, separated by commas, such as s3:backups/shop,file:///backups; commands
        /// that need no server may name others [default: any location]
        #[arg(long, env = "ANNULUS_BACKUP_LOCATIONS", value_name = "LOCATION,...")]
        pub backup_locations: Option<String>
            => "text", backup_locations::shown_locations(&resolved.backup_locations),

        /// Time from one walk over all partitions to the next, if there is a threshold on them
        /// (docs/guardrails.md) [default: 1d]
        #[arg(long, env = "ANNULUS_PARTITION_WALK_INTERVAL", value_name = "DURATION")]
        pub partition_walk_interval: Option<HumanDuration>
            => "duration", span(Some(resolved.partition_walk_interval)),

        /// MiB of a partition above which the log warns of it (module large_data); 0 for never. The
        /// walk over partitions finds it, once the storage may be that large [default: 1000]
        #[arg(long, env = "ANNULUS_LARGE_PARTITION_WARNING_MIB", value_name = "MIB")]
        pub large_partition_warning_mib: Option<u64>
            => "integer", resolved.large_data.partition_bytes >> 20,

        /// MiB of a row in one write above which the log warns of it; 0 for never [default: 10]
        #[arg(long, env = "ANNULUS_LARGE_ROW_WARNING_MIB", value_name = "MIB")]
        pub large_row_warning_mib: Option<u64> => "integer", resolved.large_data.row_bytes >> 20,

        /// MiB of a cell above which the log warns of it; 0 for never [default: 1]
        #[arg(long, env = "ANNULUS_LARGE_CELL_WARNING_MIB", value_name = "MIB")]
        pub large_cell_warning_mib: Option<u64> => "integer", resolved.large_data.cell_bytes >> 20,

        /// Elements of a collection in one write above which the log warns of it; 0 for never
        /// [default: 10000]
        #[arg(long, env = "ANNULUS_LARGE_COLLECTION_WARNING_ELEMENTS", value_name = "N")]
        pub large_collection_warning_elements: Option<u64>
            => "integer", resolved.large_data.elements,

        /// Time beyond which a statement is slow: the log and system_views.slow_queries have it,
        /// without its literals; 0s for never [default: 500ms]
        #[arg(long, env = "ANNULUS_SLOW_QUERY_THRESHOLD", value_name = "DURATION")]
        pub slow_query_threshold: Option<HumanDuration>
            => "duration", span(resolved.slow_queries.threshold),

        /// Slow statements that are logged in a second; more are only counted [default: 10]
        #[arg(long, env = "ANNULUS_SLOW_QUERIES_PER_SECOND", value_name = "N")]
        pub slow_queries_per_second: Option<u32> => "integer", resolved.slow_queries.a_second,

        /// Microseconds: a search for few rows is computed on the thread of its socket while the
        /// mean search takes no longer than this; 0 for never [default: 1000]
        #[arg(long, env = "ANNULUS_INLINE_SEARCHES_US", value_name = "US")]
        pub inline_searches_us: Option<u64>
            => "integer", resolved.inline_searches_within.as_micros(),

        /// Values in the filter of a search, of which a tuple has several; more are refused with
        /// 400 [default: 100000]
        #[arg(long, env = "ANNULUS_FILTER_VALUES", value_name = "N")]
        pub filter_values: Option<usize> => "integer", resolved.filter_values_max,

        /// Test hooks of the HTTP API under /api/internals, which count events [default: false]
        #[arg(long, env = "ANNULUS_INTERNALS", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
        pub internals: Option<bool> => "boolean", resolved.internals,

        /// Log filter: a level, or directives such as store=debug,info [default: info, and warn for
        /// libraries]
        #[arg(long, env = "ANNULUS_LOG", value_name = "FILTER")]
        pub log: Option<String> => "text", resolved.log,

        /// Thresholds at which clients are warned and requests refused, only in a file: one flag
        /// for each would hide the other flags
        #[arg(skip)]
        pub guardrails: Option<GuardrailSettings>,

        /// Format of the log [default: text]
        #[arg(long, env = "ANNULUS_LOG_FORMAT", value_name = "FORMAT")]
        pub log_format: Option<LogFormat> => "text", word(resolved.log_format),

        /// Receiver of syslog that gets each line of the log too (RFC 5424): HOST:PORT for TCP,
        /// udp:HOST:PORT, or unix:/dev/log. While it is away lines wait, up to 1 MiB, and then are
        /// dropped and counted [default: none]
        #[arg(long, env = "ANNULUS_LOG_SYSLOG", value_name = "RECEIVER")]
        pub log_syslog: Option<SyslogReceiver>
            => "text", resolved.log_syslog.as_ref().map_or_else(none, ToString::to_string),
    }
}

/// A sample that `--sample` loads.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum SampleName {
    /// 10,000 films with embeddings of their plots
    Movies,
}

/// The moment at which a write is acknowledged, by its name in settings.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityName {
    /// After the write is synced to the disk: a power cut loses no acknowledged write
    Synced,
    /// After the kernel has the write: a killed process loses no acknowledged write, a power cut
    /// those since the last sync
    Buffered,
}

/// The place of full vectors, by its name in settings.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum IndexVectors {
    /// In files that are mapped into memory, so that an index may be larger than the memory
    File,
    /// In memory, so that no search ever waits for the disk
    Memory,
}

impl IndexVectors {
    /// The placement in the terms of the index library.
    pub fn placement(self) -> FullVectorPlacement {
        match self {
            IndexVectors::File => FullVectorPlacement::File,
            IndexVectors::Memory => FullVectorPlacement::Memory,
        }
    }
}

/// TLS of `annulus serve`.
#[derive(Clone, Debug)]
pub struct ListenerTls {
    certificate: PathBuf,
    key: PathBuf,
    client_authorities: Option<PathBuf>,
    /// The contents of the files at the start.
    pub options: TlsOptions,
    /// The interval at which the files are read again.
    pub check_interval: Duration,
}

impl ListenerTls {
    /// Reads the files again.
    ///
    /// # Errors
    /// If one of them can't be read.
    pub fn read(&self) -> Result<Option<TlsOptions>, ProcessFailure> {
        let files = TlsFiles {
            certificate: Some(&self.certificate),
            key: Some(&self.key),
            client_authorities: self.client_authorities.as_deref(),
        };
        files.read()
    }
}

/// The settings, checked, with every default filled in.
#[derive(Clone, Debug)]
pub struct ResolvedSettings {
    pub data_dir: PathBuf,
    pub listen: IpAddr,
    pub cql_port: u16,
    pub http_port: u16,
    pub http_hosts: Vec<String>,
    /// The server of embeddings. `None` for none.
    pub embedder: Option<EmbedderOptions>,
    /// Whether clients have to log in.
    pub login: bool,
    pub superuser_file: Option<PathBuf>,
    /// The audit log. `None` for none.
    pub audit: Option<AuditOptions>,
    /// Whether the server may listen where others reach it, without login or TLS.
    pub insecure: bool,
    /// TLS of both listeners. `None` for none.
    pub tls: Option<ListenerTls>,
    pub datacenter: String,
    pub sample: Option<SampleName>,
    pub durability: Durability,
    pub memory: MemoryLimit,
    pub cache_bytes: u64,
    pub resident_bytes: u64,
    pub max_frame_bytes: usize,
    pub max_requests: usize,
    pub timeouts: DefaultTimeouts,
    pub index_vectors: FullVectorPlacement,
    pub index_dir: PathBuf,
    pub snapshots: SnapshotOptions,
    pub search_threads: usize,
    pub shares: SchedulingWeights,
    pub repair: RepairOptions,
    pub scrub: ScrubOptions,
    pub recall_checks: RecallCheckOptions,
    /// The locations that requests may name. Empty for any.
    pub backup_locations: Vec<LocationText>,
    pub inline_searches_within: Duration,
    pub filter_values_max: usize,
    pub partition_walk_interval: Duration,
    pub large_data: LargeDataLimits,
    pub slow_queries: SlowQueryOptions,
    pub internals: bool,
    pub log: String,
    pub log_format: LogFormat,
    /// The receiver of syslog. `None` for none.
    pub log_syslog: Option<SyslogReceiver>,
    pub guardrails: Arc<Guardrails>,
    /// The settings as the system tables show them, once they are put together.
    pub shown: Vec<node::system::ProcessSetting>,
}

impl ResolvedSettings {
    /// A fact about the audit log as it is shown; "none" without a log.
    fn of_audit(&self, fact: impl FnOnce(&AuditOptions) -> String) -> String {
        self.audit.as_ref().map_or_else(none, fact)
    }

    /// A fact about the server of embeddings as it is shown; "none" without one.
    fn of_embedder(&self, fact: impl FnOnce(&EmbedderOptions) -> String) -> String {
        self.embedder.as_ref().map_or_else(none, fact)
    }

    /// A file of TLS; `None` without TLS.
    fn of_tls(&self, file: impl FnOnce(&ListenerTls) -> Option<&PathBuf>) -> Option<&Path> {
        self.tls.as_ref().and_then(file).map(PathBuf::as_path)
    }
}

impl Settings {
    /// Fills in the defaults, and checks what can be checked without acting.
    ///
    /// # Errors
    /// If a setting can't be used.
    pub fn resolve(self) -> Result<ResolvedSettings, ProcessFailure> {
        let (tls, audit, embedder) = (self.tls()?, self.audit()?, self.embedder()?);
        let listen = self.listen.unwrap_or(IpAddr::from([127, 0, 0, 1]));
        let login = self.login.unwrap_or(false);
        if !self.insecure.unwrap_or(false) {
            check_listen(listen, login, tls.is_some())?;
        }
        let large_data = self.large_data();
        let slow_queries = slow_queries(self.slow_query_threshold, self.slow_queries_per_second)?;
        let memory = MemoryLimit::resolve(self.memory_limit)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let data_dir = self.data_dir.unwrap_or_else(|| "annulus-data".into());
        Ok(ResolvedSettings {
            index_dir: self.index_dir.unwrap_or_else(|| data_dir.join("indexes")),
            index_vectors: self
                .index_vectors
                .map_or(FullVectorPlacement::File, IndexVectors::placement),
            data_dir,
            listen,
            cql_port: self.cql_port.unwrap_or(9042),
            http_port: self.http_port.unwrap_or(6080),
            http_hosts: names(self.http_host.as_deref()),
            embedder,
            login,
            superuser_file: self.superuser_file,
            audit,
            insecure: self.insecure.unwrap_or(false),
            tls,
            datacenter: datacenter(self.datacenter)?,
            sample: sample(self.sample)?,
            durability: durability(self.durability, self.sync_interval_ms)?,
            memory,
            cache_bytes: self.cache_mib.map_or(memory.cache_bytes(), mebibytes),
            resident_bytes: self
                .in_memory_storage_size_mb
                .map_or(memory.resident_bytes(), mebibytes),
            max_frame_bytes: at_least_one(
                "max-frame-mib",
                self.max_frame_mib.unwrap_or(256) as usize,
            )? << 20,
            max_requests: at_least_one("max-requests", self.max_requests.unwrap_or(32_768))?,
            timeouts: timeouts(
                self.read_request_timeout,
                self.range_request_timeout,
                self.write_request_timeout,
            )?,
            snapshots: snapshots(self.snapshot_interval)?,
            inline_searches_within: self
                .inline_searches_us
                .map_or(store::INLINE_WITHIN, Duration::from_micros),
            filter_values_max: filter_values(self.filter_values)?,
            partition_walk_interval: interval(
                "partition-walk-interval",
                self.partition_walk_interval,
                PARTITION_WALK_INTERVAL,
            )?,
            large_data,
            slow_queries,
            internals: self.internals.unwrap_or(false),
            search_threads: at_least_one("search-threads", self.search_threads.unwrap_or(cores))?,
            shares: shares(self.search_share, self.ingest_share)?,
            repair: repairs(self.repair_interval)?,
            scrub: scrub(self.scrub_interval, self.scrub_rate_mib)?,
            recall_checks: recall_checks(self.check_interval)?,
            backup_locations: backup_locations::locations(names(self.backup_locations.as_deref()))?,
            log: self.log.unwrap_or_else(|| DEFAULT_LOG.to_owned()),
            log_format: self.log_format.unwrap_or_default(),
            log_syslog: self.log_syslog,
            guardrails: guardrails(self.guardrails, large_data)?,
            shown: Vec::new(),
        })
    }

    /// The sizes above which data is logged as large.
    fn large_data(&self) -> LargeDataLimits {
        let default = LargeDataLimits::default();
        let bytes = |mib: Option<u64>, default| mib.map_or(default, mebibytes);
        LargeDataLimits {
            partition_bytes: bytes(self.large_partition_warning_mib, default.partition_bytes),
            row_bytes: bytes(self.large_row_warning_mib, default.row_bytes),
            cell_bytes: bytes(self.large_cell_warning_mib, default.cell_bytes),
            elements: self
                .large_collection_warning_elements
                .unwrap_or(default.elements),
        }
    }

    /// The options of the audit log, if there is one.
    fn audit(&self) -> Result<Option<AuditOptions>, ProcessFailure> {
        let choices = [
            &self.audit_categories,
            &self.audit_keyspaces,
            &self.audit_exclude_roles,
        ];
        let chosen = choices.map(|text| text.as_deref().map(|text| names(Some(text))));
        audit_log::options(self.audit_log.clone(), chosen)
    }

    /// The options of the server of embeddings, if there is one.
    ///
    /// # Errors
    /// If the one setting that names it is missing.
    fn embedder(&self) -> Result<Option<EmbedderOptions>, ProcessFailure> {
        let given = GivenEmbedder {
            url: self.embeddings_url.clone(),
            model: self.embeddings_model.clone(),
            key_file: self.embeddings_key_file.clone(),
            authorities: self.embeddings_ca.clone(),
        };
        given.resolve()
    }

    /// Reads the files of the certificate, if there are any.
    fn tls(&self) -> Result<Option<ListenerTls>, ProcessFailure> {
        let check_interval = check_interval(self.tls_file_check_interval)?;
        let files = TlsFiles {
            certificate: self.tls_cert_path.as_deref(),
            key: self.tls_key_path.as_deref(),
            client_authorities: self.tls_client_ca_cert_path.as_deref(),
        };
        let (Some(options), Some(certificate), Some(key)) =
            (files.read()?, &self.tls_cert_path, &self.tls_key_path)
        else {
            return Ok(None);
        };
        Ok(Some(ListenerTls {
            certificate: certificate.clone(),
            key: key.clone(),
            client_authorities: self.tls_client_ca_cert_path.clone(),
            options,
            check_interval,
        }))
    }
}

/// The sample to load.
///
/// # Errors
/// If there is one, and this build has none.
fn sample(name: Option<SampleName>) -> Result<Option<SampleName>, ProcessFailure> {
    if name.is_some() && !cfg!(feature = "sample") {
        return Err(ProcessFailure::Configuration(
            "sample: this program was built without samples; leave the setting out, or build it \
             with the feature `sample`"
                .to_owned(),
        ));
    }
    Ok(name)
}

/// The moment at which a write is acknowledged.
///
/// # Errors
/// If the interval between syncs is zero.
fn durability(
    name: Option<DurabilityName>,
    sync_interval_ms: Option<u64>,
) -> Result<Durability, ProcessFailure> {
    let sync_interval_ms = sync_interval_ms.unwrap_or(1_000);
    if sync_interval_ms == 0 {
        return Err(ProcessFailure::Configuration(
            "sync-interval-ms must be at least 1; to sync every write use --durability synced"
                .to_owned(),
        ));
    }
    Ok(match name.unwrap_or(DurabilityName::Synced) {
        DurabilityName::Synced => Durability::Synced,
        DurabilityName::Buffered => Durability::Buffered {
            sync_interval: Duration::from_millis(sync_interval_ms),
        },
    })
}

/// The word for the moment at which a write is acknowledged.
fn durability_word(durability: Durability) -> &'static str {
    match durability {
        Durability::Synced => "synced",
        Durability::Buffered { .. } => "buffered",
    }
}

/// The milliseconds between syncs; 0 if each write is synced.
fn sync_interval_ms(durability: Durability) -> u128 {
    match durability {
        Durability::Synced => 0,
        Durability::Buffered { sync_interval } => sync_interval.as_millis(),
    }
}

/// The word for the place of full vectors.
fn placement_word(placement: FullVectorPlacement) -> &'static str {
    match placement {
        FullVectorPlacement::File => "file",
        FullVectorPlacement::Memory => "memory",
    }
}

/// The times that statements may take.
///
/// # Errors
/// If one of them is out of the bounds of timeouts.
fn timeouts(
    read: Option<HumanDuration>,
    range: Option<HumanDuration>,
    write: Option<HumanDuration>,
) -> Result<DefaultTimeouts, ProcessFailure> {
    let default = DefaultTimeouts::default();
    Ok(DefaultTimeouts {
        read: bounded("read-request-timeout", read)?.or(default.read),
        range: bounded("range-request-timeout", range)?.or(default.range),
        write: bounded("write-request-timeout", write)?.or(default.write),
    })
}

/// Refuses an address that others reach, unless clients log in and no one listens in.
fn check_listen(listen: IpAddr, login: bool, tls: bool) -> Result<(), ProcessFailure> {
    if listen.is_loopback() || login && tls {
        return Ok(());
    }
    let (missing, danger) = match (login, tls) {
        (false, false) => (
            "--login and --tls-cert-path",
            "anyone who reaches this address could read and change everything",
        ),
        (false, true) => (
            "--login",
            "anyone who reaches this address could read and change everything",
        ),
        (true, _) => (
            "--tls-cert-path",
            "passwords and rows would cross the network in clear",
        ),
    };
    Err(ProcessFailure::Configuration(format!(
        "refusing to listen on {listen} without {missing}, as {danger}; add {missing} (annulus \
         certificate makes certificates), listen on 127.0.0.1, or add --insecure if the network is \
         trusted"
    )))
}

/// The thresholds of guardrails.
fn guardrails(
    given: Option<GuardrailSettings>,
    large_data: LargeDataLimits,
) -> Result<Arc<Guardrails>, ProcessFailure> {
    let limits = given.unwrap_or_default().resolve()?;
    let guardrails =
        Guardrails::new(|guardrail| limits.get(&guardrail).copied().unwrap_or_default());
    Ok(Arc::new(guardrails.with_large_data(large_data)))
}

/// The shares of searches and of ingest.
///
/// # Errors
/// If one of them is 0: its side could wait for ever.
pub fn shares(
    search: Option<u32>,
    ingest: Option<u32>,
) -> Result<SchedulingWeights, ProcessFailure> {
    let default = SchedulingWeights::default();
    let at_least_one = |name, share: Option<u32>, default| match share.unwrap_or(default) {
        0 => Err(ProcessFailure::Configuration(format!(
            "{name} must be at least 1"
        ))),
        share => Ok(share),
    };
    Ok(SchedulingWeights {
        search: at_least_one("search-share", search, default.search)?,
        ingest: at_least_one("ingest-share", ingest, default.ingest)?,
    })
}

/// The most values in a filter.
///
/// # Errors
/// If it is zero, as there is no search without a bound.
pub fn filter_values(set: Option<usize>) -> Result<usize, ProcessFailure> {
    let default = StoreOptions::default().filter_values_max;
    at_least_one("filter-values", set.unwrap_or(default))
}

/// The options for saving indexes. An interval of zero switches snapshots off.
///
/// # Errors
/// If the interval is longer than a year.
pub fn snapshots(interval: Option<HumanDuration>) -> Result<SnapshotOptions, ProcessFailure> {
    const INTERVAL_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
    let interval = match interval {
        None => SnapshotOptions::default().interval,
        Some(HumanDuration(Duration::ZERO)) => None,
        Some(HumanDuration(interval)) if interval <= INTERVAL_MAX => Some(interval),
        Some(_) => {
            return Err(ProcessFailure::Configuration(
                "snapshot-interval must be a year at most; 0s switches snapshots off".to_owned(),
            ));
        }
    };
    Ok(SnapshotOptions {
        interval,
        ..SnapshotOptions::default()
    })
}

/// The options for repairing indexes.
///
/// # Errors
/// If the interval is out of bounds.
fn repairs(interval: Option<HumanDuration>) -> Result<RepairOptions, ProcessFailure> {
    Ok(RepairOptions {
        schedule: bounded("repair-interval", interval)?.map(schedule),
        ..RepairOptions::default()
    })
}

/// The options for checking files.
///
/// # Errors
/// If the rate is zero, or the interval is out of bounds.
pub fn scrub(
    interval: Option<HumanDuration>,
    rate_mib: Option<u64>,
) -> Result<ScrubOptions, ProcessFailure> {
    let defaults = ScrubOptions::default();
    let rate = match rate_mib {
        Some(0) => {
            let text =
                "scrub-rate-mib must be at least 1; without scrub-interval nothing is scrubbed";
            return Err(ProcessFailure::Configuration(text.to_owned()));
        }
        rate => rate.map(|mib| mib.saturating_mul(1 << 20)),
    };
    Ok(ScrubOptions {
        interval: bounded("scrub-interval", interval)?,
        bytes_a_second: rate.unwrap_or(defaults.bytes_a_second),
    })
}

/// The options for checking the recall of indexes by schedule.
///
/// # Errors
/// If the interval is out of bounds.
pub fn recall_checks(
    interval: Option<HumanDuration>,
) -> Result<RecallCheckOptions, ProcessFailure> {
    Ok(RecallCheckOptions {
        interval: bounded("check-interval", interval)?,
        ..RecallCheckOptions::default()
    })
}

/// The options of the log of slow statements.
///
/// # Errors
/// If the threshold is out of bounds.
fn slow_queries(
    threshold: Option<HumanDuration>,
    a_second: Option<u32>,
) -> Result<SlowQueryOptions, ProcessFailure> {
    let default = SlowQueryOptions::default();
    Ok(SlowQueryOptions {
        threshold: match threshold {
            None => default.threshold,
            Some(HumanDuration(Duration::ZERO)) => None,
            given => bounded("slow-query-threshold", given)?,
        },
        a_second: a_second.unwrap_or(default.a_second),
        ..default
    })
}

/// The log of slow statements of a process without tables of its own. It remembers none, as the
/// tables of `system_views` are the cluster's.
///
/// # Errors
/// If the threshold is out of bounds.
pub fn slow_log(
    threshold: Option<HumanDuration>,
    a_second: Option<u32>,
) -> Result<Arc<SlowQueries>, ProcessFailure> {
    Ok(Arc::new(SlowQueries::new(SlowQueryOptions {
        remembered: 0,
        ..slow_queries(threshold, a_second)?
    })))
}

/// Splits names at commas.
pub fn names(text: Option<&str>) -> Vec<String> {
    text.unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Checks the name of the data center, which a replication option has to be able to contain.
fn datacenter(name: Option<String>) -> Result<String, ProcessFailure> {
    let name = name.unwrap_or_else(|| node::DATA_CENTER.to_owned());
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    if name.is_empty()
        || !name.chars().all(is_word)
        || ["class", "replication_factor"].contains(&name.as_str())
    {
        return Err(ProcessFailure::Configuration(format!(
            "datacenter '{name}' is no name of a data center: letters, digits, '_', '-', '.' and ':' \
             make one, such as eu-west"
        )));
    }
    Ok(name)
}

/// The schedule of repairs at this interval, at the lowest intensity.
fn schedule(interval: Duration) -> PeriodicRepair {
    PeriodicRepair {
        interval,
        parallel: 0,
        intensity: 1,
    }
}

/// Refuses 0, with an error that names the setting.
pub fn at_least_one(name: &str, value: usize) -> Result<usize, ProcessFailure> {
    if value == 0 {
        return Err(ProcessFailure::Configuration(format!(
            "{name} must be at least 1"
        )));
    }
    Ok(value)
}

fn mebibytes(count: u64) -> u64 {
    count.saturating_mul(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_mebibytes_than_there_can_be_are_no_small_number() {
        let settings = Settings {
            in_memory_storage_size_mb: Some(1 << 44),
            cache_mib: Some(3),
            ..Settings::default()
        };
        let resolved = settings.resolve().unwrap();
        assert_eq!(resolved.resident_bytes, u64::MAX);
        assert_eq!(resolved.cache_bytes, 3 << 20);
    }

    #[test]
    fn an_address_beyond_loopback_needs_login_and_tls_or_the_word_insecure() {
        let others = IpAddr::from([0, 0, 0, 0]);
        check_listen(IpAddr::from([127, 0, 0, 1]), false, false).unwrap();
        check_listen(others, true, true).unwrap();
        for (login, tls, missing) in [
            (false, false, "without --login and --tls-cert-path"),
            (false, true, "without --login,"),
            (true, false, "without --tls-cert-path"),
        ] {
            let error = check_listen(others, login, tls).unwrap_err().to_string();
            assert!(error.contains(missing), "{error}");
        }
        let settings = Settings {
            listen: Some(others),
            ..Settings::default()
        };
        assert!(settings.clone().resolve().is_err());
        let insecure = Settings {
            insecure: Some(true),
            ..settings
        };
        assert!(insecure.resolve().is_ok());
    }

    #[test]
    fn no_side_has_a_share_of_nothing() {
        assert_eq!(shares(None, None).unwrap(), SchedulingWeights::default());
        let set = shares(Some(3), None).unwrap();
        assert_eq!((set.search, set.ingest), (3, 1));
        let error = shares(None, Some(0)).unwrap_err().to_string();
        assert!(error.contains("ingest-share must be at least 1"), "{error}");
    }

    #[test]
    fn the_data_center_has_a_name_that_replication_can_name() {
        let named = |name: &str| {
            let settings: Settings = toml::from_str(&format!("datacenter = {name:?}")).unwrap();
            settings.resolve().map(|resolved| resolved.datacenter)
        };
        assert_eq!(named("eu-west").unwrap(), "eu-west");
        for name in ["", "it's", "class", "replication_factor"] {
            assert!(named(name).is_err(), "{name}");
        }
        let default = Settings::default().resolve().unwrap();
        assert_eq!(default.datacenter, "datacenter1");
    }

    #[test]
    fn statements_have_limits_of_time_that_can_be_set() {
        let timeouts = |text: &str| {
            let settings: Settings = toml::from_str(text).unwrap();
            settings.resolve().map(|resolved| resolved.timeouts)
        };
        let seconds = |count| Some(Duration::from_secs(count));
        let default = DefaultTimeouts {
            read: seconds(5),
            range: seconds(10),
            write: seconds(2),
        };
        assert_eq!(timeouts("").unwrap(), default);
        let range = timeouts("range-request-timeout = \"1m\"").unwrap();
        assert_eq!(
            range,
            DefaultTimeouts {
                range: seconds(60),
                ..default
            }
        );
        let error = timeouts("write-request-timeout = \"0s\"").unwrap_err();
        assert!(error.to_string().contains("write-request-timeout"));
    }

    #[test]
    fn a_flag_wins_over_the_file() {
        let file: Settings = toml::from_str("cql-port = 1\nhttp-port = 2").unwrap();
        let flags = Settings {
            cql_port: Some(3),
            ..Settings::default()
        };
        let resolved = flags.or(file).resolve().unwrap();
        assert_eq!((resolved.cql_port, resolved.http_port), (3, 2));
    }

    #[test]
    fn the_files_of_indexes_lie_in_the_data_directory_unless_told_otherwise() {
        let settings: Settings = toml::from_str("data-dir = \"d\"").unwrap();
        let resolved = settings.resolve().unwrap();
        assert_eq!(resolved.index_dir, Path::new("d/indexes"));
        assert_eq!(resolved.index_vectors, FullVectorPlacement::File);
        let settings: Settings =
            toml::from_str("index-dir = \"elsewhere\"\nindex-vectors = \"memory\"").unwrap();
        let resolved = settings.resolve().unwrap();
        assert_eq!(resolved.index_dir, Path::new("elsewhere"));
        assert_eq!(resolved.index_vectors, FullVectorPlacement::Memory);
    }

    #[test]
    fn snapshots_are_taken_at_intervals_or_not_at_all() {
        let interval = |text: &str| {
            let settings: Settings = toml::from_str(text).unwrap();
            settings
                .resolve()
                .map(|resolved| resolved.snapshots.interval)
        };
        assert_eq!(interval("").unwrap(), Some(Duration::from_secs(300)));
        let thirty = interval("snapshot-interval = \"30s\"").unwrap();
        assert_eq!(thirty, Some(Duration::from_secs(30)));
        assert_eq!(interval("snapshot-interval = \"0s\"").unwrap(), None);
        assert!(interval("snapshot-interval = \"10000h\"").is_err());
        assert!(toml::from_str::<Settings>("snapshot-interval = \"soon\"").is_err());
    }

    #[test]
    fn an_unknown_name_in_the_file_is_an_error() {
        let error = toml::from_str::<Settings>("cql-prot = 1").unwrap_err();
        assert!(error.to_string().contains("cql-prot"), "{error}");
    }
}
