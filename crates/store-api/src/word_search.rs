//! Searches of full-text indexes as a node or a gateway requests them, whose values are as CQL
//! serialises them.

use std::num::NonZeroUsize;

use bytes::Bytes;

use crate::KeyValue;
use crate::columns_predicate::ColumnsPredicate;

/// A search for the rows whose texts match a query best.
#[derive(Clone, Debug, PartialEq)]
pub struct WordSearch {
    /// The query, in the language of full-text queries.
    pub query: String,
    /// The most rows that are answered.
    pub limit: NonZeroUsize,
    /// The conditions on the rows, all of which must hold.
    pub predicates: Vec<ColumnsPredicate>,
    /// The columns outside of the key whose values are answered; `None` if rows are read for them.
    pub return_columns: Option<Vec<String>>,
    /// The write time, in microseconds since the epoch, up to which the answer must know all
    /// writes of the table.
    pub min_time_us: Option<i64>,
}

impl WordSearch {
    /// A search without conditions for the `limit` best rows. A limit of 0 counts as 1, as an
    /// answer has room for a row.
    pub fn new(query: impl Into<String>, limit: usize) -> WordSearch {
        WordSearch {
            query: query.into(),
            limit: NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN),
            predicates: Vec::new(),
            return_columns: None,
            min_time_us: None,
        }
    }
}

/// A request for a page of all rows whose texts match a query.
#[derive(Clone, Debug, PartialEq)]
pub struct WordMatches {
    /// The query, in the language of full-text queries.
    pub query: String,
    /// The conditions on the rows, all of which must hold.
    pub predicates: Vec<ColumnsPredicate>,
    /// The end of the page before, as its answer gave it; `None` for the first page.
    pub after: Option<Bytes>,
    /// The most rows of the page.
    pub limit: NonZeroUsize,
    /// The write time, in microseconds since the epoch, up to which the answer must know all
    /// writes of the table.
    pub min_time_us: Option<i64>,
}

impl WordMatches {
    /// A request for the first `limit` rows, without conditions. A limit of 0 counts as 1.
    pub fn new(query: impl Into<String>, limit: usize) -> WordMatches {
        WordMatches {
            query: query.into(),
            predicates: Vec::new(),
            after: None,
            limit: NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN),
            min_time_us: None,
        }
    }
}

/// A page of the rows whose texts match a query, in an order of the index's own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatchedRows {
    /// The primary key of each row: the values of its columns in the order of the key.
    pub keys: Vec<Vec<KeyValue>>,
    /// The end of the page, after which the next one goes on; `None` if this is the last.
    pub next: Option<Bytes>,
    /// Whether rows may be missing, as the index has had no room for some rows of the table.
    pub is_short: bool,
}
