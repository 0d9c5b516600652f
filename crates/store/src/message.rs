//! The messages between the log of a table, the reads of its rows, and the indexes that take these
//! in.
//!
//! ```text
//!   the log --- HintMessage ---> re-reads --- Message ---> an index
//!                                   scan --- RowBatch ---> an index
//! ```

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::items::{InFlightRead, KnownRow, ValueHasher};
use crate::keys::{PartitionKey, PrimaryKey};
use crate::observed::ReadCell;

/// The number of hints that may wait. The log's readers wait when there is no more room.
pub(crate) const HINTS_MAX: usize = 4096;

/// The number of messages that may be in transit to an index. A re-read waits when there is no more
/// room.
pub(crate) const MESSAGES_MAX: usize = 4;

/// A change that the log names.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeHint {
    /// The rows to read.
    pub target: HintTarget,
    /// The timestamp of the log row, in microseconds since the epoch.
    pub noticed_us: Option<i64>,
}

/// The rows that a hint names.
#[derive(Clone, Debug, PartialEq)]
pub enum HintTarget {
    /// One row.
    Row(PrimaryKey),
    /// All rows of a partition.
    Partition(PartitionKey),
    /// The static columns of a partition: all its rows, for an index that filters by such a column.
    Static(PartitionKey),
}

/// A position that a run of a log's reader has reached. Later runs are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// The number of the run.
    pub run: u64,
    /// The time up to which the log has been handed over, in microseconds since the epoch.
    pub time_us: i64,
}

/// A message to the re-reader.
#[derive(Debug)]
pub enum HintMessage {
    /// A hint to read again.
    Hint(ChangeHint),
    /// A marker for one index, passed on to it once all hints before have been.
    Marker {
        /// The channel to the index that gets the marker.
        index: mpsc::WeakSender<IndexMessage>,
        /// The sender of the index's answer.
        answer: oneshot::Sender<()>,
    },
    /// A position, passed on to every index once all hints before have been.
    Position(LogPosition),
}

/// Rows of one read.
#[derive(Debug)]
pub struct RowBatch {
    /// The read, in flight until the rows have been taken in.
    pub issue: Arc<InFlightRead>,
    /// The rows by their keys, with the content of the columns that the index observes.
    pub rows: Vec<(PrimaryKey, ReadCell)>,
    /// The timestamps of the log rows, in microseconds since the epoch, if the log named the rows.
    pub noticed_us: Vec<i64>,
}

/// A message from the re-reads of a table to an index.
#[derive(Debug)]
pub enum IndexMessage {
    /// Rows that were read.
    Rows(RowBatch),
    /// The end of a read of all rows of a partition.
    PartitionEnd {
        /// The read.
        issue: Arc<InFlightRead>,
        /// The partition.
        partition: PartitionKey,
    },
    /// Requests the state of rows and the hash function of vectors, for a repair.
    Known {
        /// The keys of the rows.
        keys: Vec<PrimaryKey>,
        /// Receives the states, in the order of the keys.
        answer: oneshot::Sender<(Vec<Option<KnownRow>>, ValueHasher)>,
    },
    /// Is answered when everything that was sent before has been taken in.
    Marker(oneshot::Sender<()>),
    /// A position of the log. When everything that was sent before has been taken in, the index
    /// holds all that the log named up to it, if it began before that run of the reader did.
    Position(LogPosition),
}
