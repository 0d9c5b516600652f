//! Decoding of bytes to a [`Value`].

use std::net::IpAddr;

use bigdecimal::BigDecimal;
use bytes::Bytes;
use num_bigint::BigInt;
use uuid::Uuid;

use crate::CqlType;
use crate::canonical::{canonical_copy, holds_order};
use crate::elements::{CollectionElements, MapEntries, TupleFields, VectorElements};
use crate::{Value, ValueError, duration, validate};

/// Checks and decodes a serialised value. Sets and maps come out in order.
pub(crate) fn deserialize(cql_type: &CqlType, bytes: &[u8]) -> Result<Value, ValueError> {
    validate(cql_type, bytes)?;
    if holds_order(cql_type) {
        decode(cql_type, &canonical_copy(cql_type, bytes)?)
    } else {
        decode(cql_type, bytes)
    }
}

/// Decodes a value that is valid and in canonical form.
fn decode(cql_type: &CqlType, bytes: &[u8]) -> Result<Value, ValueError> {
    if bytes.is_empty() && cql_type.takes_no_bytes() {
        return Ok(Value::Empty);
    }
    Ok(match cql_type {
        CqlType::Ascii => Value::Ascii(string(bytes)?),
        CqlType::Bigint => Value::Bigint(i64::from_be_bytes(array(bytes)?)),
        CqlType::Blob => Value::Blob(Bytes::copy_from_slice(bytes)),
        CqlType::Boolean => Value::Boolean(bytes != [0]),
        CqlType::Counter => Value::Counter(i64::from_be_bytes(array(bytes)?)),
        CqlType::Date => Value::Date(u32::from_be_bytes(array(bytes)?)),
        CqlType::Decimal => Value::Decimal(decimal(bytes)?),
        CqlType::Double => Value::Double(f64::from_be_bytes(array(bytes)?)),
        CqlType::Duration => {
            let (months, days, nanoseconds) = duration::read(bytes)?;
            Value::Duration {
                months,
                days,
                nanoseconds,
            }
        }
        CqlType::Float => Value::Float(f32::from_be_bytes(array(bytes)?)),
        CqlType::Inet => Value::Inet(match bytes.len() {
            4 => IpAddr::from(array::<4>(bytes)?),
            _ => IpAddr::from(array::<16>(bytes)?),
        }),
        CqlType::Int => Value::Int(i32::from_be_bytes(array(bytes)?)),
        CqlType::Smallint => Value::Smallint(i16::from_be_bytes(array(bytes)?)),
        CqlType::Text => Value::Text(string(bytes)?),
        CqlType::Time => Value::Time(i64::from_be_bytes(array(bytes)?)),
        CqlType::Timestamp => Value::Timestamp(i64::from_be_bytes(array(bytes)?)),
        CqlType::Timeuuid => Value::Timeuuid(Uuid::from_bytes(array(bytes)?)),
        CqlType::Tinyint => Value::Tinyint(i8::from_be_bytes(array(bytes)?)),
        CqlType::Uuid => Value::Uuid(Uuid::from_bytes(array(bytes)?)),
        CqlType::Varint => Value::Varint(BigInt::from_signed_bytes_be(bytes)),
        CqlType::List { element, .. } => {
            Value::List(each(element, CollectionElements::of_list(bytes)?)?)
        }
        CqlType::Set { element, .. } => {
            Value::Set(each(element, CollectionElements::of_set(bytes)?)?)
        }
        CqlType::Map { key, value, .. } => Value::Map(pairs(key, value, bytes)?),
        CqlType::Tuple(types) => Value::Tuple(fields(types, bytes)?),
        CqlType::UserType { definition, .. } => Value::UserType {
            definition: definition.clone(),
            fields: fields(&definition.field_types, bytes)?,
        },
        CqlType::Vector {
            element,
            dimensions,
        } => match **element {
            CqlType::Float => Value::FloatVector(
                bytes
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|element| f32::from_be_bytes(*element))
                    .collect(),
            ),
            _ => Value::Vector(each(
                element,
                VectorElements::new(element, *dimensions, bytes),
            )?),
        },
    })
}

fn pairs(key: &CqlType, value: &CqlType, bytes: &[u8]) -> Result<Vec<(Value, Value)>, ValueError> {
    let entries = MapEntries::new(bytes)?;
    let decoded = entries.map(|entry| {
        let (key_bytes, value_bytes) = entry?;
        Ok((decode(key, key_bytes)?, decode(value, value_bytes)?))
    });
    decoded.collect()
}

fn fields(types: &[CqlType], bytes: &[u8]) -> Result<Vec<Option<Value>>, ValueError> {
    TupleFields::new(types.len(), bytes)
        .zip(types)
        .map(|(field, cql_type)| field?.map(|bytes| decode(cql_type, bytes)).transpose())
        .collect()
}

fn each<'a>(
    element: &CqlType,
    elements: impl Iterator<Item = Result<&'a [u8], ValueError>>,
) -> Result<Vec<Value>, ValueError> {
    elements.map(|bytes| decode(element, bytes?)).collect()
}

fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ValueError> {
    bytes
        .try_into()
        .map_err(|_| ValueError(format!("expected {N} bytes, got {}", bytes.len())))
}

fn string(bytes: &[u8]) -> Result<String, ValueError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(ValueError(error.to_string())),
    }
}

/// Decodes a decimal: four bytes of scale, then the unscaled integer.
fn decimal(bytes: &[u8]) -> Result<BigDecimal, ValueError> {
    let (scale, unscaled) = bytes
        .split_first_chunk::<4>()
        .ok_or_else(|| ValueError::new("the decimal is cut short"))?;
    Ok(BigDecimal::new(
        BigInt::from_signed_bytes_be(unscaled),
        i64::from(i32::from_be_bytes(*scale)),
    ))
}
