//! Tests that a restart serves from the snapshot without a scan. In the end the index equals the
//! table, whatever happened while the service was away and to its files.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schema::Table;
use xxhash_rust::xxh3::xxh3_128;

use crate::common::{Database, Way, World, both_ways, euclidean_score, eventually, start_node};

/// Enough dimensions that the full vectors have files of their own.
const DIMENSIONS: usize = 80;

/// Enough rows for a graph.
const ROWS: i32 = 700;

fn vector(key: i32, version: i32) -> Vec<f32> {
    let element = |at: usize| ((key * 31 + version * 7 + at as i32 * 13) % 101) as f32 / 10.0;
    (0..DIMENSIONS).map(element).collect()
}

/// The rows that the index should hold: the key, and the version of its vector.
type Rows = BTreeMap<i32, i32>;

async fn write(database: &Database, rows: &mut Rows, key: i32, version: i32) {
    let vector = vector(key, version);
    database
        .cql(&format!(
            "INSERT INTO ks.t (k, v) VALUES ({key}, {vector:?})"
        ))
        .await;
    rows.insert(key, version);
}

async fn delete(database: &Database, rows: &mut Rows, key: i32) {
    database
        .cql(&format!("DELETE FROM ks.t WHERE k = {key}"))
        .await;
    rows.remove(&key);
}

async fn create_table(world: &World) {
    world
        .cql(&format!(
            "CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, {DIMENSIONS}>)"
        ))
        .await;
    world.create_index("i", "t").await;
}

async fn built(way: Way) -> (World, Rows) {
    let world = World::start(way).await;
    create_table(&world).await;
    world.wait_serving("i").await;
    let mut rows = Rows::new();
    let database = world.database();
    for key in 0..ROWS {
        write(&database, &mut rows, key, 0).await;
    }
    assert_equal(&world, &rows).await;
    (world, rows)
}

async fn assert_equal(world: &World, rows: &Rows) {
    world.wait_serving("i").await;
    let query = vector(1000, 3);
    let expected: BTreeMap<String, f32> = rows
        .iter()
        .map(|(key, version)| {
            let score = euclidean_score(&vector(*key, *version), &query);
            (format!("[{key}]"), score)
        })
        .collect();
    eventually("the index equals the table", async || {
        let found = world.indexed("i", &query, &["k"]).await;
        found.len() == expected.len()
            && found
                .iter()
                .zip(&expected)
                .all(|((a, s), (b, t))| a == b && (s - t).abs() <= 1e-4 * t)
    })
    .await;
}

async fn scans(world: &World) -> f64 {
    world.wait_serving("i").await;
    world
        .metric("index_scans_total", "i")
        .await
        .expect("a series")
}

/// Returns the files of the current generation, and the file `current`.
fn files(snapshot: &Path) -> Vec<PathBuf> {
    let mut files = vec![snapshot.join("current")];
    for entry in fs::read_dir(snapshot).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(
                fs::read_dir(path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    files.sort();
    files
}

fn flip(path: &Path, at: u64) {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 1], at).unwrap();
}

/// Sets the saved position of a snapshot back.
fn rewind(snapshot: &Path, by: Duration) {
    let path = snapshot.join("current");
    let text = fs::read_to_string(&path).unwrap();
    let (first, json) = text.split_once('\n').unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(json).unwrap();
    let position_ms = manifest["position_ms"].as_u64().unwrap() - by.as_millis() as u64;
    manifest["position_ms"] = position_ms.into();
    let json = manifest.to_string();
    let (format, _) = first.rsplit_once(' ').unwrap();
    let text = format!("{format} {:032x}\n{json}", xxh3_128(json.as_bytes()));
    fs::write(path, text).unwrap();
}

async fn changes_during_downtime_come_from_the_log(way: Way) {
    let (world, mut rows) = built(way).await;
    assert_eq!(scans(&world).await, 1.0);
    let world = world
        .restart(async |database| {
            for key in 0..50 {
                write(&database, &mut rows, key, 1).await;
            }
            for key in 50..100 {
                delete(&database, &mut rows, key).await;
            }
            for key in ROWS..ROWS + 50 {
                write(&database, &mut rows, key, 0).await;
            }
        })
        .await;
    assert_eq!(scans(&world).await, 0.0);
    assert_equal(&world, &rows).await;
    eventually("all vectors are verified", async || {
        world.metric("index_vectors_unverified_bytes", "i").await == Some(0.0)
    })
    .await;
    // The service goes on from there, and is restarted once more.
    let database = world.database();
    for key in 30..60 {
        write(&database, &mut rows, key, 2).await;
    }
    assert_equal(&world, &rows).await;
    let world = world.restart(async |_| {}).await;
    assert_eq!(scans(&world).await, 0.0);
    assert_equal(&world, &rows).await;
    world.store.shutdown().await;
}

async fn rows_that_expire_during_downtime_are_dropped(way: Way) {
    let (world, mut rows) = built(way).await;
    let expiring = |key: i32, ttl_s: u32| {
        let vector = vector(key, 5);
        format!("INSERT INTO ks.t (k, v) VALUES ({key}, {vector:?}) USING TTL {ttl_s}")
    };
    for key in 20..30 {
        world.cql(&expiring(key, 600)).await;
        rows.insert(key, 5);
    }
    assert_equal(&world, &rows).await;
    for key in 0..20 {
        world.cql(&expiring(key, 3)).await;
    }
    // Some may have expired by now.
    rows.retain(|key, _| *key >= 20);
    eventually("no earlier vector is left in the index", async || {
        let found = world.indexed("i", &vector(0, 5), &["k"]).await;
        (0..20).all(|key| {
            let score = found.get(&format!("[{key}]"));
            let expected = euclidean_score(&vector(key, 5), &vector(0, 5));
            score.is_none_or(|score| (score - expected).abs() <= 1e-4 * expected)
        })
    })
    .await;
    let world = world
        .restart(async |database| {
            eventually("the rows have expired", async || {
                let left = "SELECT k FROM ks.t WHERE k < 20 ALLOW FILTERING";
                database.rows(left).await.is_empty()
            })
            .await;
            // The service reads times to live in whole seconds, so to it a row may live a second
            // longer.
            tokio::time::sleep(Duration::from_secs(1)).await;
        })
        .await;
    assert_eq!(scans(&world).await, 0.0);
    // The expired rows are not served even for a moment.
    let found = world.indexed("i", &vector(0, 0), &["k"]).await;
    assert!(!found.contains_key("[0]") && found.contains_key("[20]"));
    assert_equal(&world, &rows).await;
    world.store.shutdown().await;
}

async fn a_position_that_the_log_no_longer_has_is_reconciled_by_a_scan(way: Way) {
    let (world, mut rows) = built(way).await;
    let world = world
        .restart(async |database| {
            for key in 0..50 {
                delete(&database, &mut rows, key).await;
            }
            for key in 50..100 {
                write(&database, &mut rows, key, 1).await;
            }
            rewind(&database.snapshot(), Duration::from_secs(25 * 3600));
        })
        .await;
    assert_eq!(scans(&world).await, 1.0);
    // The index doesn't serve before it is reconciled, so its first answer is right.
    let found = world.indexed("i", &vector(0, 0), &["k"]).await;
    assert_eq!(found.len(), rows.len());
    assert_equal(&world, &rows).await;
    let changed = world.metric("index_modified", "i").await;
    assert!(changed.is_some());
    // The reconciled index has been saved again.
    let world = world.restart(async |_| {}).await;
    assert_eq!(scans(&world).await, 0.0);
    assert_equal(&world, &rows).await;
    world.store.shutdown().await;
}

async fn a_flipped_byte_in_vectors_that_are_reconciled_is_found_too(way: Way) {
    let (world, rows) = built(way).await;
    let world = world
        .restart(async |database| {
            let snapshot = database.snapshot();
            let vectors = |path: &PathBuf| path.ends_with("vectors-00000");
            let vectors = files(&snapshot).into_iter().find(vectors).unwrap();
            let length = fs::metadata(&vectors).unwrap().len();
            flip(&vectors, length / 2);
            rewind(&snapshot, Duration::from_secs(25 * 3600));
        })
        .await;
    // The scan that reconciles inserts nothing here, as no row has changed.
    eventually("the index is built anew", async || {
        world.metric("index_modified", "i").await == Some(f64::from(ROWS))
    })
    .await;
    assert_equal(&world, &rows).await;
    world.store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_fall_behind_what_the_log_keeps_have_the_index_reconciled() {
    // The schema gives the log a day, which is too long for a test.
    const TTL_S: u32 = 15;
    let world = World::start(Way::Cql).await;
    let storage = world.storage.clone();
    let set_up = async |database: Database| {
        let create = format!(
            "CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, {DIMENSIONS}>) WITH cdc = {{'enabled': true}}"
        );
        database.cql(&create).await;
        let index = "CREATE CUSTOM INDEX i ON ks.t (v) USING 'vector_index' \
                     WITH OPTIONS = {'similarity_function': 'euclidean'}";
        database.cql(index).await;
        let changed = storage.change_catalog(|catalog| {
            let mut table = Table::clone(catalog.table("ks", "t").expect("made before"));
            table.cdc.as_mut().expect("given").ttl_s = TTL_S;
            catalog.put_table(table);
            Ok::<_, ()>(())
        });
        changed.await.expect("a change");
    };
    let lookback = Duration::from_secs(1);
    let world = world.restart_with(set_up, |options| options.cdc.lookback = lookback);
    let world = world.await;
    world.wait_serving("i").await;
    let mut rows = Rows::new();
    for key in 0..ROWS {
        write(&world.database(), &mut rows, key, 0).await;
    }
    assert_equal(&world, &rows).await;
    let scanned = async || world.metric("index_scanned_rows_total", "i").await;
    assert_eq!(scanned().await, Some(0.0), "all came in by the log");

    assert!(world.node.stop(Duration::from_secs(10)).await);
    // The place up to which the readers have come has to be older than the log keeps, and it keeps
    // its rows by the time of the machine.
    tokio::time::sleep(Duration::from_secs(u64::from(TTL_S))).await;
    let node = start_node(world.storage.clone(), world.cql).await;
    eventually("the table is scanned", async || {
        scanned().await == Some(f64::from(ROWS))
    })
    .await;
    assert_equal(&world, &rows).await;
    world.store.shutdown().await;
    node.stop(Duration::from_secs(10)).await;
}

async fn a_long_way_behind_is_caught_up_with_by_the_log(way: Way) {
    let (world, mut rows) = built(way).await;
    let world = world
        .restart(async |database| {
            for key in 0..50 {
                write(&database, &mut rows, key, 1).await;
            }
            rewind(&database.snapshot(), Duration::from_secs(22 * 3600));
        })
        .await;
    assert_eq!(scans(&world).await, 0.0);
    assert_equal(&world, &rows).await;
    world.store.shutdown().await;
}

async fn a_flipped_byte_in_any_file_is_found_and_the_index_built_anew(way: Way) {
    const NAMES: [&str; 4] = ["current", "graph", "rows", "vectors-00000"];
    let (mut world, mut rows) = built(way).await;
    for (at, region) in (0..3u64).flat_map(|region| (0..NAMES.len()).map(move |at| (at, region))) {
        let name = NAMES[at];
        world = world
            .restart(async |database| {
                write(&database, &mut rows, at as i32, region as i32).await;
                let files = files(&database.snapshot());
                let names = files.iter().map(|path| path.file_name().unwrap());
                assert!(names.eq(NAMES), "{files:?}");
                let length = fs::metadata(&files[at]).unwrap().len();
                flip(&files[at], (length - 1) * region / 2);
            })
            .await;
        // Full vectors are verified while the index serves.
        eventually(&format!("{name} is found to be damaged"), async || {
            world.metric("index_scans_total", "i").await == Some(1.0)
        })
        .await;
        assert_equal(&world, &rows).await;
    }
    let world = world.restart(async |_| {}).await;
    assert_eq!(scans(&world).await, 0.0);
    world.store.shutdown().await;
}

async fn an_index_that_is_another_one_is_built_anew(way: Way) {
    let (world, mut rows) = built(way).await;
    let world = world
        .restart(async |database| {
            database.cql("TRUNCATE ks.t").await;
            rows.clear();
            write(&database, &mut rows, 1, 1).await;
        })
        .await;
    assert_equal(&world, &rows).await;
    assert_eq!(scans(&world).await, 1.0);
    let world = world
        .restart(async |database| {
            database.cql("DROP INDEX ks.i").await;
            write(&database, &mut rows, 2, 1).await;
            database
                .cql(
                    "CREATE CUSTOM INDEX i ON ks.t (v) USING 'vector_index' \
                     WITH OPTIONS = {'similarity_function': 'euclidean'}",
                )
                .await;
        })
        .await;
    assert_equal(&world, &rows).await;
    assert_eq!(scans(&world).await, 1.0);
    let world = world
        .restart(async |database| database.cql("DROP TABLE ks.t").await)
        .await;
    eventually("the service serves", async || {
        *world.store.status().borrow() == store_api::types::NodeStatus::Serving
    })
    .await;
    let database = world.database();
    eventually("the snapshot of the index is deleted", async || {
        database.all_snapshots().is_empty()
    })
    .await;
    create_table(&world).await;
    assert_equal(&world, &Rows::new()).await;
    eventually("the index is saved", async || {
        !database.all_snapshots().is_empty()
    })
    .await;
    world.cql("DROP INDEX ks.i").await;
    eventually("the snapshot of the index is deleted", async || {
        database.all_snapshots().is_empty()
    })
    .await;
    world.store.shutdown().await;
}

async fn two_indexes_of_a_table_each_go_on_from_their_own_position(way: Way) {
    let (world, mut rows) = built(way).await;
    world.cql("ALTER TABLE ks.t ADD w vector<float, 2>").await;
    world
        .cql("CREATE CUSTOM INDEX other ON ks.t (w) USING 'vector_index'")
        .await;
    world.wait_serving("other").await;
    let world = world
        .restart(async |database| {
            write(&database, &mut rows, 3, 4).await;
            database.cql("UPDATE ks.t SET w = [1, 2] WHERE k = 3").await;
            let snapshots = database.all_snapshots();
            let of_other = |path: &&PathBuf| path.to_string_lossy().contains("ks.other-");
            let other = snapshots.iter().find(of_other).unwrap();
            rewind(other, Duration::from_secs(3600));
        })
        .await;
    assert_equal(&world, &rows).await;
    world.wait_serving("other").await;
    eventually("the other index has its row", async || {
        world
            .status("other")
            .await
            .is_ok_and(|status| status.count == 1)
    })
    .await;
    for index in ["i", "other"] {
        assert_eq!(world.metric("index_scans_total", index).await, Some(0.0));
    }
    world.store.shutdown().await;
}

async fn a_service_that_can_not_save_goes_on(way: Way) {
    let (world, mut rows) = built(way).await;
    // A file in the place of the directory has the effect of a read-only disk.
    let world = world
        .restart_with(
            async |database| {
                fs::remove_dir_all(&database.snapshots).unwrap();
                fs::write(&database.snapshots, "in the way").unwrap();
            },
            |options| options.snapshots.interval = Some(Duration::from_millis(50)),
        )
        .await;
    assert_equal(&world, &rows).await;
    assert_eq!(scans(&world).await, 1.0);
    eventually("it shows that it can't save", async || {
        world.metric("index_snapshot_failing", "i").await == Some(1.0)
    })
    .await;
    let database = world.database();
    write(&database, &mut rows, 1, 1).await;
    assert_equal(&world, &rows).await;
    fs::remove_file(&database.snapshots).unwrap();
    eventually("it saves", async || {
        world.metric("index_snapshot_failing", "i").await == Some(0.0)
    })
    .await;
    // Saves succeed while rows keep changing, too.
    for version in 0..100 {
        write(&database, &mut rows, version % 10, version).await;
    }
    let world = world.restart(async |_| {}).await;
    assert_eq!(scans(&world).await, 0.0);
    assert_equal(&world, &rows).await;
    world.store.shutdown().await;
}

both_ways!(
    changes_during_downtime_come_from_the_log,
    rows_that_expire_during_downtime_are_dropped,
    a_position_that_the_log_no_longer_has_is_reconciled_by_a_scan,
    a_flipped_byte_in_vectors_that_are_reconciled_is_found_too,
    a_long_way_behind_is_caught_up_with_by_the_log,
    a_flipped_byte_in_any_file_is_found_and_the_index_built_anew,
    an_index_that_is_another_one_is_built_anew,
    two_indexes_of_a_table_each_go_on_from_their_own_position,
    a_service_that_can_not_save_goes_on,
);
