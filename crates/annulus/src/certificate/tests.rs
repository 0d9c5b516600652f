//! Tests of the files that are made, with the server and the client that use them.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use clap::Parser;
use credentials::files::pem;
use net::tls::{self, TlsClients, TlsOptions};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::*;
use crate::cli::{CommandLine, ProgramCommand};

fn parsed(directory: &Path, arguments: &[&str]) -> CertificateArguments {
    let directory = directory.to_str().unwrap();
    let front = ["annulus", "certificate", "--out", directory];
    let line = CommandLine::try_parse_from(front.iter().chain(arguments)).unwrap();
    match line.command {
        ProgramCommand::Certificate(arguments) => arguments,
        _ => unreachable!("it is named"),
    }
}

fn make(directory: &Path, arguments: &[&str]) -> Result<(), String> {
    run(&parsed(directory, arguments)).map_err(|error| format!("{error:#}"))
}

fn text(directory: &Path, name: &str) -> String {
    std::fs::read_to_string(directory.join(name)).unwrap()
}

#[test]
fn a_server_and_a_client_take_the_files() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("certs");
    make(&directory, &["--client", "app"]).unwrap();
    let file = |name: &str| pem(&directory.join(name)).unwrap();
    let options = TlsOptions {
        certificates: file("server.pem"),
        key: file("server.key"),
        clients: TlsClients::SignedBy(file("ca.pem")),
    };
    tls::server(&options, &[]).unwrap();
    let own = (file("app.pem"), file("app.key"));
    tls::client(&file("ca.pem"), Some((&own.0, &own.1))).unwrap();
    let certificate = CertificateDer::from_pem_slice(&own.0.bytes).unwrap();
    assert_eq!(tls::identity(&certificate).as_deref(), Some("app"));
    for key in ["ca.key", "server.key", "app.key"] {
        let mode = std::fs::metadata(directory.join(key))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{key}");
    }
}

#[test]
fn files_are_replaced_only_on_request_and_the_authority_never() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    make(directory, &[]).unwrap();
    let (authority, server) = (text(directory, "ca.pem"), text(directory, "server.pem"));
    let error = make(directory, &[]).unwrap_err();
    assert!(
        error.contains("--force") && error.contains("--name"),
        "{error}"
    );
    make(directory, &["--client", "app"]).unwrap();
    assert_eq!(text(directory, "server.pem"), server);
    let error = make(directory, &["--client", "new", "--client", "app"]).unwrap_err();
    assert!(
        error.contains("app.pem") && !directory.join("new.pem").exists(),
        "{error}"
    );
    let error = make(directory, &["--name", "localhost"]).unwrap_err();
    assert!(
        error.contains("server.pem") && error.contains("--force"),
        "{error}"
    );
    make(directory, &["--force", "--name", "localhost"]).unwrap();
    assert_ne!(text(directory, "server.pem"), server);
    assert_eq!(text(directory, "ca.pem"), authority);
}

#[test]
fn an_authority_without_its_key_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    make(directory, &[]).unwrap();
    let authority = text(directory, "ca.pem");
    std::fs::rename(directory.join("ca.key"), directory.join("kept")).unwrap();
    let error = make(directory, &["--client", "app"]).unwrap_err();
    assert!(error.contains("no ca.key"), "{error}");
    // The key of another authority.
    let other = tempfile::tempdir().unwrap();
    make(other.path(), &[]).unwrap();
    std::fs::copy(other.path().join("ca.key"), directory.join("ca.key")).unwrap();
    let error = make(directory, &["--client", "app"]).unwrap_err();
    assert!(error.contains("not an authority and its key"), "{error}");
    assert_eq!(text(directory, "ca.pem"), authority);
}

#[test]
fn names_that_can_not_be_used_are_refused_before_a_file_is_written() {
    let directory = tempfile::tempdir().unwrap();
    for name in [
        "",
        "ca",
        "Server",
        "../app",
        "a/b",
        ".app",
        "a b",
        &"a".repeat(65),
    ] {
        let error = make(directory.path(), &[&format!("--client={name}")]).unwrap_err();
        assert!(error.contains("--client"), "{name}: {error}");
    }
    for name in ["", "a b", "https://db.example", "10.0.0.5:9042"] {
        let error = make(directory.path(), &[&format!("--name={name}")]).unwrap_err();
        assert!(error.contains("--name"), "{name}: {error}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn nothing_outlasts_its_authority() {
    let directory = tempfile::tempdir().unwrap();
    make(
        directory.path(),
        &["--name", "one.example", "--days", "3650"],
    )
    .unwrap();
    let error = make(
        directory.path(),
        &["--name", "two.example", "--force", "--days", "4000"],
    );
    let error = error.unwrap_err();
    assert!(error.contains("ends in 3650 days"), "{error}");
    assert!(error.contains("give --days 3650 or less"), "{error}");
    let ends = |name: &str| {
        let text = text(directory.path(), name);
        tls::ends_at(&CertificateDer::from_pem_slice(text.as_bytes()).unwrap()).unwrap()
    };
    assert!(ends("server.pem") <= ends("ca.pem"));
}
