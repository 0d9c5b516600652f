use std::collections::BTreeMap;

use backup::{BackupError, BackupLocation, NoProgress, PointId};

use crate::faulty::{FaultPlan, FaultyStore};
use crate::setup::{BackedUpServer, Tree, noise, open, restored, tree};

/// Makes so many points, each with a file of its own, one that all have, and one that changes.
async fn points(
    server: &BackedUpServer,
    location: &BackupLocation,
    number: u64,
) -> BTreeMap<PointId, Tree> {
    let mut points = BTreeMap::new();
    for at in 0..number {
        server.write(&format!("db/own-{at}"), &noise(100 + at, 1_000));
        server.write("db/changing", &noise(200 + at, 1_000));
        let _ = std::fs::remove_file(server.root().join(format!("db/own-{}", at.wrapping_sub(1))));
        let second = i64::try_from(at).unwrap();
        let point = server.back_up(location, second).await.unwrap();
        points.insert(point.id, tree(&server.root()));
    }
    points
}

/// Checks that all points of a location come back, and returns their number.
async fn restore_all(location: &BackupLocation, points: &BTreeMap<PointId, Tree>) -> usize {
    let listed = location.list().await.unwrap();
    for point in &listed {
        let found = restored(location, &point.id).await.unwrap();
        assert_eq!(&found, &points[&point.id], "{}", point.id);
    }
    listed.len()
}

#[tokio::test]
async fn points_that_remain_come_back() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    let points = points(&server, &location, 4).await;
    let objects = store.names().await.len();
    let report = location.retain(2).await.unwrap();
    let oldest: Vec<PointId> = points.keys().take(2).cloned().collect();
    let mut deleted = report.deleted_points.clone();
    deleted.sort();
    assert_eq!(deleted, oldest);
    assert_eq!(report.remaining_points, 2);
    // Of each old point a file of its own, one that changed, and its schema.
    assert_eq!(report.deleted_objects, 6);
    assert!(report.deleted_bytes > 4_000);
    assert_eq!(store.names().await.len(), objects - 8);
    assert_eq!(restore_all(&location, &points).await, 2);
    assert!(location.verify(None, &NoProgress).await.unwrap().is_sound());
    let again = location.retain(2).await.unwrap();
    assert_eq!((again.deleted_objects, again.deleted_points.len()), (0, 0));
}

#[tokio::test]
async fn a_point_is_the_newest_though_a_clock_had_been_ahead() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    let ahead = server.back_up(&location, 7_200).await.unwrap();
    server.write("db/new", b"new");
    let point = server.back_up(&location, 0).await.unwrap();
    assert!(point.id > ahead.id);
    assert!(point.taken_at_micros < ahead.taken_at_micros);
    let report = location.retain(1).await.unwrap();
    assert_eq!(report.deleted_points, [ahead.id]);
    let points = BTreeMap::from([(point.id, tree(&server.root()))]);
    assert_eq!(restore_all(&location, &points).await, 1);
}

#[tokio::test]
async fn retention_leaves_the_point_just_made() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    // No id is later than one at the end of time.
    let last = server.back_up_with(&location, 0, |source| {
        source.taken_at_micros = 253_402_207_200_000_000;
    });
    let last = last.await.unwrap();
    let point = server.back_up(&location, 1).await.unwrap();
    assert!(point.id < last.id);
    let report = location.retain(1).await.unwrap();
    assert!(report.deleted_points.is_empty());
    assert_eq!(report.remaining_points, 2);
    let whole = tree(&server.root());
    let points = BTreeMap::from([(point.id, whole.clone()), (last.id, whole)]);
    assert_eq!(restore_all(&location, &points).await, 2);
}

#[tokio::test]
async fn a_kill_during_retention_breaks_no_point() {
    for killed in 0..20 {
        let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
        let location = open(&store).await.unwrap();
        let points = points(&server, &location, 3).await;
        store.fail(FaultPlan {
            killed_after: Some(killed),
            ..FaultPlan::default()
        });
        let is_whole = location.retain(1).await.is_ok();
        store.fail(FaultPlan::default());
        let remaining = restore_all(&location, &points).await;
        assert!((1..=3).contains(&remaining), "{killed}: {remaining}");
        location.retain(1).await.unwrap();
        assert_eq!(restore_all(&location, &points).await, 1);
        // The marker, one manifest, one schema, and the chunks of six files, two of them the same.
        assert_eq!(store.names().await.len(), 9, "{killed}");
        if is_whole {
            return;
        }
    }
    panic!("retention has more operations than were looked at");
}

#[tokio::test]
async fn a_manifest_that_cannot_be_read_stops_the_sweep() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    let points = points(&server, &location, 3).await;
    let newest = points.keys().last().unwrap();
    let object = format!("meta/{newest}.json");
    let right = store.bytes(&object).await;
    let mut flipped = right.clone();
    flipped[50] ^= 1;
    store.replace(&object, flipped).await;
    let names = store.names().await;
    let error = location.retain(1).await.unwrap_err();
    assert!(error.to_string().contains(&object), "{error}");
    assert_eq!(store.names().await, names);
    let listed = location.list().await.unwrap();
    assert!(listed[0].problem.as_ref().unwrap().contains(&object));
    assert!(listed[1].problem.is_none());
    store.replace(&object, right).await;
    assert_eq!(restore_all(&location, &points).await, 3);
}

#[tokio::test]
async fn retention_needs_a_backup_and_a_number() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    server.back_up(&location, 0).await.unwrap();
    let error = location.retain(0).await.unwrap_err();
    assert!(matches!(error, BackupError::RetentionOfNone), "{error}");
    let other = open(&store).await.unwrap();
    let error = other.retain(1).await.unwrap_err();
    assert!(matches!(error, BackupError::NoLease { .. }), "{error}");
}
