//! The files of a listener's certificate, as settings name them.

use std::path::Path;
use std::time::Duration;

use credentials::files::pem;
use net::tls::{TlsClients, TlsOptions};

use crate::exit::{ProcessFailure, lacks};
use crate::span::{HumanDuration, interval};

/// The names of the settings.
const CERTIFICATE: &str = "tls-cert-path";
const KEY: &str = "tls-key-path";
const CLIENT_AUTHORITIES: &str = "tls-client-ca-cert-path";

/// The files of a listener's certificate. All are `None` for no TLS.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsFiles<'a> {
    /// The certificate (`tls-cert-path`).
    pub certificate: Option<&'a Path>,
    /// Its key (`tls-key-path`).
    pub key: Option<&'a Path>,
    /// The authorities that sign clients' certificates (`tls-client-ca-cert-path`).
    pub client_authorities: Option<&'a Path>,
}

impl TlsFiles<'_> {
    /// Reads the files; `None` for no TLS. Whether their texts can be used is seen when a
    /// configuration is made of them.
    ///
    /// # Errors
    /// If a file can't be read, or a setting lacks another one.
    pub fn read(self) -> Result<Option<TlsOptions>, ProcessFailure> {
        let (certificates, key) = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => (pem(certificate)?, pem(key)?),
            (Some(_), None) => return Err(lacks(CERTIFICATE, KEY)),
            (None, Some(_)) => return Err(lacks(KEY, CERTIFICATE)),
            (None, None) if self.client_authorities.is_some() => {
                return Err(lacks(CLIENT_AUTHORITIES, CERTIFICATE));
            }
            (None, None) => return Ok(None),
        };
        Ok(Some(TlsOptions {
            certificates,
            key,
            clients: match self.client_authorities {
                Some(authorities) => TlsClients::SignedBy(pem(authorities)?),
                None => TlsClients::Anyone,
            },
        }))
    }
}

/// The interval at which the files are read again (`tls-file-check-interval`).
///
/// # Errors
/// If it is out of the bounds of intervals.
pub fn check_interval(set: Option<HumanDuration>) -> Result<Duration, ProcessFailure> {
    interval("tls-file-check-interval", set, Duration::from_secs(30))
}
