//! Checkpoints: the whole storage as it is at one moment, as a data directory of its own.
//!
//! ```text
//! TARGET/annulus-storage   marks a whole checkpoint, written last
//! TARGET/db/               links to the engine's files, and a copy of the newest journal
//! ```
//!
//! A checkpoint is opened like any data directory: served, by [`Storage::open`], or only read, by
//! [`Storage::open_read_only`]. Before it is served it needs an identity of its own
//! ([`renew_identity`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use platform::aside;
use schema::{Catalog, TableId};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::clock::{Clock, SystemClock};
use crate::commit::{self, LinkedCheckpoint, QueuedRequest};
use crate::engine::{CheckpointFiles, Engine, LockedDirectory, SpaceId};
use crate::handle::engine_options;
use crate::{Storage, StorageError, StorageOptions};

/// A checkpoint that was made.
#[derive(Clone, Debug)]
pub struct CheckpointReport {
    /// The number of files with rows: tables, files of large values, manifests and journals.
    pub files: u64,
    /// The bytes of these files. The checkpoint itself takes hardly any of them, for as long as
    /// the storage has the same files.
    pub bytes: u64,
    /// The time for which writes waited.
    pub writers_waited: Duration,
    /// The storage's time of the checkpoint, in microseconds since the epoch. It holds each write
    /// that was acknowledged before, and none that began later.
    pub commit_time_micros: i64,
    /// The schema of that moment.
    pub catalog: Arc<Catalog>,
    /// The tables, CDC logs included, by keyspace and name.
    pub tables: Vec<CheckpointTable>,
}

/// The files of a table in a checkpoint. A copy of a checkpoint from which the folders of other
/// tables are left out can be read by [`Storage::open_read_only`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointTable {
    /// The identity of the table.
    pub id: TableId,
    /// The keyspace.
    pub keyspace: String,
    /// The name without its keyspace.
    pub table: String,
    /// The folder of its rows, relative to the checkpoint's directory: `db/keyspaces/7`. Rows may
    /// be in the journals, too.
    pub rows: PathBuf,
    /// The folders of its secondary indexes, likewise.
    pub indexes: Vec<PathBuf>,
}

impl Storage {
    /// Makes a checkpoint of all rows, the schema and the roles in a directory that does not exist
    /// yet. Its parent must exist, on the file system of the data. Writes go on, and wait only
    /// while what has changed in the last moment is linked.
    ///
    /// If it fails, or if its caller stops waiting, the directory is removed. After a kill it may
    /// stay without its mark, and no storage opens it.
    ///
    /// # Errors
    /// If the directory exists or can't be made, if the disk takes no writes, or if the storage is
    /// closed or open to read only.
    pub async fn checkpoint(&self, target: &Path) -> Result<CheckpointReport, StorageError> {
        let engine = Arc::clone(&self.shared().engine);
        let (of, root) = (Arc::clone(&engine), target.to_path_buf());
        let draft = aside(move || of.begin_checkpoint(&root))
            .await
            .map_err(|_| stopped())??;
        let (reply, answer) = oneshot::channel();
        let draft = Box::new(draft);
        self.send_request(QueuedRequest::Checkpoint { draft, reply })
            .await?;
        let linked = answer.await.unwrap_or(Err(StorageError::Closed))?;
        let LinkedCheckpoint {
            draft,
            schema,
            time_micros,
            writers_waited,
        } = linked;
        let files = aside(move || engine.finish_checkpoint(*draft))
            .await
            .map_err(|_| stopped())??;
        let folder = |space: SpaceId| files.folders.get(&space).cloned().unwrap_or_default();
        let tables = schema.tables().map(|table| CheckpointTable {
            id: table.table.id,
            keyspace: table.table.keyspace.clone(),
            table: table.table.name.clone(),
            rows: folder(table.space),
            indexes: table
                .indexes
                .iter()
                .map(|index| folder(index.space))
                .collect(),
        });
        let mut tables: Vec<CheckpointTable> = tables.collect();
        tables.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        let CheckpointFiles { files, bytes, .. } = files;
        Ok(CheckpointReport {
            files,
            bytes,
            writers_waited,
            commit_time_micros: time_micros,
            catalog: Arc::clone(&schema.catalog),
            tables,
        })
    }
}

fn stopped() -> StorageError {
    StorageError::Io("internal error: the checkpoint stopped".to_owned())
}

/// Gives a data directory another identity: a new host id, by which drivers, other nodes and
/// backups tell servers apart. A directory that was copied or restored needs one before it is
/// served. Returns the new id.
///
/// # Errors
/// If it is no data directory, is in use or is damaged, or if the disk takes no writes.
pub fn renew_identity(directory: &Path) -> Result<Uuid, StorageError> {
    let directory = LockedDirectory::open_existing(directory)?;
    let options = engine_options(&StorageOptions::default());
    let engine = Engine::open(directory, options, Arc::new(|_, _| None))?;
    let renewed = commit::renew_host(&engine, SystemClock.now_micros());
    engine.close();
    renewed
}
