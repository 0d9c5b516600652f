//! The interface between the index service and a database. The service reaches a database in no
//! other way.
//!
//! There are two implementations. Next to a cluster the service is a client that uses the official
//! libraries (`cluster`, in this crate). In the process of the database the same requests are calls
//! (the crate `embedded`); changes of the schema and rows of a log are pushed there, and not
//! polled. The rules below hold for both, so the arguments about an index (which reading of a row
//! wins, snapshots, repair) are made once.
//!
//! - *The schema*: [`SchemaFollower::changed`] returns which indexes there are, now and whenever
//!   they may be others.
//! - *A log*: [`SourceDatabase::follow`] hands on the keys that the log of a table names, in any
//!   order and maybe twice. It reports up to which time all of them have been handed on
//!   ([`LogRun::read_up_to`]). No row of the log may appear before such a time later. An
//!   implementation ensures that by waiting (a cluster's safety interval) or by a low-water mark.
//! - *Rows*: [`SourceTable`] reads a token range or a partition in pages, or rows by their keys. A
//!   read sees every write that was acknowledged before it was issued.

mod checked_files;
mod log;
mod native_index;
mod ranges;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clock::{Clock, SystemClock};
use uuid::Uuid;

pub use crate::identity::{
    FilterColumn, IndexIdentity, IndexName, IndexedColumnKind, StructureOptions, TableIdentity,
    TokenRange,
};
pub use crate::index_options::{full_text_options, is_text_type, vector_options};
pub use crate::keys::{EncodedValues, KeyColumn, KeySchema, PartitionKey, PrimaryKey, is_key_type};
pub use crate::message::{ChangeHint, HintTarget};
pub use crate::observed::{IndexableType, ObservedColumn, RawCell};
pub use crate::rows::{FetchedRow, RowReader};
pub use checked_files::CheckedFiles;
pub use log::LogRun;
pub(crate) use log::{CatchUp, ReaderProgress, ReaderSeries};
pub use native_index::DatabaseIndex;
pub use ranges::split;
pub use store_api::types::TableSize;

/// A database that has tables with indexes on vectors or texts.
#[async_trait]
pub trait SourceDatabase: Send + Sync + 'static {
    /// The clock that the times of logs go by. It is the machine's clock if the database has no
    /// clock of its own that this process can read.
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// The time by which that clock is ahead of the machine's clock, which was set back. `None` if
    /// it is the machine's clock.
    fn clock_lead(&self) -> Option<Duration> {
        None
    }

    /// The facts about the session to the database, by name; nothing if the database is in this
    /// process.
    fn session_counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// A view of the schema that follows its indexes.
    fn schema(&self) -> Box<dyn SchemaFollower>;

    /// Whether the schema has an index of that name which this service has to build, as far as is
    /// known at this moment. Never waits.
    fn has_index(&self, name: &IndexName) -> bool;

    /// Whether the schema still has this very index, and its table has not been truncated since, as
    /// far as is known at this moment. Never waits.
    fn is_current(&self, _index: &IndexIdentity) -> bool {
        true
    }

    /// Whether an index keeps the columns that the schema wants it to keep now, as far as is known
    /// at this moment. If not, it is about to be built again. Never waits.
    fn keeps_all(&self, _index: &IndexIdentity) -> bool {
        true
    }

    /// Whether a search reads the rows of the table where the index has had no room for some of
    /// them. That is right where rows are read by calls, and no other node holds them.
    fn reads_missing_rows(&self) -> bool {
        false
    }

    /// The identity of an index with the names that the columns of its table's key have now, as far
    /// as is known at this moment; `None` if they are those in `index`. A key column that gets
    /// another name leaves every row as it is, so the index stays the same one, and
    /// [`SchemaFollower::changed`] goes on with the former name. Never waits.
    fn renamed(&self, _index: &IndexIdentity) -> Option<IndexIdentity> {
        None
    }

    /// The index of that name that the database keeps itself, as far as is known at this moment.
    /// Never waits.
    fn database_index(&self, _name: &IndexName) -> Option<Arc<dyn DatabaseIndex>> {
        None
    }

    /// Reads facts about a table's log; `None` if the table has no log, or none any more.
    ///
    /// # Errors
    /// If the facts can't be known now. A missing answer is never replaced by a guess.
    async fn log(&self, table: &TableIdentity) -> anyhow::Result<Option<LogFacts>>;

    /// The end of a table's log, if it is known without asking.
    fn log_head(&self, table: &TableIdentity) -> Option<Arc<dyn LogHead>>;

    /// The names of the log readers, as metrics show them. Each of them follows every log.
    fn log_readers(&self) -> Vec<String>;

    /// Follows a log as the reader of that number, until the reading fails or the future is
    /// dropped.
    ///
    /// # Errors
    /// Any error that keeps the reader from going on. The caller starts again from where it was.
    async fn follow(&self, reader: usize, run: LogRun) -> anyhow::Result<()>;

    /// Makes a reader of these columns, with pages of about that many bytes.
    fn rows(&self, reader: &RowReader, page_bytes: usize) -> Arc<dyn SourceTable>;

    /// Splits a part of the ring so that each piece is on one set of nodes. Splits further until
    /// there are about `pieces_min` pieces for the whole ring.
    async fn pieces(
        &self,
        table: &TableIdentity,
        range: TokenRange,
        pieces_min: usize,
    ) -> Vec<Piece>;

    /// Reads all files of the database and checks their checksums; `None` if the files belong to
    /// another process. Calls `pass` with the number of bytes read. `pass` may wait to slow the
    /// reader down, and its result says whether to go on. Blocks.
    fn check_files(
        &self,
        _pass: &mut dyn FnMut(u64) -> bool,
    ) -> Option<anyhow::Result<CheckedFiles>> {
        None
    }

    /// The tables of users with their sizes; `None` if the files belong to another process.
    fn table_sizes(&self) -> Option<Vec<TableSize>> {
        None
    }

    /// The bytes of all files that [`SourceDatabase::check_files`] reads.
    fn file_bytes(&self) -> u64 {
        0
    }

    /// The nodes, each with its number of shards. A node without shards counts as one shard.
    async fn shards(&self) -> BTreeMap<Uuid, usize>;
}

/// A part of the ring, with the nodes that hold its rows.
pub type Piece = (TokenRange, BTreeSet<Uuid>);

/// A view of the indexes of a schema.
#[async_trait]
pub trait SchemaFollower: Send + Sync {
    /// Waits for the indexes of the schema. The first call returns them as soon as they are known,
    /// and each later call returns them when they may have changed. Dropping a call loses nothing.
    async fn changed(&mut self) -> DiscoveredIndexes;

    /// Requests the indexes once more, as not all of them could be taken in. The next call of
    /// [`SchemaFollower::changed`] returns them after a while.
    fn request_again(&mut self);

    /// The time of the last TRUNCATE of a table, in milliseconds since the epoch. `told_ms` is the
    /// time in the identity of the index, `saved_ms` the one in its snapshot. Where nodes know
    /// different times, and one that knew the latest may be away, the latest counts.
    fn truncated_ms(
        &mut self,
        table: Uuid,
        told_ms: Option<i64>,
        saved_ms: Option<i64>,
    ) -> Option<i64>;
}

/// The indexes of a schema.
#[derive(Clone, Debug, Default)]
pub struct DiscoveredIndexes {
    /// The indexes that can be built.
    pub indexes: BTreeMap<IndexName, IndexIdentity>,
    /// The indexes that can't be described yet. They count neither as new nor as dropped.
    pub unclear: HashSet<IndexName>,
}

/// Facts about a log.
///
/// The facts decide whether an index may go on from a snapshot, and are saved with it. So a missing
/// answer is never replaced by a guess. Without the id a log that was dropped and made again would
/// pass for the one before. With a wrong time to live a log that has lost rows would pass for a
/// complete one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFacts {
    /// The id of the table that is the log. It is another one after the log was dropped and made
    /// again.
    pub id: Uuid,
    /// The time for which rows of the log live, in seconds; 0 for ever.
    pub ttl_s: u64,
    /// A time since the epoch. No write that is made after the facts were requested has a log row
    /// at or before it. `None` if the database doesn't know; then the start of following a log goes
    /// by the clock.
    pub settled: Option<Duration>,
}

/// The end of a log.
pub trait LogHead: Send + Sync {
    /// The end of the log in microseconds since the epoch: no row of a write that is acknowledged
    /// by now has a later time. This is an atomic load.
    fn acknowledged_us(&self) -> i64;

    /// Makes each later write of the table wait for a moment, until the result is dropped. No write
    /// waits for ever.
    fn slow_writers(&self) -> Box<dyn Send>;
}

/// Reads rows of one table, with the same columns in every read.
#[async_trait]
pub trait SourceTable: Send + Sync {
    /// The table and the columns that are read.
    fn reader(&self) -> &RowReader;

    /// Reads a page of a part of the table, from its beginning or from the end of an earlier page.
    ///
    /// # Errors
    /// If the rows can't be read now.
    async fn page(&self, part: &TablePart, from: Option<Bytes>) -> anyhow::Result<RowPage>;

    /// Reads the rows of these keys, in any order. Keys without a row are left out.
    ///
    /// # Errors
    /// If the rows can't be read now.
    async fn by_key(&self, keys: &[PrimaryKey]) -> anyhow::Result<Vec<FetchedRow>>;

    /// The largest number of keys for one [`SourceTable::by_key`].
    fn keys_at_a_time(&self) -> usize;
}

/// A part of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TablePart {
    /// The partitions of a token range.
    Range(TokenRange),
    /// One partition.
    Partition(PartitionKey),
}

/// A page of rows.
#[derive(Clone, Debug)]
pub struct RowPage {
    /// The rows of the page.
    pub rows: Vec<FetchedRow>,
    /// The place where the next page begins; `None` after the last page.
    pub next: Option<Bytes>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A database that never answers.
    pub(crate) struct Silent;

    struct SilentRows(RowReader);

    #[async_trait]
    impl SourceDatabase for Silent {
        fn schema(&self) -> Box<dyn SchemaFollower> {
            unreachable!("nobody asks")
        }

        fn has_index(&self, _: &IndexName) -> bool {
            false
        }

        async fn log(&self, _: &TableIdentity) -> anyhow::Result<Option<LogFacts>> {
            std::future::pending().await
        }

        fn log_head(&self, _: &TableIdentity) -> Option<Arc<dyn LogHead>> {
            None
        }

        fn log_readers(&self) -> Vec<String> {
            Vec::new()
        }

        async fn follow(&self, _: usize, _: LogRun) -> anyhow::Result<()> {
            std::future::pending().await
        }

        fn rows(&self, reader: &RowReader, _: usize) -> Arc<dyn SourceTable> {
            Arc::new(SilentRows(reader.clone()))
        }

        async fn pieces(&self, _: &TableIdentity, _: TokenRange, _: usize) -> Vec<Piece> {
            std::future::pending().await
        }

        async fn shards(&self) -> BTreeMap<Uuid, usize> {
            std::future::pending().await
        }
    }

    #[async_trait]
    impl SourceTable for SilentRows {
        fn reader(&self) -> &RowReader {
            &self.0
        }

        async fn page(&self, _: &TablePart, _: Option<Bytes>) -> anyhow::Result<RowPage> {
            std::future::pending().await
        }

        async fn by_key(&self, _: &[PrimaryKey]) -> anyhow::Result<Vec<FetchedRow>> {
            std::future::pending().await
        }

        fn keys_at_a_time(&self) -> usize {
            1
        }
    }
}
