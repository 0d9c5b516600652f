//! `annulus store` beside a database in another process.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use store_api::types::{AnnRequest, NodeStatus};
use store_api::{ClientOptions, KeyValue, StoreClient};
use test_support::{Running, eventually, free_address};

use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(60);

/// The interval at which the files that settings name are checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Starts `annulus store` with the settings in `.env` of that directory.
pub fn start(directory: &Path, arguments: &[&str]) -> Running {
    Running(
        command(directory, arguments)
            .spawn()
            .expect("the binary starts"),
    )
}

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annulus"));
    command
        .current_dir(directory)
        .args(["store", "--log", "info"])
        .args(arguments)
        .stdout(Stdio::piped());
    command
}

fn write_settings(directory: &Path, database: SocketAddr, http: SocketAddr, more: &str) {
    let text = format!(
        "VECTOR_STORE_SCYLLADB_URI={database}\nVECTOR_STORE_URI={http}\n\
         VECTOR_STORE_MONITOR_INDEXES_INTERVAL=50ms\nVECTOR_STORE_USE_DISKANN=false\n{more}\n"
    );
    std::fs::write(directory.join(".env"), text).expect("a file");
}

async fn serves(http: SocketAddr) -> bool {
    let client = StoreClient::new(ClientOptions {
        base_uris: vec![format!("http://{http}")],
        ..ClientOptions::default()
    });
    let status = client.expect("a URI").node_status().await;
    status == Ok(NodeStatus::Serving)
}

async fn wait_until_serving(http: SocketAddr) {
    eventually(&format!("{http} serves"), async || serves(http).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_serves_and_moves_and_stops_as_it_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let database = Server::start(&directory.path().join("data"));
    let session = database.connect().await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)",
        "INSERT INTO ks.t (k, v) VALUES (7, [1, 2])",
        "CREATE CUSTOM INDEX i ON ks.t (v) USING 'vector_index'",
    ] {
        session.query_unpaged(statement, ()).await.unwrap();
    }

    let (before, after) = (free_address(), free_address());
    // The database asks for no password.
    let password = directory.path().join("password");
    std::fs::write(&password, "secret").unwrap();
    let checked = format!(
        "VECTOR_STORE_TLS_FILE_CHECK_INTERVAL={CHECK_INTERVAL:?}\n\
         VECTOR_STORE_SCYLLADB_USERNAME=somebody\n\
         VECTOR_STORE_SCYLLADB_PASSWORD_FILE=password"
    );
    write_settings(directory.path(), database.cql, before, &checked);
    let log = directory.path().join("log");
    let mut command = command(directory.path(), &[]);
    command.stderr(std::fs::File::create(&log).unwrap());
    let mut store = Running(command.spawn().expect("the binary starts"));
    let stdout = store.0.stdout.take().unwrap();
    let ready = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map(|_| line)
    });
    let ready = tokio::time::timeout(PATIENCE, ready).await;
    let ready = ready.expect("a ready line").unwrap().unwrap();
    assert_eq!(ready, format!("annulus store is ready: HTTP on {before}\n"));
    let client = StoreClient::new(ClientOptions {
        base_uris: vec![format!("http://{before}")],
        ..ClientOptions::default()
    });
    let found = client
        .unwrap()
        .ann("ks", "i", &AnnRequest::new(vec![1.0, 2.0], 1), &["k"])
        .await;
    let seven = KeyValue::Cql(bytes::Bytes::copy_from_slice(&7i32.to_be_bytes()));
    assert_eq!(found.unwrap().keys, [[seven]]);

    // Settings that are half written or unusable change nothing.
    std::fs::write(directory.path().join(".env"), "").unwrap();
    std::fs::remove_file(&password).unwrap();
    eventually("a check of the files has failed", async || {
        let log = std::fs::read_to_string(&log).unwrap();
        log.contains("the settings of the index service can't be used")
    })
    .await;
    assert!(serves(before).await);
    write_settings(
        directory.path(),
        database.cql,
        after,
        "VECTOR_STORE_MEMORY_LIMIT=much",
    );
    store.signal("-HUP");
    write_settings(directory.path(), database.cql, after, "");
    store.signal("-HUP");
    wait_until_serving(after).await;
    eventually("the old address is closed", async || {
        std::net::TcpStream::connect(before).is_err()
    })
    .await;
    store.signal("-TERM");
    assert_eq!(store.end(PATIENCE), Some(0));
}

/// Writes a certificate for 127.0.0.1 and its key, and returns the certificate.
fn write_certificate(directory: &Path) -> Vec<u8> {
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(directory.join("key.pem"), own.signing_key.serialize_pem()).unwrap();
    std::fs::write(directory.join("cert.pem"), own.cert.pem()).unwrap();
    own.cert.pem().into_bytes()
}

/// Opens a pipe for writing; `None` if no one reads it.
fn write_end(pipe: &Path) -> Option<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    let not_blocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    options.write(true).custom_flags(not_blocking);
    options.open(pipe).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_swapped_when_its_file_changes() {
    let directory = tempfile::tempdir().unwrap();
    let http = free_address();
    let (uri, nobody) = (http.to_string(), free_address().to_string());
    let before = write_certificate(directory.path());
    let mut store = start(
        directory.path(),
        &[
            "--uri",
            &uri,
            "--scylladb-uri",
            &nobody,
            "--tls-cert-path",
            "cert.pem",
            "--tls-key-path",
            "key.pem",
            "--tls-file-check-interval",
            &format!("{CHECK_INTERVAL:?}"),
        ],
    );
    let answers = async |certificate: &[u8]| {
        let client = StoreClient::new(ClientOptions {
            base_uris: vec![format!("https://{http}")],
            certificate_authorities: Some(certificate.to_vec()),
            ..ClientOptions::default()
        });
        // The service has no database, so it does not serve, but it tells so.
        let status = client.expect("a URI").node_status().await;
        status == Ok(NodeStatus::ConnectingToDb)
    };
    let wait = async |certificate: &[u8]| {
        eventually("the certificate is used", async || {
            answers(certificate).await
        })
        .await;
    };
    wait(&before).await;
    let after = write_certificate(directory.path());
    wait(&after).await;
    assert!(!answers(&before).await);

    // A file that never ends keeps the process neither from answering nor from stopping.
    let endless = directory.path().join("cert.pem");
    std::fs::remove_file(&endless).unwrap();
    let made = Command::new("mkfifo").arg(&endless).status();
    assert!(made.expect("mkfifo is there").success());
    let mut never_written = None;
    eventually("the file is being read", async || {
        never_written = write_end(&endless);
        never_written.is_some()
    })
    .await;
    assert!(answers(&after).await);
    store.signal("-TERM");
    assert_eq!(store.end(PATIENCE), Some(0));
}

#[test]
fn settings_that_can_not_be_used_have_their_exit_codes() {
    let directory = tempfile::tempdir().unwrap();
    let code = |arguments: &[&str]| start(directory.path(), arguments).end(PATIENCE);
    let no_key = ["--uri=127.0.0.1:0", "--tls-cert-path=/nowhere"];
    assert_eq!(code(&no_key), Some(2));
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().map(|address| (taken, address)).unwrap();
    assert_eq!(code(&["--uri", &taken.1.to_string()]), Some(3));
    write_settings(
        directory.path(),
        free_address(),
        free_address(),
        "no assignment",
    );
    assert_eq!(code(&[]), Some(2));
}
