//! Writes searches and reads answers by HTTP: as JSON, or in the binary form of
//! [`store_api::binary`].

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum;
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use store_api::binary::{self, ANSWER_MEDIA_TYPE, AnswerRows, SEARCH_MEDIA_TYPE};

use super::SearchQueries;
use crate::load::RequestFailure;

/// The number of the type `bigint` in the native protocol.
pub const BIGINT: u16 = 0x02;
/// The number of the type `int` in the native protocol.
const INT: u16 = 0x09;

/// A form of searches and their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub enum SearchEncoding {
    /// JSON, which every server of the API understands.
    #[default]
    Json,
    /// The vector as floats and the answer as columns, which only Annulus understands.
    Binary,
}

impl SearchEncoding {
    /// The media type of the body of a search.
    pub fn content_type(self) -> &'static str {
        match self {
            SearchEncoding::Json => "application/json",
            SearchEncoding::Binary => SEARCH_MEDIA_TYPE,
        }
    }

    /// The media type that is requested for an answer.
    pub fn accepted(self) -> &'static str {
        match self {
            SearchEncoding::Json => "application/json",
            SearchEncoding::Binary => ANSWER_MEDIA_TYPE,
        }
    }

    /// Reads the ids in an answer.
    pub fn ids(self, body: Bytes, key_column: &str) -> Result<Vec<i64>, RequestFailure> {
        match self {
            SearchEncoding::Json => ids_in_json(&body, key_column),
            SearchEncoding::Binary => ids_in_binary(body, key_column),
        }
    }
}

/// The bodies of the searches for all queries, which are written before searches are timed. Cheap
/// to clone.
#[derive(Clone, Debug)]
pub struct SearchBodies {
    wire: SearchEncoding,
    limit: usize,
    reconnect: bool,
    bodies: Arc<[Bytes]>,
}

impl SearchBodies {
    /// Writes the bodies of all queries.
    pub fn new(wire: SearchEncoding, questions: &SearchQueries) -> anyhow::Result<SearchBodies> {
        #[derive(Serialize)]
        struct SearchBody<'a> {
            vector: &'a [f32],
            limit: usize,
        }
        let limit = questions.k;
        let bodies = questions.queries.rows().map(|vector| match wire {
            SearchEncoding::Json => Ok(serde_json::to_vec(&SearchBody { vector, limit })?.into()),
            SearchEncoding::Binary => Ok(binary::vector(vector)),
        });
        Ok(SearchBodies {
            wire,
            limit,
            reconnect: false,
            bodies: bodies.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Makes each search open a connection of its own.
    pub fn reconnecting(self) -> SearchBodies {
        SearchBodies {
            reconnect: true,
            ..self
        }
    }

    /// Whether each search opens a connection of its own.
    pub fn reconnect(&self) -> bool {
        self.reconnect
    }

    /// The form of the bodies.
    pub fn wire(&self) -> SearchEncoding {
        self.wire
    }

    /// The body of a query.
    pub fn of(&self, query: usize) -> Bytes {
        self.bodies[query].clone()
    }

    /// The end of the path of a search, which may be empty.
    pub fn query_string(&self) -> String {
        match self.wire {
            SearchEncoding::Json => String::new(),
            SearchEncoding::Binary => format!("?limit={}", self.limit),
        }
    }
}

fn no_column(key_column: &str) -> RequestFailure {
    RequestFailure(format!(
        "no column {key_column} in the answer (--key-column)"
    ))
}

fn ids_in_json(body: &[u8], key_column: &str) -> Result<Vec<i64>, RequestFailure> {
    #[derive(Deserialize)]
    struct SearchAnswer<'a> {
        #[serde(borrow)]
        primary_keys: BTreeMap<&'a str, Vec<KeyInteger>>,
    }
    let answer: SearchAnswer<'_> = serde_json::from_slice(body).map_err(|error| {
        RequestFailure(format!("answer not understood: {:?}", error.classify()))
    })?;
    let mut keys = answer.primary_keys;
    let ids = keys.remove(key_column);
    let ids = ids.ok_or_else(|| no_column(key_column))?;
    Ok(ids.into_iter().map(|id| id.0).collect())
}

fn ids_in_binary(body: Bytes, key_column: &str) -> Result<Vec<i64>, RequestFailure> {
    let not_understood = |why: &str| RequestFailure(format!("answer not understood: {why}"));
    let rows = AnswerRows::read(body).map_err(|error| not_understood(&error.to_string()))?;
    let mut columns = rows.columns.iter();
    let column = columns.find(|column| column.name == key_column);
    let column = column.ok_or_else(|| no_column(key_column))?;
    let id = |bytes: &Bytes| match column.typ {
        BIGINT => Some(i64::from_be_bytes(bytes[..].try_into().ok()?)),
        INT => Some(i32::from_be_bytes(bytes[..].try_into().ok()?).into()),
        _ => None,
    };
    let ids: Option<Vec<i64>> = column.values.iter().map(id).collect();
    ids.ok_or_else(|| not_understood("the keys are no integers"))
}

/// An integer, as a number or as a string of digits.
struct KeyInteger(i64);

impl<'de> Deserialize<'de> for KeyInteger {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeyInteger, D::Error> {
        struct IntegerVisitor;
        impl Visitor<'_> for IntegerVisitor {
            type Value = KeyInteger;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an integer")
            }

            fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<KeyInteger, E> {
                i64::try_from(id).map(KeyInteger).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, id: i64) -> Result<KeyInteger, E> {
                Ok(KeyInteger(id))
            }

            fn visit_str<E: serde::de::Error>(self, id: &str) -> Result<KeyInteger, E> {
                id.parse().map(KeyInteger).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(IntegerVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_json_are_numbers_or_digits() {
        let ids =
            |body: &'static [u8], key| SearchEncoding::Json.ids(Bytes::from_static(body), key);
        let body = br#"{"primary_keys":{"p":["x","y"],"id":[7,"-3"]},"distances":[0,1]}"#;
        let failure = ids(body, "id").unwrap_err();
        assert!(failure.0.contains("not understood"), "{failure:?}");
        let body = br#"{"primary_keys":{"id":[7,"-3"]},"distances":[0,1]}"#;
        assert_eq!(ids(body, "id").unwrap(), [7, -3]);
        assert!(ids(body, "pk").unwrap_err().0.contains("--key-column"));
    }

    #[test]
    fn ids_in_binary_are_of_a_type_of_integers() {
        let answer = |typ, id: &[u8]| {
            let mut writer = binary::AnswerWriter::new([(0.0, 1.0)].into_iter(), 1, 0);
            writer.column("id", typ, [id].into_iter());
            SearchEncoding::Binary.ids(writer.finish(), "id")
        };
        assert_eq!(answer(BIGINT, &(-3i64).to_be_bytes()).unwrap(), [-3]);
        assert_eq!(answer(INT, &(-3i32).to_be_bytes()).unwrap(), [-3]);
        assert!(answer(BIGINT, &[0; 4]).is_err());
        assert!(answer(0x0d, b"7").is_err());
        let none = SearchEncoding::Binary.ids(Bytes::from_static(b"{}"), "id");
        assert!(none.unwrap_err().0.contains("not understood"));
    }
}
