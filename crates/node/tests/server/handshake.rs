//! Opening a connection: versions, options, compression, and requests that are refused before.

use cql::error::ErrorKind;
use cql::wire::{Compression, Request, Response, Startup};

use crate::client::{Client, echoed, error, query, raw_frame, startup};
use crate::echo::start;
use crate::real::start_with_keyspace;

#[tokio::test]
async fn other_versions_are_told_which_to_use() {
    let server = start(|_| {}).await;
    for version in [1, 2, 3, 6, 0x42] {
        let mut client = Client::connect(server.address).await;
        // OPTIONS, which drivers send first.
        client.send_bytes(&raw_frame(version, 0, 3, 5, &[])).await;
        let (context, response) = client.receive().await;
        let error = error(response);
        assert_eq!(error.kind, ErrorKind::ProtocolError);
        assert!(
            error
                .message
                .contains("Invalid or unsupported protocol version"),
            "{error}"
        );
        // Apache's gocql 2 goes down to another version only if the answer is on stream 0.
        assert_eq!(context.stream, 0);
        client.assert_closed().await;
    }
}

#[tokio::test]
async fn options_may_come_before_startup() {
    let server = start(|_| {}).await;
    let mut client = Client::connect(server.address).await;
    client.send(5, &Request::Options).await;
    let (context, response) = client.receive().await;
    assert_eq!(context.stream, 5);
    let Response::Supported(supported) = response else {
        panic!("{response:?}");
    };
    assert_eq!(supported[0].0, "COMPRESSION");
    client.start(None).await;
    client.assert_alive().await;
}

/// ScyllaDB's drivers take a node with some of these options for one with shards, and look for
/// ports that this node does not have.
#[tokio::test]
async fn a_node_tells_of_no_shards() {
    let (_node, mut client) = start_with_keyspace().await;
    client.send(5, &Request::Options).await;
    let Response::Supported(supported) = client.receive().await.1 else {
        panic!("no SUPPORTED");
    };
    let keys: Vec<&str> = supported.iter().map(|(key, _)| key.as_str()).collect();
    assert!(keys.contains(&"CQL_VERSION"), "{keys:?}");
    for key in [
        "SCYLLA_SHARD",
        "SCYLLA_NR_SHARDS",
        "SCYLLA_SHARDING_IGNORE_MSB",
    ] {
        assert!(!keys.contains(&key), "{keys:?}");
    }
}

#[tokio::test]
async fn requests_before_startup_are_refused() {
    let server = start(|_| {}).await;
    let mut client = Client::connect(server.address).await;
    for request in [
        query("x"),
        Request::Prepare {
            statement: "x".to_owned(),
            keyspace: None,
        },
        Request::Register { events: vec![] },
        Request::AuthResponse { token: None.into() },
    ] {
        client.send(1, &request).await;
        let error = error(client.receive().await.1);
        assert_eq!(error.kind, ErrorKind::ProtocolError, "{request:?}");
    }
    client.start(None).await;
    client.assert_alive().await;
}

#[tokio::test]
async fn a_connection_is_opened_once_and_properly() {
    let server = start(|_| {}).await;
    let mut client = Client::connect(server.address).await;
    let with = |options: &[(&str, &str)]| {
        Request::Startup(Startup {
            options: options
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        })
    };
    for bad in [
        with(&[]),
        with(&[("CQL_VERSION", "2.0.0")]),
        with(&[("CQL_VERSION", "3.0.0"), ("COMPRESSION", "zip")]),
    ] {
        client.send(1, &bad).await;
        let error = error(client.receive().await.1);
        assert_eq!(error.kind, ErrorKind::ProtocolError, "{bad:?}");
    }
    client.start(None).await;
    client.send(1, &startup(None)).await;
    let again = error(client.receive().await.1);
    assert_eq!(again.kind, ErrorKind::ProtocolError);
    client.assert_alive().await;
}

#[tokio::test]
async fn the_versions_and_options_that_drivers_give_are_taken() {
    let server = start(|_| {}).await;
    for version in ["3.0.0", "3.4.7", "4.0.0"] {
        let mut client = Client::connect(server.address).await;
        let options = [
            ("CQL_VERSION", version),
            ("DRIVER_CONFIG", "{}"),
            ("SESSION_ID", "1"),
        ];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let startup = Request::Startup(Startup {
            options: options.into(),
        });
        client.send(1, &startup).await;
        assert_eq!(client.receive().await.1, Response::Ready, "{version}");
        client.assert_alive().await;
    }
}

#[tokio::test]
async fn bodies_are_compressed_as_agreed() {
    let server = start(|_| {}).await;
    for compression in Compression::EVERY {
        let mut client = Client::connect(server.address).await;
        client.start(Some(compression)).await;
        let text = "compress me ".repeat(100);
        assert_eq!(client.ask(&text).await, echoed(&text));
        let before = server.server.counters()[0].1;
        let Response::Rows(rows) = client.ask("big 100000").await else {
            panic!("no rows");
        };
        assert_eq!(rows.row_count(), 1);
        let sent = server.server.counters()[0].1.bytes_written - before.bytes_written;
        assert!(sent < 20_000, "{compression:?}: {sent}");
        // A client may send a frame uncompressed although compression was agreed on.
        client.compression = None;
        client.query(9, "plain").await;
        client.compression = Some(compression);
        assert_eq!(client.receive().await.1, echoed("plain"));
    }
}
