//! Embedded wide-column storage for the rows of the node.
//!
//! Rows are stored in token order. Cells carry write timestamps and expiries. A write to a table
//! with a CDC log commits together with its log rows. There is one method for each kind of work:
//!
//! - [`Storage::write`] applies mutations and acknowledges them when they are durable.
//! - [`Storage::read`] streams the live rows of a partition or a token range.
//! - [`Storage::change_catalog`] changes the schema by a closure, whole or not at all.
//! - [`Storage::checkpoint`] makes a copy of all files for a backup, and [`Storage::adopt_table`]
//!   takes a table from one.
//! - [`Storage::settle_log`] raises the low-water mark, so that a reader of a CDC log misses no
//!   row.
//!
//! One committer thread carries out all writes and schema changes. It merges the writes that wait
//! into one batch, syncs once and acknowledges all of them. As nothing else writes, it reads before
//! it writes without a lock.

#![warn(clippy::unwrap_used)]

pub mod adopt;
pub mod checkpoint;
pub mod mutation;
pub mod read;

mod active_reads;
mod cdc;
mod commit;
mod compaction;
mod digest;
mod disk_room;
mod engine;
mod entries;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod growth;
mod key;
mod layout;
mod persist;
mod ranges;
mod reader;
mod record;
mod recover;
mod repair;

mod handle;
mod scrub;
mod shared;
mod table_sizes;
mod waiters;
mod watch;

pub use adopt::{AdoptProgress, AdoptedTable, AdoptedTableName};
pub use cdc::AHEAD_MAX_MICROS;
pub use checkpoint::{CheckpointReport, CheckpointTable, renew_identity};
pub use clock;
pub use digest::TableDigest;
pub use engine::EngineFigures;
#[cfg(feature = "simulation")]
pub use engine::SimulatedDisk;
pub use growth::{LogEnd, LogSettled, WriterThrottleGuard};
pub use handle::Storage;
pub use reader::{
    CellRow, CellStream, CellTime, EntryStream, PartitionSize, PartitionWalk, RowStream,
    SizedPartition, StoredCell, TableView, WalkStep,
};
pub use recover::{JournalLoss, TableLoss, recover};
pub use repair::REPAIR_COUNTERS;
pub use scrub::{BytesReadCallback, IntegrityReport, scrub};
pub use table_sizes::StoredTableSize;

use cpu_scheduler::CpuScheduler;
use tasks::TaskRegistry;

/// The moment at which a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After the journal is synced to the disk. An acknowledged write survives a power cut.
    Synced,
    /// After the journal is handed to the kernel. An acknowledged write survives the death of the
    /// process, but a power cut or a kernel crash may lose the writes since the last sync.
    Buffered {
        /// The longest time between two syncs.
        sync_interval: std::time::Duration,
    },
}

/// The options of an open data directory.
#[derive(Clone, Debug)]
pub struct StorageOptions {
    /// The moment at which a write is acknowledged.
    pub durability: Durability,
    /// Bytes of block cache shared by all tables.
    pub cache_bytes: u64,
    /// Bytes of keys and values that one write may carry; more is refused.
    pub max_write_bytes: usize,
    /// Bytes of rows that a batch of writes takes along, after which it takes no more writes:
    /// changed rows, log rows, entries of indexes, and rows that refused conditions show. The last
    /// write may exceed them.
    pub batch_bytes: usize,
    /// Bytes of stored rows that one write may look at. A write that looks at only one row may
    /// exceed them.
    pub write_rows_bytes: usize,
    /// Bytes that a table gathers in memory before they are written out as a file. The value is
    /// fixed when the table is made. A table under fast writes holds up to three times as much.
    pub memtable_bytes: u64,
    /// Bytes that all tables together gather in memory, at least 1 MiB. At half of it the tables
    /// that have gathered most are written out, and a batch that would go beyond it waits. A table
    /// that was not written to for a minute is written out, too.
    pub write_buffer_bytes: u64,
    /// Bytes that the tables in memory ([`schema::Table::is_in_memory`]) may take together. Writes
    /// beyond it are refused, and so is a directory whose tables need more. Deletions have an
    /// eighth more.
    pub resident_bytes: u64,
    /// The tasks, to which builds of secondary indexes are added.
    pub tasks: TaskRegistry,
    /// The turns on the processor, of which the committer takes those of writes.
    pub cpu_scheduler: CpuScheduler,
}

impl Default for StorageOptions {
    fn default() -> Self {
        StorageOptions {
            durability: Durability::Synced,
            cache_bytes: 256 << 20,
            max_write_bytes: 64 << 20,
            batch_bytes: 64 << 20,
            write_rows_bytes: 256 << 20,
            memtable_bytes: 64 << 20,
            write_buffer_bytes: 256 << 20,
            resident_bytes: 64 << 20,
            tasks: TaskRegistry::default(),
            cpu_scheduler: CpuScheduler::default(),
        }
    }
}

/// An error of the storage. The variant says whose fault it is.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StorageError {
    /// Another process holds the directory.
    #[error("{0}")]
    Locked(String),
    /// The directory was written by a newer version.
    #[error("{0}")]
    NewerFormat(String),
    /// The client requests something that can't be carried out: a key that is too long, a write
    /// that is too large, a list index out of bounds.
    #[error("{0}")]
    Invalid(String),
    /// A read has passed more tombstones than its bound ([`RowStream::stop_at_tombstones`]).
    #[error("scanned over {0} tombstones")]
    TooManyTombstones(u64),
    /// There is no such table; mostly it was dropped meanwhile.
    #[error("table {0} does not exist")]
    NoSuchTable(String),
    /// There is no such secondary index; mostly it was dropped meanwhile.
    #[error("there is no index {0} any more: send the statement again")]
    NoSuchIndex(String),
    /// The disk failed or is full. Reads go on; writes are refused until the disk takes them again.
    #[error("{0}")]
    ReadOnly(String),
    /// The data on disk is not what was written.
    #[error("{0}")]
    Corrupt(String),
    /// A file can't be read or made.
    #[error("{0}")]
    Io(String),
    /// The write did not begin within its limit of time, and is not carried out.
    #[error("the write has waited for too long, and was not carried out")]
    Late,
    /// The storage is shutting down.
    #[error("storage is closed")]
    Closed,
}

/// The reason why a schema change was not made.
#[derive(Debug)]
pub enum CatalogChangeError<E> {
    /// The closure refused the change with this error.
    Refused(E),
    /// The storage failed with this error.
    Storage(StorageError),
}

/// The health of the storage: whether it takes writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteAvailability {
    /// Reads and writes are taken.
    Writable,
    /// Reads are taken, writes are refused. The text gives the operator the reason.
    ReadOnly(String),
}

/// Figures for the operator. Counters begin at the start of the storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes of all files.
    pub disk_bytes: u64,
    /// Batches of the committer thread, failed ones included.
    pub batches: u64,
    /// Writes in all batches. Divided by `batches` they give the mean size of a batch.
    pub writes: u64,
    /// The time that all commits took together, in microseconds.
    pub commit_micros: u64,
    /// Deletions of partitions and ranges whose rows still have to be removed from the disk. Reads
    /// hide these rows already.
    pub sweeps_waiting: u64,
    /// Rows that were deleted at the time in their expiry column.
    pub rows_expired: u64,
    /// Range deletions that reads and writes had to look at: the cost of partitions with many of
    /// them.
    pub range_deletions_read: u64,
    /// Rows that were looked up by their keys, and not read in a range.
    pub rows_looked_up: u64,
    /// Bytes that the tables in memory take, those included that only readers still hold.
    pub resident_bytes: u64,
    /// Bytes of rows that wait in memory to be written out, those included that were written out
    /// and that only readers still hold.
    pub write_buffer_bytes: u64,
    /// The most bytes of rows that a batch of writes has taken along
    /// ([`StorageOptions::batch_bytes`]).
    pub batch_bytes_peak: u64,
    /// Elements of collections that the committer read, compared, moved or wrote by themselves.
    /// Bytes that are copied in one piece count nothing.
    pub elements_worked_on: u64,
    /// Overwritten versions and deleted keys that reads of this process had to pass: the cost of
    /// rows that are written again and again, until what is in memory is written out.
    pub versions_passed: u64,
    /// The lead of the storage's time over the machine's clock, after that clock was set back.
    /// Microseconds.
    pub clock_ahead_micros: i64,
    /// Bytes of journals that the start had to replay.
    pub replayed_bytes: u64,
}
