//! The body of a search.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::http::failure::HttpFailure;

/// The rows of an answer to a search that names no limit.
const LIMIT_DEFAULT: u32 = 10;

/// A search, or several.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowSearchBody<'b> {
    /// The vector to look for.
    #[serde(borrow)]
    pub vector: Option<&'b RawValue>,
    /// The column of vectors, where a table has several.
    pub column: Option<String>,
    /// Words to look for, as a user typed them.
    pub text: Option<String>,
    /// A query for words, with its operators.
    pub query: Option<String>,
    /// The column of texts, where a table has several.
    pub text_column: Option<String>,
    /// The primary key of a row whose vector or text is looked for.
    #[serde(borrow)]
    pub row: Option<BTreeMap<String, &'b RawValue>>,
    /// Several queries that make one order.
    #[serde(default, borrow)]
    pub queries: Vec<QueryBody<'b>>,
    /// The way in which several queries make one order.
    pub rank: Option<RankBody>,
    /// Conditions on rows.
    #[serde(borrow)]
    pub filter: Option<&'b RawValue>,
    /// Whether conditions may be on columns that no index has the values of.
    #[serde(default)]
    pub allow_filtering: bool,
    /// The columns of the answer's rows.
    pub columns: Option<Vec<String>>,
    /// Whether rows have their vectors, or the names of columns of vectors that they have.
    pub with_vector: Option<WithVector>,
    pub limit: Option<u32>,
    #[serde(default)]
    pub offset: u32,
    /// The least score of a row.
    pub score_threshold: Option<f64>,
    /// The columns by whose values found rows are counted.
    #[serde(default)]
    pub counts: Vec<String>,
    /// The number of the best rows that are counted.
    pub among: Option<u32>,
    /// Whether the answer says why a row is where it is.
    #[serde(default)]
    pub explain: bool,
    /// Whether the nearest rows must be the true ones.
    #[serde(default)]
    pub exact: bool,
    /// Several searches, in place of all else.
    #[serde(borrow)]
    searches: Option<Vec<RowSearchBody<'b>>>,
}

/// One of several queries that make one order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QueryBody<'b> {
    #[serde(borrow)]
    pub vector: Option<&'b RawValue>,
    pub text: Option<String>,
    pub query: Option<String>,
    #[serde(borrow)]
    pub row: Option<BTreeMap<String, &'b RawValue>>,
    pub column: Option<String>,
    /// The factor of the query's part of the order.
    pub weight: Option<f64>,
    /// The least score of a row by this query.
    pub score_threshold: Option<f64>,
}

/// The way in which several queries make one order.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct RankBody {
    #[serde(default)]
    pub by: RankedBy,
    /// The number that is added to each rank.
    pub constant: Option<u32>,
    /// The number of rows that each query is requested for.
    pub candidates: Option<u32>,
}

/// The measure of the order of several queries.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum RankedBy {
    /// The sum of the reciprocals of ranks.
    #[default]
    Rrf,
    /// The sum of scores.
    Score,
}

/// The vectors that rows have.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(untagged)]
pub(super) enum WithVector {
    /// All, or none.
    All(bool),
    /// Those of these columns.
    Columns(Vec<String>),
}

impl<'b> RowSearchBody<'b> {
    /// The searches of a request for several.
    ///
    /// # Errors
    /// If there is a search next to them, or one of them has several itself.
    pub fn several(&self) -> Result<Option<&[RowSearchBody<'b>]>, HttpFailure> {
        let Some(searches) = &self.searches else {
            return Ok(None);
        };
        let has_own = |one: &RowSearchBody<'_>| {
            one.vector.is_some()
                || one.text.is_some()
                || one.query.is_some()
                || one.row.is_some()
                || !one.queries.is_empty()
                || one.filter.is_some()
        };
        if has_own(self) || searches.iter().any(|one| one.searches.is_some()) {
            return Err(HttpFailure::bad_request(
                "searches goes with no other search, nor within another",
                "put each search into the list",
            ));
        }
        Ok(Some(searches))
    }

    /// The number of rows of the answer.
    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or(LIMIT_DEFAULT)
    }
}
