//! Values as JSON text, spelt as Cassandra's `toJson` does.
//!
//! Numbers are spelt as in Java. Blobs, dates, UUIDs and other values that JSON has no form for are
//! strings with the text that CQL has for them. The keys of a JSON object must be strings, so a
//! map's key of another type is put in quotes.

use std::fmt::{LowerExp, Write};
use std::net::IpAddr;

use crate::text::put_all;
use crate::{CqlType, UserType};
use crate::{Value, ValueError, calendar, duration, numeric};

/// Writes a serialised value as JSON text. `None` becomes `null`.
///
/// # Errors
/// If `bytes` is no value of `cql_type`.
pub fn json_text(cql_type: &CqlType, bytes: Option<&[u8]>) -> Result<String, ValueError> {
    let mut out = String::new();
    match bytes {
        None => out.push_str("null"),
        Some(bytes) => put(&mut out, cql_type, &Value::deserialize(cql_type, bytes)?),
    }
    Ok(out)
}

/// A text as JSON: quoted, with the escapes that Cassandra has.
pub fn json_string(text: &str) -> String {
    let mut out = String::new();
    put_string(&mut out, text);
    out
}

/// Appends a value. The type is needed for tuples alone, whose last fields a value may leave out.
fn put(out: &mut String, cql_type: &CqlType, value: &Value) {
    match (value, cql_type) {
        (Value::Empty, _) => put_string(out, ""),
        (Value::Ascii(text) | Value::Text(text), _) => put_string(out, text),
        (Value::Bigint(number) | Value::Counter(number), _) => put_display(out, number),
        (Value::Boolean(truth), _) => put_display(out, truth),
        (Value::Decimal(number), _) => out.push_str(&numeric::decimal_text(number)),
        (Value::Double(number), _) => put_float(out, *number, number.is_finite()),
        (Value::Float(number), _) => put_float(out, *number, number.is_finite()),
        (Value::Int(number), _) => put_display(out, number),
        (Value::Smallint(number), _) => put_display(out, number),
        (Value::Tinyint(number), _) => put_display(out, number),
        (Value::Varint(number), _) => put_display(out, number),
        (Value::Blob(bytes), _) => {
            out.push_str("\"0x");
            for byte in bytes {
                put_display(out, &format_args!("{byte:02x}"));
            }
            out.push('"');
        }
        (Value::Date(days), _) => put_string(out, &calendar::date_text(*days)),
        (
            Value::Duration {
                months,
                days,
                nanoseconds,
            },
            _,
        ) => put_string(out, &duration::to_literal(*months, *days, *nanoseconds)),
        (Value::Inet(address), _) => put_string(out, &inet_text(address)),
        (Value::Time(nanoseconds), _) => put_string(out, &calendar::time_text(*nanoseconds)),
        (Value::Timestamp(millis), _) => put_string(out, &calendar::timestamp_text(*millis)),
        (Value::Timeuuid(uuid) | Value::Uuid(uuid), _) => put_string(out, &uuid.to_string()),
        (
            Value::List(elements) | Value::Set(elements) | Value::Vector(elements),
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. },
        ) => put_all(out, "[]", elements, |out, value| put(out, element, value)),
        (Value::FloatVector(elements), _) => put_all(out, "[]", elements, |out, number| {
            put_float(out, *number, number.is_finite());
        }),
        (Value::Map(entries), CqlType::Map { key, value, .. }) => {
            put_all(out, "{}", entries, |out, (k, v)| {
                put_key(out, key, k);
                out.push_str(": ");
                put(out, value, v);
            });
        }
        (Value::Tuple(fields), CqlType::Tuple(types)) => {
            let positions: Vec<usize> = (0..types.len()).collect();
            put_all(out, "[]", &positions, |out, &position| {
                match fields.get(position) {
                    Some(Some(value)) => put(out, &types[position], value),
                    Some(None) | None => out.push_str("null"),
                }
            });
        }
        (Value::UserType { definition, fields }, _) => put_user_type(out, definition, fields),
        // This can't happen: a value always has the kind of the type that it was read as.
        (
            Value::List(_) | Value::Set(_) | Value::Vector(_) | Value::Map(_) | Value::Tuple(_),
            _,
        ) => out.push_str("null"),
    }
}

fn put_key(out: &mut String, cql_type: &CqlType, key: &Value) {
    let mut text = String::new();
    put(&mut text, cql_type, key);
    match text.starts_with('"') {
        true => out.push_str(&text),
        false => put_string(out, &text),
    }
}

/// Appends an object with all fields of the type, of which a value may leave out the last.
fn put_user_type(out: &mut String, definition: &UserType, fields: &[Option<Value>]) {
    let written = fields.iter().map(Option::as_ref);
    let named: Vec<_> = definition
        .fields()
        .zip(written.chain(std::iter::repeat(None)))
        .collect();
    put_all(out, "{}", &named, |out, ((name, cql_type), value)| {
        put_field_name(out, name);
        out.push_str(": ");
        match value {
            Some(value) => put(out, cql_type, value),
            None => out.push_str("null"),
        }
    });
}

/// Appends the name of a field, which has quotes of CQL within those of JSON if it has capitals.
fn put_field_name(out: &mut String, name: &str) {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => put_string(out, &format!("\"{name}\"")),
        false => put_string(out, name),
    }
}

fn put_display(out: &mut String, value: &dyn std::fmt::Display) {
    write!(out, "{value}").expect("writing to a string never fails");
}

fn put_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' => put_display(out, &format_args!("\\u{:04X}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// Appends a number as Java writes it: plain from a thousandth to ten million, else with an
/// exponent, and always with a fraction. NaN and the infinities become `null`, as JSON has no form
/// for them.
fn put_float(out: &mut String, number: impl LowerExp, is_finite: bool) {
    if !is_finite {
        return out.push_str("null");
    }
    // The fewest digits that mean this number: `-1.25e-7`.
    let shortest = format!("{number:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let or_zero = |fraction: &str| match fraction {
        "" => "0".to_owned(),
        fraction => fraction.to_owned(),
    };
    out.push_str(sign);
    let text = match exponent {
        _ if digits == "0" => "0.0".to_owned(),
        0..7 => {
            let whole_digits = exponent as usize + 1;
            let padded = format!("{digits:0<whole_digits$}");
            let (whole, fraction) = padded.split_at(whole_digits);
            format!("{whole}.{}", or_zero(fraction))
        }
        -3..0 => format!("0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        _ => format!("{whole}.{}E{exponent}", or_zero(fraction)),
    };
    out.push_str(&text);
}

/// An address as Java writes it: IPv6 with all eight groups, without `::`.
fn inet_text(address: &IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let groups = address.segments().map(|group| format!("{group:x}"));
            groups.join(":")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cql_type: &CqlType, value: &Value) -> String {
        json_text(cql_type, Some(&value.serialize())).unwrap()
    }

    #[test]
    fn floats_are_spelt_as_in_java() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (-12.5, "-12.5"),
            (0.001, "0.001"),
            (0.000_123, "1.23E-4"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (1.25e21, "1.25E21"),
            (123_456.789, "123456.789"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
        ] {
            assert_eq!(of(&CqlType::Double, &Value::Double(number)), text);
        }
        assert_eq!(of(&CqlType::Float, &Value::Float(0.1)), "0.1");
        assert_eq!(
            of(&CqlType::Float, &Value::Float(16_777_216.0)),
            "1.6777216E7"
        );
    }

    #[test]
    fn keys_are_strings_and_short_tuples_are_filled_up() {
        let tuple = Value::Tuple(vec![Some(Value::Int(1))]);
        assert_eq!(
            of(&CqlType::Tuple(vec![CqlType::Int, CqlType::Text]), &tuple),
            "[1, null]"
        );
        let map = Value::Map(vec![(Value::Boolean(true), Value::Text("a\"\u{1}".into()))]);
        let cql_type = CqlType::Map {
            key: Box::new(CqlType::Boolean),
            value: Box::new(CqlType::Text),
            frozen: false,
        };
        assert_eq!(of(&cql_type, &map), r#"{"true": "a\"\u0001"}"#);
        let cql_type = CqlType::Int;
        assert_eq!(json_text(&cql_type, None).unwrap(), "null");
        assert!(json_text(&cql_type, Some(&[1])).is_err());
    }

    #[test]
    fn an_empty_value_is_an_empty_string() {
        assert_eq!(of(&CqlType::Timestamp, &Value::Empty), r#""""#);
        let tuple = Value::Tuple(vec![Some(Value::Empty)]);
        assert_eq!(of(&CqlType::Tuple(vec![CqlType::Inet]), &tuple), r#"[""]"#);
        let map = Value::Map(vec![(Value::Empty, Value::Int(1))]);
        let cql_type = CqlType::Map {
            key: Box::new(CqlType::Int),
            value: Box::new(CqlType::Int),
            frozen: false,
        };
        assert_eq!(of(&cql_type, &map), r#"{"": 1}"#);
    }
}
