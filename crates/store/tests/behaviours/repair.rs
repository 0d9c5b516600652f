//! Tests that a repair finds nothing where index and table agree, whatever is written meanwhile,
//! and that it finds and mends the rows that an index missed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schema::Table;
use store::StoreOptions;
use store_api::types::{RepairRequest, RepairSpeed, TaskState, TaskStatus};

use crate::common::{Way, World, both_ways, eventually};

const ROWS: i32 = 400;

/// Starts a world with an index that serves, of a table with `ROWS` rows.
async fn world(way: Way, change: impl FnOnce(&mut StoreOptions)) -> World {
    let world = World::start_with(way, change).await;
    world
        .cql("CREATE TABLE ks.t (a int, b text, v vector<float, 2>, PRIMARY KEY (a, b))")
        .await;
    for k in 0..ROWS {
        insert(&world, k, k as f32).await;
    }
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    world
}

/// Starts a world like [`world`], in which the index misses every write after its scan, as no
/// reader follows the log.
async fn deaf_world(way: Way, change: impl FnOnce(&mut StoreOptions)) -> World {
    world(way, |options| {
        options.cdc.readers.clear();
        change(options);
    })
    .await
}

async fn insert(world: &World, k: i32, x: f32) {
    let statement = "INSERT INTO ks.t (a, b, v) VALUES (?, ?, ?)";
    world
        .execute(statement, (k / 4, format!("{k}"), vec![x, 1.0]))
        .await;
}

async fn delete(world: &World, k: i32) {
    let statement = "DELETE FROM ks.t WHERE a = ? AND b = ?";
    world.execute(statement, (k / 4, format!("{k}"))).await;
}

async fn start(world: &World, request: RepairRequest) -> TaskStatus {
    let started = world.client.repair("ks", "i", request).await;
    started.expect("it begins")
}

async fn repair(world: &World) -> TaskStatus {
    let task = start(world, RepairRequest::default()).await;
    ended(world, &task.id).await
}

async fn ended(world: &World, id: &str) -> TaskStatus {
    let mut task = None;
    eventually("the repair ends", async || {
        let waited = world.client.wait_for_task(id, Duration::from_secs(1)).await;
        let waited = waited.expect("the task is kept");
        let ended = waited.state != TaskState::Running;
        task = Some(waited);
        ended
    })
    .await;
    task.expect("it was looked at")
}

/// Returns the counts of ranges that differed, and of rows added, mended, removed and left.
fn found(task: &TaskStatus) -> [u64; 5] {
    [
        "ranges_differed",
        "rows_added",
        "rows_mended",
        "rows_removed",
        "rows_left",
    ]
    .map(|name| task.counters[name])
}

/// Returns the number of rows that differed at first.
async fn suspects(world: &World, task: &TaskStatus) -> u64 {
    let tree = world.client.task_tree(&task.id).await.unwrap();
    let parts = tree.children.iter().map(|part| &part.status);
    let mends = parts.filter(|part| part.kind == "mend");
    mends.filter_map(|mend| mend.progress_total).sum()
}

async fn keys(world: &World) -> BTreeSet<String> {
    let found = world.indexed("i", &[0.0, 0.0], &["a", "b"]).await;
    found.into_keys().collect()
}

fn key(k: i32) -> String {
    format!("[{},\"{k}\"]", k / 4)
}

async fn equal_sides_have_no_differences(way: Way) {
    for small_table_rows in [0, 10_000] {
        let world = world(way, |options| {
            options.repair.small_table_rows = small_table_rows;
        })
        .await;
        // A row without a vector is not indexed.
        world
            .cql("INSERT INTO ks.t (a, b) VALUES (-1, 'no vector')")
            .await;
        let task = repair(&world).await;
        assert_eq!(task.state, TaskState::Done, "{task:?}");
        assert_eq!(found(&task), [0; 5], "{task:?}");
        assert!(task.counters["rows_compared"] >= ROWS as u64, "{task:?}");
        let ranges = task.counters["ranges_compared"];
        assert_eq!(ranges == 1, small_table_rows > 0, "{ranges} ranges");
        assert_eq!(task.progress_total, Some(ranges));
        let last = world.client.repair_status("ks", "i").await.unwrap().last;
        assert_eq!(last.as_ref(), Some(&task));
        let tree = world.client.task_tree(&task.id).await.unwrap();
        let kinds: BTreeSet<&str> = tree
            .children
            .iter()
            .map(|part| part.status.kind.as_str())
            .collect();
        assert_eq!(kinds, BTreeSet::from(["repair"]), "no digest differed");
        world.store.shutdown().await;
    }
}

async fn rows_that_an_index_missed_are_found_and_repaired(way: Way) {
    for small_table_rows in [0, 10_000] {
        let world = deaf_world(way, |options| {
            options.repair.small_table_rows = small_table_rows;
        })
        .await;
        for k in 0..10 {
            insert(&world, ROWS + k, 5.0).await;
        }
        for k in 0..7 {
            insert(&world, 40 * k, -9.0).await;
        }
        for k in 0..5 {
            delete(&world, 40 * k + 1).await;
        }
        // A partition goes, a vector goes, and a vector is written again unchanged but with a TTL.
        world.cql("DELETE FROM ks.t WHERE a = 50").await;
        world
            .cql("UPDATE ks.t SET v = null WHERE a = 60 AND b = '240'")
            .await;
        world
            .cql("INSERT INTO ks.t (a, b, v) VALUES (61, '244', [244, 1]) USING TTL 1000")
            .await;
        assert_eq!(
            keys(&world).await.len(),
            ROWS as usize,
            "it heard of nothing"
        );

        let task = repair(&world).await;
        assert_eq!(task.state, TaskState::Done, "{task:?}");
        let [ranges, counts @ ..] = found(&task);
        // Two of the changed rows were in the deleted partition or lost their vector.
        assert_eq!(counts, [10, 6, 10, 0], "{task:?}");
        assert!(ranges >= 1 && ranges <= task.counters["ranges_compared"]);
        let keys = keys(&world).await;
        assert_eq!(keys.len() as i32, ROWS + 10 - 10);
        assert!(keys.contains(&key(ROWS)) && !keys.contains(&key(1)));
        let again = repair(&world).await;
        assert_eq!(found(&again), [0; 5], "{again:?}");
        world.store.shutdown().await;
    }
}

async fn rows_that_change_meanwhile_do_not_differ(way: Way) {
    let world = world(way, |options| options.repair.small_table_rows = 0).await;
    let ends = AtomicBool::new(false);
    let writers = (0..8).map(async |writer| {
        for round in 1.. {
            for k in (writer..ROWS).step_by(8) {
                match (k + round) % 5 {
                    0 => delete(&world, k).await,
                    _ => insert(&world, k, (k * round) as f32).await,
                }
                if ends.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    });
    let repairs = async {
        let mut suspected = 0;
        for _ in 0..1_000 {
            let task = repair(&world).await;
            assert_eq!(task.state, TaskState::Done, "{task:?}");
            assert_eq!(found(&task), [0; 5], "{task:?}");
            suspected += suspects(&world, &task).await;
            // In one process the index is seldom far enough behind.
            if suspected > 0 {
                break;
            }
        }
        ends.store(true, Ordering::Relaxed);
        suspected
    };
    let (_, suspected) = tokio::join!(futures::future::join_all(writers), repairs);
    assert!(suspected > 0, "no row changed just then");
    world.store.shutdown().await;
}

async fn a_repair_is_slowed_down_and_stopped_and_another_waits(way: Way) {
    let world = world(way, |options| {
        options.repair.small_table_rows = 0;
        // There are so many ranges that the repair takes some seconds, one range at a time.
        options.repair.range_rows = 1;
    })
    .await;
    let request = RepairRequest {
        parallel: 1,
        intensity: 1,
        grace_s: Some(20),
    };
    let task = start(&world, request).await;
    let busy = world.client.repair("ks", "i", request).await.unwrap_err();
    assert!(busy.to_string().contains("is being repaired"), "{busy}");
    let faster = RepairSpeed {
        parallel: None,
        intensity: Some(2),
    };
    let speed = world
        .client
        .control_repair("ks", "i", faster)
        .await
        .unwrap();
    assert_eq!((speed.parallel, speed.intensity), (Some(1), Some(2)));
    let stopped = world.client.abort_task(&task.id).await.unwrap();
    assert!(stopped.abort_requested);
    let task = ended(&world, &task.id).await;
    assert_eq!(
        (task.state, task.error.as_ref()),
        (TaskState::Aborted, None)
    );
    let (compared, total) = (task.progress_completed, task.progress_total);
    assert!(total.is_none_or(|total| compared < total), "{task:?}");
    let gone = world
        .client
        .control_repair("ks", "i", faster)
        .await
        .unwrap_err();
    assert!(gone.to_string().contains("is not being repaired"), "{gone}");
    assert!(world.client.repair("ks", "none", request).await.is_err());
    world.store.shutdown().await;
}

async fn a_repair_by_schedule_begins_by_itself(way: Way) {
    let world = deaf_world(way, |_| {}).await;
    insert(&world, ROWS, 5.0).await;
    let update = store_api::types::RepairScheduleUpdate {
        interval_s: Some(1),
        ..Default::default()
    };
    let schedule = world.client.update_repair("ks", "i", update).await.unwrap();
    assert_eq!(schedule.map(|schedule| schedule.interval_s), Some(1));
    eventually("the row is there", async || {
        keys(&world).await.contains(&key(ROWS))
    })
    .await;
    let status = world.client.repair_status("ks", "i").await.unwrap();
    assert!(status.last.is_some());
    assert_eq!(status.schedule, schedule);
    world.store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_that_is_not_given_time_is_cut_off() {
    // The only reader of the log reads nothing, so suspects wait for it in vain.
    let world = world(Way::Cql, |options| {
        options.cdc.readers[0].safety_interval = Duration::from_secs(3600);
    })
    .await;
    insert(&world, ROWS, 5.0).await;
    let request = RepairRequest {
        grace_s: Some(0),
        ..RepairRequest::default()
    };
    let task = start(&world, request).await;
    eventually("the range was compared", async || {
        let task = world.client.task(&task.id).await.unwrap();
        task.progress_completed == 1
    })
    .await;
    world.client.abort_task(&task.id).await.unwrap();
    let task = ended(&world, &task.id).await;
    assert_eq!(task.state, TaskState::Aborted, "{task:?}");
    assert_eq!(task.counters["rows_added"], 0, "it was not yet believed");
    world.store.shutdown().await;
}

both_ways!(
    equal_sides_have_no_differences,
    rows_that_an_index_missed_are_found_and_repaired,
    rows_that_change_meanwhile_do_not_differ,
    a_repair_is_slowed_down_and_stopped_and_another_waits,
    a_repair_by_schedule_begins_by_itself,
);

/// The rows of a query that an index answers.
async fn answered(world: &World, condition: &str) -> usize {
    let statement = format!("SELECT k FROM ks.n WHERE {condition}");
    world.rows(&statement).await.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secondary_index_that_has_other_entries_gets_those_of_its_rows() {
    let world = World::start(Way::InProcess).await;
    world
        .cql("CREATE TABLE ks.n (k int PRIMARY KEY, a int, b int)")
        .await;
    world.cql("CREATE INDEX by_n ON ks.n (a)").await;
    for k in 0..ROWS {
        let insert = "INSERT INTO ks.n (k, a, b) VALUES (?, ?, ?)";
        world.execute(insert, (k, k % 4, 10 + k % 5)).await;
    }
    // The index is told to be of the other column. What it has is of the first one.
    let change = world.storage.change_catalog(|catalog| {
        let mut table = Table::clone(catalog.table("ks", "n").expect("the table"));
        let b = table.columns.iter().find(|column| column.name == "b");
        let b = b.expect("the column").id;
        for index in table.secondary_indexes.values_mut() {
            Arc::make_mut(index).column = b;
        }
        catalog.put_table(table);
        Ok::<(), ()>(())
    });
    change.await.expect("it is changed");
    assert_eq!(answered(&world, "b = 12").await, 0);
    let repair = async || {
        let request = RepairRequest::default();
        let task = world.client.repair("ks", "by_n", request).await;
        let task = ended(&world, &task.expect("it begins").id).await;
        assert_eq!(task.state, TaskState::Done, "{task:?}");
        let counters = ["rows_compared", "entries_added", "entries_removed"];
        counters.map(|name| task.counters[name])
    };
    let all = ROWS as u64;
    assert_eq!(repair().await, [all, all, all]);
    assert_eq!(answered(&world, "b = 12").await, ROWS as usize / 5);
    assert_eq!(repair().await, [all, 0, 0]);
}
