//! A search as a value.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use cql::ast::ArithmeticOperation;
use index::CandidateRule;
use store_api::{ColumnsPredicate, CountedSearch, SearchCounts};

/// A search for the best rows that satisfy all conditions of WHERE.
#[derive(Clone, Debug)]
pub struct RowSearch<'a> {
    /// The searches of indexes. Those that the ranking does not name say only what they know of the
    /// rows.
    pub searches: Vec<IndexOrdering<'a>>,
    /// The way in which the searches make one order.
    pub ranking: SearchRanking,
    /// The number of rows that each search is requested for, where there are several; `None` for
    /// one search, which is requested for as many as the answer has.
    pub candidates: Option<usize>,
    /// The conditions of WHERE that an index may search by, those on words included.
    pub predicates: Vec<SearchPredicate>,
    /// The conditions of WHERE on words.
    pub words: Vec<WordCondition<'a>>,
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

/// An order of rows that an index names them in.
#[derive(Clone, Debug)]
pub enum IndexOrdering<'a> {
    /// By the similarity of vectors.
    Vector(VectorOrdering<'a>),
    /// By how well texts match words.
    Words(WordOrdering<'a>),
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

/// An ordering by how well the texts of a column match words.
#[derive(Clone, Debug)]
pub struct WordOrdering<'a> {
    /// The keyspace of the index.
    pub keyspace: &'a str,
    /// The name of the index.
    pub index: &'a str,
    /// The text of the query.
    pub query: String,
    /// The key columns of a local index. The rows that share their values make up its statistics.
    pub local_key: &'a [String],
}

/// A condition of WHERE that the text of a row matches words.
#[derive(Clone, Debug)]
pub struct WordCondition<'a> {
    /// The words, and the index on the texts.
    pub words: WordOrdering<'a>,
    /// The position of its form for an index in [`RowSearch::predicates`].
    pub predicate: usize,
}

/// The way in which searches make one order. A search is meant by its position in
/// [`RowSearch::searches`].
#[derive(Clone, Debug, PartialEq)]
pub enum SearchRanking {
    /// The order is that of the first search.
    Single,
    /// Rows come by the sums of the reciprocals of their ranks, the largest sum first.
    Reciprocal {
        /// The number that is added to each rank.
        constant: u32,
        /// The searches, with the factors of their parts of the sum.
        weights: Vec<(usize, f64)>,
    },
    /// Rows come by the values of an expression, the largest first.
    Expression(ScoreExpression),
}

/// An expression of scores.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreExpression {
    /// A number.
    Number(f64),
    /// The score that a search gives the row.
    Score(usize),
    /// A part with a minus sign before it.
    Negated(Box<ScoreExpression>),
    /// Two parts with an operator between them.
    Operation(
        ArithmeticOperation,
        Box<ScoreExpression>,
        Box<ScoreExpression>,
    ),
}

/// The knowledge that a search has of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SearchHit {
    /// The score; `None` if the search did not name the row.
    pub score: Option<f32>,
    /// The rank among the rows that it named, from 1; `None` if it did not name the row.
    pub rank: Option<u32>,
}

impl SearchHit {
    /// The hit of the row at a position of a search, from 0.
    pub fn at(position: usize, score: f32) -> SearchHit {
        SearchHit {
            score: Some(score),
            rank: u32::try_from(position + 1).ok(),
        }
    }
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

    /// The search, if it is the only one and its order is that of the answer.
    pub fn single(&self) -> Option<&IndexOrdering<'a>> {
        match (&self.searches[..], &self.ranking) {
            ([ordering], SearchRanking::Single) => Some(ordering),
            _ => None,
        }
    }

    /// The kind of the search, by which it is counted.
    pub(super) fn kind(&self) -> CountedSearch {
        match self.single() {
            Some(IndexOrdering::Vector(_)) => CountedSearch::Vector,
            Some(IndexOrdering::Words(_)) => CountedSearch::Text,
            None => CountedSearch::Hybrid,
        }
    }

    /// Counts the search as one whose answer may lack rows.
    pub(super) fn count_short(&self) {
        SearchCounts::of_process().was_short(self.kind());
    }

    /// Counts the search as one that requests more neighbours.
    pub(super) fn count_refilled(&self) {
        SearchCounts::of_process().was_refilled(self.kind());
    }

    /// Whether all rows are ranked in this case.
    pub(super) fn ranks(&self, case: RanksRows) -> bool {
        match (self.ranks_rows, case) {
            (RanksRows::Always, _) => true,
            (RanksRows::ForConditions, RanksRows::ForConditions) => self.conditions > 0,
            (RanksRows::ForConditions, RanksRows::Always) => false,
        }
    }

    /// The search for vectors, if it is the only search.
    pub(super) fn single_vector(&self) -> Option<&VectorOrdering<'a>> {
        match self.single()? {
            IndexOrdering::Vector(ordering) => Some(ordering),
            IndexOrdering::Words(_) => None,
        }
    }

    /// The number of rows to request from the index of a search, so that `count` are found.
    pub(super) fn wanted(ordering: &IndexOrdering<'_>, count: usize) -> usize {
        match ordering {
            IndexOrdering::Vector(ordering) => ordering.candidates.wanted(count),
            IndexOrdering::Words(_) => count,
        }
    }

    /// The conditions on the key of a local index of words, whose rows make up its statistics.
    pub(super) fn tenant(&self, words: &WordOrdering<'_>) -> Vec<ColumnsPredicate> {
        words.tenant(self.predicates.iter().map(|one| &one.predicate))
    }
}

impl WordOrdering<'_> {
    /// Those of the conditions that are on the key of a local index, whose rows make up its
    /// statistics; none for a global one.
    pub fn tenant<'p>(
        &self,
        predicates: impl Iterator<Item = &'p ColumnsPredicate>,
    ) -> Vec<ColumnsPredicate> {
        let is_of_key = |predicate: &ColumnsPredicate| {
            let columns = predicate.columns();
            let mut names = columns.iter();
            !columns.is_empty()
                && names.all(|name| self.local_key.iter().any(|key| key.as_str() == *name))
        };
        predicates.filter(|one| is_of_key(one)).cloned().collect()
    }
}

impl IndexOrdering<'_> {
    /// The keyspace and the name of the index.
    pub fn index(&self) -> (&str, &str) {
        match self {
            IndexOrdering::Vector(ordering) => (ordering.keyspace, ordering.index),
            IndexOrdering::Words(ordering) => (ordering.keyspace, ordering.index),
        }
    }
}

impl SearchRanking {
    /// Whether the ranking depends on the search at this position.
    pub fn depends_on(&self, search: usize) -> bool {
        match self {
            SearchRanking::Single => search == 0,
            SearchRanking::Reciprocal { weights, .. } => {
                weights.iter().any(|(named, _)| *named == search)
            }
            SearchRanking::Expression(expression) => expression.depends_on(search),
        }
    }
}

impl ScoreExpression {
    fn depends_on(&self, search: usize) -> bool {
        match self {
            ScoreExpression::Number(_) => false,
            ScoreExpression::Score(named) => *named == search,
            ScoreExpression::Negated(part) => part.depends_on(search),
            ScoreExpression::Operation(_, left, right) => {
                left.depends_on(search) || right.depends_on(search)
            }
        }
    }

    /// The value for a row; `score` is the score that a search gives it.
    pub(super) fn value(&self, score: &impl Fn(usize) -> f64) -> f64 {
        match self {
            ScoreExpression::Number(number) => *number,
            ScoreExpression::Score(search) => score(*search),
            ScoreExpression::Negated(part) => -part.value(score),
            ScoreExpression::Operation(operation, left, right) => {
                let (left, right) = (left.value(score), right.value(score));
                match operation {
                    ArithmeticOperation::Add => left + right,
                    ArithmeticOperation::Subtract => left - right,
                    ArithmeticOperation::Multiply => left * right,
                    ArithmeticOperation::Divide => left / right,
                    ArithmeticOperation::Modulo => left % right,
                }
            }
        }
    }
}
