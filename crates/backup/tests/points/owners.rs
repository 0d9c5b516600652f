use std::fs;

use backup::{BackupError, LocationAccess, LocationOptions};

use crate::faulty::{FaultPlan, FaultyStore, Meddling};
use crate::setup::{BackedUpServer, open, open_as, options, restored, tree};

#[tokio::test]
async fn another_server_is_refused_until_it_takes_over() {
    let (one, two, store) = (
        BackedUpServer::new(1),
        BackedUpServer::new(2),
        FaultyStore::default(),
    );
    let location = open(&store).await.unwrap();
    one.back_up(&location, 0).await.unwrap();
    let of_two = open(&store).await.unwrap();
    let error = two.back_up(&of_two, 1).await.unwrap_err();
    assert!(matches!(error, BackupError::OtherOwner { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("server-1") && text.contains("--take-over"),
        "{text}"
    );
    let (root, state) = (two.root(), two.state());
    let planned = of_two.plan(two.source(&root, &state, 1), None);
    assert!(matches!(
        planned.await.unwrap_err(),
        BackupError::OtherOwner { .. }
    ));
    let taken = two.back_up_with(&of_two, 1, |source| source.take_over = true);
    taken.await.unwrap();
    two.back_up(&of_two, 2).await.unwrap();
    // The first owner may neither write nor delete.
    let error = location.retain(1).await.unwrap_err();
    assert!(matches!(error, BackupError::TakenOver { .. }), "{error}");
    let error = one.back_up(&location, 3).await.unwrap_err();
    assert!(error.to_string().contains("server-2"), "{error}");
    assert_eq!(location.list().await.unwrap().len(), 3);
}

/// The marker of a location that belongs to another server.
async fn marker_of_another() -> Vec<u8> {
    let (other, store) = (BackedUpServer::new(2), FaultyStore::default());
    let location = open(&store).await.unwrap();
    other.back_up(&location, 0).await.unwrap();
    store.bytes("annulus-backup.json").await
}

/// A plan by which another server takes the location at that operation.
fn taken_at(at: u64, marker: &[u8]) -> FaultPlan {
    FaultPlan {
        meddling: Some(Meddling {
            at,
            object: "annulus-backup.json".to_owned(),
            bytes: Some(marker.to_vec()),
        }),
        ..FaultPlan::default()
    }
}

#[tokio::test]
async fn a_backup_whose_location_is_taken_meanwhile_makes_no_point() {
    let marker = marker_of_another().await;
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    store.fail(FaultPlan::default());
    server.back_up(&location, 0).await.unwrap();
    for at in 1..=store.operations() {
        let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
        let location = open(&store).await.unwrap();
        store.fail(taken_at(at, &marker));
        let error = server.back_up(&location, 0).await.unwrap_err();
        assert!(
            matches!(
                error,
                BackupError::TakenOver { .. } | BackupError::OtherOwner { .. }
            ),
            "{at}: {error}"
        );
        assert!(location.list().await.unwrap().is_empty(), "{at}");
    }
}

#[tokio::test]
async fn deletions_end_when_the_location_is_taken() {
    let marker = marker_of_another().await;
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    server.back_up(&location, 0).await.unwrap();
    for number in 0..2_500 {
        let name = format!("data/00/{number:064x}");
        store.replace(&name, b"of no point".to_vec()).await;
    }
    let before = store.names().await.len();
    // The list of points, a manifest, two lists, the marker, and deletions of the first batch.
    store.fail(taken_at(500, &marker));
    let error = location.retain(1).await.unwrap_err();
    assert!(matches!(error, BackupError::TakenOver { .. }), "{error}");
    assert_eq!(store.names().await.len(), before - 1_000);
}

#[tokio::test]
async fn a_copied_data_directory_is_refused() {
    let (original, copy, store) = (
        BackedUpServer::new(1),
        BackedUpServer::new(1),
        FaultyStore::default(),
    );
    let location = open(&store).await.unwrap();
    original.back_up(&location, 0).await.unwrap();
    copy_folder(&original.state(), &copy.state());
    original.back_up(&location, 1).await.unwrap();
    let error = copy.back_up(&location, 2).await.unwrap_err();
    assert!(matches!(error, BackupError::CopiedState { .. }), "{error}");
    assert!(error.to_string().contains("--take-over"), "{error}");
    original.back_up(&location, 3).await.unwrap();
    fs::remove_dir_all(copy.state()).unwrap();
    let error = copy.back_up(&location, 4).await.unwrap_err();
    assert!(matches!(error, BackupError::CopiedState { .. }), "{error}");
    let taken = copy.back_up_with(&location, 5, |source| source.take_over = true);
    taken.await.unwrap();
    let error = original.back_up(&location, 6).await.unwrap_err();
    assert!(matches!(error, BackupError::CopiedState { .. }), "{error}");
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[tokio::test]
async fn points_without_a_marker_are_not_taken_by_another_server() {
    let (one, two, store) = (
        BackedUpServer::new(1),
        BackedUpServer::new(2),
        FaultyStore::default(),
    );
    let location = open(&store).await.unwrap();
    one.back_up(&location, 0).await.unwrap();
    store.remove("annulus-backup.json").await;
    let location = open(&store).await.unwrap();
    let error = two.back_up(&location, 1).await.unwrap_err();
    assert!(matches!(error, BackupError::OtherOwner { .. }), "{error}");
    one.back_up(&location, 2).await.unwrap();
    assert_eq!(location.list().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_damaged_marker_is_written_again_on_request() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    server.back_up(&location, 0).await.unwrap();
    store.replace("annulus-backup.json", b"{}".to_vec()).await;
    let location = open(&store).await.unwrap();
    let error = server.back_up(&location, 1).await.unwrap_err();
    assert!(error.to_string().contains("--take-over"), "{error}");
    let taken = server.back_up_with(&location, 2, |source| source.take_over = true);
    taken.await.unwrap();
    // One that is too long to be a marker.
    let long = vec![b' '; 100_000];
    store.replace("annulus-backup.json", long).await;
    let error = server.back_up(&location, 3).await.unwrap_err();
    assert!(error.to_string().contains("100000 bytes"), "{error}");
    let taken = server.back_up_with(&location, 4, |source| source.take_over = true);
    taken.await.unwrap();
    let point = server.back_up(&location, 5).await.unwrap();
    assert_eq!(
        restored(&location, &point.id).await.unwrap(),
        tree(&server.root())
    );
}

/// Options with a key of that digit.
fn with_key(server: &BackedUpServer, digit: &str) -> LocationOptions {
    let file = server.folder.path().join(format!("key-{digit}"));
    fs::write(&file, digit.repeat(64)).unwrap();
    let mut options = options();
    options.key_file = Some(file);
    options
}

#[tokio::test]
async fn a_location_opens_by_its_own_key_alone() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let right = with_key(&server, "a");
    let access = LocationAccess::Write;
    let location = open_as(&store, &right, access).await.unwrap();
    let point = server.back_up(&location, 0).await.unwrap();
    for wrong in [with_key(&server, "b"), options()] {
        for access in [access, LocationAccess::Read] {
            let error = open_as(&store, &wrong, access).await.unwrap_err();
            assert!(matches!(error, BackupError::Encryption { .. }), "{error}");
            assert!(error.to_string().contains("--key-file"), "{error}");
        }
    }
    let reader = open_as(&store, &right, LocationAccess::Read).await.unwrap();
    assert_eq!(
        restored(&reader, &point.id).await.unwrap(),
        tree(&server.root())
    );
    // Neither contents nor their plain digests are in the store.
    for name in store.names().await {
        let bytes = store.bytes(&name).await;
        assert!(
            !bytes.windows(6).any(|window| window == b"short "),
            "{name}"
        );
    }
    let plain = FaultyStore::default();
    let location = open(&plain).await.unwrap();
    let other = BackedUpServer::new(2);
    other.back_up(&location, 0).await.unwrap();
    let error = open_as(&plain, &right, access).await.unwrap_err();
    assert!(matches!(error, BackupError::Encryption { .. }), "{error}");
}
