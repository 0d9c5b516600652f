//! An index that is to keep another column is built anew beside the present one, which serves
//! meanwhile: also after a restart in between, and when the column's index came while the service
//! was away.

use serde_json::Value;
use store_api::ClientError;
use store_api::types::{AnnRequest, Filter, NodeStatus, Restriction};

use crate::common::refusing::Refusing;
use crate::common::{self, Way, World, eventually};

/// The words of a statement that reads a part of the table.
const SCAN: &str = "token(";

async fn found(world: &World, search: &AnnRequest) -> Result<Vec<Vec<Value>>, ClientError> {
    let found = world.client.ann("ks", "i", search, &["k"]).await;
    found.map(common::keys)
}

/// Waits until the service serves, and with it the index. Before that, a search that only the new
/// index could answer has its client leave the service alone for a while.
async fn wait_serving(world: &World) {
    let mut status = world.store.status();
    let serves = status.wait_for(|status| *status == NodeStatus::Serving);
    serves.await.expect("the service is there");
    world.wait_serving("i").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_present_index_serves_until_the_new_one_does() {
    let world = World::start(Way::Cql).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>, n int)")
        .await;
    for key in 0..30 {
        let values = (key, vec![key as f32, 1.0], key % 3);
        let insert = "INSERT INTO ks.t (k, v, n) VALUES (?, ?, ?)";
        world.execute(insert, values).await;
    }
    world.create_index("i", "t").await;
    wait_serving(&world).await;
    let near = AnnRequest::new(vec![0.0, 1.0], 3);
    let by_n = AnnRequest {
        filter: Some(Filter {
            restrictions: vec![Restriction::Eq {
                lhs: "n".to_owned(),
                rhs: 2.into(),
            }],
            allow_filtering: true,
            condition: None,
        }),
        ..near.clone()
    };
    let refusing = Refusing::start(world.cql, SCAN).await;
    let address = refusing.address.to_string();
    let mut world = world
        .restart_with(
            async |database| {
                let index = "CREATE CUSTOM INDEX of_n ON ks.t (n) USING 'sai'";
                database.cql(index).await;
            },
            |options| options.database.contact_points = vec![address],
        )
        .await;
    wait_serving(&world).await;
    // Two starts find a snapshot without the column, and can't read the table.
    for key in [100, 101] {
        assert_eq!(found(&world, &near).await.unwrap(), [[0], [1], [2]]);
        let insert = "INSERT INTO ks.t (k, v, n) VALUES (?, [0, 0.9], 2)";
        world.execute(insert, (key,)).await;
        eventually("the present index takes in a write", async || {
            found(&world, &near)
                .await
                .unwrap()
                .contains(&vec![key.into()])
        })
        .await;
        assert!(found(&world, &by_n).await.is_err());
        let before = refusing.refused();
        eventually("a scan is tried", async || refusing.refused() > before).await;
        world.execute("DELETE FROM ks.t WHERE k = ?", (key,)).await;
        eventually("the present index takes in a deletion", async || {
            found(&world, &near).await.unwrap() == [[0], [1], [2]]
        })
        .await;
        world = world.restart(async |_| {}).await;
        wait_serving(&world).await;
    }
    refusing.stop();
    eventually("the new index serves", async || {
        assert_eq!(found(&world, &near).await.unwrap(), [[0], [1], [2]]);
        found(&world, &by_n)
            .await
            .is_ok_and(|found| found == [[2], [5], [8]])
    })
    .await;
    let world = world.restart(async |_| {}).await;
    wait_serving(&world).await;
    assert_eq!(found(&world, &by_n).await.unwrap(), [[2], [5], [8]]);
    assert_eq!(world.metric("index_scans_total", "i").await, Some(0.0));
    world.store.shutdown().await;
}
