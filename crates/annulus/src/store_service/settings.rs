//! The settings of `annulus store`.

mod resolve;

use std::path::PathBuf;

use clap::ValueEnum;
use serde::Deserialize;
use store::ShortAnswerPolicy;

use super::values::{AddressTranslations, text_or_list};
use crate::logging::{LogFormat, SyslogReceiver};
use crate::settings::IndexVectors;
use crate::settings_table::settings_table;
use crate::size::ByteSize;
use crate::span::HumanDuration;
pub use resolve::EffectiveStoreSettings;

settings_table! {
    /// All settings. Each is optional here; [`StoreSettings::resolve`] fills in the defaults.
    #[command(args_override_self = true)]
    pub struct StoreSettings {
        /// TOML file with any of these settings, by their long names
        #[arg(long, env = "ANNULUS_CONFIG", value_name = "FILE")]
        pub config: Option<PathBuf>,

        /// Address of the HTTP API [default: 127.0.0.1:6080]
        #[arg(long, env = "VECTOR_STORE_URI", value_name = "HOST:PORT")]
        pub uri: Option<String>,

        /// Host names that the HTTP API answers to, separated by commas, besides those of the
        /// loopback address. On a loopback address it answers to no other name, elsewhere to any if
        /// none is given. This refuses web pages whose own host name resolves to this machine
        /// [default: none]
        #[arg(long, env = "ANNULUS_HTTP_HOST", value_name = "NAME,...")]
        #[serde(deserialize_with = "text_or_list")]
        pub http_host: Option<String>,

        /// Server that makes embeddings of sentences, of OpenAI's form, such as
        /// http://127.0.0.1:8080/v1/embeddings: with it the console searches by a sentence
        /// [default: none]
        #[arg(long, env = "ANNULUS_EMBEDDINGS_URL", value_name = "URL")]
        pub embeddings_url: Option<String>,

        /// Model that the server is to use [default: text-embedding-3-small]
        #[arg(long, env = "ANNULUS_EMBEDDINGS_MODEL", value_name = "NAME")]
        pub embeddings_model: Option<String>,

        /// File with the key of that server's API
        #[arg(long, env = "ANNULUS_EMBEDDINGS_KEY_FILE", value_name = "FILE")]
        pub embeddings_key_file: Option<PathBuf>,

        /// Authorities that sign that server's certificate, PEM [default: those of the system]
        #[arg(long, env = "ANNULUS_EMBEDDINGS_CA", value_name = "FILE")]
        pub embeddings_ca: Option<PathBuf>,

        /// Certificate for HTTPS on the same port, PEM; with it searches without TLS get 403
        #[arg(long, env = "VECTOR_STORE_TLS_CERT_PATH", value_name = "FILE")]
        pub tls_cert_path: Option<PathBuf>,

        /// Key of the certificate, PEM
        #[arg(long, env = "VECTOR_STORE_TLS_KEY_PATH", value_name = "FILE")]
        pub tls_key_path: Option<PathBuf>,

        /// Interval at which certificates and the files of the password and of tokens are checked
        /// for changes [default: 30s]
        #[arg(
            long,
            env = "VECTOR_STORE_TLS_FILE_CHECK_INTERVAL",
            value_name = "DURATION"
        )]
        pub tls_file_check_interval: Option<HumanDuration>,

        /// Address for clients with a certificate, if --mtls-ca-cert-path is set [default:
        /// 127.0.0.1:6081]
        #[arg(long, env = "VECTOR_STORE_MTLS_URI", value_name = "HOST:PORT")]
        pub mtls_uri: Option<String>,

        /// Authorities that sign clients' certificates, PEM
        #[arg(long, env = "VECTOR_STORE_MTLS_CA_CERT_PATH", value_name = "FILE")]
        pub mtls_ca_cert_path: Option<PathBuf>,

        /// File of tokens, one in each line with a name before it or without one: then all but
        /// searches and states needs one (Authorization: Bearer). Beyond a loopback address these
        /// requests are refused without such a file
        #[arg(long, env = "ANNULUS_TOKEN_FILE", value_name = "FILE")]
        pub token_file: Option<PathBuf>,

        /// Nodes of the database to contact first, separated by commas [default: 127.0.0.1:9042]
        #[arg(long, env = "VECTOR_STORE_SCYLLADB_URI", value_name = "HOST:PORT,...")]
        #[serde(deserialize_with = "text_or_list")]
        pub scylladb_uri: Option<String>,

        /// User of the database
        #[arg(long, env = "VECTOR_STORE_SCYLLADB_USERNAME", value_name = "NAME")]
        pub scylladb_username: Option<String>,

        /// File with the user's password
        #[arg(long, env = "VECTOR_STORE_SCYLLADB_PASSWORD_FILE", value_name = "FILE")]
        pub scylladb_password_file: Option<PathBuf>,

        /// Authorities that sign the database's certificates, PEM; with it the service talks TLS to
        /// the database
        #[arg(
            long,
            env = "VECTOR_STORE_SCYLLADB_CERTIFICATE_FILE",
            value_name = "FILE"
        )]
        pub scylladb_certificate_file: Option<PathBuf>,

        /// Log without colours
        #[arg(long, env = "VECTOR_STORE_DISABLE_COLORS", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
        pub disable_colors: Option<bool>,

        /// Searches computed at a time, and threads that build indexes [default: the number of
        /// cores]
        #[arg(long, env = "VECTOR_STORE_THREADS", value_name = "N")]
        pub threads: Option<usize>,

        /// Weight of searches against --ingest-share, where both want the processors [default: 1]
        #[arg(long, env = "ANNULUS_SEARCH_SHARE", value_name = "N")]
        pub search_share: Option<u32>,

        /// Weight of the building of indexes against --search-share [default: 1]
        #[arg(long, env = "ANNULUS_INGEST_SHARE", value_name = "N")]
        pub ingest_share: Option<u32>,

        /// Threads for sockets and other work that waits [default: the number of cores]
        #[arg(long, env = "ANNULUS_ASYNC_THREADS", value_name = "N")]
        pub async_threads: Option<usize>,

        /// Microseconds: a search for few rows is computed on the thread of its socket while the
        /// mean search takes no longer than this; 0 for never [default: 1000]
        #[arg(long, env = "ANNULUS_INLINE_SEARCHES_US", value_name = "US")]
        pub inline_searches_us: Option<u64>,

        /// Time beyond which a search is slow: the log has it, without its values; 0s for never
        /// [default: 500ms]
        #[arg(long, env = "ANNULUS_SLOW_QUERY_THRESHOLD", value_name = "DURATION")]
        pub slow_query_threshold: Option<HumanDuration>,

        /// Slow searches that are logged in a second; more are only counted [default: 10]
        #[arg(long, env = "ANNULUS_SLOW_QUERIES_PER_SECOND", value_name = "N")]
        pub slow_queries_per_second: Option<u32>,

        /// Memory that the process may take without mapped files; at the limit new rows wait
        /// [default: the memory of the machine or the control group, less 1 % or 200 MB]
        #[arg(long, env = "VECTOR_STORE_MEMORY_LIMIT", value_name = "BYTES")]
        pub memory_limit: Option<ByteSize>,

        /// Answer of a search while its index has had no room for some rows of the table: from what
        /// the index holds (`answer`; JSON says `"short": true`), or 503 (`error`) [default:
        /// answer]
        #[arg(long, env = "ANNULUS_WHEN_SHORT", value_name = "WHAT")]
        pub when_short: Option<AnswerOrError>,

        /// Interval at which used memory is measured [default: 1s]
        #[arg(
            long,
            env = "VECTOR_STORE_MEMORY_USAGE_CHECK_INTERVAL",
            value_name = "DURATION"
        )]
        pub memory_usage_check_interval: Option<HumanDuration>,

        /// Longest time that a connection to the database may take to open [default: 5s]
        #[arg(
            long,
            env = "VECTOR_STORE_CQL_CONNECTION_TIMEOUT",
            value_name = "DURATION"
        )]
        pub cql_connection_timeout: Option<HumanDuration>,

        /// Interval at which an idle connection to the database is probed by a request [default:
        /// the driver's, 30s]
        #[arg(
            long,
            env = "VECTOR_STORE_CQL_KEEPALIVE_INTERVAL",
            value_name = "DURATION"
        )]
        pub cql_keepalive_interval: Option<HumanDuration>,

        /// Longest time that the answer to such a probe may take [default: the driver's, 30s]
        #[arg(
            long,
            env = "VECTOR_STORE_CQL_KEEPALIVE_TIMEOUT",
            value_name = "DURATION"
        )]
        pub cql_keepalive_timeout: Option<HumanDuration>,

        /// TCP keepalive interval of connections to the database [default: none]
        #[arg(
            long,
            env = "VECTOR_STORE_CQL_TCP_KEEPALIVE_INTERVAL",
            value_name = "DURATION"
        )]
        pub cql_tcp_keepalive_interval: Option<HumanDuration>,

        /// Addresses that nodes report, and those at which this service reaches them, as a JSON
        /// object: {"theirs:port": "ours:port"}
        #[arg(
            long,
            env = "VECTOR_STORE_CQL_URI_TRANSLATION_MAP",
            value_name = "JSON"
        )]
        pub cql_uri_translation_map: Option<AddressTranslations>,

        /// Data centre whose nodes are used first
        #[arg(
            long,
            env = "VECTOR_STORE_CQL_PREFERRED_DATACENTER",
            value_name = "NAME"
        )]
        pub cql_preferred_datacenter: Option<String>,

        /// Rack of that data centre whose nodes are used before the others
        #[arg(long, env = "VECTOR_STORE_CQL_PREFERRED_RACK", value_name = "NAME")]
        pub cql_preferred_rack: Option<String>,

        /// Age that log rows need before the reader that misses no row reads them [default: 30s]
        #[arg(
            long,
            env = "VECTOR_STORE_CDC_SAFETY_INTERVAL",
            value_name = "DURATION"
        )]
        pub cdc_safety_interval: Option<HumanDuration>,

        /// Pause between two reads of that reader [default: 10s]
        #[arg(long, env = "VECTOR_STORE_CDC_SLEEP_INTERVAL", value_name = "DURATION")]
        pub cdc_sleep_interval: Option<HumanDuration>,

        /// Age that log rows need before the quick reader reads them [default: 100ms]
        #[arg(
            long,
            env = "VECTOR_STORE_CDC_FINE_SAFETY_INTERVAL",
            value_name = "DURATION"
        )]
        pub cdc_fine_safety_interval: Option<HumanDuration>,

        /// Pause between two reads of that reader [default: 500ms]
        #[arg(
            long,
            env = "VECTOR_STORE_CDC_FINE_SLEEP_INTERVAL",
            value_name = "DURATION"
        )]
        pub cdc_fine_sleep_interval: Option<HumanDuration>,

        /// Interval at which the schema of the database is checked for changes [default: 1s]
        #[arg(
            long,
            env = "VECTOR_STORE_MONITOR_INDEXES_INTERVAL",
            value_name = "DURATION"
        )]
        pub monitor_indexes_interval: Option<HumanDuration>,

        /// Whether full-text indexes are built; without them they are as if they were not there
        /// [default: true]
        #[arg(long, env = "VECTOR_STORE_FULLTEXT_INDEXES", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
        pub fulltext_indexes: Option<bool>,

        /// Place of the full vectors of indexes [default: file]
        #[arg(long, env = "ANNULUS_INDEX_VECTORS", value_name = "WHERE")]
        pub index_vectors: Option<IndexVectors>,

        /// Directory for the files of indexes; created if missing [default: annulus-indexes]
        #[arg(long, env = "ANNULUS_INDEX_DIR", value_name = "DIR")]
        pub index_dir: Option<PathBuf>,

        /// Time from a snapshot of an index to the next one, if something has changed. With 0s no
        /// snapshots are taken or used, and every start builds all indexes [default: 5m]
        #[arg(long, env = "ANNULUS_SNAPSHOT_INTERVAL", value_name = "DURATION")]
        pub snapshot_interval: Option<HumanDuration>,

        /// Interval at which every index is compared with its table and mended, such as 7d; 0s for
        /// never. An index may have a schedule of its own (`annulus repair update`) [default: 1d if
        /// the database is Apache Cassandra with gateways, else never]
        #[arg(long, env = "ANNULUS_REPAIR_INTERVAL", value_name = "DURATION")]
        pub repair_interval: Option<HumanDuration>,

        /// Token ranges that such a repair compares at a time; 0 for as many as the nodes allow,
        /// which is also the limit [default: 1]
        #[arg(long, env = "ANNULUS_REPAIR_INTENSITY", value_name = "N")]
        pub repair_intensity: Option<usize>,

        /// Interval at which the snapshots of indexes are read and their checksums checked, such as
        /// 7d; `annulus scrub` does it at once [default: never]
        #[arg(long, env = "ANNULUS_SCRUB_INTERVAL", value_name = "DURATION")]
        pub scrub_interval: Option<HumanDuration>,

        /// MiB that such a scrub may read in a second [default: 32]
        #[arg(long, env = "ANNULUS_SCRUB_RATE_MIB", value_name = "MIB")]
        pub scrub_rate_mib: Option<u64>,

        /// Interval at which the recall of every vector index is measured, such as 1d; `annulus
        /// check` does it at once [default: never]
        #[arg(long, env = "ANNULUS_CHECK_INTERVAL", value_name = "DURATION")]
        pub check_interval: Option<HumanDuration>,

        /// Values in the filter of a search, of which a tuple has several; more are refused with
        /// 400 [default: 100000]
        #[arg(long, env = "ANNULUS_FILTER_VALUES", value_name = "N")]
        pub filter_values: Option<usize>,

        /// Test hooks of the HTTP API under /api/internals, which count events [default: false]
        #[arg(long, env = "ANNULUS_INTERNALS", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
        pub internals: Option<bool>,

        /// Log filter: a level, or directives such as store=debug,info [default: info, and warn for
        /// libraries]
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
    }
}

/// The outcome of a search whose answer may lack rows, in its form on the command line.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum AnswerOrError {
    Answer,
    Error,
}

impl AnswerOrError {
    fn when_short(self) -> ShortAnswerPolicy {
        match self {
            AnswerOrError::Answer => ShortAnswerPolicy::Answer,
            AnswerOrError::Error => ShortAnswerPolicy::Error,
        }
    }
}
