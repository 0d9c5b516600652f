//! The settings of `annulus gateway`: flags, environment and a TOML file. An earlier one wins over
//! a later one.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use client_memory::MemoryBudget;
use clock::OffsetClock;
use credentials::files::{self, password};
use gateway::{FreshnessOptions, GatewayOptions, InternalSessionOptions, Ring, WhenBehind};
use http_server::TokenAuthorizer;
use net::tls::{RenewableClient, ServerTls};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use store::Secret;

use crate::exit::{ProcessFailure, lacks};
use crate::gateway_tls::{CassandraCertificates, GatewayTls};
use crate::logging::{LogFormat, SyslogReceiver};
use crate::memory_limit::MemoryLimit;
use crate::settings::{at_least_one, slow_log};
use crate::settings_table::settings_table;
use crate::size::ByteSize;
use crate::span::HumanDuration;
use crate::vector_stores::VectorStores;

/// The default log filter. It includes `store_api`, which logs that an index service is available
/// again.
const DEFAULT_LOG: &str =
    "warn,annulus=info,gateway=info,store=info,store_api=info,http_server=info,slow_query=info";

/// The prefixes of the names of TLS settings; those of settings about index services follow.
const TLS_NAMES: [&str; 3] = ["tls-", "cassandra-certificate-", "cassandra-client-"];
const VECTOR_STORE_NAMES: [&str; 1] = ["vector-store-"];

/// The heading in `--help` for settings about index services.
const INDEX_SERVICES: &str = "Index services";

settings_table! {
    /// All settings. Each is optional here; [`GatewaySettings::resolve`] fills in the defaults.
    pub struct GatewaySettings {
        /// Cassandra node of this gateway [default: 127.0.0.1:9042]
        #[arg(long, env = "ANNULUS_CASSANDRA", value_name = "HOST:PORT")]
        pub cassandra: Option<String>,

        /// Cassandra user of the gateway itself, which needs all permissions on the index keyspace,
        /// and must be allowed to create and drop tables in the keyspaces of indexed tables
        #[arg(long, env = "ANNULUS_CASSANDRA_USER", value_name = "NAME")]
        pub cassandra_user: Option<String>,

        /// File with the password of that user
        #[arg(long, env = "ANNULUS_CASSANDRA_PASSWORD_FILE", value_name = "FILE")]
        pub cassandra_password_file: Option<PathBuf>,

        /// Keyspace of the cluster for the definitions of vector indexes; all gateways need the
        /// same [default: annulus]
        #[arg(long, env = "ANNULUS_INDEX_KEYSPACE", value_name = "NAME")]
        pub index_keyspace: Option<String>,

        /// Replication of that keyspace, as a CQL map, if the gateway has to create it
        ///
        /// By default each data centre has as many copies as it has nodes at that time, at most
        /// three.
        #[arg(long, env = "ANNULUS_INDEX_REPLICATION", value_name = "MAP")]
        pub index_replication: Option<String>,

        /// Hours that rows live in new change logs of indexed tables [default: 24]
        #[arg(long, env = "ANNULUS_LOG_HOURS", value_name = "HOURS")]
        pub log_hours: Option<u32>,

        /// Pass everything through, without vector indexes and without tables in the cluster
        ///
        /// Don't use it for a cluster that has vector indexes: they miss writes through such a
        /// gateway.
        #[arg(long, env = "ANNULUS_PASS_THROUGH", num_args = 0..=1, default_missing_value = "true")]
        pub pass_through: Option<bool>,

        /// Address to listen on [default: 127.0.0.1]
        ///
        /// Clients log in to Cassandra through the gateway.
        #[arg(long, env = "ANNULUS_LISTEN", value_name = "ADDRESS")]
        pub listen: Option<IpAddr>,

        /// Port for CQL drivers and cqlsh; 0 takes a free one [default: 9043]
        #[arg(long, env = "ANNULUS_CQL_PORT", value_name = "PORT")]
        pub cql_port: Option<u16>,

        /// Address and port for GET /metrics of Prometheus, such as 127.0.0.1:9180; port 0 takes a
        /// free one [default: none]
        #[arg(long, env = "ANNULUS_METRICS_LISTEN", value_name = "ADDRESS:PORT")]
        pub metrics_listen: Option<SocketAddr>,

        /// File of tokens, one in each line with a name before it or without one: then GET /metrics
        /// needs one (Authorization: Bearer). Beyond a loopback address it is refused without such
        /// a file
        #[arg(long, env = "ANNULUS_TOKEN_FILE", value_name = "FILE")]
        pub token_file: Option<PathBuf>,

        /// Address of a node for clients, and address of its gateway; give it once for each node of
        /// the cluster
        ///
        /// The first address is the node's broadcast_rpc_address, or rpc_address if that is not
        /// set. Drivers see these gateways instead of the nodes, and no node without a gateway. In
        /// the file it is a table: `[gateways]`, with lines such as "10.0.0.1:9042" =
        /// "10.0.1.1:9043".
        #[arg(
            long = "gateway",
            env = "ANNULUS_GATEWAYS",
            value_name = "NODE=GATEWAY",
            value_delimiter = ','
        )]
        #[serde(skip)]
        pub gateway_pairs: Option<Vec<GatewayPair>>,

        /// The pairs of nodes and gateways in the file.
        #[arg(skip)]
        pub gateways: Option<BTreeMap<SocketAddr, SocketAddr>>,

        /// Connections of clients at a time; more are refused [default: 10000]
        #[arg(long, env = "ANNULUS_MAX_CONNECTIONS", value_name = "N")]
        pub max_connections: Option<usize>,

        /// Largest request in MiB; Cassandra has a limit of its own, and the memory that one client
        /// may pin, which is 128 MiB and less with a small --memory-limit, binds first [default:
        /// 256]
        #[arg(long, env = "ANNULUS_MAX_FRAME_MIB", value_name = "MIB")]
        pub max_frame_mib: Option<u32>,

        /// KiB up to which a write to a table with a vector index goes in one batch with its log
        /// rows [default: 5]
        ///
        /// The size counts as Cassandra counts it, so set no more than its
        /// batch_size_warn_threshold. Larger writes get log rows before and after them.
        #[arg(long, env = "ANNULUS_MAX_BATCH_KIB", value_name = "KIB")]
        pub max_batch_kib: Option<u32>,

        /// Memory that the process may take without mapped files, such as 4GiB. At the limit new
        /// rows of an index service in this process wait. Clients can pin 512 MiB of it, or a
        /// quarter if that is less [default: half of the memory of the machine or the control
        /// group]
        #[arg(long, env = "ANNULUS_MEMORY_LIMIT", value_name = "BYTES")]
        pub memory_limit: Option<ByteSize>,

        /// Threads that serve connections [default: the number of cores]
        #[arg(long, env = "ANNULUS_ASYNC_THREADS", value_name = "N")]
        pub async_threads: Option<usize>,

        /// Log filter: a level, or directives such as gateway=debug,info [default: info, and warn
        /// for libraries]
        #[arg(long, env = "ANNULUS_LOG", value_name = "FILTER")]
        pub log: Option<String>,

        /// Format of the log [default: text]
        #[arg(long, env = "ANNULUS_LOG_FORMAT", value_name = "FORMAT")]
        pub log_format: Option<LogFormat>,

        /// Receiver of syslog that gets each line of the log too (RFC 5424): HOST:PORT for TCP,
        /// udp:HOST:PORT, or unix:/dev/log. While it is away lines wait, up to 1 MiB, and then are
        /// dropped and counted [default: none]
        #[arg(long, env = "ANNULUS_LOG_SYSLOG", value_name = "RECEIVER")]
        pub log_syslog: Option<SyslogReceiver>,

        /// Time beyond which a search, or a write to a table with a vector index, is slow: the log
        /// has it, without its literals; 0s for never [default: 500ms]
        #[arg(long, env = "ANNULUS_SLOW_QUERY_THRESHOLD", value_name = "DURATION")]
        pub slow_query_threshold: Option<HumanDuration>,

        /// Slow statements that are logged in a second; more are only counted [default: 10]
        #[arg(long, env = "ANNULUS_SLOW_QUERIES_PER_SECOND", value_name = "N")]
        pub slow_queries_per_second: Option<u32>,

        /// Milliseconds that a search waits until its index knows the newest write to the table
        /// which this gateway acknowledged; 0 for no wait [default: 250]
        #[arg(
            long,
            env = "ANNULUS_SEARCH_WAIT_MS",
            value_name = "MS",
            help_heading = INDEX_SERVICES
        )]
        pub search_wait_ms: Option<u32>,

        /// Answer of a search whose time to wait is over: the rows that the index knows with a
        /// warning, or an error [default: stale]
        #[arg(
            long,
            env = "ANNULUS_SEARCH_WHEN_BEHIND",
            value_name = "ANSWER",
            help_heading = INDEX_SERVICES
        )]
        pub search_when_behind: Option<StaleOrError>,

        /// Answer searches at consistency ONE and LOCAL_ONE without reading rows, where the index
        /// keeps all that they select and restrict
        ///
        /// Such an answer is as old as the index: it may hold values and rows that were changed or
        /// deleted a moment ago. Of writes through this gateway it knows what --search-wait-ms and
        /// --search-when-behind say.
        #[arg(
            long,
            env = "ANNULUS_ANSWER_FROM_INDEX",
            num_args = 0..=1,
            default_missing_value = "true",
            help_heading = INDEX_SERVICES
        )]
        pub answer_from_index: Option<bool>,

        /// Run the index service in this process, instead of a separate `annulus store`
        ///
        /// The index service has the settings of `annulus store`. It takes them from the
        /// environment and `.env` under the names that `annulus store --help` shows, and from the
        /// table [store] of this gateway's file under their long names; it has no flags here. Its
        /// database is this gateway, unless scylladb-uri (VECTOR_STORE_SCYLLADB_URI) names another.
        /// The gateway then uses no other index service.
        #[arg(
            long,
            env = "ANNULUS_WITH_STORE",
            num_args = 0..=1,
            default_missing_value = "true",
            help_heading = INDEX_SERVICES
        )]
        pub with_store: Option<bool>,

        /// The settings of that service in the file, which [`crate::store_service`] reads.
        #[arg(skip)]
        pub store: Option<toml::Table>,

        /// A file with a number of seconds by which this process takes the present to be later than
        /// the machine's clock. Only tests use it, to set the clock of a gateway.
        #[arg(long, hide = true, value_name = "FILE")]
        #[serde(skip)]
        pub test_clock_offset_file: Option<PathBuf>,

        // The flattened groups come last, as a heading holds for all settings that follow.
        #[command(flatten, next_help_heading = INDEX_SERVICES)]
        #[serde(skip)]
        pub vector_store: VectorStores,

        #[command(flatten, next_help_heading = "TLS")]
        #[serde(skip)]
        pub tls: GatewayTls,
    }
}

/// The answer of a search that lacks the newest writes, in its form on the command line.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum StaleOrError {
    Stale,
    Error,
}

/// A node and its gateway, in their form on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GatewayPair {
    node: SocketAddr,
    gateway: SocketAddr,
}

impl FromStr for GatewayPair {
    type Err = String;

    fn from_str(text: &str) -> Result<GatewayPair, String> {
        let (node, gateway) = text
            .split_once('=')
            .ok_or("write it as NODE=GATEWAY, such as 10.0.0.1:9042=10.0.1.1:9043")?;
        let address = |text: &str| {
            text.trim()
                .parse()
                .map_err(|_| format!("{text:?} is no IP address with a port"))
        };
        Ok(GatewayPair {
            node: address(node)?,
            gateway: address(gateway)?,
        })
    }
}

/// The settings, checked, with every default filled in.
#[derive(Debug)]
pub struct ResolvedGatewaySettings {
    /// The options of the gateway. The index services in them are those reached over sockets; there
    /// are none if this process has one.
    pub options: GatewayOptions,
    /// Whether the index service runs in this process.
    pub with_store: bool,
    /// The memory limit of the process.
    pub memory: MemoryLimit,
    /// The number of threads that serve connections.
    pub async_threads: usize,
    /// The TLS settings, whose files are read again.
    pub tls: GatewayTls,
    /// The certificate for clients; `None` for no TLS.
    pub tls_for_clients: Option<ServerTls>,
    /// The certificates for Cassandra, with the client that `options` connect with.
    pub tls_for_cassandra: Option<(CassandraCertificates, RenewableClient)>,
    /// The file of tokens, which is read again.
    pub token_file: Option<PathBuf>,
    /// The interval at which certificates and tokens are checked for changes.
    pub check_interval: Duration,
    pub log: String,
    pub log_format: LogFormat,
    /// The receiver of syslog. `None` for none.
    pub log_syslog: Option<SyslogReceiver>,
}

impl GatewaySettings {
    /// Reads the settings of a TOML file, where all of them are in one table under their long
    /// names.
    ///
    /// # Errors
    /// If a name is unknown, or a value doesn't fit its setting.
    pub fn of_file(file: toml::Table) -> Result<GatewaySettings, ProcessFailure> {
        let (mut own, mut tls, mut vector_store) = Default::default();
        for (name, value) in file {
            let begins = |names: &[&str]| names.iter().any(|front| name.starts_with(front));
            let group: &mut toml::Table = if begins(&TLS_NAMES) {
                &mut tls
            } else if begins(&VECTOR_STORE_NAMES) {
                &mut vector_store
            } else {
                &mut own
            };
            group.insert(name, value);
        }
        Ok(GatewaySettings {
            tls: read(tls)?,
            vector_store: read(vector_store)?,
            ..read(own)?
        })
    }

    /// Fills in the defaults, and checks what can be checked without acting.
    ///
    /// # Errors
    /// If a setting can't be used.
    pub fn resolve(self) -> Result<ResolvedGatewaySettings, ProcessFailure> {
        self.check_stores()?;
        let cassandra = node_address(self.cassandra)?;
        let tls_for_clients = self.tls.for_clients()?;
        let read = self.tls.for_cassandra()?;
        let with_client = read.map(|read| read.client().map(|client| (read, client)));
        let tls_for_cassandra = with_client.transpose()?;
        let of_cassandra = tls_for_cassandra.as_ref();
        let cassandra_tls = of_cassandra.map(|(_, client)| client.config());
        let catalog = match self.pass_through {
            Some(true) => None,
            _ => Some(InternalSessionOptions {
                contact_points: vec![cassandra.clone()],
                credentials: credentials(self.cassandra_user, self.cassandra_password_file)?,
                tls: cassandra_tls.clone(),
                keyspace: self.index_keyspace.unwrap_or_else(|| "annulus".to_owned()),
                replication: self.index_replication,
                log_ttl: log_ttl(self.log_hours)?,
            }),
        };
        let tokens = self.token_file.as_deref().map(files::tokens).transpose()?;
        let ring = ring(self.gateway_pairs, self.gateways.unwrap_or_default())?;
        let memory = MemoryLimit::resolve(self.memory_limit)?;
        let shares = memory.shares();
        let defaults = GatewayOptions::default();
        let max_frame_mib = self.max_frame_mib.unwrap_or(256) as usize;
        let connections_max = self.max_connections.unwrap_or(defaults.connections_max);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let async_threads = at_least_one("async-threads", self.async_threads.unwrap_or(cores))?;
        let max_frame_mib = at_least_one("max-frame-mib", max_frame_mib)?;
        Ok(ResolvedGatewaySettings {
            options: GatewayOptions {
                address: SocketAddr::new(
                    self.listen.unwrap_or(IpAddr::from([127, 0, 0, 1])),
                    self.cql_port.unwrap_or(9043),
                ),
                metrics_address: self.metrics_listen,
                tokens: Arc::new(TokenAuthorizer::new(tokens)),
                cassandra,
                cassandra_tls,
                client_tls: tls_for_clients.as_ref().map(|tls| tls.config.clone()),
                ring,
                catalog,
                connections_max: at_least_one("max-connections", connections_max)?,
                slow_queries: slow_log(self.slow_query_threshold, self.slow_queries_per_second)?,
                stores: self.vector_store.client()?.into(),
                frame_body_max: max_frame_mib << 20,
                freshness: freshness(self.search_wait_ms, self.search_when_behind),
                answer_from_index: self.answer_from_index == Some(true),
                batch_bytes_max: batch_bytes_max(self.max_batch_kib, defaults.batch_bytes_max),
                memory: MemoryBudget::new(shares.cql),
                answer_bytes_max: shares.internal,
                prepared_bytes_max: shares.prepared,
                clock: match self.test_clock_offset_file {
                    Some(file) => Arc::new(OffsetClock::new(file)),
                    None => defaults.clock,
                },
                ..defaults
            },
            with_store: self.with_store == Some(true),
            memory,
            async_threads,
            check_interval: self.tls.check_interval()?,
            token_file: self.token_file,
            tls: self.tls,
            tls_for_clients,
            tls_for_cassandra,
            log: self.log.unwrap_or_else(|| DEFAULT_LOG.to_owned()),
            log_format: self.log_format.unwrap_or_default(),
            log_syslog: self.log_syslog,
        })
    }

    /// Checks that the index service is in this process or others get the searches, but not both.
    fn check_stores(&self) -> Result<(), ProcessFailure> {
        let conflict = |other: &str, why: &str| {
            ProcessFailure::Configuration(format!(
                "with-store and {other} are both set: {why}; leave one of them out"
            ))
        };
        match self.with_store {
            Some(true) if self.pass_through == Some(true) => Err(conflict(
                "pass-through",
                "a gateway that passes everything through has no vector indexes",
            )),
            Some(true) => match self.vector_store.any_set() {
                Some(name) => Err(conflict(
                    name,
                    "a gateway with an index service in its process asks no others",
                )),
                None => Ok(()),
            },
            None if self.store.is_some() => Err(lacks("[store]", "with-store")),
            None | Some(false) => Ok(()),
        }
    }
}

fn read<T: DeserializeOwned>(settings: toml::Table) -> Result<T, ProcessFailure> {
    settings
        .try_into()
        .map_err(|error| ProcessFailure::Configuration(error.to_string().trim().replace('\n', " ")))
}

/// The address of the Cassandra node, in the form HOST:PORT.
fn node_address(cassandra: Option<String>) -> Result<String, ProcessFailure> {
    let cassandra = cassandra.unwrap_or_else(|| "127.0.0.1:9042".to_owned());
    let port = cassandra.rsplit_once(':').map(|(_, port)| port.parse());
    match port {
        Some(Ok(1u16..)) => Ok(cassandra),
        _ => Err(ProcessFailure::Configuration(format!(
            "cassandra {cassandra:?} is no HOST:PORT; write for instance 10.0.0.1:9042"
        ))),
    }
}

/// The ring of these pairs, or of those in the file if there are none on the command line.
fn ring(
    pairs: Option<Vec<GatewayPair>>,
    in_file: BTreeMap<SocketAddr, SocketAddr>,
) -> Result<Ring, ProcessFailure> {
    let pairs: Vec<_> = match pairs {
        Some(pairs) => pairs.iter().map(|pair| (pair.node, pair.gateway)).collect(),
        None => in_file.into_iter().collect(),
    };
    Ring::new(pairs).map_err(|error| ProcessFailure::Configuration(error.to_string()))
}

/// The knowledge that searches must have of acknowledged writes.
fn freshness(wait_ms: Option<u32>, when_behind: Option<StaleOrError>) -> FreshnessOptions {
    let defaults = FreshnessOptions::default();
    FreshnessOptions {
        wait: wait_ms.map_or(defaults.wait, |ms| Duration::from_millis(ms.into())),
        when_behind: match when_behind {
            None => defaults.when_behind,
            Some(StaleOrError::Stale) => WhenBehind::Stale,
            Some(StaleOrError::Error) => WhenBehind::Error,
        },
    }
}

/// The most bytes of a batch. With zero, every write gets log rows before and after it.
fn batch_bytes_max(kib: Option<u32>, default: usize) -> usize {
    kib.map_or(default, |kib| (kib as usize) << 10)
}

/// The time for which rows of change logs live.
fn log_ttl(hours: Option<u32>) -> Result<Duration, ProcessFailure> {
    const HOURS: u32 = 24;
    const HOURS_MAX: u32 = 24 * 365;
    match hours.unwrap_or(HOURS) {
        hours @ 1..=HOURS_MAX => Ok(Duration::from_secs(u64::from(hours) * 60 * 60)),
        hours => Err(ProcessFailure::Configuration(format!(
            "log-hours {hours} is out of range: 1 to {HOURS_MAX} hours, and longer than an index service may be away"
        ))),
    }
}

/// The gateway's own user with its password, which must not be on a command line.
fn credentials(
    user: Option<String>,
    password_file: Option<PathBuf>,
) -> Result<Option<(String, Secret<String>)>, ProcessFailure> {
    match (user, password_file) {
        (None, None) => Ok(None),
        (Some(user), Some(file)) => Ok(Some((user, password(&file)?))),
        (Some(_), None) => Err(lacks("cassandra-user", "cassandra-password-file")),
        (None, Some(_)) => Err(lacks("cassandra-password-file", "cassandra-user")),
    }
}

#[cfg(test)]
mod tests;
