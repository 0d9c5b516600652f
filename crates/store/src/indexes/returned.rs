//! The values of columns that an answer has next to the keys of its rows.

use std::borrow::Cow;

use bytes::Bytes;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use value::{CqlType, KeyError, KeyJson, split_elements, split_entries, to_key_json};

use crate::filter::UnsupportedRestriction;
use crate::identity::{ColumnPlace, IndexIdentity};

/// The most bytes of values that an answer may have. A limit of 100,000 rows with their vectors
/// would otherwise take memory without bounds.
const BYTES_MAX: usize = 64 << 20;

/// A column whose values are returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestedColumn {
    /// The name of the column.
    pub name: String,
    /// The type of its values.
    pub cql_type: CqlType,
    /// The origin of its values.
    pub source: ValueOrigin,
}

/// The origin of the values that are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueOrigin {
    /// The primary key, or the filter columns.
    Kept(ColumnPlace),
    /// The values of the indexed column, at the precision of the index.
    Indexed,
}

/// The error for more bytes of values than an answer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the values of return_columns take more than {} MiB: ask for fewer rows or columns",
    BYTES_MAX >> 20
)]
pub(crate) struct TooManyBytes;

/// The values of one column, for the rows of an answer.
#[derive(Debug)]
pub(crate) struct ReturnedValues<'a> {
    column: &'a RequestedColumn,
    /// The values, one after another.
    bytes: Vec<u8>,
    /// The end of each value in `bytes`; `None` for null.
    ends: Vec<Option<usize>>,
}

impl RequestedColumn {
    /// The columns of these names, each once.
    ///
    /// # Errors
    /// If the index does not store one of them.
    pub(crate) fn all_of(
        index: &IndexIdentity,
        names: &[String],
    ) -> Result<Vec<RequestedColumn>, UnsupportedRestriction> {
        let mut columns: Vec<RequestedColumn> = Vec::new();
        for name in names {
            if columns.iter().any(|column| column.name == *name) {
                continue;
            }
            let (source, cql_type) = match index.place(name) {
                Some((place, cql_type)) => (ValueOrigin::Kept(place), cql_type.clone()),
                None if index.returns(name) => (ValueOrigin::Indexed, index.options.column_type()),
                None => return Err(UnsupportedRestriction::Returned(name.clone())),
            };
            columns.push(RequestedColumn {
                name: name.clone(),
                cql_type,
                source,
            });
        }
        Ok(columns)
    }
}

impl<'a> ReturnedValues<'a> {
    /// No values yet, with room for `rows` of them.
    pub(crate) fn with_capacity(column: &'a RequestedColumn, rows: usize) -> ReturnedValues<'a> {
        ReturnedValues {
            column,
            bytes: Vec::new(),
            ends: Vec::with_capacity(rows),
        }
    }

    /// The column.
    pub(crate) fn column(&self) -> &'a RequestedColumn {
        self.column
    }

    /// The bytes of the values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Adds the value of the next row, as CQL serialises it; `None` for null.
    pub(crate) fn push(&mut self, value: Option<Cow<'_, [u8]>>) {
        if let Some(value) = &value {
            self.bytes.extend_from_slice(value);
        }
        self.ends.push(value.map(|_| self.bytes.len()));
    }

    /// The values, as CQL serialises them; `None` for null. They share one piece of memory.
    pub(crate) fn into_values(self) -> Vec<Option<Bytes>> {
        let bytes = Bytes::from(self.bytes);
        let mut begin = 0;
        let values = self.ends.into_iter().map(|end| {
            let end = end?;
            Some(bytes.slice(std::mem::replace(&mut begin, end)..end))
        });
        values.collect()
    }

    /// Checks that the values of all columns are no more than an answer may have.
    ///
    /// # Errors
    /// If they are more.
    pub(crate) fn check(columns: &[ReturnedValues<'_>]) -> Result<(), TooManyBytes> {
        let bytes: usize = columns.iter().map(ReturnedValues::bytes).sum();
        (bytes <= BYTES_MAX).then_some(()).ok_or(TooManyBytes)
    }

    /// The values, as CQL serialises them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> + Clone {
        let mut begin = 0;
        self.ends.iter().map(move |end| {
            let end = (*end)?;
            Some(&self.bytes[std::mem::replace(&mut begin, end)..end])
        })
    }
}

impl Serialize for ReturnedValues<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cql_type = &self.column.cql_type;
        serializer.collect_seq(self.iter().map(|value| JsonCell { cql_type, value }))
    }
}

/// A value as JSON: null for null, and a text for a number that JSON doesn't have.
struct JsonCell<'a> {
    cql_type: &'a CqlType,
    value: Option<&'a [u8]>,
}

impl Serialize for JsonCell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(value) = self.value else {
            return serializer.serialize_none();
        };
        match self.cql_type {
            CqlType::Vector { .. } => {
                let elements = value.as_chunks().0.iter();
                serializer.collect_seq(elements.map(|element| f32::from_be_bytes(*element)))
            }
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                let elements = split_elements(value).unwrap_or_default();
                let mut list = serializer.serialize_seq(Some(elements.len()))?;
                for value in &elements {
                    list.serialize_element(&JsonCell {
                        cql_type: element,
                        value: Some(value),
                    })?;
                }
                list.end()
            }
            CqlType::Map {
                key: of_keys,
                value: of_values,
                ..
            } => {
                let entries = split_entries(value).unwrap_or_default();
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in &entries {
                    let value = JsonCell {
                        cql_type: of_values,
                        value: Some(value),
                    };
                    map.serialize_entry(&name(of_keys, key), &value)?;
                }
                map.end()
            }
            scalar => match to_key_json(scalar, value) {
                Ok(json) => json.serialize(serializer),
                Err(KeyError::NotFinite) => serializer.serialize_str(not_finite(value)),
                Err(_) => serializer.serialize_none(),
            },
        }
    }
}

/// The key of a map as the name of a field of a JSON object.
fn name(cql_type: &CqlType, key: &[u8]) -> String {
    match to_key_json(cql_type, key) {
        Ok(KeyJson::Text(text)) => text.into_owned(),
        Ok(other) => match serde_json::to_value(other) {
            Ok(Json::String(text)) => text,
            Ok(other) => other.to_string(),
            Err(_) => String::new(),
        },
        Err(_) => not_finite(key).to_owned(),
    }
}

/// The text of a float that is no number in JSON.
fn not_finite(value: &[u8]) -> &'static str {
    let float = match (value.try_into(), value.try_into()) {
        (Ok(bytes), _) => f64::from(f32::from_be_bytes(bytes)),
        (_, Ok(bytes)) => f64::from_be_bytes(bytes),
        _ => f64::NAN,
    };
    match float {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use value::{join_elements, join_entries};

    use super::*;

    fn shown(cql_type: &CqlType, value: Option<&[u8]>) -> Json {
        serde_json::to_value(JsonCell { cql_type, value }).unwrap()
    }

    #[test]
    fn values_of_every_kind_are_json() {
        let int = |number: i32| number.to_be_bytes();
        let of = |cql_type: CqlType| Box::new(cql_type);
        assert_eq!(shown(&CqlType::Int, Some(&int(-7))), json!(-7));
        assert_eq!(shown(&CqlType::Int, None), Json::Null);
        let nan = f64::NAN.to_be_bytes();
        assert_eq!(shown(&CqlType::Double, Some(&nan)), json!("NaN"));
        let infinite = f32::NEG_INFINITY.to_be_bytes();
        assert_eq!(shown(&CqlType::Float, Some(&infinite)), json!("-Infinity"));
        let list = CqlType::List {
            element: of(CqlType::Int),
            frozen: false,
        };
        let elements = join_elements([int(2), int(1)].iter().map(|e| &e[..]));
        assert_eq!(shown(&list, Some(&elements)), json!([2, 1]));
        let map = CqlType::Map {
            key: of(CqlType::Int),
            value: of(CqlType::Text),
            frozen: false,
        };
        let entries = join_entries([(&int(7)[..], &b"seven"[..])].into_iter());
        assert_eq!(shown(&map, Some(&entries)), json!({"7": "seven"}));
        let vector = CqlType::Vector {
            element: of(CqlType::Float),
            dimensions: 2,
        };
        let elements: Vec<u8> = [0.5f32, -1.0]
            .iter()
            .flat_map(|e| e.to_be_bytes())
            .collect();
        assert_eq!(shown(&vector, Some(&elements)), json!([0.5, -1.0]));
    }

    #[test]
    fn an_answer_has_no_more_than_so_many_bytes() {
        let column = RequestedColumn {
            name: "b".to_owned(),
            cql_type: CqlType::Blob,
            source: ValueOrigin::Indexed,
        };
        let mut columns = [&column, &column].map(|column| ReturnedValues::with_capacity(column, 2));
        let half = vec![0; BYTES_MAX / 2];
        for values in &mut columns {
            values.push(Some(Cow::Borrowed(&half)));
            values.push(None);
        }
        assert_eq!(ReturnedValues::check(&columns), Ok(()));
        let lengths = columns[0].iter().map(|value| value.map(<[u8]>::len));
        assert_eq!(lengths.collect::<Vec<_>>(), [Some(BYTES_MAX / 2), None]);
        columns[1].push(Some(Cow::Borrowed(&[1])));
        assert_eq!(ReturnedValues::check(&columns), Err(TooManyBytes));
    }
}
