//! Tests of certificates that are refused.

use super::authority::{Authority, pem};
use super::*;

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
