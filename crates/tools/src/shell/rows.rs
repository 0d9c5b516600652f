//! Rows of an answer as values of crate `value`, which knows their text and their JSON.

use std::sync::Arc;

use scylla::deserialize::row::ColumnIterator;
use scylla::frame::response::result::{CollectionType, ColumnSpec, ColumnType, NativeType};
use scylla::response::query_result::QueryRowsResult;
use value::{CqlType, UserType, Value, ValueError};

/// A column of an answer.
#[derive(Clone, Debug)]
pub(super) struct ShellColumn {
    /// The name, as the server gives it.
    pub name: String,
    /// The type; an error if this program doesn't know it.
    pub cql_type: Result<CqlType, String>,
}

/// A cell of an answer: `None` is null.
pub(super) type AnswerCell = Option<AnswerValue>;

/// A value of an answer.
#[derive(Clone, Debug)]
pub(super) enum AnswerValue {
    /// A value of a type that this program knows.
    Known(Value),
    /// Bytes that are no value of the column's type, or are of a type that is unknown here.
    Unknown(Vec<u8>),
}

/// A page of an answer.
#[derive(Clone, Debug)]
pub(super) struct AnswerPage {
    /// The columns.
    pub columns: Vec<ShellColumn>,
    /// The rows, each with a cell for each column.
    pub rows: Vec<Vec<AnswerCell>>,
}

impl AnswerPage {
    /// Reads the rows of an answer.
    ///
    /// # Errors
    /// If the answer is malformed.
    pub(super) fn read(answer: &QueryRowsResult) -> Result<AnswerPage, String> {
        let specs = answer.column_specs();
        let columns: Vec<ShellColumn> = specs.iter().map(column).collect();
        let malformed = |error: &dyn std::fmt::Display| format!("a malformed answer: {error}");
        let found = answer.rows::<ColumnIterator<'_, '_>>();
        let mut rows = Vec::with_capacity(answer.rows_num());
        for row in found.map_err(|error| malformed(&error))? {
            let row = row.map_err(|error| malformed(&error))?;
            let mut cells = Vec::with_capacity(columns.len());
            for (raw, column) in row.zip(&columns) {
                let raw = raw.map_err(|error| malformed(&error))?;
                cells.push(raw.slice.map(|slice| value(column, slice.as_slice())));
            }
            rows.push(cells);
        }
        Ok(AnswerPage { columns, rows })
    }
}

fn value(column: &ShellColumn, bytes: &[u8]) -> AnswerValue {
    let unknown = || AnswerValue::Unknown(bytes.to_vec());
    let Ok(cql_type) = &column.cql_type else {
        return unknown();
    };
    match Value::deserialize(cql_type, bytes) {
        Ok(value) => AnswerValue::Known(value),
        Err(ValueError(_)) => unknown(),
    }
}

fn column(spec: &ColumnSpec<'_>) -> ShellColumn {
    ShellColumn {
        name: spec.name().to_owned(),
        cql_type: cql_type(spec.typ()),
    }
}

/// The type as crate `value` has it.
fn cql_type(of: &ColumnType<'_>) -> Result<CqlType, String> {
    Ok(match of {
        ColumnType::Native(native) => native_type(native)?,
        ColumnType::Collection { frozen, typ } => {
            let frozen = *frozen;
            match typ {
                CollectionType::List(element) => CqlType::List {
                    element: Box::new(cql_type(element)?),
                    frozen,
                },
                CollectionType::Set(element) => CqlType::Set {
                    element: Box::new(cql_type(element)?),
                    frozen,
                },
                CollectionType::Map(key, value) => CqlType::Map {
                    key: Box::new(cql_type(key)?),
                    value: Box::new(cql_type(value)?),
                    frozen,
                },
                other => return Err(format!("{other:?}")),
            }
        }
        ColumnType::Vector { typ, dimensions } => CqlType::Vector {
            element: Box::new(cql_type(typ)?),
            dimensions: *dimensions,
        },
        ColumnType::UserDefinedType { frozen, definition } => {
            let fields = definition.field_types.iter();
            let types = fields.map(|(_, field)| cql_type(field));
            let names = definition.field_types.iter();
            CqlType::UserType {
                definition: Arc::new(UserType {
                    keyspace: definition.keyspace.to_string(),
                    name: definition.name.to_string(),
                    field_names: names.map(|(name, _)| name.to_string()).collect(),
                    field_types: types.collect::<Result<_, _>>()?,
                }),
                frozen: *frozen,
            }
        }
        ColumnType::Tuple(types) => {
            CqlType::Tuple(types.iter().map(cql_type).collect::<Result<_, _>>()?)
        }
        other => return Err(format!("{other:?}")),
    })
}

fn native_type(native: &NativeType) -> Result<CqlType, String> {
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
        other => return Err(format!("{other:?}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_the_server() {
        let list = ColumnType::Collection {
            frozen: true,
            typ: CollectionType::List(Box::new(ColumnType::Native(NativeType::Int))),
        };
        assert_eq!(cql_type(&list).unwrap().to_string(), "frozen<list<int>>");
        let vector = ColumnType::Vector {
            typ: Box::new(ColumnType::Native(NativeType::Float)),
            dimensions: 3,
        };
        assert_eq!(cql_type(&vector).unwrap().to_string(), "vector<float, 3>");
        let tuple = ColumnType::Tuple(vec![ColumnType::Native(NativeType::Text), vector]);
        let text = cql_type(&tuple).unwrap().to_string();
        assert!(text.contains("tuple<text, vector<float, 3>>"), "{text}");
    }

    #[test]
    fn bytes_of_another_type_stay_bytes() {
        let column = ShellColumn {
            name: "a".to_owned(),
            cql_type: Ok(CqlType::Int),
        };
        assert!(matches!(
            value(&column, &[0, 0, 0, 7]),
            AnswerValue::Known(Value::Int(7))
        ));
        assert!(matches!(value(&column, &[1, 2]), AnswerValue::Unknown(_)));
    }
}
