//! A search, whichever way it came.

use std::num::NonZeroUsize;

use bytes::Bytes;
use store_api::types::{AnnRequest, Filter};
use store_api::{ColumnsPredicate, VectorSearch, WordMatches, WordSearch};

use crate::filter::{SearchRequirements, values_of};
use crate::identity::StructureClass;

/// A search of a client elsewhere, or of a node in this process.
#[derive(Debug)]
pub(crate) struct ReceivedSearch {
    /// The value to look for.
    pub subject: SearchSubject,
    /// The most rows that are answered.
    pub limit: NonZeroUsize,
    /// The conditions of a request by HTTP, with their values in JSON.
    pub filter: Option<Filter>,
    /// The conditions of a node in this process, whose values are as CQL serialises them.
    pub predicates: Vec<ColumnsPredicate>,
    /// Whether another index of the same column may answer in place of the one named.
    pub routing: bool,
    /// Whether no rows are looked for, but the statistics of the index.
    pub is_without_rows: bool,
    /// The columns whose values are answered in addition to the key.
    pub return_columns: Option<Vec<String>>,
    /// The write time up to which the answer must know all writes of the table.
    pub min_time_us: Option<i64>,
    /// Whether the answer must be the true best rows.
    pub exact: bool,
    /// Whether the answer reports how the search was done.
    pub debug: bool,
}

/// The value that a search looks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SearchSubject {
    /// The rows nearest to a vector.
    Vector(Vec<f32>),
    /// The rows whose texts match a query best.
    Words(String),
    /// All rows whose texts match a query, page by page.
    Matches {
        /// The query.
        query: String,
        /// The end of the page before.
        after: Option<Bytes>,
    },
}

impl SearchSubject {
    /// The class of the indexes that have such values.
    pub(crate) fn class(&self) -> StructureClass {
        match self {
            SearchSubject::Vector(_) => StructureClass::Vector,
            SearchSubject::Words(_) | SearchSubject::Matches { .. } => StructureClass::FullText,
        }
    }
}

impl ReceivedSearch {
    /// A search without conditions.
    pub(crate) fn new(subject: SearchSubject, limit: NonZeroUsize) -> ReceivedSearch {
        ReceivedSearch {
            subject,
            limit,
            filter: None,
            predicates: Vec::new(),
            routing: true,
            is_without_rows: false,
            return_columns: None,
            min_time_us: None,
            exact: false,
            debug: false,
        }
    }

    /// The number of values in the conditions.
    pub(crate) fn values(&self) -> usize {
        let of_request = self.filter.as_ref().map_or(0, values_of);
        let of_predicates = self.predicates.iter().map(ColumnsPredicate::values);
        of_request + of_predicates.sum::<usize>()
    }

    /// The columns that the search needs of an index.
    pub(crate) fn requirements(&self) -> SearchRequirements<'_> {
        let by_filter =
            SearchRequirements::by(self.filter.as_ref(), self.return_columns.as_deref());
        SearchRequirements {
            is_for_one: !self.routing,
            is_without_rows: self.is_without_rows,
            ..by_filter.and(&self.predicates)
        }
    }
}

impl From<AnnRequest> for ReceivedSearch {
    fn from(request: AnnRequest) -> ReceivedSearch {
        let AnnRequest {
            vector,
            limit,
            filter,
            routing,
            return_columns,
            min_time_us,
            exact,
            debug,
        } = request;
        ReceivedSearch {
            filter,
            routing,
            return_columns,
            min_time_us,
            exact,
            debug,
            ..ReceivedSearch::new(SearchSubject::Vector(vector), limit)
        }
    }
}

impl From<VectorSearch> for ReceivedSearch {
    fn from(search: VectorSearch) -> ReceivedSearch {
        let VectorSearch {
            vector,
            limit,
            predicates,
            return_columns,
            min_time_us,
            exact,
        } = search;
        ReceivedSearch {
            predicates,
            return_columns,
            min_time_us,
            exact,
            ..ReceivedSearch::new(SearchSubject::Vector(vector), limit)
        }
    }
}

impl From<WordSearch> for ReceivedSearch {
    fn from(search: WordSearch) -> ReceivedSearch {
        let WordSearch {
            query,
            limit,
            predicates,
            return_columns,
            min_time_us,
        } = search;
        ReceivedSearch {
            predicates,
            return_columns,
            min_time_us,
            ..ReceivedSearch::new(SearchSubject::Words(query), limit)
        }
    }
}

impl From<WordMatches> for ReceivedSearch {
    fn from(search: WordMatches) -> ReceivedSearch {
        let WordMatches {
            query,
            predicates,
            after,
            limit,
            min_time_us,
        } = search;
        ReceivedSearch {
            predicates,
            min_time_us,
            ..ReceivedSearch::new(SearchSubject::Matches { query, after }, limit)
        }
    }
}
