//! Tests of an index on the texts of a clustering column, whose rows may be there without a cell.

use store_api::types::Bm25Request;

use crate::common::{self, Way, World};

#[tokio::test(flavor = "multi_thread")]
async fn rows_leave_an_index_on_a_key_column_when_their_marker_expires() {
    let world = World::start(Way::InProcess).await;
    for statement in [
        "CREATE TABLE ks.t (p int, c text, n int, PRIMARY KEY (p, c))",
        "CREATE CUSTOM INDEX w ON ks.t (c) USING 'fulltext_index'",
    ] {
        world.cql(statement).await;
    }
    world.wait_serving("w").await;
    for statement in [
        "INSERT INTO ks.t (p, c) VALUES (1, 'red fox')",
        // Nothing but a marker, which expires.
        "INSERT INTO ks.t (p, c) VALUES (2, 'red ant') USING TTL 2",
        // A marker that outlives the cell.
        "INSERT INTO ks.t (p, c) VALUES (3, 'red bee') USING TTL 2",
        "UPDATE ks.t USING TTL 1 SET n = 1 WHERE p = 3 AND c = 'red bee'",
        // A cell that outlives the marker.
        "INSERT INTO ks.t (p, c) VALUES (4, 'red cat') USING TTL 1",
        "UPDATE ks.t USING TTL 2 SET n = 1 WHERE p = 4 AND c = 'red cat'",
        // A marker that expires, and a cell that does not.
        "INSERT INTO ks.t (p, c) VALUES (5, 'red dog') USING TTL 1",
        "UPDATE ks.t SET n = 1 WHERE p = 5 AND c = 'red dog'",
    ] {
        world.cql(statement).await;
    }
    // The index has taken in all of them that are still there.
    let request = Bm25Request::new("red", 10);
    let found = world.client.words("ks", "w", &request, &["p", "c"]).await;
    assert!(found.expect("an answer").keys.len() >= 2);
    common::eventually("expired rows leave the index", async || {
        let status = world.status("w").await;
        status.is_ok_and(|status| status.count == 2)
    })
    .await;
    let found = world.client.words("ks", "w", &request, &["p", "c"]).await;
    let found = common::keys(found.expect("an answer"));
    let mut partitions: Vec<i64> = found.iter().filter_map(|key| key[0].as_i64()).collect();
    partitions.sort_unstable();
    assert_eq!(partitions, [1, 5]);
    world.assert_repair_finds_nothing("w", true).await;
    world.store.shutdown().await;
}
