//! Certificates for tests, and tests of those that are refused.

use rcgen::{BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;

/// An authority that signs certificates for tests.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority with a key of its own.
    pub fn new() -> Authority {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority {
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

pub fn pem(origin: &str, text: &str) -> Pem {
    Pem {
        bytes: text.as_bytes().into(),
        origin: origin.to_owned(),
    }
}

#[test]
fn what_is_no_certificate_or_not_its_key_is_refused_by_name() {
    let authority = Authority::new();
    let (certificates, key) = authority.sign();
    let (_, other_key) = authority.sign();
    let options = TlsOptions {
        certificates,
        key,
        clients: TlsClients::SignedBy(authority.pem()),
    };
    server(&options, &[]).unwrap();
    client(&authority.pem(), None).unwrap();
    client(
        &authority.pem(),
        Some((&options.certificates, &options.key)),
    )
    .unwrap();

    let refused = |options: TlsOptions| server(&options, &[]).unwrap_err().to_string();
    let error = refused(TlsOptions {
        certificates: pem("a.pem", "nothing"),
        ..options.clone()
    });
    assert_eq!(error, "a.pem: no certificate in the PEM format");
    let error = refused(TlsOptions {
        key: pem("k.pem", "nothing"),
        ..options.clone()
    });
    assert!(error.starts_with("k.pem: no private key"), "{error}");
    let own = Some((&options.certificates, &other_key));
    let error = client(&authority.pem(), own).unwrap_err().to_string();
    assert!(error.starts_with("certificate: "), "{error}");
    let error = refused(TlsOptions {
        key: other_key,
        ..options.clone()
    });
    assert!(error.starts_with("certificate: "), "{error}");
    let error = refused(TlsOptions {
        clients: TlsClients::SignedBy(pem("ca.pem", "")),
        ..options
    });
    assert_eq!(error, "ca.pem: no certificate in the PEM format");
    assert!(client(&pem("ca.pem", ""), None).is_err());
}
