//! A search and its answer.

use std::fmt;
use std::num::NonZeroUsize;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

use super::Filter;

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
}

fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

/// The rows found: element `i` of every array belongs to row `i`, nearest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AnnResponse {
    /// An array of values for each column of the primary key.
    #[schema(value_type = std::collections::BTreeMap<String, Vec<Value>>)]
    pub primary_keys: PrimaryKeys,
    /// The distance of each row by the metric of the index; smaller is nearer.
    pub distances: Vec<f32>,
    /// The similarity score of each row; higher is nearer.
    pub similarity_scores: Vec<f32>,
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
        struct Columns;
        impl<'de> Visitor<'de> for Columns {
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
        deserializer.deserialize_map(Columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_defaults_to_one_and_is_never_zero() {
        let request: AnnRequest = serde_json::from_str(r#"{"vector":[1,2.5]}"#).unwrap();
        assert_eq!(request.limit.get(), 1);
        assert_eq!(request.filter, None);
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
    fn columns_keep_their_order() {
        let response = AnnResponse {
            primary_keys: PrimaryKeys(vec![
                ("z".into(), vec![1.into()]),
                ("a".into(), vec!["x".into()]),
            ]),
            distances: vec![0.5],
            similarity_scores: vec![0.75],
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
