//! What the index service needs of a database: one seam, and nothing goes round it.
//!
//! Two things stand behind it. The service beside a cluster is a client of the official libraries (`cluster`, in this
//! crate). In the process of the database the same questions are calls (the crate `embedded`), and what a client has to ask
//! for again and again is told: changes of the schema, and rows of a log. What is said here holds for both, so all that
//! is argued about an index (which reading of a row stands, snapshots, repair) is argued once.
//!
//! - *The schema*: [`Schema::changed`] tells which indexes there are, now and whenever they may be others.
//! - *A log*: [`Database::follow`] hands on what the log of a table names, in any order and maybe twice, and says up to
//!   which time all of it has been handed on ([`LogRun::read_up_to`]). No row of the log may come to lie before
//!   such a time later: whoever implements this has to see to it, by waiting (a cluster's safety interval) or by a
//!   low-water mark.
//! - *Rows*: [`Rows`] reads a token range or a partition in pages, or rows by their keys. What has been acknowledged
//!   before a read is asked for is seen by it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use clock::{Clock, SystemClock};
use uuid::Uuid;

pub use crate::aside::aside;
pub use crate::cdc::LogRun;
pub use crate::identity::{IndexIdentity, IndexName, TableIdentity, TokenRange, VectorOptions};
pub use crate::index_options::vector_options;
pub use crate::keys::{KeyColumn, KeySchema, PartitionKey, PrimaryKey, Values, is_key_type};
pub use crate::reread::{Hint, HintTarget};
pub use crate::rows::{RawCell, ReadRow, RowReader, VectorColumn};
pub use crate::scan::ranges::split;
pub use crate::scrub::CheckedFiles;

/// A database that has tables with vector indexes.
#[async_trait]
pub trait Database: Send + Sync + 'static {
    /// The clock that the times of logs go by: the machine's, where the database has none of its own that this process can
    /// see.
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// How far that is ahead of the machine's clock, which was set back; nothing where it is that clock.
    fn clock_lead(&self) -> Option<Duration> {
        None
    }

    /// The way to its schema, as far as indexes go.
    fn schema(&self) -> Box<dyn Schema>;

    /// Whether the schema has an index of that name which is to be built here, as far as is known at this moment. Never
    /// waits.
    fn has_index(&self, name: &IndexName) -> bool;

    /// Facts about a table's log; none if it has none, or no longer.
    ///
    /// # Errors
    /// If it can't be known now. Nothing takes the place of an answer that did not come.
    async fn log(&self, table: &TableIdentity) -> anyhow::Result<Option<LogFacts>>;

    /// How far the log of a table goes, where that is known without asking.
    fn log_head(&self, table: &TableIdentity) -> Option<Arc<dyn LogHead>>;

    /// The names of those who follow each log beside each other, as metrics show them.
    fn log_readers(&self) -> Vec<String>;

    /// Follows a log as the reader of that number, until that fails or is given up.
    ///
    /// # Errors
    /// Whatever keeps it from going on. It is begun anew then, from where it was.
    async fn follow(&self, reader: usize, run: LogRun) -> anyhow::Result<()>;

    /// What reads these columns, in pages of about that many bytes.
    fn rows(&self, reader: &RowReader, page_bytes: usize) -> Arc<dyn Rows>;

    /// Splits a part of the ring so that each piece lies on one set of nodes, and further until there are about
    /// `pieces_min` pieces of the whole ring.
    async fn pieces(
        &self,
        table: &TableIdentity,
        range: TokenRange,
        pieces_min: usize,
    ) -> Vec<Piece>;

    /// Reads all files of the database and checks their checksums; nothing if they are not this process's own. `pass` hears
    /// of the bytes read, holds the reader back, and says whether to go on. Blocks.
    fn check_files(
        &self,
        _pass: &mut dyn FnMut(u64) -> bool,
    ) -> Option<anyhow::Result<CheckedFiles>> {
        None
    }

    /// Bytes of those files.
    fn file_bytes(&self) -> u64 {
        0
    }

    /// The nodes, and how many shards each of them has; one that has none counts as one.
    async fn shards(&self) -> BTreeMap<Uuid, usize>;
}

/// A part of the ring, and the nodes that hold its rows.
pub type Piece = (TokenRange, BTreeSet<Uuid>);

/// The indexes of a schema, followed.
#[async_trait]
pub trait Schema: Send + Sync {
    /// The indexes that there are: at the first call as soon as that is known, then whenever they may be others. A call
    /// that is given up loses nothing.
    async fn changed(&mut self) -> Discovered;

    /// Not all of what was told could be taken in: the next call tells it once more, after a while.
    fn tell_again(&mut self);

    /// When a table was last truncated, milliseconds since the epoch. `told_ms`: as an identity says; `saved_ms`: as a
    /// snapshot does. Where nodes know different times, and one that knew the latest may be away, the latest counts.
    fn truncated_ms(
        &mut self,
        table: Uuid,
        told_ms: Option<i64>,
        saved_ms: Option<i64>,
    ) -> Option<i64>;
}

/// The indexes of a schema.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// Those that can be built.
    pub indexes: BTreeMap<IndexName, IndexIdentity>,
    /// Those that can't be described yet: neither new nor gone.
    pub unclear: HashSet<IndexName>,
}

/// Facts about a log.
///
/// They decide whether a snapshot may be gone on from, and what is saved as such, so nothing takes the place of
/// an answer that did not come: without the id a log that was made anew would pass for the one of before, and with a
/// wrong time to live one that has lost rows for one that has all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFacts {
    /// The id of the table that is the log: another one after it was dropped and made again.
    pub id: Uuid,
    /// How long its rows live, seconds; 0: for ever.
    pub ttl_s: u64,
    /// No write that is made after this was asked for has a row at or before this time, since the epoch. Where the database
    /// can't say, whoever begins to follow the log goes by the clock.
    pub settled: Option<Duration>,
}

/// How far a log goes.
pub trait LogHead: Send + Sync {
    /// No row of a write that has been acknowledged by now has a later time in the log. Microseconds since the epoch. An
    /// atomic load.
    fn acknowledged_us(&self) -> i64;
}

/// Reads rows of one table: the same columns in every read.
#[async_trait]
pub trait Rows: Send + Sync {
    /// What is read.
    fn reader(&self) -> &RowReader;

    /// Rows of a part of the table, from its begin or from where a page before ended.
    ///
    /// # Errors
    /// If they can't be read now.
    async fn page(&self, part: &Part, from: Option<Bytes>) -> anyhow::Result<Page>;

    /// The rows of these keys that there are, in any order.
    ///
    /// # Errors
    /// If they can't be read now.
    async fn by_key(&self, keys: &[PrimaryKey]) -> anyhow::Result<Vec<ReadRow>>;

    /// How many keys [`Rows::by_key`] is to be given at most.
    fn keys_at_a_time(&self) -> usize;
}

/// A part of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The partitions of a token range.
    Range(TokenRange),
    /// One partition.
    Partition(PartitionKey),
}

/// Some rows.
#[derive(Clone, Debug)]
pub struct Page {
    /// The rows.
    pub rows: Vec<ReadRow>,
    /// Where the next page begins; nothing behind the last one.
    pub next: Option<Bytes>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A database that never answers.
    pub(crate) struct Silent;

    struct SilentRows(RowReader);

    #[async_trait]
    impl Database for Silent {
        fn schema(&self) -> Box<dyn Schema> {
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

        fn rows(&self, reader: &RowReader, _: usize) -> Arc<dyn Rows> {
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
    impl Rows for SilentRows {
        fn reader(&self) -> &RowReader {
            &self.0
        }

        async fn page(&self, _: &Part, _: Option<Bytes>) -> anyhow::Result<Page> {
            std::future::pending().await
        }

        async fn by_key(&self, _: &[PrimaryKey]) -> anyhow::Result<Vec<ReadRow>> {
            std::future::pending().await
        }

        fn keys_at_a_time(&self) -> usize {
            1
        }
    }
}
