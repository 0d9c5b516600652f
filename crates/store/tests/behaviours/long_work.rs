//! Tests that long work is shown as tasks while it runs and afterwards.

use std::time::Duration;

use store_api::types::{TaskState, TaskStatus, TaskTree};

use crate::common::{Way, World, both_ways, eventually};

async fn tasks_of(world: &World, kind: &str) -> Vec<TaskStatus> {
    let tasks = world.client.tasks(false).await.expect("a list");
    tasks.into_iter().filter(|task| task.kind == kind).collect()
}

/// The first build, once it is done.
async fn done_build(world: &World) -> TaskStatus {
    let build = &tasks_of(world, "build").await[0];
    let build = world
        .client
        .wait_for_task(&build.id, Duration::from_secs(5))
        .await
        .unwrap();
    assert_eq!(build.state, TaskState::Done, "{build:?}");
    assert_eq!(
        (build.progress_completed, build.progress_total),
        (2, Some(2))
    );
    build
}

/// Asserts that a scan has found all 40 rows, range by range.
fn assert_scanned(scan: &TaskTree) {
    assert_eq!(
        (scan.status.kind.as_str(), scan.status.state),
        ("scan", TaskState::Done)
    );
    let ranges = scan.children.len() as u64;
    assert!(ranges >= 16, "{ranges} ranges");
    assert_eq!(scan.status.progress_completed, ranges);
    let rows: u64 = scan
        .children
        .iter()
        .map(|range| range.status.progress_completed)
        .sum();
    assert_eq!(rows, 40);
    assert!(
        scan.children
            .iter()
            .all(|range| range.status.scope == "token_range")
    );
}

async fn an_index_being_built_is_seen_with_its_scan_and_each_range(way: Way) {
    let world = World::start(way).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
    for k in 0..40 {
        world
            .cql(&format!("INSERT INTO ks.t (k, v) VALUES ({k}, [{k}, 1])"))
            .await;
    }
    world.create_index("i", "t").await;
    world.wait_serving("i").await;

    let build = done_build(&world).await;
    assert_eq!(
        (build.table.as_deref(), build.index.as_deref()),
        (Some("t"), Some("i"))
    );
    let tree = world.client.task_tree(&build.id).await.unwrap();
    assert_scanned(&tree.children[0]);

    eventually("it has been saved", async || {
        let saves = tasks_of(&world, "snapshot").await;
        saves.iter().any(|save| save.state == TaskState::Done)
    })
    .await;
    let save = &tasks_of(&world, "snapshot").await[0];
    assert_eq!(
        (save.index.as_deref(), &*save.progress_units),
        (Some("i"), "bytes")
    );
    assert!(save.progress_completed > 40, "{save:?}");
    assert_eq!(save.progress_total, Some(save.progress_completed));
    assert!(save.is_abortable);

    eventually("the reader has caught up", async || {
        let catch_up = tasks_of(&world, "catch_up").await;
        assert_eq!(catch_up.len(), 1, "{catch_up:?}");
        assert_eq!(catch_up[0].entity.as_deref(), Some("fine"));
        catch_up[0].state == TaskState::Done
    })
    .await;
    // The build can't be aborted.
    assert!(world.client.abort_task(&build.id).await.is_err());

    let world = world.restart(async |_| {}).await;
    world.wait_serving("i").await;
    let build = done_build(&world).await;
    assert!(
        build.children_ids.is_empty(),
        "its rows came from the snapshot"
    );
    world.store.shutdown().await;
}

/// Creates an index and drops it once its scan goes on. Returns its build when that has ended.
async fn dropped_while_scanned(world: &World) -> TaskStatus {
    let earlier = tasks_of(world, "build").await.len();
    world.create_index("i", "t").await;
    let newest = async || {
        let builds = tasks_of(world, "build").await;
        let is_new = builds.len() > earlier;
        let newest = builds.into_iter().max_by_key(|build| build.sequence_number);
        newest.filter(|_| is_new)
    };
    eventually("the scan goes on", async || {
        let Some(build) = newest().await else {
            return false;
        };
        let tree = world.client.task_tree(&build.id).await.unwrap();
        let scan = tree.children.first();
        scan.is_some_and(|scan| scan.status.progress_completed > 100)
    })
    .await;
    world.cql("DROP INDEX ks.i").await;
    eventually("the build ends", async || {
        newest().await.expect("the build").state != TaskState::Running
    })
    .await;
    newest().await.expect("the build")
}

async fn a_build_whose_index_is_dropped_has_been_aborted(way: Way) {
    let world = World::start_with(way, |options| {
        // The pages have few rows and one range is scanned at a time, so that the scan takes a
        // while.
        options.scan.concurrency = 1;
        options.scan.page_bytes = 1;
        options.scan.ranges_min = 2000;
    })
    .await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
    // A scan may come to its end before the DROP comes.
    let mut dropped = None;
    for _ in 0..5 {
        let build = dropped_while_scanned(&world).await;
        if build.state == TaskState::Aborted {
            dropped = Some(build);
            break;
        }
    }
    let build = dropped.expect("a build is given up");
    let tree = world.client.task_tree(&build.id).await.unwrap();
    let scan = &tree.children[0];
    assert_eq!(scan.status.state, TaskState::Aborted);
    assert!(scan.status.children_left_out > 0, "not all ranges are kept");
    world.store.shutdown().await;
}

both_ways!(
    an_index_being_built_is_seen_with_its_scan_and_each_range,
    a_build_whose_index_is_dropped_has_been_aborted,
);
