//! `annulus bench` measures a server with logins and TLS.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use scylla::client::session::TlsContext;
use scylla::client::session_builder::SessionBuilder;

use super::{HELD_OUT, ROWS, bench, measurements, run_bench, write_vectors};
use crate::serve_tls;

const PASSWORD: &str = "open sesame";

/// The error of a command that fails.
fn refused(arguments: &[&str]) -> String {
    let output = run_bench(arguments);
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts that a server leaves no core dump, and has taken its file of the first superuser from
/// other users.
fn assert_keeps_secrets(process: u32, superuser: &Path) {
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let of_core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let of_core: Vec<&str> = of_core.expect("a limit").split_whitespace().collect();
    assert_eq!(of_core[4..6], ["0", "0"], "{limits}");
    let mode = std::fs::metadata(superuser).unwrap().permissions().mode();
    assert_eq!(mode & 0o007, 0, "{mode:o}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_logins_under_tls_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    serve_tls::certificate(directory.path(), &[]);
    std::fs::write(path("superuser"), format!("ali\n{PASSWORD}\n")).unwrap();
    std::fs::write(path("password"), format!("{PASSWORD}\n")).unwrap();
    let login = ["--login", "--superuser-file", &path("superuser")];
    let server = serve_tls::start(directory.path(), &login);
    assert_keeps_secrets(server.process_id(), &directory.path().join("superuser"));
    write_vectors(&directory.path().join("base.npy"), ROWS);
    let (cql, http) = (server.cql.to_string(), format!("https://{}", server.http));
    let (base, json) = (path("base.npy"), path("results.jsonl"));
    let data = ["--base", &base, "--hold-out", HELD_OUT, "--json", &json];
    let few = ["--requests", "100", "--warm-up", "0"];
    let (password, ca) = (path("password"), path("certs/ca.pem"));
    let role = ["--user", "ali", "--password-file", &password];
    let tls = ["--ca", &ca];
    let access = [&role[..], &tls].concat();

    let build = [&["build-table", "--cql", &cql][..], &data].concat();
    let said = refused(&[&build[..], &tls].concat());
    assert!(said.contains("cannot connect to CQL"), "{said}");
    bench(&[&build[..], &access].concat());
    bench(
        &[
            &["build-index", "--cql", &cql, "--http", &http][..],
            &access,
        ]
        .concat(),
    );
    let by_cql = [&["search-cql", "--cql", &cql][..], &data, &few].concat();
    bench(&[&by_cql[..], &access].concat());
    let by_http = [&["search-http", "--http", &http][..], &data, &few].concat();
    bench(&[&by_http[..], &access].concat());
    let (a, b) = (format!("a={http}"), format!("b=cql://{cql}"));
    let compare = ["compare", "--a", &a, "--b", &b, "--rounds", "1"];
    bench(&[&compare[..], &data, &few, &access].concat());
    let restart = ["restart", "--cql", &cql, "--rounds", "1", "--restarts", "1"];
    bench(&[&restart[..], &["--json", &json], &access].concat());

    let said = refused(&[&by_http[..], &tls].concat());
    assert!(said.contains("HTTP 401"), "{said}");
    let said = refused(&[&by_http[..], &role].concat());
    assert!(said.contains("--ca"), "{said}");

    let results = std::fs::read_to_string(&json).unwrap();
    assert!(!results.contains(PASSWORD));
    let searches = measurements(Path::new(&json))
        .into_iter()
        .filter(|result| result["operation"] == "search");
    let counts: Vec<_> = searches
        .map(|search| search["operations"].clone())
        .collect();
    assert_eq!(counts, [100, 100, 100, 100]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_asks_for_certificates_is_shown_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    serve_tls::certificate(directory.path(), &["--client", "bench"]);
    let authorities = path("certs/ca.pem");
    let asking = ["--tls-client-ca-cert-path", &authorities];
    let server = serve_tls::start(directory.path(), &asking);
    write_vectors(&directory.path().join("base.npy"), 10);
    let (cql, http) = (server.cql.to_string(), format!("https://{}", server.http));
    let (base, certificate, key) = (
        path("base.npy"),
        path("certs/bench.pem"),
        path("certs/bench.key"),
    );
    let build = [
        "build-table",
        "--cql",
        &cql,
        "--base",
        &base,
        "--ca",
        &authorities,
    ];
    refused(&build);
    let own = ["--cert", &certificate, "--key", &key];
    bench(&[&build[..], &own].concat());
    let index = ["build-index", "--cql", &cql, "--http", &http];
    bench(&[&index[..], &["--ca", &authorities], &own].concat());
    let restart = ["restart", "--cql", &cql, "--ca", &authorities];
    let said = refused(&[&restart[..], &own].concat());
    assert!(said.contains("without --cert"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_a_certificate_would_win_over_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    serve_tls::certificate(directory.path(), &["--client", "bench"]);
    std::fs::write(path("superuser"), format!("ali\n{PASSWORD}\n")).unwrap();
    std::fs::write(path("password"), format!("{PASSWORD}\n")).unwrap();
    let authorities = path("certs/ca.pem");
    let asking = ["--tls-client-ca-cert-path", &authorities];
    let login = ["--login", "--superuser-file", &path("superuser")];
    let server = serve_tls::start(directory.path(), &[&asking[..], &login].concat());
    write_vectors(&directory.path().join("base.npy"), 10);
    let (cql, base, password) = (server.cql.to_string(), path("base.npy"), path("password"));
    let (certificate, key) = (path("certs/bench.pem"), path("certs/bench.key"));
    let build = ["build-table", "--cql", &cql, "--base", &base];
    let drop_table = ["drop-table", "--cql", &cql];
    let own = ["--ca", &authorities, "--cert", &certificate, "--key", &key];
    let role = ["--user", "ali", "--password-file", &password];

    // The identity has no role yet, so the password counts.
    bench(&[&build[..], &own, &role].concat());
    let pem = |name| serve_tls::pem(directory.path(), name);
    let shown = (pem("bench.pem"), pem("bench.key"));
    let tls = net::tls::client(&pem("ca.pem"), Some((&shown.0, &shown.1))).unwrap();
    let session = SessionBuilder::new()
        .known_node_addr(server.cql)
        .user("ali", PASSWORD)
        .tls_context(Some(TlsContext::Rustls023(tls)));
    let session = session.build().await.unwrap();
    let add = "ADD IDENTITY 'bench' TO ROLE ali";
    session.query_unpaged(add, ()).await.unwrap();

    let said = refused(&[&drop_table[..], &own, &role].concat());
    assert!(said.contains("leave out --user"), "{said}");
    bench(&[&drop_table[..], &own].concat());
    server.stop();
}
