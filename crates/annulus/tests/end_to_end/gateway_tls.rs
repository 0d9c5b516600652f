//! `annulus gateway` under TLS: it serves drivers with the certificate in its files, and with
//! another one when the files change.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use net::tls::{self, Pem};
use scylla::client::session::{Session, TlsContext};
use scylla::client::session_builder::SessionBuilder;
use test_support::{Running, eventually};

use crate::serve_tls::{certificate, pem};
use crate::server::Server;

const CONNECT: Duration = Duration::from_secs(10);

/// Starts a gateway that passes everything through to a node, with a certificate and its key among
/// the files of that directory.
fn start(
    node: SocketAddr,
    directory: &Path,
    (certificate, key): (&str, &str),
    more: &[&str],
) -> (Running, SocketAddr) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_annulus"))
        .current_dir(directory)
        .args(["gateway", "--pass-through", "--cql-port", "0"])
        .args(["--cassandra", &node.to_string(), "--log", "warn"])
        .args(["--tls-cert-path", certificate, "--tls-key-path", key])
        .args(more)
        // Only the signal makes it check the files again.
        .args(["--tls-file-check-interval", "1h"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut line = String::new();
    let stdout = process.stdout.take().expect("stdout is piped");
    let read = BufReader::new(stdout).read_line(&mut line);
    assert!(read.is_ok() && line.contains("is ready"), "{line:?}");
    let mut words = line.split([' ', ',']);
    let address = words.find_map(|word| word.parse().ok());
    (Running(process), address.expect("an address"))
}

/// Writes a certificate for 127.0.0.1 and its key, and returns the certificate.
fn write_certificate(directory: &Path) -> Pem {
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(directory.join("key.pem"), own.signing_key.serialize_pem()).unwrap();
    std::fs::write(directory.join("cert.pem"), own.cert.pem()).unwrap();
    Pem {
        bytes: own.cert.pem().into_bytes().into(),
        origin: "cert.pem".to_owned(),
    }
}

/// The session of a driver that trusts only that certificate, and shows its own; `None` if it gets
/// none.
async fn session(gateway: SocketAddr, believed: &Pem, own: Option<&(Pem, Pem)>) -> Option<Session> {
    let own = own.map(|(certificate, key)| (certificate, key));
    let tls = tls::client(believed, own).unwrap();
    let builder = SessionBuilder::new()
        .known_node_addr(gateway)
        .tls_context(Some(TlsContext::Rustls023(tls)))
        .connection_timeout(CONNECT);
    tokio::time::timeout(CONNECT, builder.build())
        .await
        .ok()?
        .ok()
}

/// Whether a session gets an answer.
async fn answers(session: &Session) -> bool {
    let asking = session.query_unpaged("SELECT key FROM system.local", ());
    matches!(tokio::time::timeout(CONNECT, asking).await, Ok(Ok(_)))
}

/// Whether a driver that trusts only that certificate gets an answer.
async fn is_answered(gateway: SocketAddr, believed: &Pem) -> bool {
    match session(gateway, believed, None).await {
        Some(session) => answers(&session).await,
        None => false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drivers_are_served_by_the_certificate_that_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let node = Server::start(&directory.path().join("data"));
    let before = write_certificate(directory.path());
    let files = ("cert.pem", "key.pem");
    let (gateway, address) = start(node.cql, directory.path(), files, &[]);
    assert!(is_answered(address, &before).await);

    // A certificate that can't be used changes nothing.
    std::fs::write(directory.path().join("cert.pem"), "no certificate").unwrap();
    gateway.signal("-HUP");
    assert!(is_answered(address, &before).await);

    let after = write_certificate(directory.path());
    gateway.signal("-HUP");
    eventually("the certificate is used", async || {
        is_answered(address, &after).await
    })
    .await;
    assert!(!is_answered(address, &before).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_disconnected_when_other_authorities_sign_clients() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let node = Server::start(&directory.join("data"));
    certificate(directory, &["--client", "app"]);
    let clients = directory.join("clients.pem");
    std::fs::copy(directory.join("certs/ca.pem"), &clients).unwrap();
    let files = ("certs/server.pem", "certs/server.key");
    let asking = ["--tls-client-ca-cert-path", "clients.pem"];
    let (gateway, address) = start(node.cql, directory, files, &asking);
    let believed = pem(directory, "ca.pem");
    let before = (pem(directory, "app.pem"), pem(directory, "app.key"));
    let here = session(address, &believed, Some(&before)).await.unwrap();
    assert!(answers(&here).await);

    // Another authority for clients. The gateway's own certificate stays.
    let other = tempfile::tempdir().unwrap();
    certificate(other.path(), &["--client", "app"]);
    std::fs::copy(other.path().join("certs/ca.pem"), &clients).unwrap();
    gateway.signal("-HUP");
    eventually("the client is gone", async || !answers(&here).await).await;
    let after = (pem(other.path(), "app.pem"), pem(other.path(), "app.key"));
    let comes = session(address, &believed, Some(&after)).await.unwrap();
    assert!(answers(&comes).await);
    assert!(session(address, &believed, Some(&before)).await.is_none());
}
