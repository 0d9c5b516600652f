//! Values of the protocol as JSON and back, spelt as `SELECT JSON` and `INSERT JSON` spell them,
//! and the types that the driver describes as those of crate `value`.
//!
//! A value goes as its serialised bytes, in which both the driver's frames and crate `value` have
//! it. So nothing is decoded twice.

use std::sync::Arc;

use bytes::Bytes;
use scylla::frame::response::result::{CollectionType, ColumnType, NativeType};
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, RowWriter};
use scylla::value::CqlValue;
use value::{CqlType, UserType, ValueError};

/// The type of a column or a bind marker.
///
/// # Errors
/// If the driver knows a type that crate `value` does not.
pub fn cql_type(column: &ColumnType<'_>) -> Result<CqlType, ValueError> {
    let boxed = |part: &ColumnType<'_>| cql_type(part).map(Box::new);
    Ok(match column {
        ColumnType::Native(native) => native_type(native)?,
        ColumnType::Collection { frozen, typ } => {
            let frozen = *frozen;
            match typ {
                CollectionType::List(element) => CqlType::List {
                    element: boxed(element)?,
                    frozen,
                },
                CollectionType::Set(element) => CqlType::Set {
                    element: boxed(element)?,
                    frozen,
                },
                CollectionType::Map(key, value) => CqlType::Map {
                    key: boxed(key)?,
                    value: boxed(value)?,
                    frozen,
                },
                other => return Err(unknown(other)),
            }
        }
        ColumnType::Vector { typ, dimensions } => CqlType::Vector {
            element: boxed(typ)?,
            dimensions: *dimensions,
        },
        ColumnType::Tuple(types) => {
            let types = types.iter().map(cql_type).collect::<Result<_, _>>();
            CqlType::Tuple(types?)
        }
        ColumnType::UserDefinedType { frozen, definition } => {
            let fields = &definition.field_types;
            let types = fields.iter().map(|(_, field)| cql_type(field));
            CqlType::UserType {
                definition: Arc::new(UserType {
                    keyspace: definition.keyspace.to_string(),
                    name: definition.name.to_string(),
                    field_names: fields.iter().map(|(name, _)| name.to_string()).collect(),
                    field_types: types.collect::<Result<_, _>>()?,
                }),
                frozen: *frozen,
            }
        }
        other => return Err(unknown(other)),
    })
}

fn native_type(native: &NativeType) -> Result<CqlType, ValueError> {
    Ok(match native {
        NativeType::Ascii => CqlType::Ascii,
        NativeType::Boolean => CqlType::Boolean,
        NativeType::Blob => CqlType::Blob,
        NativeType::Counter => CqlType::Counter,
        NativeType::Date => CqlType::Date,
        NativeType::Decimal => CqlType::Decimal,
        NativeType::Double => CqlType::Double,
        NativeType::Duration => CqlType::Duration,
        NativeType::Float => CqlType::Float,
        NativeType::Int => CqlType::Int,
        NativeType::BigInt => CqlType::Bigint,
        NativeType::Text => CqlType::Text,
        NativeType::Timestamp => CqlType::Timestamp,
        NativeType::Inet => CqlType::Inet,
        NativeType::SmallInt => CqlType::Smallint,
        NativeType::TinyInt => CqlType::Tinyint,
        NativeType::Time => CqlType::Time,
        NativeType::Timeuuid => CqlType::Timeuuid,
        NativeType::Uuid => CqlType::Uuid,
        NativeType::Varint => CqlType::Varint,
        other => return Err(unknown(other)),
    })
}

fn unknown(what: &dyn std::fmt::Debug) -> ValueError {
    ValueError(format!("values of the type {what:?} are not known here"))
}

/// A serialised value as JSON text; `None` is `null`.
///
/// # Errors
/// If the bytes are no value of the type, or the text is longer than a JSON text may be.
pub fn to_json(cql_type: &CqlType, value: Option<&[u8]>) -> Result<String, ValueError> {
    value::json_text(cql_type, value)
}

/// The serialised value that a JSON text means; `None` for `null`.
///
/// # Errors
/// If the text is no JSON, or means no value of the type.
pub fn from_json(cql_type: &CqlType, json: &str) -> Result<Option<Bytes>, ValueError> {
    value::from_json(cql_type, json)
}

/// A value of the type as text: that of its JSON, without the quotes around it.
///
/// # Errors
/// If the bytes are no value of the type.
pub fn plain_text(cql_type: &CqlType, value: &[u8]) -> Result<String, ValueError> {
    let json = to_json(cql_type, Some(value))?;
    match json.starts_with('"') {
        true => serde_json::from_str(&json).map_err(|error| ValueError(error.to_string())),
        false => Ok(json),
    }
}

/// A value of the driver as JSON text.
///
/// # Errors
/// If it is no value of the type.
pub fn value_to_json(
    column: &ColumnType<'_>,
    value: Option<&CqlValue>,
) -> Result<String, ValueError> {
    let cql_type = cql_type(column)?;
    let mut bytes = Vec::new();
    SerializeValue::serialize(&value, column, CellWriter::new(&mut bytes))
        .map_err(|error| ValueError(error.to_string()))?;
    let (length, bytes) = bytes.split_at_checked(4).unwrap_or_default();
    // A negative length means null.
    let is_null = length.first().is_none_or(|first| first & 0x80 != 0);
    to_json(&cql_type, (!is_null).then_some(bytes))
}

/// Serialised values as those of a statement's markers, in their order; `None` is null.
pub struct BoundBytes<'a>(pub &'a [Option<Bytes>]);

impl SerializeRow for BoundBytes<'_> {
    fn serialize(
        &self,
        _: &RowSerializationContext<'_>,
        writer: &mut RowWriter<'_>,
    ) -> Result<(), SerializationError> {
        for value in self.0 {
            let cell = writer.make_cell_writer();
            let _written = match value {
                None => cell.set_null(),
                Some(bytes) => cell.set_value(bytes).map_err(SerializationError::new)?,
            };
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_the_driver_have_the_names_of_cql() {
        let vector = ColumnType::Vector {
            typ: Box::new(ColumnType::Native(NativeType::Float)),
            dimensions: 3,
        };
        let map = ColumnType::Collection {
            frozen: false,
            typ: CollectionType::Map(
                Box::new(ColumnType::Native(NativeType::Text)),
                Box::new(ColumnType::Native(NativeType::BigInt)),
            ),
        };
        assert_eq!(cql_type(&vector).unwrap().to_string(), "vector<float, 3>");
        assert_eq!(cql_type(&map).unwrap().to_string(), "map<text, bigint>");
        let pair = ColumnType::Tuple(vec![vector, map]);
        let pair = cql_type(&pair).unwrap().to_string();
        assert_eq!(pair, "frozen<tuple<vector<float, 3>, map<text, bigint>>>");
    }

    #[test]
    fn values_of_the_driver_are_spelt_as_select_json_spells_them() {
        let text = ColumnType::Native(NativeType::Text);
        let said = value_to_json(&text, Some(&CqlValue::Text("a\"b".to_owned())));
        assert_eq!(said.unwrap(), r#""a\"b""#);
        assert_eq!(value_to_json(&text, None).unwrap(), "null");
        assert!(value_to_json(&text, Some(&CqlValue::Int(1))).is_err());
        let ints = CqlType::List {
            element: Box::new(CqlType::Int),
            frozen: false,
        };
        let bytes = from_json(&ints, "[1, 2]").unwrap().unwrap();
        assert_eq!(to_json(&ints, Some(&bytes)).unwrap(), "[1, 2]");
    }
}
