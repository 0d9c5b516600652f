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

mod cdc;
mod commit;
mod engine;
mod forget;
mod horizon;
mod key;
mod ranges;
mod reader;
mod record;
mod recover;
mod schema;
mod scrub;
mod shared;
mod storage;
mod watch;

pub use cdc::{LogEnd, LogSettled};
pub use clock;
#[cfg(feature = "simulation")]
pub use engine::SimulatedDisk;
pub use recover::{Loss, TableLoss, recover};
pub use scrub::{Pass, Scrubbed, scrub};
pub use storage::Storage;

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the journal is synced to the disk: survives a power cut.
    Synced,
    /// After the journal is handed to the kernel, which is synced every so often: survives the
    /// death of the process; a power cut or kernel crash may lose the last interval.
    Buffered {
        /// The longest time between two syncs.
        sync_interval: std::time::Duration,
    },
}

/// How a data directory is opened.
#[derive(Clone, Debug)]
pub struct StorageOptions {
    /// When a write is acknowledged.
    pub durability: Durability,
    /// Bytes of block cache shared by all tables.
    pub cache_bytes: u64,
    /// Bytes of keys and values that one write may carry; more is refused.
    pub max_write_bytes: usize,
    /// Bytes that a table gathers in memory before they are written out as a file; decided when the table
    /// is made. A table that is written to fast holds up to three times as much.
    pub memtable_bytes: u64,
}

impl Default for StorageOptions {
    fn default() -> Self {
        StorageOptions {
            durability: Durability::Synced,
            cache_bytes: 256 << 20,
            max_write_bytes: 64 << 20,
            memtable_bytes: 64 << 20,
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
    /// A file can't be read or made.
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
    /// By the closure.
    Refused(E),
    /// By the storage: the change was not made.
    Storage(StorageError),
}

/// Whether writes are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Reads and writes are taken.
    Writable,
    /// With the reason, for the operator.
    ReadOnly(String),
}

/// Figures for the operator, counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of all files.
    pub disk_bytes: u64,
    /// Commits of the committer thread.
    pub batches: u64,
    /// Writes in them: by `batches`, the mean batch.
    pub writes: u64,
    /// Microseconds that the commits took together.
    pub commit_micros: u64,
    /// Deletions of partitions and ranges whose rows, hidden already, are still to be removed.
    pub sweeps_waiting: u64,
    /// Deletions of ranges that reads and writes had to look at: what a partition full of them costs.
    pub range_deletions_read: u64,
    /// How far the storage's time is ahead of the machine's clock, which was set back. Microseconds.
    pub clock_lead_micros: i64,
}
