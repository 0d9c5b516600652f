//! Searches of full-text indexes and their answers (contract, section 1.3).
//!
//! Each request has the query as `query`, or as `words`: the words as they are, without any
//! operator, which is no part of the contract. Nor are the routes `matches` and `scores`.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Filter, PrimaryKeys, SearchDebug};

/// `POST /api/v1/indexes/{keyspace}/{index}/bm25`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Bm25Request {
    /// The query, in the language of full-text queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// In place of `query`: words as they are, without operators. Any of them is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The most rows that are answered.
    #[serde(default = "one")]
    #[schema(value_type = usize, minimum = 1, default = 1)]
    pub limit: NonZeroUsize,
    /// The restrictions that the rows must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// Whether another index of the same column may answer in place of the one named. `true` if it
    /// is not given.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    #[schema(default = true)]
    pub routing: bool,
    /// The columns whose values are answered in addition to the key: columns that the index stores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_columns: Option<Vec<String>>,
    /// The write time, in microseconds since the epoch, up to which the answer must know all
    /// writes of the table. The search waits for that, and fails with `INDEX_BEHIND` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_time_us: Option<i64>,
    /// Whether an answer in JSON reports how the search was done.
    #[serde(default, skip_serializing_if = "is_no")]
    #[schema(default = false)]
    pub debug: bool,
}

impl Bm25Request {
    /// A search without restrictions for the `limit` best rows. A limit of 0 counts as 1.
    pub fn new(query: impl Into<String>, limit: usize) -> Bm25Request {
        Bm25Request {
            query: Some(query.into()),
            words: None,
            limit: NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN),
            filter: None,
            routing: true,
            return_columns: None,
            min_time_us: None,
            debug: false,
        }
    }
}

/// The rows found: element `i` of every array belongs to row `i`, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Bm25Response {
    /// An array of values for each column of the primary key.
    #[schema(value_type = BTreeMap<String, Vec<Value>>)]
    pub primary_keys: PrimaryKeys,
    /// The BM25 score of each row; higher is better.
    pub scores: Vec<f32>,
    /// An array of values for each of `return_columns`; null where a row has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column_values: Option<BTreeMap<String, Vec<Value>>>,
    /// How the search was done, if the request has `debug`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug: Option<SearchDebug>,
    /// Whether rows may be missing, as the index has had no room for some rows of the table.
    #[serde(default, skip_serializing_if = "is_no")]
    #[schema(default = false)]
    pub short: bool,
}

/// `POST /api/v1/indexes/{keyspace}/{index}/highlight`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HighlightRequest {
    /// The query, in the language of full-text queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// In place of `query`: words as they are, without operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The texts to mark up. A null has no words.
    pub documents: Vec<Option<String>>,
    /// The form of the excerpts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<HighlightForm>,
}

/// The form of the excerpts of a highlight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct HighlightForm {
    /// The most characters of an excerpt, without tags.
    pub max_num_chars: usize,
    /// The text before a word of the query.
    pub pre_tag: String,
    /// The text after a word of the query.
    pub post_tag: String,
}

impl Default for HighlightForm {
    fn default() -> HighlightForm {
        HighlightForm {
            max_num_chars: 150,
            pre_tag: "<b>".to_owned(),
            post_tag: "</b>".to_owned(),
        }
    }
}

/// The excerpts of a highlight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HighlightResponse {
    /// An excerpt of each document, in their order; null where no word of the query is in it.
    pub highlights: Vec<Option<String>>,
}

/// `POST /api/v1/indexes/{keyspace}/{index}/matches`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MatchesRequest {
    /// The query, in the language of full-text queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// In place of `query`: words as they are, without operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The most rows of the page.
    #[serde(default = "one")]
    #[schema(value_type = usize, minimum = 1, default = 1)]
    pub limit: NonZeroUsize,
    /// The restrictions that the rows must satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// `next` of the page before; none for the first page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The write time, in microseconds since the epoch, up to which the answer must know all
    /// writes of the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_time_us: Option<i64>,
}

/// A page of the rows that match, in an order of the index's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MatchesResponse {
    /// An array of values for each column of the primary key.
    #[schema(value_type = BTreeMap<String, Vec<Value>>)]
    pub primary_keys: PrimaryKeys,
    /// `after` of the next page; none if this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether rows may be missing, as the index has had no room for some rows of the table.
    #[serde(default, skip_serializing_if = "is_no")]
    #[schema(default = false)]
    pub short: bool,
}

/// `POST /api/v1/indexes/{keyspace}/{index}/scores`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScoresRequest {
    /// The query, in the language of full-text queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// In place of `query`: words as they are, without operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// The texts to score by the statistics of the index. A null matches nothing.
    pub texts: Vec<Option<String>>,
    /// The restrictions on the key of a local index, whose rows alone make up the statistics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
}

/// The scores of texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScoresResponse {
    /// The BM25 score of each text, in their order; null for one that does not match.
    pub scores: Vec<Option<f32>>,
}

fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

fn yes() -> bool {
    true
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_yes(routing: &bool) -> bool {
    *routing
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_no(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_search_has_the_shape_that_databases_send() {
        let request: Bm25Request = serde_json::from_str(r#"{"query":"quick fox"}"#).unwrap();
        assert_eq!(request, Bm25Request::new("quick fox", 1));
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(text, r#"{"query":"quick fox","limit":1}"#);
        assert!(serde_json::from_str::<Bm25Request>(r#"{"query":"x","limit":0}"#).is_err());
        let answer = r#"{"primary_keys":{"k":[7]},"scores":[1.5]}"#;
        let read: Bm25Response = serde_json::from_str(answer).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), answer);
    }

    #[test]
    fn the_form_of_excerpts_is_the_contracts_where_it_is_not_given() {
        let request = r#"{"query":"x","documents":["a",null],"options":{"pre_tag":"["}}"#;
        let request: HighlightRequest = serde_json::from_str(request).unwrap();
        assert_eq!(request.documents, [Some("a".to_owned()), None]);
        let form = request.options.unwrap();
        assert_eq!((form.max_num_chars, form.post_tag.as_str()), (150, "</b>"));
        assert_eq!(form.pre_tag, "[");
    }
}
