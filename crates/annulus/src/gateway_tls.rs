//! TLS of a gateway, towards clients and towards Cassandra: settings, and the files that they name.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustls::ServerConfig;
use serde::Deserialize;
use store::tls::RenewableClient;
use store::{Pem, TlsClients, TlsOptions, tls};

use crate::exit::Failure;
use crate::files::pem;
use crate::settings::lacks;
use crate::span::{Span, interval};

/// TLS; without any of these nothing is encrypted.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GatewayTls {
    /// Certificate of this gateway, PEM; clients are served under TLS alone then
    #[arg(long, env = "ANNULUS_TLS_CERT_PATH", value_name = "FILE")]
    pub tls_cert_path: Option<PathBuf>,

    /// Key of the certificate, PEM
    #[arg(long, env = "ANNULUS_TLS_KEY_PATH", value_name = "FILE")]
    pub tls_key_path: Option<PathBuf>,

    /// Authorities that sign clients' certificates, PEM; nobody without such a certificate is served then
    #[arg(long, env = "ANNULUS_TLS_CLIENT_CA_CERT_PATH", value_name = "FILE")]
    pub tls_client_ca_cert_path: Option<PathBuf>,

    /// How often the files of certificates are looked at for changes; SIGHUP does it at once [default: 30s]
    #[arg(long, env = "ANNULUS_TLS_FILE_CHECK_INTERVAL", value_name = "DURATION")]
    pub tls_file_check_interval: Option<Span>,

    /// Authorities that sign Cassandra's certificates, PEM; Cassandra is talked to in TLS then
    ///
    /// The node's certificate has to name the host of --cassandra, and those of all nodes their addresses.
    #[arg(long, env = "ANNULUS_CASSANDRA_CERTIFICATE_FILE", value_name = "FILE")]
    pub cassandra_certificate_file: Option<PathBuf>,

    /// Certificate for nodes that ask for one (require_client_auth), PEM
    #[arg(long, env = "ANNULUS_CASSANDRA_CLIENT_CERT_PATH", value_name = "FILE")]
    pub cassandra_client_cert_path: Option<PathBuf>,

    /// Key of that certificate, PEM
    #[arg(long, env = "ANNULUS_CASSANDRA_CLIENT_KEY_PATH", value_name = "FILE")]
    pub cassandra_client_key_path: Option<PathBuf>,
}

/// What clients are proved with, looked at.
#[derive(Clone, Debug)]
pub struct ForClients {
    options: TlsOptions,
    pub config: Arc<ServerConfig>,
}

impl PartialEq for ForClients {
    /// The configuration follows from the options.
    fn eq(&self, other: &ForClients) -> bool {
        self.options == other.options
    }
}

/// What Cassandra is talked to with, as the files say.
#[derive(Clone, Debug, PartialEq)]
pub struct ForCassandra {
    authorities: Pem,
    own: Option<(Pem, Pem)>,
}

impl ForCassandra {
    /// A client made of it.
    pub fn client(&self) -> Result<RenewableClient, Failure> {
        RenewableClient::new(&self.authorities, self.own()).map_err(unusable)
    }

    /// Gives it to a client that was made before.
    pub fn renew(&self, client: &RenewableClient) -> Result<(), Failure> {
        client
            .renew(&self.authorities, self.own())
            .map_err(unusable)
    }

    fn own(&self) -> Option<(&Pem, &Pem)> {
        let own = self.own.as_ref();
        own.map(|(certificate, key)| (certificate, key))
    }
}

impl GatewayTls {
    /// These settings, and those of `other` where these are silent.
    pub fn or(self, other: GatewayTls) -> GatewayTls {
        GatewayTls {
            tls_cert_path: self.tls_cert_path.or(other.tls_cert_path),
            tls_key_path: self.tls_key_path.or(other.tls_key_path),
            tls_client_ca_cert_path: self
                .tls_client_ca_cert_path
                .or(other.tls_client_ca_cert_path),
            tls_file_check_interval: self
                .tls_file_check_interval
                .or(other.tls_file_check_interval),
            cassandra_certificate_file: self
                .cassandra_certificate_file
                .or(other.cassandra_certificate_file),
            cassandra_client_cert_path: self
                .cassandra_client_cert_path
                .or(other.cassandra_client_cert_path),
            cassandra_client_key_path: self
                .cassandra_client_key_path
                .or(other.cassandra_client_key_path),
        }
    }

    /// Reads what clients are to be served with; `None`: they are served in clear.
    pub fn for_clients(&self) -> Result<Option<ForClients>, Failure> {
        let (certificates, key) = match (&self.tls_cert_path, &self.tls_key_path) {
            (Some(certificate), Some(key)) => (pem(certificate)?, pem(key)?),
            (Some(_), None) => return Err(lacks("tls-cert-path", "tls-key-path")),
            (None, Some(_)) => return Err(lacks("tls-key-path", "tls-cert-path")),
            (None, None) if self.tls_client_ca_cert_path.is_some() => {
                return Err(lacks("tls-client-ca-cert-path", "tls-cert-path"));
            }
            (None, None) => return Ok(None),
        };
        let options = TlsOptions {
            certificates,
            key,
            clients: match &self.tls_client_ca_cert_path {
                Some(authorities) => TlsClients::SignedBy(pem(authorities)?),
                None => TlsClients::Anyone,
            },
        };
        let config = tls::server(&options, &[]).map_err(unusable)?;
        Ok(Some(ForClients { options, config }))
    }

    /// Reads what Cassandra is to be talked to with; `None`: in clear.
    pub fn for_cassandra(&self) -> Result<Option<ForCassandra>, Failure> {
        const CERTIFICATE: &str = "cassandra-client-cert-path";
        const KEY: &str = "cassandra-client-key-path";
        let own = match (
            &self.cassandra_client_cert_path,
            &self.cassandra_client_key_path,
        ) {
            (Some(certificate), Some(key)) => Some((pem(certificate)?, pem(key)?)),
            (Some(_), None) => return Err(lacks(CERTIFICATE, KEY)),
            (None, Some(_)) => return Err(lacks(KEY, CERTIFICATE)),
            (None, None) => None,
        };
        match &self.cassandra_certificate_file {
            Some(authorities) => Ok(Some(ForCassandra {
                authorities: pem(authorities)?,
                own,
            })),
            None if own.is_some() => Err(lacks(CERTIFICATE, "cassandra-certificate-file")),
            None => Ok(None),
        }
    }

    /// How often the files are to be read again.
    pub fn check_interval(&self) -> Result<Duration, Failure> {
        interval(
            "tls-file-check-interval",
            self.tls_file_check_interval,
            Duration::from_secs(30),
        )
    }
}

fn unusable(error: tls::CertificateError) -> Failure {
    Failure::Configuration(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_together_is_set_together() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "no certificate").unwrap();
        for (key, missing) in [
            ("tls-cert-path", "tls-key-path"),
            ("tls-key-path", "tls-cert-path"),
            ("tls-client-ca-cert-path", "tls-cert-path"),
            ("cassandra-client-cert-path", "cassandra-client-key-path"),
            ("cassandra-client-key-path", "cassandra-client-cert-path"),
        ] {
            let settings: GatewayTls = toml::from_str(&format!("{key} = {path:?}")).unwrap();
            let clients = settings.for_clients().map(drop);
            let cassandra = settings.for_cassandra().map(drop);
            let error = clients.and(cassandra).unwrap_err().to_string();
            assert!(error.contains(&format!("{missing} is not")), "{error}");
        }
    }

    #[test]
    fn what_can_not_be_used_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "no certificate").unwrap();
        let settings: GatewayTls = toml::from_str(&format!(
            "tls-cert-path = {path:?}\ntls-key-path = {path:?}\ncassandra-certificate-file = {path:?}"
        ))
        .unwrap();
        let expected = format!("{}: no certificate in the PEM format", path.display());
        assert_eq!(settings.for_clients().unwrap_err().to_string(), expected);
        let for_cassandra = settings.for_cassandra().unwrap().unwrap();
        assert_eq!(for_cassandra.client().unwrap_err().to_string(), expected);
        let none = GatewayTls::default();
        assert_eq!(none.for_clients().unwrap(), None);
        assert!(none.for_cassandra().unwrap().is_none());
    }
}
