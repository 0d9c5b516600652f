//! A search and its answer.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Filter, SearchDebug};

/// The name of the header, of value `true`, of each answer to an `exact` search. A service that
/// does not know such searches would answer without it, as it passes over the field.
pub const EXACT_HEADER: &str = "x-annulus-exact";

/// The name of the header, of value `true`, of each answer that may lack rows, as the index has had
/// no room for some. JSON has the field `short` for it, too.
pub const SHORT_HEADER: &str = "x-annulus-short";

/// `POST /api/v1/indexes/{keyspace}/{index}/ann`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AnnRequest {
    /// The query vector: as many elements as the index has dimensions, all finite.
    pub vector: Vec<f32>,
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
    /// The columns whose values are answered in addition to the key: columns that the index stores,
    /// and the indexed column itself, whose vectors come at the precision of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_columns: Option<Vec<String>>,
    /// The write time, in microseconds since the epoch, up to which the answer must know all
    /// writes of the table. The search waits for that, and fails with `INDEX_BEHIND` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_time_us: Option<i64>,
    /// Whether the answer must be the true nearest rows, by the vectors in the form that the index
    /// holds. Such a search looks at all rows that the filter admits, and takes longer.
    #[serde(default, skip_serializing_if = "is_no")]
    #[schema(default = false)]
    pub exact: bool,
    /// Whether an answer in JSON reports how the search was done.
    #[serde(default, skip_serializing_if = "is_no")]
    #[schema(default = false)]
    pub debug: bool,
}

impl AnnRequest {
    /// A search without restrictions for the `limit` nearest rows of a vector. A limit of 0 counts
    /// as 1, as an answer has room for a row.
    pub fn new(vector: Vec<f32>, limit: usize) -> AnnRequest {
        AnnRequest {
            vector,
            limit: NonZeroUsize::new(limit).unwrap_or(NonZeroUsize::MIN),
            filter: None,
            routing: true,
            return_columns: None,
            min_time_us: None,
            exact: false,
            debug: false,
        }
    }
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

/// The rows found: element `i` of every array belongs to row `i`, nearest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AnnResponse {
    /// An array of values for each column of the primary key.
    #[schema(value_type = BTreeMap<String, Vec<Value>>)]
    pub primary_keys: PrimaryKeys,
    /// The distance of each row by the metric of the index; smaller is nearer.
    pub distances: Vec<f32>,
    /// The similarity score of each row; higher is nearer.
    pub similarity_scores: Vec<f32>,
    /// An array of values for each of `return_columns`; null where a row has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column_values: Option<BTreeMap<String, Vec<Value>>>,
    /// How the search was done, if the request has `debug`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debug: Option<SearchDebug>,
    /// Whether rows may be missing, as the index has had no room for some rows of the table.
    /// `rows_without_room` of its status counts them.
    #[serde(default, skip_serializing_if = "is_no")]
    #[schema(default = false)]
    pub short: bool,
}

/// Primary keys by column, in the order of the key. On the wire they are a JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PrimaryKeys(pub Vec<(String, Vec<Value>)>);

impl PrimaryKeys {
    /// Removes a column and returns its values; `None` if there is no such column.
    pub fn take(&mut self, column: &str) -> Option<Vec<Value>> {
        let at = self.0.iter().position(|(name, _)| name == column)?;
        Some(self.0.swap_remove(at).1)
    }
}

impl Serialize for PrimaryKeys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (column, values) in &self.0 {
            map.serialize_entry(column, values)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for PrimaryKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PrimaryKeys, D::Error> {
        struct ColumnsVisitor;
        impl<'de> Visitor<'de> for ColumnsVisitor {
            type Value = PrimaryKeys;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of arrays")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PrimaryKeys, A::Error> {
                let mut columns = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    columns.push(entry);
                }
                Ok(PrimaryKeys(columns))
            }
        }
        deserializer.deserialize_map(ColumnsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_defaults_to_one_and_is_never_zero() {
        let request: AnnRequest = serde_json::from_str(r#"{"vector":[1,2.5]}"#).unwrap();
        assert_eq!(request.limit.get(), 1);
        assert_eq!(request, AnnRequest::new(vec![1.0, 2.5], 1));
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(text, r#"{"vector":[1.0,2.5],"limit":1}"#);
        for body in [
            r#"{"vector":[1],"limit":0}"#,
            r#"{"vector":[1],"limit":-1}"#,
            r#"{"vector":[1],"limit":1.5}"#,
            r#"{"limit":1}"#,
            r#"{"vector":[null]}"#,
        ] {
            assert!(serde_json::from_str::<AnnRequest>(body).is_err(), "{body}");
        }
    }

    #[test]
    fn an_exact_search_is_asked_for_by_its_field() {
        let request: AnnRequest = serde_json::from_str(r#"{"vector":[1],"exact":true}"#).unwrap();
        let exact = AnnRequest {
            exact: true,
            ..AnnRequest::new(vec![1.0], 1)
        };
        assert_eq!(request, exact);
        let text = serde_json::to_string(&exact).unwrap();
        assert_eq!(text, r#"{"vector":[1.0],"limit":1,"exact":true}"#);
        for body in [
            r#"{"vector":[1],"exact":null}"#,
            r#"{"vector":[1],"exact":"true"}"#,
            r#"{"vector":[1],"exact":1}"#,
        ] {
            assert!(serde_json::from_str::<AnnRequest>(body).is_err(), "{body}");
        }
    }

    #[test]
    fn columns_keep_their_order() {
        let response = AnnResponse {
            primary_keys: PrimaryKeys(vec![
                ("z".into(), vec![1.into()]),
                ("a".into(), vec!["x".into()]),
            ]),
            distances: vec![0.5],
            similarity_scores: vec![0.75],
            column_values: None,
            debug: None,
            short: false,
        };
        let text = serde_json::to_string(&response).unwrap();
        assert_eq!(
            text,
            r#"{"primary_keys":{"z":[1],"a":["x"]},"distances":[0.5],"similarity_scores":[0.75]}"#
        );
        assert_eq!(
            serde_json::from_str::<AnnResponse>(&text).unwrap(),
            response
        );
    }
}
