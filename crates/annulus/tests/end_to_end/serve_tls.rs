//! `annulus serve` under TLS, with the files of `annulus certificate`: drivers, HTTP and the
//! operator's commands, and certificates that are renewed while it runs.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use net::tls::{self, Pem};
use scylla::client::session::TlsContext;
use scylla::client::session_builder::SessionBuilder;
use test_support::eventually;

use crate::server::Server;

const CONNECT: Duration = Duration::from_secs(10);

fn annulus(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_annulus"))
        .current_dir(directory)
        .args(arguments)
        .output()
        .expect("the binary starts")
}

/// Makes certificates in `certs`.
pub fn certificate(directory: &Path, arguments: &[&str]) {
    let made = annulus(
        directory,
        &[&["certificate", "--out", "certs"], arguments].concat(),
    );
    let errors = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{errors}");
}

/// Reads a file of `certs`.
pub fn pem(directory: &Path, name: &str) -> Pem {
    let path = directory.join("certs").join(name);
    Pem {
        bytes: std::fs::read(&path).unwrap().into(),
        origin: name.to_owned(),
    }
}

/// Starts a server with the certificate in `certs`.
pub fn start(directory: &Path, more: &[&str]) -> Server {
    let path = |name: &str| directory.join("certs").join(name).display().to_string();
    let (certificate, key) = (path("server.pem"), path("server.key"));
    let tls = ["--tls-cert-path", &certificate, "--tls-key-path", &key];
    // Only a signal makes it check the files again.
    let checks = ["--tls-file-check-interval", "1h"];
    Server::start_with(&directory.join("data"), &[&tls[..], &checks, more].concat())
}

/// Whether a driver that trusts these authorities, and shows this client's certificate, gets an
/// answer.
async fn is_answered(server: &Server, authorities: &Pem, own: Option<(Pem, Pem)>) -> bool {
    let own = own.as_ref().map(|(certificate, key)| (certificate, key));
    let tls = tls::client(authorities, own).unwrap();
    let builder = SessionBuilder::new()
        .known_node_addr(server.cql)
        .tls_context(Some(TlsContext::Rustls023(tls)))
        .connection_timeout(CONNECT);
    let Ok(Ok(session)) = tokio::time::timeout(CONNECT, builder.build()).await else {
        return false;
    };
    let answer = session.query_unpaged("SELECT key FROM system.local", ());
    answer.await.is_ok()
}

fn hang_up(server: &Server) {
    let id = server.process_id().to_string();
    let sent = Command::new("kill").args(["-HUP", &id]).status();
    assert!(sent.expect("kill is there").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ports_serve_under_tls_and_renew_their_certificate() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    certificate(directory, &[]);
    let before = pem(directory, "ca.pem");
    let server = start(directory, &[]);
    assert!(is_answered(&server, &before, None).await);
    let https = format!("https://{}", server.http);
    let status = |authorities: &str| {
        annulus(
            directory,
            &["status", "--http", &https, "--ca", authorities],
        )
    };
    let told = status("certs/ca.pem");
    let told = String::from_utf8_lossy(&told.stdout);
    assert!(told.contains("serving"), "{told}");

    // In clear nothing is answered but the reason.
    let clear = SessionBuilder::new().known_node_addr(server.cql);
    assert!(clear.build().await.is_err());
    let mut socket = TcpStream::connect(server.http).unwrap();
    socket.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 403"), "{answer}");

    // Files that can't be used change nothing.
    let path = directory.join("certs/server.pem");
    std::fs::write(&path, "no certificate").unwrap();
    hang_up(&server);
    assert!(is_answered(&server, &before, None).await);

    // Another authority, and a certificate by it.
    std::fs::rename(directory.join("certs"), directory.join("old")).unwrap();
    certificate(directory, &[]);
    let after = pem(directory, "ca.pem");
    hang_up(&server);
    eventually("the certificate is used", async || {
        is_answered(&server, &after, None).await
    })
    .await;
    assert!(!is_answered(&server, &before, None).await);
    assert!(status("certs/ca.pem").status.success());
    let refused = status("old/ca.pem");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && error.contains("--ca"),
        "{error}"
    );
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_show_their_certificates_if_they_are_asked_to() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    certificate(directory, &["--client", "app"]);
    let authorities = directory.join("certs/ca.pem").display().to_string();
    let server = start(directory, &["--tls-client-ca-cert-path", &authorities]);
    let believed = pem(directory, "ca.pem");
    let own = || (pem(directory, "app.pem"), pem(directory, "app.key"));
    assert!(is_answered(&server, &believed, Some(own())).await);
    assert!(!is_answered(&server, &believed, None).await);
    let https = format!("https://{}", server.http);
    let asking = ["tasks", "list", "--http", &https, "--ca", &authorities];
    let mine = ["--cert", "certs/app.pem", "--key", "certs/app.key"];
    let asked = annulus(directory, &[&asking[..], &mine].concat());
    let error = String::from_utf8_lossy(&asked.stderr);
    assert!(asked.status.success(), "{error}");
    let refused = annulus(directory, &asking);
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && error.contains("--cert"),
        "{error}"
    );
    server.stop();
}

#[test]
fn settings_that_cannot_be_used_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    certificate(directory, &[]);
    for (arguments, named) in [
        (&["--tls-cert-path=certs/server.pem"][..], "tls-key-path"),
        (&["--tls-client-ca-cert-path=certs/ca.pem"], "tls-cert-path"),
        (
            &[
                "--tls-cert-path=certs/ca.pem",
                "--tls-key-path=certs/server.key",
            ],
            "certs/ca.pem",
        ),
        (
            &["--tls-cert-path=nowhere", "--tls-key-path=certs/server.key"],
            "nowhere",
        ),
    ] {
        let serve = ["serve", "--cql-port=0", "--http-port=0", "--data-dir=data"];
        let refused = annulus(directory, &[&serve[..], arguments].concat());
        let error = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{error}");
        assert!(error.contains(named), "{error}");
    }
}
