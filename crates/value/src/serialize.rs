//! Serialisation of a [`Value`] to bytes.

use std::net::IpAddr;

use bigdecimal::BigDecimal;
use bytes::{BufMut, Bytes, BytesMut};

use crate::collection::put_field;
use crate::{Value, duration, vint};

/// Serialises a value.
pub(crate) fn serialize(value: &Value) -> Bytes {
    // A blob is bytes already, which are cheap to clone.
    if let Value::Blob(bytes) = value {
        return bytes.clone();
    }
    let mut out = BytesMut::new();
    put(&mut out, value);
    out.freeze()
}

fn put(out: &mut BytesMut, value: &Value) {
    match value {
        Value::Empty => {}
        Value::Ascii(text) | Value::Text(text) => out.put_slice(text.as_bytes()),
        Value::Bigint(number)
        | Value::Counter(number)
        | Value::Time(number)
        | Value::Timestamp(number) => out.put_i64(*number),
        Value::Blob(bytes) => out.put_slice(bytes),
        Value::Boolean(truth) => out.put_u8(u8::from(*truth)),
        Value::Date(days) => out.put_u32(*days),
        Value::Decimal(number) => put_decimal(out, number),
        Value::Double(number) => out.put_f64(*number),
        Value::Duration {
            months,
            days,
            nanoseconds,
        } => duration::put(out, *months, *days, *nanoseconds),
        Value::Float(number) => out.put_f32(*number),
        Value::Inet(IpAddr::V4(address)) => out.put_slice(&address.octets()),
        Value::Inet(IpAddr::V6(address)) => out.put_slice(&address.octets()),
        Value::Int(number) => out.put_i32(*number),
        Value::Smallint(number) => out.put_i16(*number),
        Value::Timeuuid(uuid) | Value::Uuid(uuid) => out.put_slice(uuid.as_bytes()),
        Value::Tinyint(number) => out.put_i8(*number),
        Value::Varint(number) => out.put_slice(&number.to_signed_bytes_be()),
        Value::List(elements) | Value::Set(elements) => {
            out.put_i32(elements.len() as i32);
            for element in elements {
                put_field(out, &serialize(element));
            }
        }
        Value::Map(entries) => {
            out.put_i32(entries.len() as i32);
            for (key, value) in entries {
                put_field(out, &serialize(key));
                put_field(out, &serialize(value));
            }
        }
        Value::Tuple(fields) | Value::UserType { fields, .. } => {
            for field in fields {
                match field {
                    Some(value) => put_field(out, &serialize(value)),
                    None => out.put_i32(-1),
                }
            }
        }
        Value::FloatVector(elements) => {
            out.reserve(elements.len() * 4);
            for element in elements {
                out.put_f32(*element);
            }
        }
        Value::Vector(elements) => {
            let fixed = elements.first().is_some_and(has_fixed_length);
            for element in elements {
                let bytes = serialize(element);
                if !fixed {
                    vint::put_unsigned(out, bytes.len() as u64);
                }
                out.put_slice(&bytes);
            }
        }
    }
}

/// Whether the type of a value has a fixed length, as [`crate::CqlType::fixed_length`] says.
/// One element of a vector is enough to know, as all have the same type.
fn has_fixed_length(value: &Value) -> bool {
    match value {
        Value::Boolean(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Bigint(_)
        | Value::Double(_)
        | Value::Timestamp(_)
        | Value::Uuid(_)
        | Value::Timeuuid(_)
        | Value::FloatVector(_) => true,
        Value::Vector(elements) => elements.first().is_some_and(has_fixed_length),
        _ => false,
    }
}

fn put_decimal(out: &mut BytesMut, number: &BigDecimal) {
    let (unscaled, scale) = number.as_bigint_and_exponent();
    let scale = i32::try_from(scale).expect("the scale of a decimal value fits an i32");
    out.put_i32(scale);
    out.put_slice(&unscaled.to_signed_bytes_be());
}
