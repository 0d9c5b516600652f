//! A search of one index, and the reasons why it fails.

use super::returned::{ReturnedColumn, Source, TooManyBytes};
use crate::filter::RowFilter;
use crate::identity::Place;
use crate::keys::KeySchema;

/// The part of a search that a structure reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Query<'a> {
    /// The vector to look for.
    Vector(&'a [f32]),
    /// The tokens to look for, with spaces between.
    #[cfg(test)]
    Tokens(&'a str),
}

/// A search of an index.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The value to look for.
    pub query: Query<'a>,
    /// The most rows of the answer.
    pub limit: usize,
    /// The present, in seconds since the epoch. Rows that have expired by then are not found.
    pub now_s: u32,
    /// The filter that rows must satisfy.
    pub filter: Option<&'a RowFilter>,
    /// The columns whose values are wanted next to the keys; `None` if the answer shall not speak
    /// of any.
    pub returned: Option<&'a [ReturnedColumn]>,
    /// Whether the answer must be the true best rows, for sure.
    pub exact: bool,
    /// The key columns with their names in the answer; `None` for those that the index was made
    /// with.
    pub keys: Option<&'a KeySchema>,
}

/// The reason why a structure did not do what was requested.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StructureError {
    /// The query is none that the index can answer.
    #[error("{0}")]
    Query(String),
    /// The answer would be too large.
    #[error(transparent)]
    TooManyBytes(#[from] TooManyBytes),
    /// The index or its content is at fault.
    #[error("{0}")]
    Internal(String),
}

impl Search<'_> {
    /// Whether the answer says something of the values of filter columns.
    pub fn uses_filters(&self) -> bool {
        let mut returned = self.returned.unwrap_or_default().iter();
        self.filter.is_some_and(RowFilter::has_filter_columns)
            || returned.any(|column| matches!(column.source, Source::Kept(Place::Filter(_))))
    }

    /// Whether the answer has the values of the indexed column.
    pub fn returns_indexed(&self) -> bool {
        let mut returned = self.returned.unwrap_or_default().iter();
        returned.any(|column| column.source == Source::Indexed)
    }
}

#[cfg(test)]
impl<'a> Search<'a> {
    /// A search for the `limit` nearest of all rows, of which none has expired.
    pub fn new(query: &'a [f32], limit: usize) -> Search<'a> {
        Search::of(Query::Vector(query), limit)
    }

    /// A search for the `limit` best of all rows, of which none has expired.
    pub fn of(query: Query<'a>, limit: usize) -> Search<'a> {
        Search {
            query,
            limit,
            now_s: 0,
            filter: None,
            returned: None,
            exact: false,
            keys: None,
        }
    }
}
