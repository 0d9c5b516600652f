//! `annulus gateway` under TLS: it serves drivers with the certificate in its files, and with
//! another one when the files change.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use net::tls::{self, Pem};
use scylla::client::session::TlsContext;
use scylla::client::session_builder::SessionBuilder;

use crate::running::Running;
use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(60);
const CONNECT: Duration = Duration::from_secs(10);

/// Starts a gateway that passes everything through to a node, with the certificate of that
/// directory.
fn start(node: SocketAddr, directory: &Path) -> (Running, SocketAddr) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_annulus"))
        .current_dir(directory)
        .args(["gateway", "--pass-through", "--cql-port", "0"])
        .args(["--cassandra", &node.to_string(), "--log", "warn"])
        .args(["--tls-cert-path", "cert.pem", "--tls-key-path", "key.pem"])
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

/// Whether a driver that trusts only that certificate gets an answer.
async fn is_answered(gateway: SocketAddr, believed: &Pem) -> bool {
    let tls = tls::client(believed, None).unwrap();
    let builder = SessionBuilder::new()
        .known_node_addr(gateway)
        .tls_context(Some(TlsContext::Rustls023(tls)))
        .connection_timeout(CONNECT);
    let Ok(Ok(session)) = tokio::time::timeout(CONNECT, builder.build()).await else {
        return false;
    };
    let answer = session.query_unpaged("SELECT key FROM system.local", ());
    answer.await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn drivers_are_served_by_the_certificate_that_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let node = Server::start(&directory.path().join("data"));
    let before = write_certificate(directory.path());
    let (gateway, address) = start(node.cql, directory.path());
    assert!(is_answered(address, &before).await);

    // A certificate that can't be used changes nothing.
    std::fs::write(directory.path().join("cert.pem"), "no certificate").unwrap();
    gateway.signal("-HUP");
    assert!(is_answered(address, &before).await);

    let after = write_certificate(directory.path());
    gateway.signal("-HUP");
    let began = Instant::now();
    while !is_answered(address, &after).await {
        assert!(began.elapsed() < PATIENCE, "the certificate is used");
    }
    assert!(!is_answered(address, &before).await);
}
