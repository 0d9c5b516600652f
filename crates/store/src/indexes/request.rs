//! A search of one index, and the reasons why it fails.

use full_text::TextQuery;

use super::returned::{RequestedColumn, TooManyBytes, ValueOrigin};
use crate::filter::SearchFilter;
use crate::identity::ColumnPlace;
use crate::keys::{KeySchema, RowPlace};

/// The part of a search that a structure reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StructureQuery<'a> {
    /// The vector to look for.
    Vector(&'a [f32]),
    /// The words of a query, by which the best texts are found.
    Words(&'a TextQuery),
    /// The words of a query, by which all texts that match are found, in the order of their rows'
    /// places.
    Matches {
        /// The query.
        query: &'a TextQuery,
        /// The place after which to begin; `None` for the first page.
        after: Option<&'a RowPlace>,
    },
}

/// A search of an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexSearch<'a> {
    /// The value to look for.
    pub query: StructureQuery<'a>,
    /// The most rows of the answer.
    pub limit: usize,
    /// The present, in seconds since the epoch. Rows that have expired by then are not found.
    pub now_s: u32,
    /// The filter that rows must satisfy.
    pub filter: Option<&'a SearchFilter>,
    /// The rows whose texts make up the statistics by which words are scored, in a local index;
    /// `None` for all rows. A search of vectors needs none.
    pub tenant: Option<&'a SearchFilter>,
    /// The columns whose values are wanted next to the keys; `None` if the answer shall not speak
    /// of any.
    pub returned: Option<&'a [RequestedColumn]>,
    /// Whether the answer must be the true best rows, for sure.
    pub exact: bool,
    /// The key columns with their names in the answer; `None` for those that the index was made
    /// with.
    pub keys: Option<&'a KeySchema>,
}

/// The reason why a structure did not do what was requested.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum StructureError {
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

impl IndexSearch<'_> {
    /// Whether the answer says something of the values of filter columns.
    pub(crate) fn uses_filters(&self) -> bool {
        let mut returned = self.returned.unwrap_or_default().iter();
        self.filter.is_some_and(SearchFilter::has_filter_columns)
            || returned
                .any(|column| matches!(column.source, ValueOrigin::Kept(ColumnPlace::Filter(_))))
    }

    /// Whether the answer has the values of the indexed column.
    pub(crate) fn returns_indexed(&self) -> bool {
        let mut returned = self.returned.unwrap_or_default().iter();
        returned.any(|column| column.source == ValueOrigin::Indexed)
    }
}

#[cfg(test)]
impl<'a> IndexSearch<'a> {
    /// A search for the `limit` nearest of all rows, of which none has expired.
    pub(crate) fn new(query: &'a [f32], limit: usize) -> IndexSearch<'a> {
        IndexSearch::of(StructureQuery::Vector(query), limit)
    }

    /// A search for the `limit` best of all rows, of which none has expired.
    pub(crate) fn of(query: StructureQuery<'a>, limit: usize) -> IndexSearch<'a> {
        IndexSearch {
            query,
            limit,
            now_s: 0,
            filter: None,
            tenant: None,
            returned: None,
            exact: false,
            keys: None,
        }
    }
}
