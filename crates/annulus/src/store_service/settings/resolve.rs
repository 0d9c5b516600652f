//! The way from settings to the options of the service.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use cpu_scheduler::CpuScheduler;
use credentials::files::{self, password, pem};
use embeddings::EmbedderOptions;
use http_server::TokenSet;
use net::tls::{TlsClients, TlsOptions};
use store::{
    ApiSocketOptions, DatabaseOptions, FullVectorPlacement, IndexesOptions, LogReadingOptions,
    MemoryOptions, PeriodicRepair, PreferredNodes, ReaderOptions, RepairOptions,
    SessionCredentials, StoreOptions,
};

use super::{AnswerOrError, StoreSettings};
use crate::embedder_settings::GivenEmbedder;
use crate::exit::{ProcessFailure, lacks};
use crate::heap;
use crate::logging::{LogFormat, SyslogReceiver};
use crate::settings::{
    DEFAULT_LOG, IndexVectors, filter_values, names, recall_checks, scrub, shares, slow_log,
    snapshots,
};
use crate::span::{bounded, distance, interval};
use crate::tls_files::{TlsFiles, check_interval};

/// A limit above the number of cores of any machine.
const THREADS_MAX: usize = 65_536;

/// The settings with every default filled in and every file read.
#[derive(Clone, Debug)]
pub struct EffectiveStoreSettings {
    /// The options of the index service.
    pub options: StoreOptions,
    /// The server of embeddings. `None` for none.
    pub embedder: Option<EmbedderOptions>,
    /// The number of threads for sockets and other work that waits.
    pub async_threads: usize,
    /// The interval at which certificates and the password file are checked for changes.
    pub check_interval: Duration,
    /// Whether a terminal gets colours in the log.
    pub colours: bool,
    pub log: String,
    pub log_format: LogFormat,
    /// The receiver of syslog. `None` for none.
    pub log_syslog: Option<SyslogReceiver>,
}

impl StoreSettings {
    /// Reads the tokens of operators; `None` if no file of them is named.
    ///
    /// # Errors
    /// If the file can't be used.
    pub fn tokens(&self) -> Result<Option<TokenSet>, ProcessFailure> {
        Ok(self.token_file.as_deref().map(files::tokens).transpose()?)
    }

    /// Fills in the defaults, reads certificates and passwords, and looks up the host names to
    /// listen on.
    ///
    /// # Errors
    /// If a setting or a file can't be used.
    pub fn resolve(self) -> Result<EffectiveStoreSettings, ProcessFailure> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let listeners = self.listeners()?;
        let database = self.database()?;
        let (cdc, embedder) = (self.cdc()?, self.embedder()?);
        let (repair_schedule, behind_gateways) = self.repair_schedules()?;
        let defaults = StoreOptions::default();
        let mut options = StoreOptions {
            service: "annulus-store".to_owned(),
            database,
            listeners,
            cdc,
            discovery_interval: interval(
                "monitor-indexes-interval",
                self.monitor_indexes_interval,
                defaults.discovery_interval,
            )?,
            full_text_indexes: self.fulltext_indexes.unwrap_or(defaults.full_text_indexes),
            indexes: IndexesOptions {
                directory: self.index_dir.unwrap_or(defaults.indexes.directory),
                vectors: self
                    .index_vectors
                    .map_or(FullVectorPlacement::File, IndexVectors::placement),
                ..defaults.indexes
            },
            snapshots: snapshots(self.snapshot_interval)?,
            memory: MemoryOptions {
                limit_bytes: self.memory_limit.map(|size| size.0),
                check_interval: interval(
                    "memory-usage-check-interval",
                    self.memory_usage_check_interval,
                    defaults.memory.check_interval,
                )?,
                give_back: heap::give_back,
                ..defaults.memory
            },
            repair: RepairOptions {
                schedule: repair_schedule,
                behind_gateways,
                ..RepairOptions::default()
            },
            scrub: scrub(self.scrub_interval, self.scrub_rate_mib)?,
            recall_checks: recall_checks(self.check_interval)?,
            turns: CpuScheduler::of_shares(
                threads("threads", self.threads.unwrap_or(cores))?,
                shares(self.search_share, self.ingest_share)?,
            ),
            inline_searches_within: self
                .inline_searches_us
                .map_or(defaults.inline_searches_within, Duration::from_micros),
            filter_values_max: filter_values(self.filter_values)?,
            when_short: self
                .when_short
                .map_or(defaults.when_short, AnswerOrError::when_short),
            slow_searches: slow_log(self.slow_query_threshold, self.slow_queries_per_second)?,
            internals: self.internals.unwrap_or(false),
            ..StoreOptions::default()
        };
        options.share_memory();
        Ok(EffectiveStoreSettings {
            options,
            embedder,
            async_threads: threads("async-threads", self.async_threads.unwrap_or(cores))?,
            check_interval: check_interval(self.tls_file_check_interval)?,
            colours: !self.disable_colors.unwrap_or(false),
            log: self.log.unwrap_or_else(|| DEFAULT_LOG.to_owned()),
            log_format: self.log_format.unwrap_or_default(),
            log_syslog: self.log_syslog,
        })
    }

    /// The listener for everyone and, if it is set, the one for clients with a certificate.
    fn listeners(&self) -> Result<Vec<ApiSocketOptions>, ProcessFailure> {
        let own = TlsFiles {
            certificate: self.tls_cert_path.as_deref(),
            key: self.tls_key_path.as_deref(),
            client_authorities: None,
        };
        let own = own.read()?;
        let tls = |clients| own.clone().map(|own| TlsOptions { clients, ..own });
        let uri = self.uri.as_deref().unwrap_or("127.0.0.1:6080");
        let names = names(self.http_host.as_deref());
        let mut listeners = vec![ApiSocketOptions {
            names: names.clone(),
            tls: tls(TlsClients::Anyone),
            ..ApiSocketOptions::new(address("uri", uri)?)
        }];
        if let Some(authorities) = &self.mtls_ca_cert_path {
            let authorities = pem(authorities)?;
            let uri = self.mtls_uri.as_deref().unwrap_or("127.0.0.1:6081");
            listeners.push(ApiSocketOptions {
                names,
                tls: Some(
                    tls(TlsClients::SignedBy(authorities))
                        .ok_or_else(|| lacks("mtls-ca-cert-path", "tls-cert-path"))?,
                ),
                ..ApiSocketOptions::new(address("mtls-uri", uri)?)
            });
        }
        Ok(listeners)
    }

    /// The server of embeddings, if there is one.
    fn embedder(&self) -> Result<Option<EmbedderOptions>, ProcessFailure> {
        let given = GivenEmbedder {
            url: self.embeddings_url.clone(),
            model: self.embeddings_model.clone(),
            key_file: self.embeddings_key_file.clone(),
            authorities: self.embeddings_ca.clone(),
        };
        given.resolve()
    }

    fn database(&self) -> Result<DatabaseOptions, ProcessFailure> {
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
            return Err(ProcessFailure::Configuration(
                "scylladb-uri names no node of the database; write HOST:PORT".to_owned(),
            ));
        }
        let credentials = match (&self.scylladb_username, &self.scylladb_password_file) {
            (Some(user), Some(file)) => Some(SessionCredentials {
                user: user.clone(),
                password: password(file)?,
            }),
            (None, None) => None,
            (Some(_), None) => return Err(lacks("scylladb-username", "scylladb-password-file")),
            (None, Some(_)) => return Err(lacks("scylladb-password-file", "scylladb-username")),
        };
        let preferred = match (&self.cql_preferred_datacenter, &self.cql_preferred_rack) {
            (Some(datacenter), rack) => Some(PreferredNodes {
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
            connect_timeout: interval(
                "cql-connection-timeout",
                self.cql_connection_timeout,
                defaults.connect_timeout,
            )?,
            certificate_authorities: certificate_authorities.transpose()?,
            preferred,
            address_map: self
                .cql_uri_translation_map
                .clone()
                .map(|map| map.0)
                .unwrap_or_default(),
            keepalive_interval: bounded("cql-keepalive-interval", self.cql_keepalive_interval)?,
            keepalive_timeout: bounded("cql-keepalive-timeout", self.cql_keepalive_timeout)?,
            tcp_keepalive_interval: bounded(
                "cql-tcp-keepalive-interval",
                self.cql_tcp_keepalive_interval,
            )?,
            ..DatabaseOptions::default()
        })
    }

    /// The schedule that is set, and the one that is used with gateways if none is set.
    fn repair_schedules(
        &self,
    ) -> Result<(Option<PeriodicRepair>, Option<PeriodicRepair>), ProcessFailure> {
        if self.repair_interval.is_some_and(|span| span.0.is_zero()) {
            return Ok((None, None));
        }
        let interval = bounded("repair-interval", self.repair_interval)?;
        if interval.is_none() && self.repair_intensity.is_some() {
            return Err(lacks("repair-intensity", "repair-interval"));
        }
        let set = interval.map(|interval| PeriodicRepair {
            interval,
            parallel: 0,
            intensity: self.repair_intensity.unwrap_or(1),
        });
        Ok((set, Some(PeriodicRepair::DAILY)))
    }

    fn cdc(&self) -> Result<LogReadingOptions, ProcessFailure> {
        let mut cdc = LogReadingOptions::default();
        let wide_safety = distance("cdc-safety-interval", self.cdc_safety_interval)?;
        let fine_safety = distance("cdc-fine-safety-interval", self.cdc_fine_safety_interval)?;
        let wide_sleep = bounded("cdc-sleep-interval", self.cdc_sleep_interval)?;
        let fine_sleep = bounded("cdc-fine-sleep-interval", self.cdc_fine_sleep_interval)?;
        let set =
            |reader: &mut ReaderOptions, safety: Option<Duration>, sleep: Option<Duration>| {
                reader.safety_interval = safety.unwrap_or(reader.safety_interval);
                reader.sleep_interval = sleep.unwrap_or(reader.sleep_interval);
            };
        for reader in &mut cdc.readers {
            match reader.name.as_str() {
                "wide" => set(reader, wide_safety, wide_sleep),
                _ => set(reader, fine_safety, fine_sleep),
            }
        }
        Ok(cdc)
    }
}

fn threads(name: &str, value: usize) -> Result<usize, ProcessFailure> {
    if !(1..=THREADS_MAX).contains(&value) {
        return Err(ProcessFailure::Configuration(format!(
            "{name} must be at least 1 and at most {THREADS_MAX}"
        )));
    }
    Ok(value)
}

fn address(name: &str, text: &str) -> Result<SocketAddr, ProcessFailure> {
    let wrong = |why: &str| {
        ProcessFailure::Configuration(format!(
            "{name} `{text}`: {why}; write HOST:PORT, as 127.0.0.1:6080"
        ))
    };
    text.to_socket_addrs()
        .map_err(|error| wrong(&error.to_string()))?
        .next()
        .ok_or_else(|| wrong("no such host"))
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

    fn resolve(arguments: &[&str]) -> Result<EffectiveStoreSettings, String> {
        let line = Line::parse_from([&["annulus"], arguments].concat());
        line.settings.resolve().map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_on_loopback_and_those_of_the_original() {
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
        assert!(options.full_text_indexes);
    }

    #[test]
    fn a_reader_may_be_at_the_heels_of_the_present() {
        let options = resolve(&["--cdc-fine-safety-interval", "0s"])
            .unwrap()
            .options;
        assert_eq!(options.cdc.readers[1].safety_interval, Duration::ZERO);
    }

    #[test]
    fn a_missing_counterpart_is_named() {
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
        assert_eq!(credentials.unwrap().password.expose(), "secret");
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
    fn an_unusable_setting_is_named() {
        for (arguments, name) in [
            (["--uri", "nonsense"], "uri `nonsense`"),
            (
                ["--tls-cert-path=/nowhere", "--tls-key-path=/nowhere"],
                "/nowhere",
            ),
            (["--scylladb-uri", " , "], "scylladb-uri"),
            (["--threads", "0"], "threads must be"),
            (["--threads", "9000000000000000000"], "threads must be"),
            (["--async-threads", "1000000"], "async-threads must be"),
            (["--filter-values", "0"], "filter-values must be at least 1"),
            (
                ["--monitor-indexes-interval", "0s"],
                "monitor-indexes-interval must be at least 1ms",
            ),
            (["--cdc-sleep-interval", "0s"], "cdc-sleep-interval must be"),
            // The library subtracts it from the time since 1970.
            (
                ["--cdc-safety-interval", "999999h"],
                "cdc-safety-interval must be at most",
            ),
            (
                ["--cql-keepalive-interval", "10us"],
                "cql-keepalive-interval must be",
            ),
            (
                ["--tls-file-check-interval", "9000h"],
                "tls-file-check-interval must be",
            ),
        ] {
            let error = resolve(&arguments).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
    }
}
