//! A search as a value.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use index::CandidateRule;
use store_api::ColumnsPredicate;

/// A search for the nearest rows that satisfy all conditions of WHERE.
#[derive(Clone, Debug)]
pub struct RowSearch<'a> {
    /// The orderings of the rows. The answers to several are merged by the ranks of their rows.
    pub orderings: Vec<VectorOrdering<'a>>,
    /// The conditions of WHERE that an index may search by.
    pub predicates: Vec<SearchPredicate>,
    /// The number of all conditions of WHERE, for which each row is checked.
    pub conditions: usize,
    /// The number of rows to return at most.
    pub limit: usize,
    /// The place in the order from which the answer goes on.
    pub cursor: SearchCursor,
    /// The writes that the answer must know.
    pub freshness: SearchFreshness,
    /// The columns outside of the key whose values make up an answer without rows; `None` if rows
    /// are read in any case.
    pub returned: Option<Vec<String>>,
    /// The cases in which all rows of the access path are ranked.
    pub ranks_rows: RanksRows,
}

/// An ordering by the similarity of a column's vectors to one vector.
#[derive(Clone, Debug)]
pub struct VectorOrdering<'a> {
    /// The keyspace of the index.
    pub keyspace: &'a str,
    /// The name of the index.
    pub index: &'a str,
    /// The vector to look for, serialised.
    pub vector: Bytes,
    /// The number of candidates to request, and whether they are put in order again.
    pub candidates: &'a CandidateRule,
    /// Whether the answer must be the true nearest rows.
    pub exact: bool,
}

/// A condition of WHERE that an index may search by.
#[derive(Clone, Debug)]
pub struct SearchPredicate {
    /// The condition.
    pub predicate: ColumnsPredicate,
    /// Whether the index names the columns, or they are of the primary key. An index may keep
    /// others as they have an index of their own, but need not do so yet.
    pub is_named: bool,
}

/// A place in the order of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchCursor {
    /// The number of rows that were returned before.
    pub passed: usize,
}

/// The writes that the answer to a search must know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchFreshness {
    /// The time of the newest of them, in microseconds since the epoch; `None` if there is none to
    /// wait for.
    pub newest_us: Option<i64>,
    /// The longest time to wait until the index knows it.
    pub wait: Duration,
    /// Whether an index that does not know it by then answers with what it knows.
    pub may_be_stale: bool,
}

/// The cases in which all rows of the access path are ranked by their stored vectors, as an index
/// can't name enough of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RanksRows {
    /// The index has had no room for some rows, or too few of those that it can name are there.
    Always,
    /// WHERE leaves out too many of the rows that the index can name.
    ForConditions,
}

/// A warning with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchWarning {
    /// The answer may lack the newest writes.
    Stale,
    /// The answer may lack rows which have had no room in the index.
    NoRoom,
    /// The answer is short although the index may know more rows.
    FewRows,
}

impl SearchWarning {
    /// The text for the client.
    pub fn text(self) -> &'static str {
        match self {
            SearchWarning::Stale => {
                "The vector index has not taken up the newest writes through this gateway yet, so the answer may lack \
                 them."
            }
            SearchWarning::NoRoom => {
                "The vector index has had no room for some rows of the table, so the answer may lack them: give the index \
                 service more memory or disk, or drop an index."
            }
            SearchWarning::FewRows => {
                "The answer has fewer rows than LIMIT: the 100000 nearest that the vector index names are \
                 mostly deleted, and it has not taken up the deletions yet. The query gives more rows once it has."
            }
        }
    }
}

impl<'a> RowSearch<'a> {
    /// The positions of the answer's rows in the order of the search.
    pub fn span(&self) -> Range<usize> {
        self.cursor.passed..self.cursor.passed.saturating_add(self.limit)
    }

    /// The ordering, if it is a single one.
    pub(super) fn single(&self) -> Option<&VectorOrdering<'a>> {
        match &self.orderings[..] {
            [ordering] => Some(ordering),
            _ => None,
        }
    }

    /// The number of candidates to request from each index at first.
    pub(super) fn wanted(&self) -> usize {
        let count = self.span().end;
        let orderings = self.orderings.iter();
        let wanted = orderings.map(|ordering| ordering.candidates.wanted(count));
        wanted.max().unwrap_or(count)
    }
}
