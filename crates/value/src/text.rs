//! Values as CQL text.

use std::fmt::Write;

use crate::identifier::Identifier;
use crate::{Value, calendar, duration, numeric};

/// Writes a value as a CQL literal.
pub(crate) fn to_literal(value: &Value) -> String {
    let mut out = String::new();
    put(&mut out, value);
    out
}

fn put(out: &mut String, value: &Value) {
    match value {
        Value::Empty => out.push_str("''"),
        Value::Ascii(text) | Value::Text(text) => put_quoted(out, text),
        Value::Bigint(number) | Value::Counter(number) => put_display(out, number),
        Value::Blob(bytes) => {
            out.push_str("0x");
            for byte in bytes {
                put_display(out, &format_args!("{byte:02x}"));
            }
        }
        Value::Boolean(truth) => put_display(out, truth),
        Value::Date(days) => out.push_str(&calendar::date_literal(*days)),
        Value::Decimal(number) => out.push_str(&numeric::decimal_text(number)),
        Value::Double(number) => put_float(out, *number, number),
        Value::Duration {
            months,
            days,
            nanoseconds,
        } => out.push_str(&duration::to_literal(*months, *days, *nanoseconds)),
        Value::Float(number) => put_float(out, f64::from(*number), number),
        Value::Inet(address) => put_display(out, &format_args!("'{address}'")),
        Value::Int(number) => put_display(out, number),
        Value::Smallint(number) => put_display(out, number),
        Value::Time(nanoseconds) => out.push_str(&calendar::time_literal(*nanoseconds)),
        Value::Timestamp(millis) => out.push_str(&calendar::timestamp_literal(*millis)),
        Value::Timeuuid(uuid) | Value::Uuid(uuid) => put_display(out, uuid),
        Value::Tinyint(number) => put_display(out, number),
        Value::Varint(number) => put_display(out, number),
        Value::List(elements) | Value::Vector(elements) => put_all(out, "[]", elements, put),
        Value::Set(elements) => put_all(out, "{}", elements, put),
        Value::Map(entries) => put_all(out, "{}", entries, |out, (key, value)| {
            put(out, key);
            out.push_str(": ");
            put(out, value);
        }),
        Value::Tuple(fields) => put_all(out, "()", fields, |out, field| match field {
            Some(value) => put(out, value),
            None => out.push_str("null"),
        }),
        Value::UserType { definition, fields } => {
            let fields: Vec<_> = definition.field_names.iter().zip(fields).collect();
            put_all(out, "{}", &fields, |out, (name, field)| {
                put_display(out, &format_args!("{}: ", Identifier(name)));
                match field {
                    Some(value) => put(out, value),
                    None => out.push_str("null"),
                }
            });
        }
        Value::FloatVector(elements) => put_all(out, "[]", elements, |out, number| {
            put_float(out, f64::from(*number), number);
        }),
    }
}

fn put_display(out: &mut String, value: &dyn std::fmt::Display) {
    write!(out, "{value}").expect("writing to a string never fails");
}

fn put_quoted(out: &mut String, text: &str) {
    out.push('\'');
    out.push_str(&text.replace('\'', "''"));
    out.push('\'');
}

/// Appends a number. `shortest` is the number at its own precision, so that the float 0.1 isn't
/// written with the digits of a double.
fn put_float(out: &mut String, number: f64, shortest: &dyn std::fmt::Debug) {
    if number.is_nan() {
        out.push_str("NaN");
    } else if number.is_infinite() {
        out.push_str(if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        });
    } else {
        write!(out, "{shortest:?}").expect("writing to a string never fails");
    }
}

/// Appends an opening bracket, the items with commas between them, and a closing bracket.
pub(crate) fn put_all<W: Write, T>(
    out: &mut W,
    brackets: &str,
    items: &[T],
    put: impl Fn(&mut W, &T),
) {
    let (open, close) = brackets.split_at(1);
    // A string takes all, and another destination remembers itself that it refused a piece.
    let _ = out.write_str(open);
    for (position, item) in items.iter().enumerate() {
        if position > 0 && out.write_str(", ").is_err() {
            return;
        }
        put(out, item);
    }
    let _ = out.write_str(close);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn literals_are_quoted_where_they_must_be() {
        let text = |text: &str| Value::Text(text.to_owned());
        let cases = [
            (text("it's"), "'it''s'"),
            (Value::Blob(Bytes::from_static(&[0, 0xab])), "0x00ab"),
            (Value::Float(0.1), "0.1"),
            (Value::Double(1e300), "1e300"),
            (Value::Double(f64::NEG_INFINITY), "-Infinity"),
            (Value::Float(f32::NAN), "NaN"),
            (Value::Double(3.0), "3.0"),
            (Value::Inet([127, 0, 0, 1].into()), "'127.0.0.1'"),
            (Value::Date(1 << 31), "'1970-01-01'"),
            (Value::Time(1), "'00:00:00.000000001'"),
            (Value::Timestamp(-1), "'1969-12-31T23:59:59.999Z'"),
            (
                Value::Map(vec![(
                    text("k"),
                    Value::List(vec![Value::Int(1), Value::Int(2)]),
                )]),
                "{'k': [1, 2]}",
            ),
            (
                Value::Tuple(vec![Some(Value::Boolean(true)), None]),
                "(true, null)",
            ),
            (Value::FloatVector(vec![1.0, -0.5]), "[1.0, -0.5]"),
            (Value::Empty, "''"),
        ];
        for (value, literal) in cases {
            assert_eq!(value.to_literal(), literal);
        }
    }
}
