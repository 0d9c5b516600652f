//! Tests that indexes follow changes of the schema: truncated tables, dropped and recreated indexes
//! and tables, dropped columns, and keyspaces without tablets.

use serde_json::Value;
use store_api::ClientError;
use store_api::types::{AnnRequest, Filter, Restriction};

use crate::common::{self, Way, World, both_ways, eventually};

async fn table(world: &World) {
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
}

async fn insert(world: &World, keys: std::ops::Range<i32>) {
    for key in keys {
        world
            .execute(
                "INSERT INTO ks.t (k, v) VALUES (?, ?)",
                (key, vec![key as f32, 1.0]),
            )
            .await;
    }
}

async fn wait_count(world: &World, index: &str, count: usize) {
    eventually(&format!("{index} has {count} rows"), async || {
        world
            .status(index)
            .await
            .is_ok_and(|status| status.count == count)
    })
    .await;
}

async fn wait_missing(world: &World, index: &str) {
    eventually(&format!("{index} is missing"), async || {
        matches!(
            world.status(index).await,
            Err(ClientError::Status { status, message })
                if status == "404 Not Found" && message == format!("missing index: ks.{index}")
        )
    })
    .await;
}

async fn truncation_empties_the_index_and_it_goes_on(way: Way) {
    let world = World::start(way).await;
    table(&world).await;
    insert(&world, 0..20).await;
    world.create_index("i", "t").await;
    wait_count(&world, "i", 20).await;
    for round in 1..4 {
        world.cql("TRUNCATE ks.t").await;
        insert(&world, 0..round).await;
        wait_count(&world, "i", round as usize).await;
        world.wait_serving("i").await;
        insert(&world, 0..10).await;
        wait_count(&world, "i", 10).await;
    }
    world.store.shutdown().await;
}

async fn a_dropped_index_is_freed_and_one_of_its_name_is_built_anew(way: Way) {
    let world = World::start(way).await;
    table(&world).await;
    insert(&world, 0..5).await;
    for _ in 0..3 {
        world.create_index("i", "t").await;
        world.wait_serving("i").await;
        insert(&world, 5..8).await;
        wait_count(&world, "i", 8).await;
        world.cql("DROP INDEX ks.i").await;
        wait_missing(&world, "i").await;
    }
    // These changes come faster than the schema is looked at.
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    world.cql("DROP INDEX ks.i").await;
    world.create_index("i", "t").await;
    insert(&world, 0..30).await;
    wait_count(&world, "i", 30).await;
    world.store.shutdown().await;
}

async fn a_dropped_table_takes_its_indexes_along(way: Way) {
    let world = World::start(way).await;
    for _ in 0..3 {
        table(&world).await;
        insert(&world, 0..5).await;
        world.create_index("i", "t").await;
        world.create_index("j", "t").await;
        world.wait_serving("i").await;
        world.wait_serving("j").await;
        // Both indexes follow the one log.
        insert(&world, 5..9).await;
        wait_count(&world, "i", 9).await;
        wait_count(&world, "j", 9).await;
        world.cql("DROP INDEX ks.i").await;
        wait_missing(&world, "i").await;
        insert(&world, 9..10).await;
        wait_count(&world, "j", 10).await;
        world.cql("DROP TABLE ks.t").await;
        wait_missing(&world, "j").await;
    }
    world.store.shutdown().await;
}

async fn indexes_on_two_columns_hold_each_its_own(way: Way) {
    let world = World::start(way).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>, \"W\" vector<float, 3>)")
        .await;
    world.create_index("i", "t").await;
    world
        .cql("CREATE CUSTOM INDEX \"J\" ON ks.t (\"W\") USING 'vector_index'")
        .await;
    world.wait_serving("i").await;
    world.wait_serving("J").await;
    world
        .cql("INSERT INTO ks.t (k, v) VALUES (1, [1, 2])")
        .await;
    world
        .cql("INSERT INTO ks.t (k, \"W\") VALUES (2, [1, 2, 3])")
        .await;
    wait_count(&world, "i", 1).await;
    wait_count(&world, "J", 1).await;
    for (index, vector, key) in [("J", vec![1.0, 2.0, 3.0], 2), ("i", vec![1.0, 2.0], 1)] {
        let search = AnnRequest::new(vector, 9);
        let found = world.client.ann("ks", index, &search, &["k"]).await;
        assert_eq!(common::keys(found.unwrap()), [[key]]);
    }
    world.store.shutdown().await;
}

async fn a_column_that_is_dropped_with_its_index_holds_nothing_up(way: Way) {
    let world = World::start(way).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>, w vector<float, 3>)")
        .await;
    world
        .cql("CREATE CUSTOM INDEX stays ON ks.t (w) USING 'vector_index'")
        .await;
    for round in 1..4 {
        world.create_index("goes", "t").await;
        world.wait_serving("stays").await;
        world.wait_serving("goes").await;
        world.cql("DROP INDEX ks.goes").await;
        world.cql("ALTER TABLE ks.t DROP v").await;
        let values = (round, vec![1.0_f32, 2.0, 3.0]);
        let insert = "INSERT INTO ks.t (k, w) VALUES (?, ?)";
        world.execute(insert, values).await;
        wait_count(&world, "stays", round as usize).await;
        world.cql("ALTER TABLE ks.t ADD v vector<float, 2>").await;
    }
    world.store.shutdown().await;
}

async fn keyspaces_without_tablets_are_followed_too(way: Way) {
    let world = World::start(way).await;
    world.cql("DROP KEYSPACE ks").await;
    world
        .cql(
            "CREATE KEYSPACE ks WITH replication = \
             {'class': 'NetworkTopologyStrategy', 'replication_factor': 1} \
             AND tablets = {'enabled': false}",
        )
        .await;
    table(&world).await;
    insert(&world, 0..5).await;
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    insert(&world, 5..50).await;
    wait_count(&world, "i", 50).await;
    world.cql("DELETE FROM ks.t WHERE k = 7").await;
    wait_count(&world, "i", 49).await;
    world.store.shutdown().await;
}

/// The keys that a search of the index `i` names.
async fn found(world: &World, search: &AnnRequest) -> Result<Vec<Vec<Value>>, ClientError> {
    let found = world.client.ann("ks", "i", search, &["k"]).await;
    found.map(common::keys)
}

async fn an_index_keeps_the_columns_with_an_index_of_their_own(way: Way) {
    let world = World::start(way).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>, n int, m map<text, int>)")
        .await;
    for key in 0..30 {
        let insert = "INSERT INTO ks.t (k, v, n, m) VALUES (?, ?, ?, {'a': 1})";
        let values = (key, vec![key as f32, 1.0], key % 3);
        world.execute(insert, values).await;
    }
    world.create_index("i", "t").await;
    wait_count(&world, "i", 30).await;
    let near = AnnRequest::new(vec![0.0, 1.0], 3);
    let restricted = |restriction| AnnRequest {
        filter: Some(Filter {
            restrictions: vec![restriction],
            allow_filtering: true,
            condition: None,
        }),
        ..near.clone()
    };
    let (lhs, rhs) = ("n".to_owned(), 2.into());
    let by_n = restricted(Restriction::Eq { lhs, rhs });
    let (lhs, rhs) = ("m".to_owned(), "a".into());
    let by_m = restricted(Restriction::ContainsKey { lhs, rhs });
    let refuses = async |search: &AnnRequest| {
        matches!(found(&world, search).await, Err(ClientError::Status { .. }))
    };
    assert!(refuses(&by_n).await && refuses(&by_m).await);
    for (index, search, keys) in [
        ("of_n ON ks.t (n)", &by_n, [[2], [5], [8]]),
        ("of_m ON ks.t (keys(m))", &by_m, [[0], [1], [2]]),
    ] {
        let statement = format!("CREATE CUSTOM INDEX {index} USING 'sai'");
        world.cql(&statement).await;
        eventually(&statement, async || {
            // The present index serves while another one is built.
            assert_eq!(found(&world, &near).await.unwrap(), [[0], [1], [2]]);
            let found = found(&world, search).await;
            found.is_ok_and(|found| found == keys)
        })
        .await;
    }
    let insert = "INSERT INTO ks.t (k, v, n) VALUES (40, [0, 1], 2)";
    world.cql(insert).await;
    eventually("a new row is found by the column", async || {
        found(&world, &by_n)
            .await
            .unwrap()
            .contains(&vec![40.into()])
    })
    .await;
    world.cql("DROP INDEX ks.of_n").await;
    eventually("the column is not kept any more", async || {
        refuses(&by_n).await
    })
    .await;
    assert!(!refuses(&by_m).await);
    world.store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_told_of_is_looked_at() {
    let hour = std::time::Duration::from_secs(3600);
    let world =
        World::start_with(Way::InProcess, |options| options.discovery_interval = hour).await;
    table(&world).await;
    insert(&world, 0..5).await;
    world.create_index("i", "t").await;
    wait_count(&world, "i", 5).await;
    world.cql("TRUNCATE ks.t").await;
    wait_count(&world, "i", 0).await;
    world.cql("DROP INDEX ks.i").await;
    wait_missing(&world, "i").await;
}

both_ways!(
    truncation_empties_the_index_and_it_goes_on,
    a_dropped_index_is_freed_and_one_of_its_name_is_built_anew,
    a_dropped_table_takes_its_indexes_along,
    indexes_on_two_columns_hold_each_its_own,
    a_column_that_is_dropped_with_its_index_holds_nothing_up,
    keyspaces_without_tablets_are_followed_too,
    an_index_keeps_the_columns_with_an_index_of_their_own,
);
