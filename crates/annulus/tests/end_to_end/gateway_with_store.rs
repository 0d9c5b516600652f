//! `annulus gateway --with-store` before a Cassandra that is not there. Both halves run, stop, and
//! take over other settings. `tests/deployment` tests them before a real Cassandra.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use store_api::types::NodeStatus;
use store_api::{ClientOptions, StoreClient};
use test_support::{Running, eventually, free_address};

/// The longest time that the process may take to stop.
const STOP: Duration = Duration::from_secs(10);

fn command(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_annulus"));
    command
        .current_dir(directory)
        .args(["gateway", "--config", "gateway.toml"])
        .args(arguments)
        .stdout(Stdio::null());
    command
}

/// Writes the settings of a gateway before a node that is not there.
fn write_settings(directory: &Path, cql: SocketAddr, http: SocketAddr, more: &str) {
    let text = format!(
        "with-store = true\ncassandra = \"{}\"\ncql-port = {}\nlog = \"warn\"\n[store]\nuri = \"{http}\"\n{more}\n",
        free_address(),
        cql.port(),
    );
    std::fs::write(directory.join("gateway.toml"), text).expect("a file");
}

/// Waits until the index service answers at that address that it has no database.
async fn wait_for_store(http: SocketAddr) {
    let answers = async || {
        // A client that has found no service does not ask again for a while.
        let client = StoreClient::new(ClientOptions {
            base_uris: vec![format!("http://{http}")],
            ..ClientOptions::default()
        });
        let status = client.expect("a URI").node_status().await;
        status == Ok(NodeStatus::ConnectingToDb)
    };
    eventually(&format!("{http} answers"), answers).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_service_moves_and_both_stop_as_they_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let (cql, before, after) = (free_address(), free_address(), free_address());
    write_settings(directory.path(), cql, before, "");
    let log = directory.path().join("log");
    let mut command = command(directory.path(), &[]);
    command.stderr(std::fs::File::create(&log).unwrap());
    let mut gateway = Running(command.spawn().unwrap());
    wait_for_store(before).await;
    assert!(TcpStream::connect(cql).is_ok());

    // A setting that is unknown changes nothing.
    write_settings(directory.path(), cql, after, "urri = 1");
    gateway.signal("-HUP");
    eventually("the mistake is told", async || {
        std::fs::read_to_string(&log).unwrap().contains("`urri`")
    })
    .await;
    assert!(TcpStream::connect(before).is_ok());
    write_settings(directory.path(), cql, after, "");
    gateway.signal("-HUP");
    wait_for_store(after).await;
    eventually("the old address is closed", async || {
        TcpStream::connect(before).is_err()
    })
    .await;
    assert!(TcpStream::connect(cql).is_ok());
    gateway.signal("-TERM");
    assert_eq!(gateway.end(STOP), Some(0));
}

/// Runs a gateway that does not start. Returns its exit code and its output on stderr.
fn refused(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = command(directory, arguments);
    let Output { status, stderr, .. } = command.output().expect("the binary starts");
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

#[test]
fn settings_that_can_not_be_used_have_their_exit_codes() {
    let directory = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().map(|address| (taken, address)).unwrap();
    let write = |http, more| write_settings(directory.path(), free_address(), http, more);
    let is_refused = |arguments: &[&str], code, named| {
        let (exit, said) = refused(directory.path(), arguments);
        assert!(
            exit == Some(code) && said.contains(named),
            "{exit:?}: {said}"
        );
    };
    write(taken.1, "");
    is_refused(&[], 3, "VECTOR_STORE_URI");
    write(free_address(), "index-dir = \"gateway.toml\"");
    is_refused(&[], 2, "ANNULUS_INDEX_DIR");
    write(free_address(), "urri = 1");
    is_refused(&[], 2, "`urri`");

    write(free_address(), "");
    let elsewhere = ["--vector-store-primary-uri", "http://127.0.0.1:6080"];
    is_refused(&elsewhere, 2, "vector-store-primary-uri");
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(
        directory.path().join("key.pem"),
        own.signing_key.serialize_pem(),
    )
    .unwrap();
    std::fs::write(directory.path().join("cert.pem"), own.cert.pem()).unwrap();
    let tls = ["--tls-cert-path=cert.pem", "--tls-key-path=key.pem"];
    is_refused(&tls, 2, "scylladb-certificate-file");
}
