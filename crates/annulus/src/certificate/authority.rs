//! An authority, and the certificates that it signs.

use std::time::Duration;

use anyhow::Context as _;
use clock::{Clock as _, SystemClock};
use net::tls::{self, Pem, TlsClients, TlsOptions};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, Error, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The days for which an authority is valid.
const AUTHORITY_DAYS: u32 = 3650;

/// An authority with its key.
pub struct SigningAuthority {
    issuer: Issuer<'static, KeyPair>,
    /// The end of its certificate, since the epoch.
    ends: Duration,
}

/// A certificate and its key, as PEM texts.
pub struct PemPair {
    pub certificate: String,
    pub key: String,
}

impl SigningAuthority {
    /// Makes the certificate and the key of a new authority. It is valid for at least `days`.
    ///
    /// # Errors
    /// If no key can be made.
    pub fn new_pair(days: u32) -> Result<PemPair, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new([])?;
        // Authorities are distinguished by their names, so part of the key belongs to it.
        let mark: String = params
            .key_identifier(&key)
            .iter()
            .take(4)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        params.distinguished_name = named(&format!("Annulus authority {mark}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        for_days(&mut params, AUTHORITY_DAYS.max(days));
        Ok(PemPair {
            certificate: params.self_signed(&key)?.pem(),
            key: key.serialize_pem(),
        })
    }

    /// Reads an authority from PEM texts.
    ///
    /// # Errors
    /// If they are no certificate and no key, or don't belong together.
    pub fn read(certificate: &Pem, key: &Pem) -> anyhow::Result<SigningAuthority> {
        // It is no server's certificate, but all that is checked of such a one holds for it, too.
        let options = TlsOptions {
            certificates: certificate.clone(),
            key: key.clone(),
            clients: TlsClients::Anyone,
        };
        tls::server(&options, &[])?;
        let key = KeyPair::from_pem(std::str::from_utf8(&key.bytes)?)?;
        let der = CertificateDer::from_pem_slice(&certificate.bytes)?;
        let ends = tls::ends_at(&der).context("the certificate has no end")?;
        let certificate = std::str::from_utf8(&certificate.bytes)?;
        Ok(SigningAuthority {
            ends: Duration::from_secs(u64::try_from(ends).unwrap_or(0)),
            issuer: Issuer::from_ca_cert_pem(certificate, key)?,
        })
    }

    /// The days for which the authority is valid, a part of a day as a whole one.
    pub fn days_left(&self) -> u64 {
        let left = self.ends.saturating_sub(now());
        left.as_secs().div_ceil(DAY.as_secs())
    }

    /// Signs a certificate of a server with these names and addresses.
    ///
    /// # Errors
    /// If one of the names is none.
    pub fn sign_server(&self, names: &[String], days: u32) -> Result<PemPair, Error> {
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = match names.iter().find(|name| name.len() <= 64) {
            Some(name) => named(name),
            None => named("annulus serve"),
        };
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(params, days)
    }

    /// Signs a certificate of a client, which is the common name of its subject.
    ///
    /// # Errors
    /// If no key can be made.
    pub fn sign_client(&self, name: &str, days: u32) -> Result<PemPair, Error> {
        let mut params = CertificateParams::new([])?;
        params.distinguished_name = named(name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, days)
    }

    fn sign(&self, mut params: CertificateParams, days: u32) -> Result<PemPair, Error> {
        let key = KeyPair::generate()?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // Strict clients, such as Python's, require it.
        params.use_authority_key_identifier_extension = true;
        for_days(&mut params, days);
        // No client takes a certificate for longer than its authority's.
        params.not_after = params.not_after.min(date_time_ymd(1970, 1, 1) + self.ends);
        Ok(PemPair {
            certificate: params.signed_by(&key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }
}

fn named(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// Sets the days for which a certificate is valid. They begin a day ago, as the clocks of clients
/// may be slow.
fn for_days(params: &mut CertificateParams, days: u32) {
    let now = now();
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(DAY);
    params.not_after = epoch + now + days * DAY;
}

/// The time since the epoch.
fn now() -> Duration {
    Duration::from_micros(SystemClock.now_micros().unsigned_abs())
}
