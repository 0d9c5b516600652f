//! Writes searches and reads answers by HTTP: as JSON, or in the binary form of
//! [`store_api::binary`].

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum;
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use store_api::binary::{self, ANSWER_MEDIA_TYPE, Rows, SEARCH_MEDIA_TYPE};

use super::Questions;
use crate::load::Failure;

/// The number of the type `bigint` in the native protocol.
pub const BIGINT: u16 = 0x02;
/// The number of the type `int` in the native protocol.
const INT: u16 = 0x09;

/// A form of searches and their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, ValueEnum)]
pub enum Wire {
    /// JSON, which every server of the API understands.
    #[default]
    Json,
    /// The vector as floats and the answer as columns, which only Annulus understands.
    Binary,
}

impl Wire {
    /// The media type of the body of a search.
    pub fn content_type(self) -> &'static str {
        match self {
            Wire::Json => "application/json",
            Wire::Binary => SEARCH_MEDIA_TYPE,
        }
    }

    /// The media type that is requested for an answer.
    pub fn accepted(self) -> &'static str {
        match self {
            Wire::Json => "application/json",
            Wire::Binary => ANSWER_MEDIA_TYPE,
        }
    }

    /// Reads the ids in an answer.
    pub fn ids(self, body: Bytes, key_column: &str) -> Result<Vec<i64>, Failure> {
        match self {
            Wire::Json => ids_in_json(&body, key_column),
            Wire::Binary => ids_in_binary(body, key_column),
        }
    }
}

/// The bodies of the searches for all queries, which are written before searches are timed. Cheap
/// to clone.
#[derive(Clone, Debug)]
pub struct Bodies {
    wire: Wire,
    limit: usize,
    reconnect: bool,
    bodies: Arc<[Bytes]>,
}

impl Bodies {
    /// Writes the bodies of all queries.
    pub fn new(wire: Wire, questions: &Questions) -> anyhow::Result<Bodies> {
        #[derive(Serialize)]
        struct Body<'a> {
            vector: &'a [f32],
            limit: usize,
        }
        let limit = questions.k;
        let bodies = questions.queries.rows().map(|vector| match wire {
            Wire::Json => Ok(serde_json::to_vec(&Body { vector, limit })?.into()),
            Wire::Binary => Ok(binary::vector(vector)),
        });
        Ok(Bodies {
            wire,
            limit,
            reconnect: false,
            bodies: bodies.collect::<anyhow::Result<_>>()?,
        })
    }

    /// Makes each search open a connection of its own.
    pub fn reconnecting(self) -> Bodies {
        Bodies {
            reconnect: true,
            ..self
        }
    }

    /// Whether each search opens a connection of its own.
    pub fn reconnect(&self) -> bool {
        self.reconnect
    }

    /// The form of the bodies.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// The body of a query.
    pub fn of(&self, query: usize) -> Bytes {
        self.bodies[query].clone()
    }

    /// The end of the path of a search, which may be empty.
    pub fn query_string(&self) -> String {
        match self.wire {
            Wire::Json => String::new(),
            Wire::Binary => format!("?limit={}", self.limit),
        }
    }
}

fn no_column(key_column: &str) -> Failure {
    Failure(format!(
        "no column {key_column} in the answer (--key-column)"
    ))
}

fn ids_in_json(body: &[u8], key_column: &str) -> Result<Vec<i64>, Failure> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        primary_keys: BTreeMap<&'a str, Vec<Id>>,
    }
    let answer: Answer<'_> = serde_json::from_slice(body)
        .map_err(|error| Failure(format!("answer not understood: {:?}", error.classify())))?;
    let mut keys = answer.primary_keys;
    let ids = keys.remove(key_column);
    let ids = ids.ok_or_else(|| no_column(key_column))?;
    Ok(ids.into_iter().map(|id| id.0).collect())
}

fn ids_in_binary(body: Bytes, key_column: &str) -> Result<Vec<i64>, Failure> {
    let not_understood = |why: &str| Failure(format!("answer not understood: {why}"));
    let rows = Rows::read(body).map_err(|error| not_understood(&error.to_string()))?;
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
struct Id(i64);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Id;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an integer")
            }

            fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<Id, E> {
                i64::try_from(id).map(Id).map_err(E::custom)
            }

            fn visit_i64<E: serde::de::Error>(self, id: i64) -> Result<Id, E> {
                Ok(Id(id))
            }

            fn visit_str<E: serde::de::Error>(self, id: &str) -> Result<Id, E> {
                id.parse().map(Id).map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_json_are_numbers_or_digits() {
        let ids = |body: &'static [u8], key| Wire::Json.ids(Bytes::from_static(body), key);
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
            let mut writer = binary::Writer::new([(0.0, 1.0)].into_iter(), 1, 0);
            writer.column("id", typ, [id].into_iter());
            Wire::Binary.ids(writer.finish(), "id")
        };
        assert_eq!(answer(BIGINT, &(-3i64).to_be_bytes()).unwrap(), [-3]);
        assert_eq!(answer(INT, &(-3i32).to_be_bytes()).unwrap(), [-3]);
        assert!(answer(BIGINT, &[0; 4]).is_err());
        assert!(answer(0x0d, b"7").is_err());
        let none = Wire::Binary.ids(Bytes::from_static(b"{}"), "id");
        assert!(none.unwrap_err().0.contains("not understood"));
    }
}
