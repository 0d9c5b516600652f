use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use backup::{BackupError, BackupLocation, LocationAccess};

use crate::faulty::{FaultPlan, FaultyStore, Meddling};
use crate::setup::{BackedUpServer, open, options, quick, restored, tree};

/// A plan with a kill after so many operations.
fn killed_after(operations: u64) -> FaultPlan {
    FaultPlan {
        killed_after: Some(operations),
        ..FaultPlan::default()
    }
}

/// Opens the location and makes a backup.
async fn attempt(server: &BackedUpServer, store: &FaultyStore) -> Result<(), BackupError> {
    let location = open(store).await?;
    server.back_up(&location, 0).await.map(|_| ())
}

#[tokio::test]
async fn a_killed_backup_goes_on_and_sends_only_what_is_missing() {
    let (server, counted) = (BackedUpServer::new(1), FaultyStore::default());
    counted.fail(FaultPlan::default());
    attempt(&server, &counted).await.unwrap();
    let (operations, chunks) = (counted.operations(), counted.sent_chunks());
    for killed in 0..operations {
        let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
        store.fail(killed_after(killed));
        attempt(&server, &store).await.unwrap_err();
        store.fail(FaultPlan::default());
        let mut sent = store.sent_chunks();
        let location = open(&store).await.unwrap();
        // The point is made by its manifest, which two lists and the marker follow.
        let made = usize::from(killed + 3 >= operations);
        assert_eq!(location.list().await.unwrap().len(), made, "{killed}");
        let point = server.back_up(&location, 1).await.unwrap();
        sent.extend(store.sent_chunks());
        let distinct: BTreeSet<&String> = sent.iter().collect();
        assert_eq!(distinct.len(), sent.len(), "{killed}: none is sent twice");
        assert_eq!(sent.len(), chunks.len(), "{killed}");
        let found = restored(&location, &point.id).await.unwrap();
        assert_eq!(found, tree(&server.root()), "{killed}");
    }
}

#[tokio::test]
async fn a_point_that_has_lost_a_chunk_is_not_made() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    store.fail(FaultPlan::default());
    server.back_up(&location, 0).await.unwrap();
    let operations = store.operations();
    let (lost, store) = (store.sent_chunks().remove(0), FaultyStore::default());
    let (server, location) = (BackedUpServer::new(1), open(&store).await.unwrap());
    // After the manifest come two lists and the marker.
    store.fail(FaultPlan {
        meddling: Some(Meddling {
            at: operations - 2,
            object: lost.clone(),
            bytes: None,
        }),
        ..FaultPlan::default()
    });
    let error = server.back_up(&location, 0).await.unwrap_err();
    assert!(matches!(error, BackupError::Missing { .. }), "{error}");
    assert!(error.to_string().contains(&lost), "{error}");
    assert!(location.list().await.unwrap().is_empty());
    store.fail(FaultPlan::default());
    let point = server.back_up(&location, 1).await.unwrap();
    let found = restored(&location, &point.id).await.unwrap();
    assert_eq!(found, tree(&server.root()));
}

#[tokio::test]
async fn errors_and_torn_answers_are_tried_again() {
    let plans = [
        FaultPlan {
            broken_every: Some(2),
            ..FaultPlan::default()
        },
        FaultPlan {
            torn_every: Some(2),
            ..FaultPlan::default()
        },
        FaultPlan {
            broken_every: Some(3),
            torn_every: Some(4),
            ..FaultPlan::default()
        },
    ];
    for plan in plans {
        let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
        store.fail(plan.clone());
        let location = open(&store).await.unwrap();
        let point = server.back_up(&location, 0).await.unwrap();
        let found = restored(&location, &point.id).await.unwrap();
        assert_eq!(found, tree(&server.root()), "{plan:?}");
        server.back_up(&location, 1).await.unwrap();
        location.retain(1).await.unwrap();
        assert_eq!(location.list().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_tried_again() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    let point = server.back_up(&location, 0).await.unwrap();
    let mut retries = quick();
    retries.attempt = Duration::from_millis(200);
    store.fail(FaultPlan {
        stuck_every: Some(2),
        ..FaultPlan::default()
    });
    let (options, access) = (options(), LocationAccess::Read);
    let opened = BackupLocation::open_in(Arc::new(store.clone()), &options, access, retries);
    let points = opened.await.unwrap().list().await.unwrap();
    assert_eq!(points[0].id, point.id);
}

#[tokio::test]
async fn a_store_that_stays_away_is_a_transient_error_with_its_place() {
    let store = FaultyStore::default();
    store.fail(FaultPlan {
        broken_every: Some(1),
        ..FaultPlan::default()
    });
    let mut retries = quick();
    retries.deadline = Duration::from_millis(50);
    let (options, access) = (options(), LocationAccess::Write);
    let opened = BackupLocation::open_in(Arc::new(store.clone()), &options, access, retries);
    let error = opened.await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("s3:bucket/prefix: annulus-backup.json"),
        "{text}"
    );
    assert!(text.contains("attempts"), "{text}");
}

#[tokio::test]
async fn refused_credentials_end_at_once_with_the_remedy() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    store.fail(FaultPlan {
        is_denied: true,
        ..FaultPlan::default()
    });
    let error = server.back_up(&location, 0).await.unwrap_err();
    assert_eq!(store.operations(), 1);
    assert!(!error.is_transient());
    let text = error.to_string();
    assert!(
        text.contains("AWS_ACCESS_KEY_ID") && text.contains("--credentials"),
        "{text}"
    );
    store.fail(FaultPlan::default());
    server.back_up(&location, 0).await.unwrap();
}
