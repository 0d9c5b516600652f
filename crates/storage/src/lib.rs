//! Embedded wide-column storage: what the node keeps its rows in.
//!
//! Rows lie in token order, cells carry write timestamps and expiries, and a write to a table with
//! a CDC log commits together with its log rows. There is one door for each kind of work:
//!
//! - [`Storage::write`]: mutations, acknowledged when durable;
//! - [`Storage::read`]: live rows of a partition or a token range, streamed;
//! - [`Storage::change_catalog`]: the schema, changed by a closure, whole or not at all;
//! - [`Storage::settle_log`]: the low-water mark that lets a reader of a CDC log never miss a row.
//!
//! All writes and schema changes pass one committer thread: it merges what waits into one batch,
//! syncs once and acknowledges all. As nothing else writes, reading before writing needs no lock.

pub mod catalog;
pub mod mutation;
pub mod read;

use std::path::Path;
use std::sync::Arc;

use catalog::{Catalog, TableId};
use mutation::{Write, WriteOutcome};
use read::{ReadRequest, RowStream};

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the journal is synced to the disk: survives a power cut.
    Synced,
    /// After the journal is handed to the kernel, which is synced every so often: survives the
    /// death of the process; a power cut or kernel crash may lose the last interval.
    Buffered { sync_interval: std::time::Duration },
}

/// How a data directory is opened.
#[derive(Clone, Debug)]
pub struct StorageOptions {
    pub durability: Durability,
    /// Bytes of block cache shared by all tables.
    pub cache_bytes: u64,
    /// Bytes of keys and values that one write may carry; more is refused.
    pub max_write_bytes: usize,
}

impl Default for StorageOptions {
    fn default() -> Self {
        StorageOptions {
            durability: Durability::Synced,
            cache_bytes: 256 << 20,
            max_write_bytes: 64 << 20,
        }
    }
}

/// What can go wrong, by whose fault.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// Another process holds the directory.
    #[error("{0}")]
    Locked(String),
    /// The directory was written by a newer version.
    #[error("{0}")]
    NewerFormat(String),
    /// The write or read cannot be carried out as it is (key too long, too large a write,
    /// a list index out of bounds, ...): the client's fault.
    #[error("{0}")]
    Invalid(String),
    /// The table was dropped meanwhile.
    #[error("unconfigured table {0}")]
    NoSuchTable(String),
    /// The disk failed or is full: reads go on, writes are refused until it can be reopened.
    #[error("{0}")]
    ReadOnly(String),
    /// The data on disk is not what was written.
    #[error("{0}")]
    Corrupt(String),
    #[error("{0}")]
    Io(String),
    /// The storage is shutting down.
    #[error("storage is closed")]
    Closed,
}

/// Why a schema change did not happen.
#[derive(Debug)]
pub enum ChangeError<E> {
    /// The closure refused.
    Refused(E),
    Storage(StorageError),
}

/// Whether writes are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Writable,
    /// With the reason, for the operator.
    ReadOnly(String),
}

/// An open data directory. Cheap to clone; the last clone closes it.
#[derive(Clone)]
pub struct Storage {}

impl Storage {
    /// Opens a data directory, creating it if it is missing, and recovers what was acknowledged.
    pub fn open(directory: &Path, options: StorageOptions) -> Result<Storage, StorageError> {
        let _ = (directory, options);
        todo!()
    }

    /// The schema as it stands. One atomic load.
    pub fn catalog(&self) -> Arc<Catalog> {
        todo!()
    }

    /// Changes the schema: the closure edits a copy on the committer thread, between two batches
    /// of writes; if it returns `Ok` and anything changed, the copy gets a new version
    /// ([`Catalog::version`]), is made durable and takes the place of the old one. Tables that are new get their
    /// files, tables that are gone lose them.
    pub async fn change_catalog<R, E>(
        &self,
        change: impl FnOnce(&mut Catalog) -> Result<R, E> + Send + 'static,
    ) -> Result<R, ChangeError<E>>
    where
        R: Send + 'static,
        E: Send + 'static,
    {
        let _ = change;
        std::future::ready(()).await;
        todo!()
    }

    /// Applies mutations as one atomic batch, with the CDC log rows that the catalog asks for, and
    /// returns once they are durable (see [`Durability`]).
    pub async fn write(&self, write: Write) -> Result<WriteOutcome, StorageError> {
        let _ = write;
        std::future::ready(()).await;
        todo!()
    }

    /// Starts a read. The stream sees the state of this moment, whatever is written meanwhile, and
    /// does blocking file reads when it is advanced.
    pub fn read(&self, request: ReadRequest) -> Result<RowStream, StorageError> {
        let _ = request;
        todo!()
    }

    /// Waits until no commit in flight can still add a CDC log row with a `cdc$time` below `until_micros`
    /// (microseconds since the epoch, capped at the present), and makes later commits take later
    /// times. After it a read of any log up to `until_micros` is complete for good.
    pub async fn settle_log(&self, until_micros: i64) -> Result<(), StorageError> {
        let _ = until_micros;
        std::future::ready(()).await;
        todo!()
    }

    /// Drops all rows of a table (and of its CDC log's base side only; the log stays). Writes
    /// [`catalog::Table::truncated_at_ms`] and gives the catalog a new version.
    pub async fn truncate(&self, table: TableId) -> Result<(), StorageError> {
        let _ = table;
        std::future::ready(()).await;
        todo!()
    }

    pub fn health(&self) -> Health {
        todo!()
    }

    /// Stops taking writes, finishes those in flight, and syncs. Later calls fail with [`StorageError::Closed`].
    pub async fn close(&self) -> Result<(), StorageError> {
        std::future::ready(()).await;
        todo!()
    }
}
