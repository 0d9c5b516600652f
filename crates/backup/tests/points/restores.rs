use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use backup::{
    BackupError, BackupLocation, ChunkCompression, FileSelection, FullPace, LocationAccess,
    LocationOptions, NoProgress, TransferProgress,
};

use crate::faulty::FaultyStore;
use crate::setup::{BackedUpServer, noise, open, open_as, options, restored, tree};

#[tokio::test]
async fn points_come_back_with_any_compression_and_key() {
    let server = BackedUpServer::new(1);
    let key_file = server.folder.path().join("key");
    fs::write(&key_file, "0a".repeat(32)).unwrap();
    for compression in [ChunkCompression::None, ChunkCompression::Zstd] {
        for key_file in [None, Some(key_file.clone())] {
            let store = FaultyStore::default();
            let mut options = options();
            options.compression = compression;
            options.key_file = key_file;
            let access = LocationAccess::Write;
            let location = open_as(&store, &options, access).await.unwrap();
            let _ = fs::remove_dir_all(server.state());
            let point = server.back_up(&location, 0).await.unwrap();
            let found = restored(&location, &point.id).await.unwrap();
            assert_eq!(found, tree(&server.root()));
            let manifest = location.point(None).await.unwrap();
            let schema = location.schema(&manifest).await.unwrap();
            assert_eq!(schema[0].1, "CREATE KEYSPACE shop ...;");
            assert_eq!(manifest.tables[0].folders, ["db/7"]);
        }
    }
}

#[tokio::test]
async fn a_directory_is_a_location() {
    let server = BackedUpServer::new(1);
    let folder = server.folder.path().join("a/backups");
    let options = LocationOptions::new(format!("file://{}", folder.display()).parse().unwrap());
    let access = LocationAccess::Write;
    let location = BackupLocation::open(&options, access).await.unwrap();
    let first = server.back_up(&location, 0).await.unwrap();
    server.write("db/new", b"new");
    let second = server.back_up(&location, 1).await.unwrap();
    assert!(second.sent_bytes < first.sent_bytes);
    let reader = BackupLocation::open(&options, LocationAccess::Read)
        .await
        .unwrap();
    let ids: Vec<_> = reader
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|point| point.id)
        .collect();
    assert_eq!(ids, [second.id.clone(), first.id]);
    assert_eq!(
        restored(&reader, &second.id).await.unwrap(),
        tree(&server.root())
    );
    assert!(reader.verify(None, &NoProgress).await.unwrap().is_sound());
    let report = location.retain(1).await.unwrap();
    assert_eq!(
        (report.deleted_points.len(), report.remaining_points),
        (1, 1)
    );
    assert_eq!(
        restored(&reader, &second.id).await.unwrap(),
        tree(&server.root())
    );
    let other = BackedUpServer::new(2);
    let error = other.back_up(&location, 2).await.unwrap_err();
    assert!(matches!(error, BackupError::OtherOwner { .. }), "{error}");
}

#[tokio::test]
async fn only_new_pieces_are_sent() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    server.back_up(&location, 0).await.unwrap();
    // Of the five files one is empty, two have the same content, and one has two pieces.
    assert_eq!(store.sent_chunks().len(), 4);
    let unchanged = server.back_up(&location, 1).await.unwrap();
    assert_eq!(store.sent_chunks().len(), 0);
    assert_eq!(unchanged.sent_objects, 1);
    server.write("db/7/long", &noise(1, (8 << 20) + 6_000));
    let root = server.root();
    let state = server.state();
    let planned = location.plan(server.source(&root, &state, 2), Some(2));
    let plan = planned.await.unwrap();
    assert_eq!((plan.files, plan.send_objects, plan.points), (5, 1, 2));
    assert_eq!(plan.would_delete.len(), 1);
    assert_eq!(store.sent_chunks().len(), 0);
    let grown = server.back_up(&location, 2).await.unwrap();
    assert_eq!(store.sent_chunks().len(), 1);
    assert_eq!(restored(&location, &grown.id).await.unwrap(), tree(&root));
}

/// Gives a file a time of an hour ago, so that it counts as settled.
fn settle(path: &Path) {
    let time = File::open(path)
        .unwrap()
        .metadata()
        .unwrap()
        .modified()
        .unwrap();
    let hour_ago = time.checked_sub(Duration::from_secs(3_600)).unwrap();
    set_time(path, hour_ago);
}

fn set_time(path: &Path, time: SystemTime) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[tokio::test]
async fn a_full_check_reads_files_that_seem_unchanged() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    let path = server.root().join("db/short");
    settle(&path);
    server.back_up(&location, 0).await.unwrap();
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    let length = fs::metadata(&path).unwrap().len();
    fs::write(&path, noise(5, usize::try_from(length).unwrap())).unwrap();
    set_time(&path, time);
    store.sent_chunks();
    server.back_up(&location, 1).await.unwrap();
    assert_eq!(store.sent_chunks().len(), 0);
    let checked = server.back_up_with(&location, 2, |source| source.full_check = true);
    let checked = checked.await.unwrap();
    assert_eq!(store.sent_chunks().len(), 1);
    assert_eq!(
        restored(&location, &checked.id).await.unwrap(),
        tree(&server.root())
    );
}

/// Replaces an object by what becomes of its bytes.
async fn damage(store: &FaultyStore, name: &str, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = store.bytes(name).await;
    how(&mut bytes);
    store.replace(name, bytes).await;
}

#[tokio::test]
async fn a_full_check_sends_damaged_chunks_again() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    let first = server.back_up(&location, 0).await.unwrap();
    let sent = store.sent_chunks();
    for name in &sent[1..] {
        damage(&store, name, |bytes| *bytes.last_mut().unwrap() ^= 1).await;
    }
    let point = server.back_up(&location, 1).await.unwrap();
    assert!(store.sent_chunks().is_empty());
    assert!(restored(&location, &point.id).await.is_err());
    let (root, state) = (server.root(), server.state());
    let mut source = server.source(&root, &state, 2);
    source.full_check = true;
    let plan = location.plan(source, None).await.unwrap();
    assert_eq!(plan.send_objects, sent.len() as u64 - 1);
    assert!(store.sent_chunks().is_empty());
    let checked = server.back_up_with(&location, 2, |source| source.full_check = true);
    let checked = checked.await.unwrap();
    let (mut mended, mut damaged) = (store.sent_chunks(), sent[1..].to_vec());
    mended.sort();
    damaged.sort();
    assert_eq!(mended, damaged);
    // The points that share the chunks come back, too.
    for id in [first.id, point.id, checked.id] {
        assert_eq!(restored(&location, &id).await.unwrap(), tree(&root));
    }
}

#[tokio::test]
async fn a_chunk_that_was_cut_off_is_sent_again() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    settle(&server.root().join("db/7/long"));
    server.back_up(&location, 0).await.unwrap();
    let sent = store.sent_chunks();
    let mut longest = (0, String::new());
    for name in sent {
        longest = longest.max((store.bytes(&name).await.len(), name));
    }
    damage(&store, &longest.1, |bytes| bytes.truncate(1_000)).await;
    let point = server.back_up(&location, 1).await.unwrap();
    assert_eq!(store.sent_chunks(), [longest.1]);
    assert_eq!(
        restored(&location, &point.id).await.unwrap(),
        tree(&server.root())
    );
}

#[tokio::test]
async fn a_restored_directory_is_its_owners_alone() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    server.back_up(&location, 0).await.unwrap();
    let point = location.point(None).await.unwrap();
    let (all, target) = (FileSelection::All, server.folder.path().join("a/target"));
    let downloaded = location.download(&point, &all, &target, &NoProgress, &FullPace);
    downloaded.await.unwrap();
    for path in [
        "..",
        "",
        "db",
        "db/7",
        "db/empty",
        "db/7/long",
        "db/nothing",
    ] {
        let metadata = fs::metadata(target.join(path)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o077, 0, "{path}");
    }
}

#[tokio::test]
async fn a_chunk_that_someone_deleted_is_sent_again() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    settle(&server.root().join("db/7/long"));
    server.back_up(&location, 0).await.unwrap();
    let sent = store.sent_chunks();
    for name in &sent {
        store.remove(name).await;
    }
    let point = server.back_up(&location, 1).await.unwrap();
    assert_eq!(store.sent_chunks().len(), sent.len());
    assert_eq!(
        restored(&location, &point.id).await.unwrap(),
        tree(&server.root())
    );
}

#[tokio::test]
async fn an_emptied_bucket_is_filled_by_the_next_backup() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    server.back_up(&location, 0).await.unwrap();
    for name in store.names().await {
        store.remove(&name).await;
    }
    let error = open_as(&store, &options(), LocationAccess::Read)
        .await
        .unwrap_err();
    assert!(matches!(error, BackupError::NotALocation { .. }), "{error}");
    let location = open(&store).await.unwrap();
    let point = server.back_up(&location, 1).await.unwrap();
    assert_eq!(
        restored(&location, &point.id).await.unwrap(),
        tree(&server.root())
    );
}

#[tokio::test]
async fn a_selection_brings_its_folders_alone() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    server.back_up(&location, 0).await.unwrap();
    let point = location.point(None).await.unwrap();
    let what = FileSelection::Below(vec!["db/7".to_owned(), "annulus-storage".to_owned()]);
    let target = server.folder.path().join("target");
    let downloaded = location.download(&point, &what, &target, &NoProgress, &FullPace);
    assert_eq!(downloaded.await.unwrap().files, 3);
    let names: Vec<String> = tree(&target).into_keys().collect();
    assert_eq!(
        names,
        ["annulus-storage", "db", "db/7", "db/7/long", "db/7/same"]
    );
}

/// Stops after so many pieces.
struct StopAfter(AtomicU64);

impl TransferProgress for StopAfter {
    fn set_total(&self, _: u64) {}

    fn done(&self, _: u64, _: u64) {}

    fn is_wanted(&self) -> bool {
        let left = &self.0;
        let update = |left: u64| left.checked_sub(1);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update)
            .is_ok()
    }
}

#[tokio::test]
async fn a_download_goes_on_and_repairs_what_is_damaged() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    server.back_up(&location, 0).await.unwrap();
    let point = location.point(None).await.unwrap();
    let (all, target) = (FileSelection::All, server.folder.path().join("target"));
    let long = point
        .files
        .iter()
        .find(|file| file.path == "db/7/long")
        .unwrap();
    let second = long.chunks[1].digest.to_string();
    let object = format!("data/{}/{second}", &second[..2]);
    let right = store.bytes(&object).await;
    let mut flipped = right.clone();
    flipped[100] ^= 1;
    store.replace(&object, flipped).await;
    let download = async || {
        location
            .download(&point, &all, &target, &NoProgress, &FullPace)
            .await
    };
    let error = download().await.unwrap_err();
    assert!(matches!(error, BackupError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains(&object), "{error}");
    assert!(target.join(".annulus-download").exists());
    store.replace(&object, right).await;
    // One stop more, and a piece that was damaged on the disk.
    let stop = StopAfter(AtomicU64::new(2));
    let stopped = location
        .download(&point, &all, &target, &stop, &FullPace)
        .await;
    assert!(stopped.unwrap_err().is_stopped());
    fs::write(target.join("annulus-storage"), "x").unwrap();
    let report = download().await.unwrap();
    assert!(report.fetched_bytes > 0);
    assert_eq!(tree(&target), tree(&server.root()));
    let error = download().await.unwrap_err();
    assert!(matches!(error, BackupError::TargetInUse { .. }), "{error}");
}

#[tokio::test]
async fn a_stopped_backup_goes_on() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    let (root, state) = (server.root(), server.state());
    for pieces in 0..4 {
        let stop = StopAfter(AtomicU64::new(pieces));
        let source = server.source(&root, &state, 0);
        let stopped = location.back_up(source, &stop, &FullPace).await;
        assert!(stopped.unwrap_err().is_stopped());
        assert!(location.list().await.unwrap().is_empty());
    }
    let point = server.back_up(&location, 1).await.unwrap();
    assert_eq!(restored(&location, &point.id).await.unwrap(), tree(&root));
}
