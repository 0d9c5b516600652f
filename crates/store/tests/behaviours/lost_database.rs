//! Tests that indexes go on serving while the database is away, and catch up when it is back.

use std::time::Duration;

use store_api::types::{AnnRequest, NodeStatus};

use crate::common::{self, Way, World, eventually, start_node};

#[tokio::test(flavor = "multi_thread")]
async fn the_service_outlives_its_database() {
    let world = World::start(Way::Cql).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
    world
        .cql("INSERT INTO ks.t (k, v) VALUES (1, [1, 2])")
        .await;
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    let mut status = world.store.status();
    assert_eq!(*status.borrow_and_update(), NodeStatus::Serving);

    assert!(world.node.stop(Duration::from_secs(10)).await);
    let patience = common::PATIENCE;
    tokio::time::timeout(
        patience,
        status.wait_for(|status| *status == NodeStatus::ConnectingToDb),
    )
    .await
    .expect("the loss is noticed")
    .expect("the service lives");
    let found = world
        .client
        .ann("ks", "i", &AnnRequest::new(vec![1.0, 2.0], 9), &["k"])
        .await;
    assert_eq!(common::keys(found.unwrap()), [[1]]);

    let node = start_node(world.storage.clone(), world.cql).await;
    tokio::time::timeout(
        patience,
        status.wait_for(|status| *status == NodeStatus::Serving),
    )
    .await
    .expect("the database is found again")
    .expect("the service lives");
    eventually("the session of the test is mended", async || {
        let insert = "INSERT INTO ks.t (k, v) VALUES (2, [3, 4])";
        world.session.query_unpaged(insert, ()).await.is_ok()
    })
    .await;
    eventually("the log is followed again", async || {
        world.status("i").await.unwrap().count == 2
    })
    .await;
    world.store.shutdown().await;
    node.stop(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_comes_later_is_found() {
    let world = World::start(Way::Cql).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
    world
        .cql("INSERT INTO ks.t (k, v) VALUES (1, [1, 2])")
        .await;
    world.create_index("i", "t").await;
    world.store.shutdown().await;
    assert!(world.node.stop(Duration::from_secs(10)).await);

    let directory = tempfile::tempdir().unwrap();
    let options = common::client_options(
        world.cql,
        common::loopback(),
        common::in_files(directory.path()),
    );
    let store = store::Store::start(options).await.unwrap();
    let mut status = store.status();
    status
        .wait_for(|status| *status == NodeStatus::ConnectingToDb)
        .await
        .unwrap();
    let node = start_node(world.storage.clone(), world.cql).await;
    let serving = status.wait_for(|status| *status == NodeStatus::Serving);
    tokio::time::timeout(common::PATIENCE, serving)
        .await
        .expect("the database is found")
        .unwrap();
    store.shutdown().await;
    node.stop(Duration::from_secs(10)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_finds_no_database_says_so_and_stops() {
    let closed = std::net::TcpListener::bind(common::loopback()).unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let directory = tempfile::tempdir().unwrap();
    let options = common::client_options(
        address,
        common::loopback(),
        common::in_files(directory.path()),
    );
    let store = store::Store::start(options).await.unwrap();
    let mut status = store.status();
    status
        .wait_for(|status| *status == NodeStatus::ConnectingToDb)
        .await
        .unwrap();
    tokio::time::timeout(Duration::from_secs(10), store.shutdown())
        .await
        .expect("stops in time");
}
