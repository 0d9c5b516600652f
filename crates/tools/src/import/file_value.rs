//! A value as a file has it, whatever column it goes to.

use std::fmt::Write as _;

use bytes::Bytes;
use num_bigint::BigInt;
use value::{CqlType, Value, ValueError, json_fields, json_string, json_text};

/// A value of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum FileValue {
    /// Null: of JSON and Parquet, or an empty cell of CSV without quotes.
    Null,
    /// A truth.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number with all of its digits, as JSON writes numbers.
    Number(String),
    /// A number of four bytes, from Parquet.
    Float(f32),
    /// A number of eight bytes, from Parquet.
    Double(f64),
    /// A text that the file calls one: in quotes in JSON, a string of Parquet.
    Text(String),
    /// A cell of CSV, which may mean anything.
    Cell(String),
    /// Bytes.
    Bytes(Bytes),
    /// Days since 1970-01-01.
    Date(i32),
    /// Nanoseconds since midnight.
    Time(i64),
    /// Milliseconds since 1970, in UTC.
    Timestamp(i64),
    /// A list of numbers of which none is null.
    Floats(Vec<f32>),
    /// A list or an object of JSON, as text.
    Json(String),
    /// A list.
    List(Vec<FileValue>),
    /// A map of Parquet.
    Map(Vec<(FileValue, FileValue)>),
    /// A struct of Parquet.
    Struct(Vec<(String, FileValue)>),
}

impl FileValue {
    /// Reads a value of JSON, of which lists and objects stay text.
    ///
    /// # Errors
    /// If a string has a wrong escape.
    pub fn of_json(text: &str) -> Result<FileValue, ValueError> {
        Ok(match text.as_bytes().first() {
            Some(b'n') => FileValue::Null,
            Some(b't') => FileValue::Boolean(true),
            Some(b'f') => FileValue::Boolean(false),
            Some(b'"') => {
                let text = serde_json::from_str(text);
                FileValue::Text(text.map_err(|error| ValueError(error.to_string()))?)
            }
            Some(b'[' | b'{') => FileValue::Json(text.to_owned()),
            _ => match text.parse() {
                Ok(number) => FileValue::Integer(number),
                Err(_) => FileValue::Number(text.to_owned()),
            },
        })
    }

    /// The fields of a JSON object, in their order.
    ///
    /// # Errors
    /// If the text is no JSON object.
    pub fn fields_of_json(text: &str) -> Result<Vec<(String, FileValue)>, ValueError> {
        let mut fields = Vec::new();
        json_fields(text, |name, json| {
            fields.push((name, FileValue::of_json(json)?));
            Ok(())
        })?;
        Ok(fields)
    }

    /// A decimal number of an unscaled one in big-endian two's complement.
    pub fn of_decimal(unscaled: &[u8], scale: i32) -> FileValue {
        let unscaled = BigInt::from_signed_bytes_be(unscaled);
        let digits = unscaled.magnitude().to_string();
        let sign = if unscaled < BigInt::ZERO { "-" } else { "" };
        let scale = usize::try_from(scale).unwrap_or(0);
        let text = match scale {
            0 => format!("{sign}{digits}"),
            _ => {
                let digits = format!("{digits:0>width$}", width = scale + 1);
                let (whole, fraction) = digits.split_at(digits.len() - scale);
                format!("{sign}{whole}.{fraction}")
            }
        };
        FileValue::Number(text)
    }

    /// The value as JSON.
    pub fn to_json(&self) -> String {
        let mut json = String::new();
        self.put_json(&mut json);
        json
    }

    fn put_json(&self, out: &mut String) {
        match self {
            FileValue::Null => out.push_str("null"),
            FileValue::Boolean(truth) => put(out, format_args!("{truth}")),
            FileValue::Integer(number) => put(out, format_args!("{number}")),
            FileValue::Number(text) | FileValue::Json(text) => out.push_str(text),
            FileValue::Float(number) => put_float(out, number, number.is_finite()),
            FileValue::Double(number) => put_float(out, number, number.is_finite()),
            FileValue::Text(text) | FileValue::Cell(text) => out.push_str(&json_string(text)),
            FileValue::Bytes(bytes) => {
                out.push_str("\"0x");
                for byte in bytes {
                    put(out, format_args!("{byte:02x}"));
                }
                out.push('"');
            }
            FileValue::Date(_) | FileValue::Time(_) | FileValue::Timestamp(_) => {
                out.push_str(&self.moment_json());
            }
            FileValue::Floats(numbers) => put_all(out, "[]", numbers, |out, number| {
                put_float(out, number, number.is_finite());
            }),
            FileValue::List(elements) => put_all(out, "[]", elements, |out, element| {
                element.put_json(out);
            }),
            FileValue::Map(entries) => put_all(out, "{}", entries, |out, (key, value)| {
                let key = key.to_json();
                match key.starts_with('"') {
                    true => out.push_str(&key),
                    false => out.push_str(&json_string(&key)),
                }
                out.push_str(": ");
                value.put_json(out);
            }),
            FileValue::Struct(fields) => put_all(out, "{}", fields, |out, (name, value)| {
                out.push_str(&json_string(name));
                out.push_str(": ");
                value.put_json(out);
            }),
        }
    }

    /// A date, a time or a timestamp as the JSON that CQL has for it.
    fn moment_json(&self) -> String {
        let (cql_type, value) = match self {
            FileValue::Date(days) => (CqlType::Date, Value::Date(date_of_days(*days))),
            FileValue::Time(nanoseconds) => (CqlType::Time, Value::Time(*nanoseconds)),
            FileValue::Timestamp(millis) => (CqlType::Timestamp, Value::Timestamp(*millis)),
            _ => return "null".to_owned(),
        };
        json_text(&cql_type, Some(&value.serialize())).unwrap_or_else(|_| "null".to_owned())
    }
}

/// Days since 1970 as a date of CQL, which has that day in its middle.
pub fn date_of_days(days: i32) -> u32 {
    (1_u32 << 31).wrapping_add_signed(days)
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A string takes all.
    let _ = out.write_fmt(text);
}

/// Appends a number with the digits of its own width. JSON has no number that is not finite.
fn put_float(out: &mut String, number: &dyn std::fmt::Debug, is_finite: bool) {
    match is_finite {
        true => put(out, format_args!("{number:?}")),
        false => put(out, format_args!("\"{number:?}\"")),
    }
}

fn put_all<T>(out: &mut String, brackets: &str, items: &[T], put: impl Fn(&mut String, &T)) {
    let (open, close) = brackets.split_at(1);
    out.push_str(open);
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push_str(", ");
        }
        put(out, item);
    }
    out.push_str(close);
}

/// The numbers in a text such as `[0.1, -2]`, or, as numpy and so pandas print an array,
/// `[ 0.1 -2. ]` over any number of lines, with or without `array(..)` around it. `None` if it is
/// anything else.
pub fn floats_in(text: &str) -> Option<Vec<f32>> {
    let text = text.trim();
    let text = match text.strip_prefix("array(") {
        None => text,
        Some(array) => {
            // A dtype may follow: array([1., 2.], dtype=float32).
            let end = array.rfind(']')?;
            array.get(..=end)?
        }
    };
    let inner = text.strip_prefix('[')?.strip_suffix(']')?.trim();
    if inner.is_empty() {
        return Some(Vec::new());
    }
    match inner.contains(',') {
        true => inner.split(',').map(number).collect(),
        false => inner.split_whitespace().map(number).collect(),
    }
}

fn number(text: &str) -> Option<f32> {
    let text = text.trim();
    // Rust reads `inf` and `nan`, too, and so does numpy write them; `+` is no sign of a number.
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_all_their_digits() {
        let text = |unscaled: i64, scale| FileValue::of_decimal(&unscaled.to_be_bytes(), scale);
        for (unscaled, scale, expected) in [
            (12_345, 2, "123.45"),
            (-5, 2, "-0.05"),
            (0, 3, "0.000"),
            (7, 0, "7"),
            (-70, 1, "-7.0"),
        ] {
            let expected = FileValue::Number(expected.to_owned());
            assert_eq!(text(unscaled, scale), expected);
        }
    }

    #[test]
    fn vectors_are_read_in_the_forms_of_pandas() {
        let expected = Some(vec![0.5, -2.0, 3e-5]);
        for text in [
            "[0.5, -2, 3e-05]",
            "[0.5,-2.0,3e-5]",
            "[ 0.5 -2.\n  3.e-05]",
            "array([0.5, -2. , 3.e-05])",
            "array([0.5, -2. , 3.e-05], dtype=float32)",
        ] {
            assert_eq!(floats_in(text), expected, "{text}");
        }
        for text in [
            "",
            "[0.1, x]",
            "[0.1 ... 0.2]",
            "[0.1",
            "[[1.0]]",
            "[1,,2]",
            "red",
        ] {
            assert_eq!(floats_in(text), None, "{text}");
        }
        assert_eq!(floats_in("[]"), Some(Vec::new()));
    }

    #[test]
    fn values_are_written_as_json_of_cql() {
        let nested = FileValue::Struct(vec![
            ("a".to_owned(), FileValue::List(vec![FileValue::Integer(1)])),
            (
                "b".to_owned(),
                FileValue::Map(vec![(FileValue::Integer(2), FileValue::Float(0.1))]),
            ),
            ("c".to_owned(), FileValue::Date(1)),
            ("d".to_owned(), FileValue::Double(f64::NAN)),
        ]);
        let expected = r#"{"a": [1], "b": {"2": 0.1}, "c": "1970-01-02", "d": "NaN"}"#;
        assert_eq!(nested.to_json(), expected);
        let moment = FileValue::Timestamp(0).to_json();
        assert_eq!(moment, "\"1970-01-01 00:00:00.000Z\"");
        let line = r#"{"id": 1, "n": 1.50, "t": "x", "v": [1, 2], "z": null}"#;
        let fields = FileValue::fields_of_json(line).unwrap();
        let again: Vec<_> = fields.iter().map(|(_, value)| value.to_json()).collect();
        assert_eq!(again, ["1", "1.50", "\"x\"", "[1, 2]", "null"]);
        assert!(FileValue::fields_of_json("[1]").is_err());
        assert!(FileValue::fields_of_json("{\"a\": 1").is_err());
    }
}
