//! Certificates for tests.

#![expect(clippy::unwrap_used, reason = "only tests use it")]

use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::Pem;

/// An authority that signs certificates for tests.
pub struct TestAuthority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Default for TestAuthority {
    fn default() -> TestAuthority {
        TestAuthority::new()
    }
}

impl TestAuthority {
    /// Makes an authority with a key of its own.
    pub fn new() -> TestAuthority {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        TestAuthority {
            issuer: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    /// The authority's own certificate.
    pub fn pem(&self) -> Pem {
        pem("authority", &self.issuer.as_ref().pem())
    }

    /// Signs a certificate for 127.0.0.1 and localhost. Returns it with its key.
    pub fn sign(&self) -> (Pem, Pem) {
        self.sign_until(2100)
    }

    /// Signs a certificate for 127.0.0.1 and localhost that is valid until that year.
    pub fn sign_until(&self, year: i32) -> (Pem, Pem) {
        let mut params = CertificateParams::new(["127.0.0.1".into(), "localhost".into()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate: Certificate = params.signed_by(&key, &self.issuer).unwrap();
        (
            pem("certificate", &certificate.pem()),
            pem("key", &key.serialize_pem()),
        )
    }
}

/// A PEM text from `origin`.
pub fn pem(origin: &str, text: &str) -> Pem {
    Pem {
        bytes: text.as_bytes().into(),
        origin: origin.to_owned(),
    }
}
