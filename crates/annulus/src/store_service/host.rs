//! The command that runs an index service. It decides where the settings are, and some of their
//! defaults.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http_server::{MaintenanceMode, ServedFeatures, SessionFacts};
use store::{StoreOptions, UnknownKeyRule};
use web_console::SettingLine;

use super::StoreSettings;
use crate::exit::ProcessFailure;
use crate::memory_limit::MemoryLimit;

/// The command that runs an index service.
#[derive(Clone, Debug)]
pub enum ServiceHost {
    /// `annulus store`, with these command-line flags.
    Alone(Vec<OsString>),
    /// `annulus gateway`, in whose process the index service runs.
    Gateway(EnclosingGateway),
}

/// The facts about the gateway that an index service in its process needs.
#[derive(Clone, Debug)]
pub struct EnclosingGateway {
    /// The gateway's TOML file, which may have a table `[store]`.
    pub file: Option<PathBuf>,
    /// The settings of the gateway, as the console shows them.
    pub shown: Vec<SettingLine>,
    /// The address on which the gateway listens.
    pub address: SocketAddr,
    /// The demands of the gateway on clients.
    pub asks: ClientTlsPolicy,
    /// The memory limit of the process.
    pub memory: MemoryLimit,
    /// Whether the process takes no new requests.
    pub maintenance: MaintenanceMode,
}

/// The demands of a gateway on clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientTlsPolicy {
    /// No TLS.
    Nothing,
    /// TLS.
    Tls,
    /// TLS with a certificate of the client.
    Certificate,
}

impl EnclosingGateway {
    /// The address at which the gateway is reached from its own process.
    fn contact_point(&self) -> String {
        let ip = match self.address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        SocketAddr::new(ip, self.address.port()).to_string()
    }

    /// Checks that the settings of the database fit the gateway, which is the database.
    fn check(&self, set: &StoreSettings) -> Result<(), ProcessFailure> {
        let wrong = |what: &str| Err(ProcessFailure::Configuration(format!("with-store: {what}")));
        match (self.asks, &set.scylladb_certificate_file) {
            (ClientTlsPolicy::Nothing, None) | (ClientTlsPolicy::Tls, Some(_)) => Ok(()),
            (ClientTlsPolicy::Nothing, Some(_)) => wrong(
                "scylladb-certificate-file is set, but this gateway, which is the index service's database, serves in \
                 clear: leave it out, or set tls-cert-path",
            ),
            (ClientTlsPolicy::Tls, None) => wrong(
                "this gateway, which is the index service's database, serves under TLS alone (tls-cert-path): set \
                 scylladb-certificate-file in [store], or VECTOR_STORE_SCYLLADB_CERTIFICATE_FILE, to the authorities that \
                 sign its certificate",
            ),
            (ClientTlsPolicy::Certificate, _) => wrong(
                "this gateway asks for certificates (tls-client-ca-cert-path), and the index service has none to show: \
                 leave that out, or set scylladb-uri in [store] to a gateway that asks for none",
            ),
        }
    }
}

impl ServiceHost {
    /// Fills in settings that follow from the host and are not set.
    pub fn complete(&self, mut set: StoreSettings) -> Result<StoreSettings, ProcessFailure> {
        if let ServiceHost::Gateway(gateway) = self
            && set.scylladb_uri.is_none()
        {
            gateway.check(&set)?;
            set.scylladb_uri = Some(gateway.contact_point());
        }
        Ok(set)
    }

    /// The settings of the process, of which these are the index service's. Those of a gateway come
    /// first, and the others have the name of their table before them.
    pub fn shown(&self, of_store: Vec<SettingLine>) -> Vec<SettingLine> {
        let ServiceHost::Gateway(gateway) = self else {
            return of_store;
        };
        let of_store = of_store.into_iter().map(|line| SettingLine {
            name: format!("store.{}", line.name),
            ..line
        });
        gateway.shown.iter().cloned().chain(of_store).collect()
    }

    /// The facts that the console shows about the process.
    pub fn session_facts(&self, has_backups: bool, has_embeddings: bool) -> SessionFacts {
        let (program, cql) = match self {
            ServiceHost::Alone(_) => ("store", None),
            ServiceHost::Gateway(gateway) => ("gateway", Some(gateway.address)),
        };
        SessionFacts {
            program,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cql,
            features: ServedFeatures {
                search: true,
                indexes: true,
                embeddings: has_embeddings,
                backups: has_backups,
                tasks: true,
                metrics: true,
                settings: true,
                ..ServedFeatures::default()
            },
        }
    }

    /// Sets options for which there is no setting.
    pub fn adjust(&self, options: &mut StoreOptions) {
        let unknown_keys = match self {
            // ScyllaDB adds keys from version to version.
            ServiceHost::Alone(_) => UnknownKeyRule::Counted,
            ServiceHost::Gateway(_) => UnknownKeyRule::Refused,
        };
        for listener in &mut options.listeners {
            listener.unknown_keys = unknown_keys;
        }
        if let ServiceHost::Gateway(gateway) = self {
            let limit = &mut options.memory.limit_bytes;
            *limit = limit.or(gateway.memory.bytes);
            options.share_memory();
            options.maintenance = gateway.maintenance.clone();
            // The gateway stops after the index service, and the process has ten seconds for both.
            options.shutdown_timeout = Duration::from_secs(4);
        }
    }
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

    fn gateway(listen: &str, asks: ClientTlsPolicy) -> EnclosingGateway {
        EnclosingGateway {
            memory: MemoryLimit { bytes: None },
            maintenance: MaintenanceMode::default(),
            file: None,
            shown: Vec::new(),
            address: listen.parse().unwrap(),
            asks,
        }
    }

    fn complete(listen: &str, asks: ClientTlsPolicy, flags: &[&str]) -> Result<String, String> {
        let host = ServiceHost::Gateway(gateway(listen, asks));
        let line = Line::parse_from([&["annulus"], flags].concat());
        let complete = host.complete(line.settings);
        let complete = complete.map_err(|error| error.to_string())?;
        Ok(complete.scylladb_uri.unwrap())
    }

    #[test]
    fn the_gateway_is_the_database_unless_another_is_named() {
        for (listen, reached_at) in [
            ("10.0.0.1:9043", "10.0.0.1:9043"),
            ("0.0.0.0:9043", "127.0.0.1:9043"),
            ("[::]:9043", "[::1]:9043"),
        ] {
            let uri = complete(listen, ClientTlsPolicy::Nothing, &[]).unwrap();
            assert_eq!(uri, reached_at);
        }
        let named = ["--scylladb-uri", "10.0.0.2:9043"];
        for asks in [
            ClientTlsPolicy::Nothing,
            ClientTlsPolicy::Tls,
            ClientTlsPolicy::Certificate,
        ] {
            let uri = complete("10.0.0.1:9043", asks, &named);
            assert_eq!(uri.unwrap(), "10.0.0.2:9043");
        }
    }

    #[test]
    fn maintenance_is_that_of_the_gateway() {
        let gateway = gateway("10.0.0.1:9043", ClientTlsPolicy::Nothing);
        let mode = gateway.maintenance.clone();
        let mut options = StoreOptions::default();
        ServiceHost::Gateway(gateway).adjust(&mut options);
        mode.set(true);
        assert!(options.maintenance.is_on());
    }

    #[test]
    fn settings_that_the_gateway_requires_are_set() {
        let of = |asks, flags: &[&str]| complete("10.0.0.1:9043", asks, flags);
        let authorities = ["--scylladb-certificate-file", "ca.pem"];
        assert!(of(ClientTlsPolicy::Tls, &authorities).is_ok());
        for (asks, flags, named) in [
            (ClientTlsPolicy::Nothing, &authorities[..], "tls-cert-path"),
            (
                ClientTlsPolicy::Tls,
                &[],
                "VECTOR_STORE_SCYLLADB_CERTIFICATE_FILE",
            ),
            (
                ClientTlsPolicy::Certificate,
                &authorities,
                "tls-client-ca-cert-path",
            ),
        ] {
            let error = of(asks, flags).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }
}
