//! The state that a backup saves: the whole database, or what an index service has of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backup::{PointKind, PointTable, ServerIdentity};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use storage::{CheckpointReport, CheckpointTable, Storage};
use uuid::Uuid;

use crate::BackupTaskError;
use crate::files::{ScratchDirectory, remove_directory};

/// The name of the checkpoint of a backup begins with this, before the task's id.
pub(crate) const CHECKPOINT: &str = "checkpoint-";

/// Links the snapshots of all indexes of a service into `indexes/snapshots` below a directory.
pub trait SnapshotLinker: Send + Sync {
    /// Makes the links, and returns the number of files and their bytes. The directory is there.
    ///
    /// # Errors
    /// If a link can't be made.
    fn link<'a>(
        &'a self,
        directory: &'a Path,
    ) -> BoxFuture<'a, Result<(u64, u64), BackupTaskError>>;
}

/// The state that backups of a process save.
pub trait BackedUpState: Send + Sync {
    /// The server that the backups are of.
    fn identity(&self) -> ServerIdentity;

    /// The kind of the points.
    fn kind(&self) -> PointKind;

    /// Makes a directory with the state of one moment, without copies where links will do. The
    /// directory must not exist, and its parent must, on the file system of the data.
    fn capture<'a>(
        &'a self,
        target: &'a Path,
    ) -> BoxFuture<'a, Result<CapturedState, BackupTaskError>>;

    /// The storage, into which tables can be restored.
    fn storage(&self) -> Option<&Storage>;

    /// The things that points leave out, and what has to hold them; `None` if there are none.
    fn leaves_out(&self) -> Option<String>;
}

/// A state that was captured in a directory.
#[derive(Clone, Debug, Default)]
pub struct CapturedState {
    /// The keyspaces, each with its schema as CQL.
    pub schema: Vec<(String, String)>,
    /// The tables with their folders.
    pub tables: Vec<PointTable>,
    /// The moment, microseconds since the epoch.
    pub taken_at_micros: i64,
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The time for which writers waited.
    pub writers_waited: Duration,
}

/// The whole database: rows, schema and roles of a storage, and the snapshots of its indexes.
pub struct DatabaseState {
    /// The storage.
    pub storage: Storage,
    /// The indexes.
    pub indexes: Box<dyn SnapshotLinker>,
}

impl BackedUpState for DatabaseState {
    fn identity(&self) -> ServerIdentity {
        let catalog = self.storage.catalog();
        ServerIdentity {
            id: catalog.host_id,
            name: catalog.cluster_name.clone(),
        }
    }

    fn kind(&self) -> PointKind {
        PointKind::Database
    }

    fn capture<'a>(
        &'a self,
        target: &'a Path,
    ) -> BoxFuture<'a, Result<CapturedState, BackupTaskError>> {
        async move {
            let (report, linked) = checkpoint(&self.storage, &*self.indexes, target).await?;
            let schema = node::describe::keyspaces_as_cql(&report.catalog);
            Ok(CapturedState {
                schema: schema.into_iter().map(|it| (it.name, it.text)).collect(),
                tables: report.tables.iter().map(point_table).collect(),
                taken_at_micros: report.commit_time_micros,
                files: report.files + linked.0,
                bytes: report.bytes + linked.1,
                writers_waited: report.writers_waited,
            })
        }
        .boxed()
    }

    fn storage(&self) -> Option<&Storage> {
        Some(&self.storage)
    }

    fn leaves_out(&self) -> Option<String> {
        None
    }
}

fn point_table(table: &CheckpointTable) -> PointTable {
    // The folder of the rows comes first.
    let folders = std::iter::once(&table.rows).chain(&table.indexes);
    PointTable {
        keyspace: table.keyspace.clone(),
        table: table.table.clone(),
        id: table.id.0.to_string(),
        rows: None,
        digest: None,
        folders: folders
            .map(|folder| folder.to_string_lossy().into_owned())
            .collect(),
    }
}

/// Makes a checkpoint of a storage with the snapshots of its indexes: a data directory of hard
/// links. Returns what the storage reports, and the number and bytes of the files of indexes.
///
/// Snapshots come first: their position in the log must not be above the storage's, as an index
/// would else miss the rows between.
///
/// # Errors
/// If the directory exists, or a link can't be made. Then nothing remains.
pub async fn checkpoint(
    storage: &Storage,
    indexes: &dyn SnapshotLinker,
    target: &Path,
) -> Result<(CheckpointReport, (u64, u64)), BackupTaskError> {
    if target.exists() {
        return Err(BackupTaskError::Wrong(format!(
            "{} exists: name a directory that does not, on the file system of the data directory",
            target.display()
        )));
    }
    let Some(parent) = target.parent() else {
        return Err(BackupTaskError::Wrong(format!(
            "{} is no place for a directory",
            target.display()
        )));
    };
    // A start removes it where the parent is the folder of checkpoints.
    let name = format!(".{CHECKPOINT}{}.indexes", Uuid::new_v4());
    let aside = ScratchDirectory::made_in(parent, &name)?;
    let linked = match indexes.link(aside.path()).await {
        Ok(linked) => linked,
        Err(error) => {
            tracing::warn!(%error, "a checkpoint is without snapshots of indexes, which a restored server then builds again");
            (0, 0)
        }
    };
    let report = storage.checkpoint(target).await?;
    let moved = move_indexes(aside.path(), target);
    aside.remove().await;
    if let Err(error) = moved {
        // The error says more than that this failed, too.
        let _ = remove_directory(target);
        return Err(error);
    }
    Ok((report, linked))
}

/// Captures a state for a local snapshot, which has to be at an absolute path, in a parent that is
/// there, outside the server's own directories.
///
/// # Errors
/// If the directory exists, its place is another, or the state can't be captured there.
pub(crate) async fn checkpoint_alone(
    state: &dyn BackedUpState,
    directory: &Path,
    own: &[&Path],
) -> Result<CapturedState, BackupTaskError> {
    if !directory.is_absolute() {
        return Err(BackupTaskError::Wrong(format!(
            "{} is a relative path: give an absolute one",
            directory.display()
        )));
    }
    state.capture(&outside(directory, own)?).await
}

/// The place of a directory that is to be made, by the true path of its parent.
///
/// # Errors
/// If the parent is missing, or the place is in one of the server's own directories.
fn outside(directory: &Path, own: &[&Path]) -> Result<PathBuf, BackupTaskError> {
    let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(BackupTaskError::Wrong(format!(
            "{} is no place for a directory",
            directory.display()
        )));
    };
    let parent = fs::canonicalize(parent).map_err(|error| {
        BackupTaskError::Wrong(format!(
            "{}: {error}: name a directory whose parent is there, on the file system of the data directory",
            parent.display()
        ))
    })?;
    for own in own {
        // One that is missing has nothing in it.
        let is_inside = fs::canonicalize(own).is_ok_and(|own| parent.starts_with(own));
        if is_inside {
            return Err(BackupTaskError::Wrong(format!(
                "{} is in {}, which is the server's own: name a directory next to it, on the same file system",
                directory.display(),
                own.display()
            )));
        }
    }
    Ok(parent.join(name))
}

/// Moves the snapshots into the checkpoint, if there are any.
fn move_indexes(aside: &Path, target: &Path) -> Result<(), BackupTaskError> {
    let (from, to) = (aside.join("indexes"), target.join("indexes"));
    if !from.exists() {
        return Ok(());
    }
    fs::rename(&from, &to).map_err(|error| BackupTaskError::file(&to, error))
}

/// The folder of checkpoints and of state, in the data directory.
pub(crate) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("backups")
}

#[cfg(test)]
mod tests {
    use storage::StorageOptions;

    use super::*;

    /// Indexes of which each has one file.
    struct OneFile;

    impl SnapshotLinker for OneFile {
        fn link<'a>(
            &'a self,
            directory: &'a Path,
        ) -> BoxFuture<'a, Result<(u64, u64), BackupTaskError>> {
            async move {
                let snapshots = directory.join("indexes").join("snapshots");
                fs::create_dir_all(&snapshots).unwrap();
                fs::write(snapshots.join("one"), "1").unwrap();
                Ok((1, 1))
            }
            .boxed()
        }
    }

    fn state(data: &Path) -> DatabaseState {
        DatabaseState {
            storage: Storage::open(data, StorageOptions::default()).unwrap(),
            indexes: Box::new(OneFile),
        }
    }

    #[tokio::test]
    async fn a_snapshot_is_made_outside_the_servers_directories_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (data, indexes) = (folder.path().join("data"), folder.path().join("indexes"));
        fs::create_dir(&indexes).unwrap();
        let state = state(&data);
        fs::create_dir(data.join("backups")).unwrap();
        std::os::unix::fs::symlink(&data, folder.path().join("link")).unwrap();
        let own = [data.as_path(), indexes.as_path()];
        for (place, said) in [
            ("data/backups/copy", "the server's own"),
            ("link/backups/copy", "the server's own"),
            ("data/backups/../copy", "the server's own"),
            ("indexes/copy", "the server's own"),
            ("missing/copy", "whose parent is there"),
        ] {
            let made = checkpoint_alone(&state, &folder.path().join(place), &own).await;
            let error = made.unwrap_err().to_string();
            assert!(error.contains(said), "{place}: {error}");
        }
        assert!(!folder.path().join("missing").exists());
        // Names that an earlier version took for its own.
        let theirs = folder.path().join(".copy.indexes");
        fs::create_dir(&theirs).unwrap();
        let target = folder.path().join("copy");
        checkpoint_alone(&state, &target, &own).await.unwrap();
        assert!(target.join("indexes/snapshots/one").exists());
        assert!(theirs.exists());
        let names = fs::read_dir(folder.path()).unwrap();
        assert_eq!(names.count(), 5, "nothing else is left");
        state.storage.close().await.unwrap();
    }

    #[tokio::test]
    async fn a_stray_folder_among_the_keyspaces_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let state = state(folder.path());
        state.storage.close().await.unwrap();
        drop(state);
        let stray = folder.path().join("db").join("keyspaces").join("zz");
        fs::create_dir(&stray).unwrap();
        let again = Storage::open(folder.path(), StorageOptions::default()).unwrap();
        assert!(stray.is_dir());
        again.close().await.unwrap();
    }
}
