//! Tests that an index without room on the disk or in memory delays rows, loses none, and serves
//! all the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use store::ShortAnswerPolicy;
use store_api::types::{AnnRequest, RepairRequest, TaskState};
use store_api::{ClientError, ColumnsPredicate, VectorSearch, WordMatches};

use crate::common::{self, Way, World, both_ways};

const DIMENSIONS: usize = 80;

fn vector(key: u8) -> Vec<f32> {
    vec![f32::from(key); DIMENSIONS]
}

async fn insert(world: &World, key: u8) {
    let values = (i32::from(key), vector(key));
    world
        .execute("INSERT INTO ks.t (k, v) VALUES (?, ?)", values)
        .await;
}

async fn an_index_is_complete_when_its_rows_have_found_room(way: Way) {
    let mut directory = None;
    let world = World::start_with(way, |options| {
        directory = Some(options.indexes.directory.clone());
        // Snapshots would make the directory.
        options.snapshots.interval = None;
    });
    let (world, directory) = (world.await, directory.expect("the options were seen"));
    // As on a full disk, the file of the index can't be made.
    std::fs::remove_dir(&directory).expect("made at the start, and empty");
    world
        .cql(&format!(
            "CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, {DIMENSIONS}>)"
        ))
        .await;
    for key in 0..5 {
        insert(&world, key).await;
    }
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    let status = world.status("i").await.unwrap();
    assert_eq!((status.count, status.rows_without_room), (0, 5));
    // A service in the process of the rows reads them; another one says that it lacks some.
    let search = AnnRequest::new(vector(0), 10);
    let found = world.client.ann("ks", "i", &search, &["k"]).await.unwrap();
    let expected = match way {
        Way::Cql => (0, true),
        Way::InProcess => (5, false),
    };
    assert_eq!((found.keys.len(), found.is_short), expected);
    let short = world.metric("searches_short_total", "i").await;
    let is_short = if found.is_short { 1.0 } else { 0.0 };
    assert_eq!(short, Some(is_short));
    // A repair reports the missing rows, and that it can't add them.
    let task = world
        .client
        .repair("ks", "i", RepairRequest::default())
        .await;
    let task = task.unwrap().id;
    let mut repair = None;
    common::eventually("the repair ends", async || {
        let task = world.client.task(&task).await.unwrap();
        let ended = task.state != TaskState::Running;
        repair = Some(task);
        ended
    })
    .await;
    let repair = repair.unwrap();
    assert_eq!(repair.state, TaskState::Failed, "{repair:?}");
    assert!(repair.error.unwrap().contains("5 rows still differ"));
    assert_eq!(
        (repair.counters["rows_left"], repair.counters["rows_added"]),
        (5, 0)
    );
    insert(&world, 5).await;
    world.cql("DELETE FROM ks.t WHERE k = 0").await;

    std::fs::create_dir(&directory).expect("its place is free");
    common::eventually("the index equals the table", async || {
        let found = world.indexed("i", &vector(0), &["k"]).await;
        let keys: Vec<String> = found.into_keys().collect();
        keys == ["[1]", "[2]", "[3]", "[4]", "[5]"]
    })
    .await;
    world.store.shutdown().await;
}

async fn an_index_that_is_opened_serves_when_it_has_the_rows_that_its_snapshot_lacks(way: Way) {
    // The number of rows is more than a channel holds.
    const ROWS: usize = 6000;
    let world = World::start_with(way, |options| options.memory.limit_bytes = Some(1)).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
    for batch in 0..ROWS / 100 {
        let inserts = (100 * batch..)
            .take(100)
            .map(|key| format!("INSERT INTO ks.t (k, v) VALUES ({key}, [{key}, 1]);"));
        let inserts: String = inserts.collect();
        world
            .cql(&format!("BEGIN UNLOGGED BATCH {inserts} APPLY BATCH"))
            .await;
    }
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    let status = world.status("i").await.unwrap();
    assert_eq!((status.count, status.rows_without_room), (0, ROWS));

    let enough = |options: &mut store::StoreOptions| options.memory.limit_bytes = Some(1 << 40);
    let world = world.restart_with(async |_| {}, enough).await;
    world.wait_serving("i").await;
    let status = world.status("i").await.unwrap();
    assert_eq!((status.count, status.rows_without_room), (ROWS, 0));
    let scans = world.metric("index_scans_total", "i").await;
    assert_eq!(scans, Some(0.0), "it comes from the snapshot");
    world.store.shutdown().await;
}

async fn an_index_that_memory_has_no_room_for_is_built_as_far_as_there_is(way: Way) {
    const ROWS: u8 = 40;
    let world = World::start(way).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 80>)")
        .await;
    for key in 0..ROWS {
        insert(&world, key).await;
    }
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    assert_eq!(world.status("i").await.unwrap().count, usize::from(ROWS));

    let too_little = |options: &mut store::StoreOptions| options.memory.limit_bytes = Some(1);
    let world = world.restart_with(async |_| {}, too_little).await;
    world.wait_serving("i").await;
    let status = world.status("i").await.unwrap();
    let expected = (0, usize::from(ROWS));
    assert_eq!((status.count, status.rows_without_room), expected);
    let scans = world.metric("index_scans_total", "i").await;
    assert_eq!(
        scans,
        Some(1.0),
        "its snapshot would have overstepped the limit"
    );

    let enough = |options: &mut store::StoreOptions| options.memory.limit_bytes = Some(1 << 40);
    let world = world.restart_with(async |_| {}, enough).await;
    world.wait_serving("i").await;
    let status = world.status("i").await.unwrap();
    let expected = (usize::from(ROWS), 0);
    assert_eq!((status.count, status.rows_without_room), expected);
    world.store.shutdown().await;
}

async fn a_search_that_may_lack_rows_is_refused_where_the_operator_wants_it(way: Way) {
    let world = World::start_with(way, |options| {
        options.memory.limit_bytes = Some(1);
        options.when_short = ShortAnswerPolicy::Error;
    });
    let world = world.await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 80>)")
        .await;
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    let search = AnnRequest::new(vector(0), 10);
    let none = world.client.ann("ks", "i", &search, &["k"]).await.unwrap();
    assert!(!none.is_short, "nothing is missing");
    insert(&world, 1).await;
    match way {
        Way::Cql => {
            common::eventually("the search is refused", async || {
                match world.client.ann("ks", "i", &search, &["k"]).await {
                    Err(ClientError::Overloaded { message, .. }) => {
                        message.contains("no room for some rows")
                    }
                    Err(error) => panic!("{error:?}"),
                    Ok(found) => {
                        assert!(found.keys.is_empty());
                        false
                    }
                }
            })
            .await;
            assert_eq!(world.status("i").await.unwrap().rows_without_room, 1);
        }
        Way::InProcess => {
            let found = world.client.ann("ks", "i", &search, &["k"]).await.unwrap();
            assert_eq!(found.keys.len(), 1);
        }
    }
    world.store.shutdown().await;
}

/// A search for the rows whose text has a word, nearest first.
fn with_word(word: &str) -> AnnRequest {
    let filter = json!({
        "and": [{"type": "BM25", "lhs": "body", "rhs": word}],
        "allow_filtering": true,
    });
    AnnRequest {
        filter: Some(serde_json::from_value(filter).unwrap()),
        ..AnnRequest::new(vec![0.0, 0.0], 10)
    }
}

async fn set_used_bytes(world: &World, used_bytes: &AtomicU64, bytes: u64) {
    used_bytes.store(bytes, Ordering::Relaxed);
    common::eventually("the service has looked", async || {
        let metrics = world.get("/metrics").await;
        metrics.contains(&format!("\nmemory_used_bytes {bytes}\n"))
    })
    .await;
}

async fn words_of_an_index_without_room_leave_out_no_row_in_silence(way: Way) {
    const LIMIT_BYTES: u64 = 1 << 30;
    let used_bytes = Arc::new(AtomicU64::new(0));
    let world = World::start_with(way, |options| {
        options.memory.limit_bytes = Some(LIMIT_BYTES);
        options.memory.check_interval = Duration::from_millis(5);
        options.memory.reported_bytes = Some(used_bytes.clone());
    });
    let world = world.await;
    for statement in [
        "CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>, body text)",
        "INSERT INTO ks.t (k, v, body) VALUES (1, [1, 1], 'red fox')",
        "INSERT INTO ks.t (k, v) VALUES (2, [2, 2])",
    ] {
        world.cql(statement).await;
    }
    world.create_index("i", "t").await;
    world
        .cql("CREATE CUSTOM INDEX w ON ks.t (body) USING 'fulltext_index'")
        .await;
    world.wait_serving("i").await;
    world.wait_serving("w").await;
    let found = world.client.ann("ks", "i", &with_word("fox"), &["k"]).await;
    assert_eq!(common::keys(found.unwrap()), [[json!(1)]]);

    // The index on vectors has the row already, so only its text finds no room.
    set_used_bytes(&world, &used_bytes, 2 * LIMIT_BYTES).await;
    world
        .cql("UPDATE ks.t SET body = 'grey fox' WHERE k = 2")
        .await;
    common::eventually("the text waits for room", async || {
        let status = world.status("w").await;
        status.is_ok_and(|status| status.rows_without_room == 1)
    })
    .await;
    assert_eq!(world.status("i").await.unwrap().rows_without_room, 0);
    let found = world.client.ann("ks", "i", &with_word("fox"), &["k"]).await;
    let page = WordMatches::new("fox", 10);
    let page = world.local.word_matches("ks", "w", page, &["k"]).await;
    match way {
        Way::Cql => {
            assert!(found.unwrap().is_short);
            assert!(page.unwrap().is_short);
        }
        Way::InProcess => {
            for refused in [found.unwrap_err(), page.unwrap_err()] {
                let ClientError::Overloaded { message, .. } = &refused else {
                    panic!("{refused:?}");
                };
                assert!(message.contains("index ks.w has had no room"), "{message}");
            }
        }
    }
    // A node in the process of the rows reads them, as it knows all of WHERE.
    let fox = ColumnsPredicate::Words {
        column: "body".to_owned(),
        index: "w".to_owned(),
        query: "fox".to_owned(),
    };
    let search = VectorSearch {
        predicates: vec![fox],
        ..VectorSearch::new(vec![0.0, 0.0], 10)
    };
    let found = world.local.ann("ks", "i", search, &["k"]).await;
    assert!(found.unwrap().is_short);

    set_used_bytes(&world, &used_bytes, 0).await;
    common::eventually("both rows are found", async || {
        let found = world.client.ann("ks", "i", &with_word("fox"), &["k"]).await;
        found.is_ok_and(|found| !found.is_short && found.keys.len() == 2)
    })
    .await;
    world.store.shutdown().await;
}

both_ways!(
    a_search_that_may_lack_rows_is_refused_where_the_operator_wants_it,
    an_index_is_complete_when_its_rows_have_found_room,
    an_index_that_is_opened_serves_when_it_has_the_rows_that_its_snapshot_lacks,
    an_index_that_memory_has_no_room_for_is_built_as_far_as_there_is,
    words_of_an_index_without_room_leave_out_no_row_in_silence,
);
