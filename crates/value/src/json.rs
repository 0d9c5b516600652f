//! Values as JSON text, spelt as Cassandra's `toJson` does.
//!
//! Numbers are spelt as in Java. Blobs, dates, UUIDs and other values that JSON has no form for are
//! strings with the text that CQL has for them. The keys of a JSON object must be strings, so a
//! map's key of another type is put in quotes.
//!
//! A text is written piece by piece, so that its receiver can refuse a piece before there is
//! memory for it: an escape takes up to six bytes for one, a user type writes the names of its
//! fields each time, and the quotes of keys within keys double at each level.

use std::fmt::{self, LowerExp, Write};
use std::net::IpAddr;

use crate::from_json::TEXT_BYTES_MAX;
use crate::text::put_all;
use crate::{CqlType, UserType};
use crate::{Value, ValueError, calendar, duration, numeric};

/// Writes a serialised value as JSON text. `None` becomes `null`.
///
/// # Errors
/// If `bytes` is no value of `cql_type`, or the text takes more than 16 MiB.
pub fn json_text(cql_type: &CqlType, bytes: Option<&[u8]>) -> Result<String, ValueError> {
    let mut text = BoundedText(String::new());
    let written = match bytes {
        None => text.write_str("null"),
        Some(bytes) => put_json(&mut text, cql_type, &Value::deserialize(cql_type, bytes)?),
    };
    match written {
        Ok(()) => Ok(text.0),
        Err(fmt::Error) => Err(ValueError(format!(
            "a JSON text has {TEXT_BYTES_MAX} bytes at most"
        ))),
    }
}

/// Writes a value of the type as JSON text to `to`, piece by piece.
///
/// # Errors
/// If `to` refuses a piece. It gets none after that.
pub fn put_json(to: &mut dyn Write, cql_type: &CqlType, value: &Value) -> fmt::Result {
    let mut out = TextSink::new(to);
    put(&mut out, cql_type, value);
    match out.is_refused {
        true => Err(fmt::Error),
        false => Ok(()),
    }
}

/// A text that refuses what would take it beyond the bound of a JSON text.
struct BoundedText(String);

impl Write for BoundedText {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if piece.len() > TEXT_BYTES_MAX - self.0.len() {
            return Err(fmt::Error);
        }
        self.0.push_str(piece);
        Ok(())
    }
}

/// The destination of a text, which remembers that a piece was refused and gets none after it.
struct TextSink<'a> {
    to: &'a mut dyn Write,
    is_refused: bool,
}

impl<'a> TextSink<'a> {
    fn new(to: &'a mut dyn Write) -> Self {
        let is_refused = false;
        TextSink { to, is_refused }
    }

    fn push_str(&mut self, piece: &str) {
        self.is_refused = self.is_refused || self.to.write_str(piece).is_err();
    }

    fn push(&mut self, c: char) {
        self.push_str(c.encode_utf8(&mut [0; 4]));
    }
}

impl Write for TextSink<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.push_str(piece);
        match self.is_refused {
            true => Err(fmt::Error),
            false => Ok(()),
        }
    }
}

/// The key of an object, which is put in quotes unless it begins with one.
struct ObjectKeyWriter<'k, 'a> {
    out: &'k mut TextSink<'a>,
    /// Whether it is put in quotes; `None` as long as nothing of it is written.
    is_quoted: Option<bool>,
}

impl Write for ObjectKeyWriter<'_, '_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        if self.is_quoted.is_none() {
            self.is_quoted = Some(!piece.starts_with('"'));
            if self.is_quoted == Some(true) {
                self.out.push('"');
            }
        }
        match self.is_quoted {
            Some(true) => put_escaped(self.out, piece),
            _ => self.out.push_str(piece),
        }
        match self.out.is_refused {
            true => Err(fmt::Error),
            false => Ok(()),
        }
    }
}

/// A text as JSON: quoted, with the escapes that Cassandra has.
pub fn json_string(text: &str) -> String {
    let mut out = String::new();
    put_string(&mut TextSink::new(&mut out), text);
    out
}

/// Appends a value. The type is needed only for tuples, whose last fields a value may leave out.
fn put(out: &mut TextSink<'_>, cql_type: &CqlType, value: &Value) {
    if out.is_refused {
        return;
    }
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

fn put_key(out: &mut TextSink<'_>, cql_type: &CqlType, key: &Value) {
    let mut written = ObjectKeyWriter {
        out,
        is_quoted: None,
    };
    put(&mut TextSink::new(&mut written), cql_type, key);
    if written.is_quoted == Some(true) {
        out.push('"');
    }
}

/// Appends an object with all fields of the type, of which a value may leave out the last.
fn put_user_type(out: &mut TextSink<'_>, definition: &UserType, fields: &[Option<Value>]) {
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
fn put_field_name(out: &mut TextSink<'_>, name: &str) {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => put_string(out, &format!("\"{name}\"")),
        false => put_string(out, name),
    }
}

fn put_display(out: &mut TextSink<'_>, value: &dyn std::fmt::Display) {
    // A refusal is remembered there.
    let _ = write!(out, "{value}");
}

fn put_string(out: &mut TextSink<'_>, text: &str) {
    out.push('"');
    put_escaped(out, text);
    out.push('"');
}

/// Appends a text with the escapes that it has within quotes.
fn put_escaped(out: &mut TextSink<'_>, text: &str) {
    let mut written = 0;
    for (at, byte) in text.bytes().enumerate() {
        if !matches!(byte, b'"' | b'\\' | ..=0x1f) {
            continue;
        }
        out.push_str(&text[written..at]);
        written = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x8 => out.push_str("\\b"),
            b'\t' => out.push_str("\\t"),
            b'\n' => out.push_str("\\n"),
            0xc => out.push_str("\\f"),
            b'\r' => out.push_str("\\r"),
            _ => put_display(out, &format_args!("\\u{byte:04X}")),
        }
    }
    out.push_str(&text[written..]);
}

/// Appends a number as Java writes it: plain from a thousandth to ten million, else with an
/// exponent, and always with a fraction. NaN and the infinities become `null`, as JSON has no form
/// for them.
fn put_float(out: &mut TextSink<'_>, number: impl LowerExp, is_finite: bool) {
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

    #[test]
    fn a_text_ends_at_its_bound() {
        let text = |length: usize| {
            let text = "\u{1}".repeat(length).into_bytes();
            json_text(&CqlType::Text, Some(&text)).map(|text| text.len())
        };
        let most = (TEXT_BYTES_MAX - 2) / 6;
        assert_eq!(text(most), Ok(6 * most + 2));
        assert!(text(most + 1).unwrap_err().0.contains("16777216 bytes"));
    }

    /// A destination that refuses all from a number of pieces on.
    struct RefusingSink {
        pieces_left: usize,
        pieces_behind: usize,
    }

    impl Write for RefusingSink {
        fn write_str(&mut self, _: &str) -> fmt::Result {
            match self.pieces_left.checked_sub(1) {
                Some(left) => self.pieces_left = left,
                None => {
                    self.pieces_behind += 1;
                    return Err(fmt::Error);
                }
            }
            Ok(())
        }
    }

    #[test]
    fn quotes_of_keys_within_keys_stop_where_they_are_refused() {
        let (mut value, mut cql_type) = (Value::Boolean(true), CqlType::Boolean);
        for _ in 0..48 {
            value = Value::Map(vec![(value, Value::Boolean(true))]);
            cql_type = CqlType::Map {
                key: Box::new(cql_type),
                value: Box::new(CqlType::Boolean),
                frozen: true,
            };
        }
        // Whole, this text takes more than 2^48 bytes.
        let mut out = RefusingSink {
            pieces_left: 1000,
            pieces_behind: 0,
        };
        assert!(put_json(&mut out, &cql_type, &value).is_err());
        assert_eq!(out.pieces_behind, 1);
        let (value, cql_type) = (
            Value::Map(vec![(
                Value::List(vec![Value::Text("a".into())]),
                Value::Int(1),
            )]),
            CqlType::Map {
                key: Box::new(CqlType::List {
                    element: Box::new(CqlType::Text),
                    frozen: true,
                }),
                value: Box::new(CqlType::Int),
                frozen: false,
            },
        );
        assert_eq!(of(&cql_type, &value), r#"{"[\"a\"]": 1}"#);
    }
}
