//! TLS of a gateway, towards clients and towards Cassandra: its settings and their files.

use std::path::PathBuf;
use std::time::Duration;

use credentials::files::pem;
use net::tls::{self, Pem, RenewableClient, ServerTls};

use crate::exit::{ProcessFailure, lacks};
use crate::settings_table::settings_table;
use crate::span::HumanDuration;
use crate::tls_files::{TlsFiles, check_interval};

settings_table! {
    /// The TLS settings. Without any of them nothing is encrypted.
    pub struct GatewayTls {
        /// Certificate of this gateway, PEM; with it clients are served under TLS only
        #[arg(long, env = "ANNULUS_TLS_CERT_PATH", value_name = "FILE")]
        pub tls_cert_path: Option<PathBuf>,

        /// Key of the certificate, PEM
        #[arg(long, env = "ANNULUS_TLS_KEY_PATH", value_name = "FILE")]
        pub tls_key_path: Option<PathBuf>,

        /// Authorities that sign clients' certificates, PEM; with it only clients with such a
        /// certificate are served
        #[arg(long, env = "ANNULUS_TLS_CLIENT_CA_CERT_PATH", value_name = "FILE")]
        pub tls_client_ca_cert_path: Option<PathBuf>,

        /// Interval at which the files of certificates are checked for changes; SIGHUP does it at
        /// once [default: 30s]
        #[arg(long, env = "ANNULUS_TLS_FILE_CHECK_INTERVAL", value_name = "DURATION")]
        pub tls_file_check_interval: Option<HumanDuration>,

        /// Authorities that sign Cassandra's certificates, PEM; with it the gateway talks TLS to
        /// Cassandra
        ///
        /// The node's certificate has to name the host of --cassandra. The certificates of all
        /// nodes have to name their addresses.
        #[arg(long, env = "ANNULUS_CASSANDRA_CERTIFICATE_FILE", value_name = "FILE")]
        pub cassandra_certificate_file: Option<PathBuf>,

        /// Certificate for nodes that require one (require_client_auth), PEM
        #[arg(long, env = "ANNULUS_CASSANDRA_CLIENT_CERT_PATH", value_name = "FILE")]
        pub cassandra_client_cert_path: Option<PathBuf>,

        /// Key of that certificate, PEM
        #[arg(long, env = "ANNULUS_CASSANDRA_CLIENT_KEY_PATH", value_name = "FILE")]
        pub cassandra_client_key_path: Option<PathBuf>,
    }
}

/// The certificates for Cassandra, as they are in the files.
#[derive(Clone, Debug, PartialEq)]
pub struct CassandraCertificates {
    authorities: Pem,
    own: Option<(Pem, Pem)>,
}

impl CassandraCertificates {
    /// Makes a client of the certificates.
    pub fn client(&self) -> Result<RenewableClient, ProcessFailure> {
        RenewableClient::new(&self.authorities, self.own()).map_err(unusable)
    }

    /// Gives the certificates to a client that was made before.
    pub fn renew(&self, client: &RenewableClient) -> Result<(), ProcessFailure> {
        client
            .renew(&self.authorities, self.own())
            .map_err(unusable)
    }

    /// The certificates: the authorities, and the one of the gateway if there is one.
    pub fn in_use(&self) -> impl Iterator<Item = &Pem> {
        let own = self.own.iter().map(|(certificate, _)| certificate);
        std::iter::once(&self.authorities).chain(own)
    }

    fn own(&self) -> Option<(&Pem, &Pem)> {
        let own = self.own.as_ref();
        own.map(|(certificate, key)| (certificate, key))
    }
}

impl GatewayTls {
    /// Reads the certificate for clients; `None` for no TLS towards clients.
    pub fn for_clients(&self) -> Result<Option<ServerTls>, ProcessFailure> {
        let files = TlsFiles {
            certificate: self.tls_cert_path.as_deref(),
            key: self.tls_key_path.as_deref(),
            client_authorities: self.tls_client_ca_cert_path.as_deref(),
        };
        let Some(options) = files.read()? else {
            return Ok(None);
        };
        ServerTls::new(options, &[]).map(Some).map_err(unusable)
    }

    /// Reads the certificates for Cassandra; `None` for no TLS towards Cassandra.
    pub fn for_cassandra(&self) -> Result<Option<CassandraCertificates>, ProcessFailure> {
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
            Some(authorities) => Ok(Some(CassandraCertificates {
                authorities: pem(authorities)?,
                own,
            })),
            None if own.is_some() => Err(lacks(CERTIFICATE, "cassandra-certificate-file")),
            None => Ok(None),
        }
    }

    /// The interval at which the files are read again.
    pub fn check_interval(&self) -> Result<Duration, ProcessFailure> {
        check_interval(self.tls_file_check_interval)
    }
}

fn unusable(error: tls::CertificateError) -> ProcessFailure {
    ProcessFailure::Configuration(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_counterpart_is_named() {
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
    fn an_unusable_file_is_named() {
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
