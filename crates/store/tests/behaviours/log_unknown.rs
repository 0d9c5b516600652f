//! Tests that nothing is assumed about a log while the database gives no answer. A snapshot is
//! neither opened nor deleted until the answer comes.

use store_api::types::IndexState;

use crate::common::refusing::Refusing;
use crate::common::{Way, World, eventually};

/// The number of refused queries for which the test waits.
const LOOKS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_waits_until_it_is_known_what_the_log_is() {
    let world = World::start(Way::Cql).await;
    let insert = |k: i32| format!("INSERT INTO ks.t (k, v) VALUES ({k}, [{k}, 1])");
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
    for k in 0..40 {
        world.cql(&insert(k)).await;
    }
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    let refusing = Refusing::start(world.cql, "default_time_to_live").await;
    let address = refusing.address.to_string();
    let world = world
        .restart_with(
            async |database| database.cql(&insert(40)).await,
            |options| options.database.contact_points = vec![address],
        )
        .await;
    eventually("it asks again and again", async || {
        refusing.refused() >= LOOKS
    })
    .await;
    let status = world.status("i").await.expect("the schema has it").status;
    assert_eq!(status, IndexState::Initializing, "it is not taken for good");
    let current = world.database().snapshot().join("current");
    assert!(current.is_file(), "nor thrown away");

    refusing.stop();
    world.wait_serving("i").await;
    let scans = world.metric("index_scans_total", "i").await;
    assert_eq!(scans, Some(0.0), "it comes from the snapshot");
    eventually("the log is followed", async || {
        world.status("i").await.unwrap().count == 41
    })
    .await;
    world.store.shutdown().await;
}
