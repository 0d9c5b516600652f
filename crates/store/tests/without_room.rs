//! A disk without room for an index delays rows and loses none.

mod common;

use common::World;

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

#[tokio::test(flavor = "multi_thread")]
async fn an_index_is_complete_when_its_rows_have_found_room() {
    let mut directory = None;
    let world = World::start_with(|options| directory = Some(options.indexes.directory.clone()));
    let (world, directory) = (world.await, directory.expect("the options were seen"));
    // As good as a full disk: the file of the index can't be made.
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
    common::eventually("the scan is over", async || {
        world
            .status("i")
            .await
            .is_ok_and(|status| status.build_progress == 100.0)
    })
    .await;
    insert(&world, 5).await;
    world.cql("DELETE FROM ks.t WHERE k = 0").await;
    let status = world.status("i").await.unwrap();
    assert_eq!(status.count, 0);
    assert_ne!(status.status, store_api::types::IndexState::Serving);

    std::fs::create_dir(&directory).expect("its place is free");
    world.wait_serving("i").await;
    common::eventually("the index equals the table", async || {
        let found = world.indexed("i", &vector(0), &["k"]).await;
        let keys: Vec<String> = found.into_keys().collect();
        keys == ["[1]", "[2]", "[3]", "[4]", "[5]"]
    })
    .await;
    world.store.shutdown().await;
}
