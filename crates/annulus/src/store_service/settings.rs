//! The settings of `annulus store`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use store::{
    CdcOptions, Credentials, DatabaseOptions, IndexesOptions, ListenerOptions, MemoryOptions, Pem,
    Placement, Preferred, ReaderOptions, StoreOptions, TlsClients, TlsOptions,
};

use super::values::{AddressMap, Size, Span};
use crate::exit::Failure;
use crate::logging::LogFormat;
use crate::settings::{DEFAULT_LOG, IndexVectors};

/// What may be set. Everything is optional here; [`StoreSettings::resolve`] fills in the defaults.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct StoreSettings {
    /// TOML file with any of these settings, by their long names
    #[arg(long, env = "ANNULUS_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Where the HTTP API is served [default: 127.0.0.1:6080]
    #[arg(long, env = "VECTOR_STORE_URI", value_name = "HOST:PORT")]
    pub uri: Option<String>,

    /// Certificate for HTTPS on the same port, PEM; searches in clear get 403 then
    #[arg(long, env = "VECTOR_STORE_TLS_CERT_PATH", value_name = "FILE")]
    pub tls_cert_path: Option<PathBuf>,

    /// Key of the certificate, PEM
    #[arg(long, env = "VECTOR_STORE_TLS_KEY_PATH", value_name = "FILE")]
    pub tls_key_path: Option<PathBuf>,

    /// How often all settings and files are looked at for changes [default: 30s]
    #[arg(
        long,
        env = "VECTOR_STORE_TLS_FILE_CHECK_INTERVAL",
        value_name = "DURATION"
    )]
    pub tls_file_check_interval: Option<Span>,

    /// Where clients with a certificate are served, if there is a --mtls-ca-cert-path [default: 127.0.0.1:6081]
    #[arg(long, env = "VECTOR_STORE_MTLS_URI", value_name = "HOST:PORT")]
    pub mtls_uri: Option<String>,

    /// Authorities that sign clients' certificates, PEM
    #[arg(long, env = "VECTOR_STORE_MTLS_CA_CERT_PATH", value_name = "FILE")]
    pub mtls_ca_cert_path: Option<PathBuf>,

    /// Nodes of the database to begin with, separated by commas [default: 127.0.0.1:9042]
    #[arg(long, env = "VECTOR_STORE_SCYLLADB_URI", value_name = "HOST:PORT,...")]
    pub scylladb_uri: Option<String>,

    /// User of the database
    #[arg(long, env = "VECTOR_STORE_SCYLLADB_USERNAME", value_name = "NAME")]
    pub scylladb_username: Option<String>,

    /// File with the user's password
    #[arg(long, env = "VECTOR_STORE_SCYLLADB_PASSWORD_FILE", value_name = "FILE")]
    pub scylladb_password_file: Option<PathBuf>,

    /// Authorities that sign the database's certificates, PEM; the database is talked to in TLS then
    #[arg(
        long,
        env = "VECTOR_STORE_SCYLLADB_CERTIFICATE_FILE",
        value_name = "FILE"
    )]
    pub scylladb_certificate_file: Option<PathBuf>,

    /// Log without colours
    #[arg(long, env = "VECTOR_STORE_DISABLE_COLORS", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub disable_colors: Option<bool>,

    /// Searches computed at once, and threads that build indexes [default: the number of cores]
    #[arg(long, env = "VECTOR_STORE_THREADS", value_name = "N")]
    pub threads: Option<usize>,

    /// Threads for sockets and everything else that waits [default: the number of cores]
    #[arg(long, env = "ANNULUS_ASYNC_THREADS", value_name = "N")]
    pub async_threads: Option<usize>,

    /// Memory that the process may take, mapped files aside; beyond it new rows wait
    /// [default: what the machine or the control group has, less 1 % or 200 MB]
    #[arg(long, env = "VECTOR_STORE_MEMORY_LIMIT", value_name = "BYTES")]
    pub memory_limit: Option<Size>,

    /// How often used memory is looked at [default: 1s]
    #[arg(
        long,
        env = "VECTOR_STORE_MEMORY_USAGE_CHECK_INTERVAL",
        value_name = "DURATION"
    )]
    pub memory_usage_check_interval: Option<Span>,

    /// How long a connection to the database may take to open [default: 5s]
    #[arg(
        long,
        env = "VECTOR_STORE_CQL_CONNECTION_TIMEOUT",
        value_name = "DURATION"
    )]
    pub cql_connection_timeout: Option<Span>,

    /// How often an idle connection to the database is tried [default: the driver's, 30s]
    #[arg(
        long,
        env = "VECTOR_STORE_CQL_KEEPALIVE_INTERVAL",
        value_name = "DURATION"
    )]
    pub cql_keepalive_interval: Option<Span>,

    /// How long the answer to that may take [default: the driver's, 30s]
    #[arg(
        long,
        env = "VECTOR_STORE_CQL_KEEPALIVE_TIMEOUT",
        value_name = "DURATION"
    )]
    pub cql_keepalive_timeout: Option<Span>,

    /// How often the system tries an idle connection to the database [default: never]
    #[arg(
        long,
        env = "VECTOR_STORE_CQL_TCP_KEEPALIVE_INTERVAL",
        value_name = "DURATION"
    )]
    pub cql_tcp_keepalive_interval: Option<Span>,

    /// Where nodes are reached that give other addresses, a JSON object: {"theirs:port": "ours:port"}
    #[arg(
        long,
        env = "VECTOR_STORE_CQL_URI_TRANSLATION_MAP",
        value_name = "JSON"
    )]
    pub cql_uri_translation_map: Option<AddressMap>,

    /// Data centre whose nodes are asked first
    #[arg(
        long,
        env = "VECTOR_STORE_CQL_PREFERRED_DATACENTER",
        value_name = "NAME"
    )]
    pub cql_preferred_datacenter: Option<String>,

    /// Rack of that data centre whose nodes are asked before the others
    #[arg(long, env = "VECTOR_STORE_CQL_PREFERRED_RACK", value_name = "NAME")]
    pub cql_preferred_rack: Option<String>,

    /// Log rows younger than this are left to the next read of the reader that misses none [default: 30s]
    #[arg(
        long,
        env = "VECTOR_STORE_CDC_SAFETY_INTERVAL",
        value_name = "DURATION"
    )]
    pub cdc_safety_interval: Option<Span>,

    /// Pause between two reads of that reader [default: 10s]
    #[arg(long, env = "VECTOR_STORE_CDC_SLEEP_INTERVAL", value_name = "DURATION")]
    pub cdc_sleep_interval: Option<Span>,

    /// Log rows younger than this are left to the next read of the reader that is quick [default: 100ms]
    #[arg(
        long,
        env = "VECTOR_STORE_CDC_FINE_SAFETY_INTERVAL",
        value_name = "DURATION"
    )]
    pub cdc_fine_safety_interval: Option<Span>,

    /// Pause between two reads of that reader [default: 500ms]
    #[arg(
        long,
        env = "VECTOR_STORE_CDC_FINE_SLEEP_INTERVAL",
        value_name = "DURATION"
    )]
    pub cdc_fine_sleep_interval: Option<Span>,

    /// How often the database is asked whether its schema has changed [default: 1s]
    #[arg(
        long,
        env = "VECTOR_STORE_MONITOR_INDEXES_INTERVAL",
        value_name = "DURATION"
    )]
    pub monitor_indexes_interval: Option<Span>,

    /// Where the full vectors of indexes are kept [default: file]
    #[arg(long, env = "ANNULUS_INDEX_VECTORS", value_name = "WHERE")]
    pub index_vectors: Option<IndexVectors>,

    /// Where the files of indexes lie; created if missing [default: annulus-indexes]
    #[arg(long, env = "ANNULUS_INDEX_DIR", value_name = "DIR")]
    pub index_dir: Option<PathBuf>,

    /// What is logged: a level, or directives such as store=debug,info [default: info, and warn for libraries]
    #[arg(long, env = "ANNULUS_LOG", value_name = "FILTER")]
    pub log: Option<String>,

    /// How it is logged [default: text]
    #[arg(long, env = "ANNULUS_LOG_FORMAT", value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,
}

/// Settings with every default filled in and every file read.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub options: StoreOptions,
    pub async_threads: usize,
    pub check_interval: Duration,
    pub colours: bool,
    pub log: String,
    pub log_format: LogFormat,
}

impl StoreSettings {
    /// Fills in the defaults, reads certificates and passwords, looks up names of hosts to listen
    /// on.
    pub fn resolve(self) -> Result<Resolved, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let listeners = self.listeners()?;
        let database = self.database()?;
        let cdc = self.cdc();
        let defaults = StoreOptions::default();
        let options = StoreOptions {
            service: "annulus-store".to_owned(),
            database,
            listeners,
            cdc,
            discovery_interval: or(self.monitor_indexes_interval, defaults.discovery_interval),
            indexes: IndexesOptions {
                directory: self.index_dir.unwrap_or(defaults.indexes.directory),
                vectors: self
                    .index_vectors
                    .map_or(Placement::File, IndexVectors::placement),
            },
            memory: MemoryOptions {
                limit_bytes: self.memory_limit.map(|size| size.0),
                check_interval: or(
                    self.memory_usage_check_interval,
                    defaults.memory.check_interval,
                ),
            },
            compute_threads: at_least_one("threads", self.threads.unwrap_or(cores))?,
            ..StoreOptions::default()
        };
        Ok(Resolved {
            options,
            async_threads: at_least_one("async-threads", self.async_threads.unwrap_or(cores))?,
            check_interval: or(self.tls_file_check_interval, Duration::from_secs(30)),
            colours: !self.disable_colors.unwrap_or(false),
            log: self.log.unwrap_or_else(|| DEFAULT_LOG.to_owned()),
            log_format: self.log_format.unwrap_or_default(),
        })
    }

    /// The listener for everyone, and that for clients with a certificate if there is to be one.
    fn listeners(&self) -> Result<Vec<ListenerOptions>, Failure> {
        let own = match (&self.tls_cert_path, &self.tls_key_path) {
            (Some(certificate), Some(key)) => Some((pem(certificate)?, pem(key)?)),
            (None, None) => None,
            (Some(_), None) => return Err(lacks("tls-cert-path", "tls-key-path")),
            (None, Some(_)) => return Err(lacks("tls-key-path", "tls-cert-path")),
        };
        let tls = |clients| {
            own.clone().map(|(certificates, key)| TlsOptions {
                certificates,
                key,
                clients,
            })
        };
        let uri = self.uri.as_deref().unwrap_or("127.0.0.1:6080");
        let mut listeners = vec![ListenerOptions {
            tls: tls(TlsClients::Anyone),
            ..ListenerOptions::new(address("uri", uri)?)
        }];
        if let Some(authorities) = &self.mtls_ca_cert_path {
            let authorities = pem(authorities)?;
            let uri = self.mtls_uri.as_deref().unwrap_or("127.0.0.1:6081");
            listeners.push(ListenerOptions {
                tls: Some(
                    tls(TlsClients::SignedBy(authorities))
                        .ok_or_else(|| lacks("mtls-ca-cert-path", "tls-cert-path"))?,
                ),
                ..ListenerOptions::new(address("mtls-uri", uri)?)
            });
        }
        Ok(listeners)
    }

    fn database(&self) -> Result<DatabaseOptions, Failure> {
        let defaults = DatabaseOptions::default();
        let contact_points = match &self.scylladb_uri {
            Some(uris) => uris
                .split(',')
                .map(|uri| uri.trim().to_owned())
                .filter(|uri| !uri.is_empty())
                .collect(),
            None => defaults.contact_points,
        };
        if contact_points.is_empty() {
            return Err(Failure::Configuration(
                "scylladb-uri names no node of the database; write HOST:PORT".to_owned(),
            ));
        }
        let credentials = match (&self.scylladb_username, &self.scylladb_password_file) {
            (Some(user), Some(file)) => Some(Credentials {
                user: user.clone(),
                password: password(file)?,
            }),
            (None, None) => None,
            (Some(_), None) => return Err(lacks("scylladb-username", "scylladb-password-file")),
            (None, Some(_)) => return Err(lacks("scylladb-password-file", "scylladb-username")),
        };
        let preferred = match (&self.cql_preferred_datacenter, &self.cql_preferred_rack) {
            (Some(datacenter), rack) => Some(Preferred {
                datacenter: datacenter.clone(),
                rack: rack.clone(),
            }),
            (None, Some(_)) => return Err(lacks("cql-preferred-rack", "cql-preferred-datacenter")),
            (None, None) => None,
        };
        let certificate_authorities = self.scylladb_certificate_file.as_deref().map(pem);
        Ok(DatabaseOptions {
            contact_points,
            credentials,
            connect_timeout: or(self.cql_connection_timeout, defaults.connect_timeout),
            certificate_authorities: certificate_authorities.transpose()?,
            preferred,
            address_map: self
                .cql_uri_translation_map
                .clone()
                .map(|map| map.0)
                .unwrap_or_default(),
            keepalive_interval: self.cql_keepalive_interval.map(|span| span.0),
            keepalive_timeout: self.cql_keepalive_timeout.map(|span| span.0),
            tcp_keepalive_interval: self.cql_tcp_keepalive_interval.map(|span| span.0),
            ..DatabaseOptions::default()
        })
    }

    fn cdc(&self) -> CdcOptions {
        let mut cdc = CdcOptions::default();
        let set = |reader: &mut ReaderOptions, safety: Option<Span>, sleep: Option<Span>| {
            reader.safety_interval = or(safety, reader.safety_interval);
            reader.sleep_interval = or(sleep, reader.sleep_interval);
        };
        for reader in &mut cdc.readers {
            match reader.name.as_str() {
                "wide" => set(reader, self.cdc_safety_interval, self.cdc_sleep_interval),
                _ => set(
                    reader,
                    self.cdc_fine_safety_interval,
                    self.cdc_fine_sleep_interval,
                ),
            }
        }
        cdc
    }
}

fn or(span: Option<Span>, default: Duration) -> Duration {
    span.map_or(default, |span| span.0)
}

fn lacks(given: &str, missing: &str) -> Failure {
    Failure::Configuration(format!("{given} is set, but {missing} is not: set both"))
}

fn at_least_one(name: &str, value: usize) -> Result<usize, Failure> {
    if value == 0 {
        return Err(Failure::Configuration(format!("{name} must be at least 1")));
    }
    Ok(value)
}

fn address(name: &str, text: &str) -> Result<SocketAddr, Failure> {
    let wrong = |why: &str| {
        Failure::Configuration(format!(
            "{name} `{text}`: {why}; write HOST:PORT, as 127.0.0.1:6080"
        ))
    };
    text.to_socket_addrs()
        .map_err(|error| wrong(&error.to_string()))?
        .next()
        .ok_or_else(|| wrong("no such host"))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::Configuration(format!("{}: {error}", path.display())))
}

fn pem(path: &Path) -> Result<Pem, Failure> {
    Ok(Pem {
        bytes: read(path)?.into(),
        origin: path.display().to_string(),
    })
}

/// What stands in the file, without the line break at its end.
fn password(path: &Path) -> Result<String, Failure> {
    let text = String::from_utf8(read(path)?).map_err(|_| {
        Failure::Configuration(format!("{}: the password is not UTF-8", path.display()))
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: StoreSettings,
    }

    fn resolve(arguments: &[&str]) -> Result<Resolved, String> {
        let line = Line::parse_from([&["annulus"], arguments].concat());
        line.settings.resolve().map_err(|error| error.to_string())
    }

    #[test]
    fn unless_told_otherwise_all_is_on_loopback_and_as_the_original_has_it() {
        let options = resolve(&[]).unwrap().options;
        let addresses = options.listeners.iter().map(|l| l.address.to_string());
        assert_eq!(addresses.collect::<Vec<_>>(), ["127.0.0.1:6080"]);
        assert_eq!(options.database.contact_points, ["127.0.0.1:9042"]);
        let readers = options.cdc.readers.iter();
        let readers: Vec<_> = readers
            .map(|reader| {
                let ms = |span: Duration| span.as_millis();
                (
                    reader.name.as_str(),
                    ms(reader.safety_interval),
                    ms(reader.sleep_interval),
                )
            })
            .collect();
        assert_eq!(readers, [("wide", 30_000, 10_000), ("fine", 100, 500)]);
        assert_eq!(options.discovery_interval, Duration::from_secs(1));
    }

    #[test]
    fn what_belongs_together_is_set_together() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "secret\n").unwrap();
        let file = file.to_str().unwrap();
        for (given, missing) in [
            ("--tls-cert-path", "tls-key-path"),
            ("--tls-key-path", "tls-cert-path"),
            ("--mtls-ca-cert-path", "tls-cert-path"),
            ("--scylladb-username", "scylladb-password-file"),
            ("--scylladb-password-file", "scylladb-username"),
            ("--cql-preferred-rack", "cql-preferred-datacenter"),
        ] {
            let error = resolve(&[given, file]).unwrap_err();
            assert!(error.contains(&format!("{missing} is not")), "{error}");
        }
        let both = ["--scylladb-username", "u", "--scylladb-password-file", file];
        let credentials = resolve(&both).unwrap().options.database.credentials;
        assert_eq!(credentials.unwrap().password, "secret");
        let mtls = [
            "--tls-cert-path",
            file,
            "--tls-key-path",
            file,
            "--mtls-ca-cert-path",
            file,
        ];
        let listeners = resolve(&mtls).unwrap().options.listeners;
        let clients = listeners.iter().map(|l| &l.tls.as_ref().unwrap().clients);
        let clients: Vec<_> = clients.collect();
        assert!(matches!(
            clients[..],
            [TlsClients::Anyone, TlsClients::SignedBy(_)]
        ));
    }

    #[test]
    fn what_can_not_be_used_is_named() {
        for (arguments, name) in [
            (["--uri", "nonsense"], "uri `nonsense`"),
            (
                ["--tls-cert-path=/nowhere", "--tls-key-path=/nowhere"],
                "/nowhere",
            ),
            (["--scylladb-uri", " , "], "scylladb-uri"),
            (["--threads", "0"], "threads"),
        ] {
            let error = resolve(&arguments).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
    }
}
