//! The rows that a search reads, and what is made of them.

use std::hash::Hash;
use std::ops::Range;

use bytes::Bytes;
use store_api::{ClientError, KeyValue, NearestRows};

use super::definition::{SearchHit, SearchWarning, VectorOrdering};

/// The rows of some keys, as far as they were read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadRows<K, T> {
    /// The rows of the first keys, in their order; `None` for a row that is not there.
    pub rows: Vec<Option<T>>,
    /// The other keys, in their order. Their rows are read once those before them are put.
    pub unread: Vec<K>,
}

/// The rows of a step through the access path, with their keys.
pub type ScannedRows<R> = Result<
    Option<Vec<(<R as SearchedRows>::Key, <R as SearchedRows>::Row)>>,
    <R as SearchedRows>::Error,
>;

/// The column of a row that a search looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueOf {
    /// That of the search at this position of [`super::RowSearch::searches`].
    Search(usize),
    /// That of the condition at this position of [`super::RowSearch::words`].
    Condition(usize),
}

/// The rows of a table, and the answer that is made of them.
pub trait SearchedRows: Send + Sized {
    /// A primary key.
    type Key: Clone + Eq + Hash + Send + Sync;
    /// A row that was read.
    type Row: Send;
    /// A failure of a statement.
    type Error: Send;

    /// The most keys whose rows are read at a time.
    const KEYS_AT_ONCE: usize;

    /// The key that an index has sent; `None` if it is no key of the table.
    fn key(&self, sent: &[KeyValue]) -> Option<Self::Key>;

    /// Begins an answer, before an index is searched. Rows that were put before are dropped.
    fn begin(&mut self);

    /// Looks at the rows as they are now, after indexes were searched. `holds` says whether rows
    /// are held until all are read. Returns whether one of them may have got another value since,
    /// where the indexes knew the values before.
    ///
    /// # Errors
    /// Failures of the storage.
    fn open(&mut self, holds: bool) -> Result<bool, Self::Error>;

    /// Whether the row of a key, which was read before, is wanted; `None` if it has to be read.
    fn known(&self, _key: &Self::Key) -> Option<bool> {
        None
    }

    /// Reads the rows of keys: that of the first key at least, and no more than may be in memory
    /// together.
    ///
    /// # Errors
    /// Failures of the storage or of the cluster.
    fn read(
        &mut self,
        keys: Vec<Self::Key>,
    ) -> impl Future<Output = Result<ReadRows<Self::Key, Self::Row>, Self::Error>> + Send;

    /// Whether a row satisfies all of WHERE but words. Of one search, whether the row has a value
    /// in the searched column, too, where that is known.
    fn is_match(&self, row: &Self::Row) -> bool;

    /// Whether rows are read with the column that a search looks at.
    fn reads_value(&self, _of: ValueOf) -> bool {
        true
    }

    /// The serialised vector or text of a row; `None` if it has none, or is read without it.
    fn value<'r>(&self, row: &'r Self::Row, of: ValueOf) -> Option<&'r Bytes>;

    /// Takes the next row of the answer. There is a hit for each search, in their order.
    ///
    /// # Errors
    /// A row that makes no answer, and one for which there is no memory.
    fn put(&mut self, row: Self::Row, hits: &[SearchHit]) -> Result<(), Self::Error>;

    /// Whether the access path leads to few rows. `is_whole` says whether the index can search by
    /// all of WHERE.
    fn are_few(&self, is_whole: bool) -> bool;

    /// Reads all rows of the access path, for a single search for vectors without words in WHERE.
    /// Those that satisfy WHERE are put in the order of their stored vectors, from the first to the
    /// last position of the span, each with its hit.
    ///
    /// # Errors
    /// As [`SearchedRows::read`] and [`SearchedRows::put`].
    fn rank_all(
        &mut self,
        ordering: &VectorOrdering<'_>,
        span: Range<usize>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Reads the next rows of the access path, and returns those that satisfy WHERE but words, with
    /// their keys; `None` at its end. It begins again after [`SearchedRows::begin`]. No more rows
    /// are returned at a time than may be in memory together.
    ///
    /// # Errors
    /// As [`SearchedRows::read`].
    fn scan(&mut self) -> impl Future<Output = ScannedRows<Self>> + Send;

    /// Checks that the client may have an answer without rows.
    ///
    /// # Errors
    /// If it may not.
    fn permit(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Takes the values that indexes have answered with, at the positions of the span, as the
    /// whole answer. `hits` has those of each row in turn, one for each search. Returns false if
    /// rows have to be read.
    ///
    /// # Errors
    /// As [`SearchedRows::put`].
    fn put_values(
        &mut self,
        found: &NearestRows,
        hits: &[SearchHit],
        span: Range<usize>,
    ) -> Result<bool, Self::Error>;

    /// Takes a warning for the answer.
    fn warn(&mut self, warning: SearchWarning);

    /// The failure of the statement for one of the index.
    fn search_failed(&self, error: ClientError) -> Self::Error;
}
