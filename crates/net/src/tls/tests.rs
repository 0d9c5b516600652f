//! Tests of certificates that are refused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::pki_types::{ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, HandshakeKind, ServerConnection, SupportedProtocolVersion};

use super::authority::{TestAuthority, pem};
use super::*;

#[test]
fn invalid_certificates_and_foreign_keys_are_refused_by_name() {
    let authority = TestAuthority::new();
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

/// A clock that tests set, in seconds since the epoch.
#[derive(Debug)]
struct Clock(AtomicU64);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = self.0.load(Ordering::Relaxed);
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

/// Connects a client to a server in memory, until neither has more to say. Returns the kind of
/// handshake that the client has made.
fn shake_hands(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
) -> Result<Option<HandshakeKind>, rustls::Error> {
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut client = ClientConnection::new(client.clone(), name).unwrap();
    let mut server = ServerConnection::new(server.clone()).unwrap();
    while client.wants_write() || server.wants_write() {
        let mut wire = Vec::new();
        client.write_tls(&mut wire).unwrap();
        let mut rest = &wire[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
        }
        server.process_new_packets()?;
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        let mut rest = &wire[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
        }
        client.process_new_packets()?;
    }
    Ok(client.handshake_kind())
}

/// The second of the first of January of 2040, and of 2060.
const YEAR_2040: u64 = 2_208_988_800;
const YEAR_2060: u64 = 2_840_140_800;

#[test]
fn a_certificate_that_has_ended_is_not_let_in_by_a_session_of_before() {
    let authority = TestAuthority::new();
    let (certificates, key) = authority.sign();
    let own = authority.sign_until(2050);
    for (version, clients) in [
        (&TLS12, TlsClients::SignedBy(authority.pem())),
        (&TLS13, TlsClients::SignedBy(authority.pem())),
        (&TLS12, TlsClients::Anyone),
        (&TLS13, TlsClients::Anyone),
    ] {
        let asks = clients != TlsClients::Anyone;
        let options = TlsOptions {
            certificates: certificates.clone(),
            key: key.clone(),
            clients,
        };
        let clock = Arc::new(Clock(AtomicU64::new(YEAR_2040)));
        let mut server = ServerConfig::clone(&server(&options, &[]).unwrap());
        server.time_provider = clock.clone();
        let server = Arc::new(server);
        let client = of_version(version, &authority, &own);
        let first = shake_hands(&client, &server).unwrap();
        assert_eq!(first, Some(HandshakeKind::Full), "{version:?}");
        let second = shake_hands(&client, &server).unwrap();
        // The client resumes what it can: sessions of servers that request no certificate.
        let expected = match asks {
            true => HandshakeKind::Full,
            false => HandshakeKind::Resumed,
        };
        assert_eq!(second, Some(expected), "{version:?}");
        clock.0.store(YEAR_2060, Ordering::Relaxed);
        let third = shake_hands(&client, &server);
        assert_eq!(third.is_err(), asks, "{version:?}: {third:?}");
    }
}

/// A client that speaks only this version, and shows this certificate to servers that request one.
fn of_version(
    version: &'static SupportedProtocolVersion,
    authority: &TestAuthority,
    (own, key): &(Pem, Pem),
) -> Arc<ClientConfig> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots(&authority.pem()).unwrap())
        .with_client_auth_cert(certificates(own).unwrap(), super::key(key).unwrap());
    Arc::new(config.unwrap())
}
