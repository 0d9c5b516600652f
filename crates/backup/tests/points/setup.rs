//! A server's checkpoint and state, and a location for its points.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use backup::{
    BackupError, BackupLocation, BackupSource, ChunkCompression, FileSelection, FullPace,
    LocationAccess, LocationOptions, NoProgress, PointId, PointKind, PointSummary, PointTable,
    RetryPolicy, ServerIdentity,
};
use tempfile::TempDir;
use uuid::Uuid;

use crate::faulty::FaultyStore;

/// Retries that take little time.
pub fn quick() -> RetryPolicy {
    RetryPolicy {
        attempt: Duration::from_secs(20),
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(4),
        deadline: Duration::from_secs(20),
        first_deadline: Duration::from_secs(20),
    }
}

/// Bytes that look random.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(length).collect()
}

/// A content of two pieces.
static LONG: LazyLock<Vec<u8>> = LazyLock::new(|| noise(1, (8 << 20) + 5_000));

/// Contents of files by path, and folders with no content.
pub type Tree = BTreeMap<String, Option<Vec<u8>>>;

/// All that is below a folder.
pub fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut waiting = vec![root.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            if path.is_dir() {
                tree.insert(name, None);
                waiting.push(path);
            } else {
                tree.insert(name, Some(fs::read(path).unwrap()));
            }
        }
    }
    tree
}

/// A server with a checkpoint.
pub struct BackedUpServer {
    pub identity: ServerIdentity,
    pub folder: TempDir,
}

impl BackedUpServer {
    /// A server with some files: empty, short, and one of two pieces.
    pub fn new(number: u128) -> BackedUpServer {
        let server = BackedUpServer {
            identity: ServerIdentity {
                id: Uuid::from_u128(number),
                name: format!("server-{number}"),
            },
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir_all(server.root().join("db/empty")).unwrap();
        server.write("annulus-storage", b"1");
        server.write("db/nothing", b"");
        server.write("db/short", &b"short ".repeat(1_000));
        server.write("db/7/long", &LONG);
        server.write("db/7/same", b"1");
        server
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Writes a file of the checkpoint.
    pub fn write(&self, path: &str, content: &[u8]) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes a backup at that second.
    pub async fn back_up_with(
        &self,
        location: &BackupLocation,
        second: i64,
        change: impl FnOnce(&mut BackupSource<'_>),
    ) -> Result<PointSummary, BackupError> {
        let (root, state) = (self.root(), self.state());
        let mut source = self.source(&root, &state, second);
        change(&mut source);
        location.back_up(source, &NoProgress, &FullPace).await
    }

    pub async fn back_up(
        &self,
        location: &BackupLocation,
        second: i64,
    ) -> Result<PointSummary, BackupError> {
        self.back_up_with(location, second, |_| {}).await
    }

    pub fn source<'a>(&self, root: &'a Path, state: &'a Path, second: i64) -> BackupSource<'a> {
        BackupSource {
            server: self.identity.clone(),
            state_dir: state,
            root,
            schema: vec![("shop".to_owned(), "CREATE KEYSPACE shop ...;".to_owned())],
            tables: vec![PointTable {
                keyspace: "shop".to_owned(),
                table: "items".to_owned(),
                id: "7".to_owned(),
                rows: Some(3),
                digest: None,
                folders: vec!["db/7".to_owned()],
            }],
            kind: PointKind::Database,
            take_over: false,
            full_check: false,
            version: "0.1.0".to_owned(),
            taken_at_micros: (1_795_000_000 + second) * 1_000_000,
        }
    }
}

pub fn options() -> LocationOptions {
    let mut options = LocationOptions::new("s3:bucket/prefix".parse().unwrap());
    options.compression = ChunkCompression::Zstd;
    options
}

pub async fn open(store: &FaultyStore) -> Result<BackupLocation, BackupError> {
    open_as(store, &options(), LocationAccess::Write).await
}

pub async fn open_as(
    store: &FaultyStore,
    options: &LocationOptions,
    access: LocationAccess,
) -> Result<BackupLocation, BackupError> {
    BackupLocation::open_in(Arc::new(store.clone()), options, access, quick()).await
}

/// Restores a point into a new folder.
pub async fn restored(location: &BackupLocation, id: &PointId) -> Result<Tree, BackupError> {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    let point = location.point(Some(id)).await?;
    let all = FileSelection::All;
    let downloaded = location.download(&point, &all, &target, &NoProgress, &FullPace);
    downloaded.await?;
    Ok(tree(&target))
}
