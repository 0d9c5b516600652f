//! Values of files as values of a column's type.
//!
//! Nothing is changed silently: a value that a type can't hold is refused with the reason. Two
//! forms of pandas are taken for what they mean: a column of whole numbers with gaps holds `1.0`
//! and NaN.

use bytes::{BufMut, Bytes, BytesMut};
use value::{CqlType, Value, ValueError, canonical, finite_vector, from_json, json_string};

use super::file_value::{FileValue, date_of_days, floats_in};

const MILLISECONDS_PER_DAY: i64 = 86_400_000;

/// The serialised value of the type that a file's value means; `None` for null.
///
/// # Errors
/// If it means none, with the reason.
pub fn convert(cql_type: &CqlType, value: &FileValue) -> Result<Option<Bytes>, ValueError> {
    if matches!(value, FileValue::Null) {
        return Ok(None);
    }
    if let Some(dimensions) = cql_type.float_vector_dimensions() {
        return float_vector(dimensions, value).map(Some);
    }
    match value {
        FileValue::Text(text) | FileValue::Cell(text) => of_text(cql_type, text),
        FileValue::Integer(number) => of_integer(cql_type, *number),
        FileValue::Number(text) => of_number(cql_type, text),
        FileValue::Float(number) => match cql_type {
            CqlType::Float => Ok(Some(Value::Float(*number).serialize())),
            _ => of_double(cql_type, f64::from(*number), &format!("{number:?}")),
        },
        FileValue::Double(number) => match cql_type {
            CqlType::Double => Ok(Some(Value::Double(*number).serialize())),
            _ => of_double(cql_type, *number, &format!("{number:?}")),
        },
        FileValue::Bytes(bytes) => of_bytes(cql_type, bytes).map(Some),
        FileValue::Date(_) | FileValue::Time(_) | FileValue::Timestamp(_) => {
            of_moment(cql_type, value)
        }
        FileValue::List(elements) => of_list(cql_type, elements, value).map(Some),
        FileValue::Floats(numbers) => {
            let elements: Vec<_> = numbers.iter().copied().map(FileValue::Float).collect();
            of_list(cql_type, &elements, value).map(Some)
        }
        FileValue::Map(entries) => of_map(cql_type, entries, value).map(Some),
        FileValue::Struct(_) | FileValue::Boolean(_) | FileValue::Json(_) => {
            of_json(cql_type, value)
        }
        FileValue::Null => Ok(None),
    }
}

fn wrong(cql_type: &CqlType, value: &FileValue) -> ValueError {
    let text = value.to_json();
    let excerpt: String = text.chars().take(80).collect();
    let more = if excerpt.len() < text.len() {
        "..."
    } else {
        ""
    };
    ValueError(format!("{excerpt}{more} is no value of type {cql_type}"))
}

/// Whether a value that has parts is stored as the text of its JSON.
fn is_text(cql_type: &CqlType) -> bool {
    matches!(cql_type, CqlType::Text)
}

/// Whether values of the type have other values in them.
fn is_compound(cql_type: &CqlType) -> bool {
    cql_type.is_collection()
        || matches!(
            cql_type,
            CqlType::Tuple(_) | CqlType::Vector { .. } | CqlType::UserType { .. }
        )
}

fn is_whole_number(cql_type: &CqlType) -> bool {
    matches!(
        cql_type,
        CqlType::Tinyint
            | CqlType::Smallint
            | CqlType::Int
            | CqlType::Bigint
            | CqlType::Counter
            | CqlType::Varint
    )
}

/// A vector of finite floats, as indexes need them.
fn float_vector(dimensions: u16, value: &FileValue) -> Result<Bytes, ValueError> {
    let read;
    let numbers = match value {
        FileValue::Floats(numbers) => numbers,
        FileValue::Text(text) | FileValue::Cell(text) | FileValue::Json(text) => {
            read = floats_in(text).ok_or_else(|| not_numbers(value))?;
            &read
        }
        FileValue::List(elements) => {
            let elements = elements.iter().map(as_float);
            read = elements
                .collect::<Option<Vec<f32>>>()
                .ok_or_else(|| not_numbers(value))?;
            &read
        }
        _ => return Err(not_numbers(value)),
    };
    if numbers.len() != usize::from(dimensions) {
        return Err(ValueError(format!(
            "the vector has {} elements, the column {dimensions}",
            numbers.len()
        )));
    }
    let bytes = vector_bytes(numbers);
    finite_vector(&bytes)?;
    Ok(bytes)
}

fn not_numbers(value: &FileValue) -> ValueError {
    let excerpt: String = value.to_json().chars().take(80).collect();
    ValueError(format!("{excerpt} is no list of numbers"))
}

/// A vector of floats in the bytes of the protocol.
pub fn vector_bytes(numbers: &[f32]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(numbers.len() * 4);
    for number in numbers {
        bytes.put_f32(*number);
    }
    bytes.freeze()
}

/// The float that a value is, if it is a number.
pub fn as_float(value: &FileValue) -> Option<f32> {
    match value {
        FileValue::Float(number) => Some(*number),
        FileValue::Double(number) => Some(*number as f32),
        FileValue::Integer(number) => Some(*number as f32),
        FileValue::Number(text) => text.parse().ok(),
        _ => None,
    }
}

fn of_text(cql_type: &CqlType, text: &str) -> Result<Option<Bytes>, ValueError> {
    let quoted = |text: &str| from_json(cql_type, &json_string(text));
    match cql_type {
        CqlType::Text => Ok(Some(Bytes::copy_from_slice(text.as_bytes()))),
        CqlType::Float | CqlType::Double => quoted(match text.trim() {
            "nan" | "NAN" | "-nan" => "NaN",
            "inf" | "+inf" | "Inf" | "INF" | "+Infinity" => "Infinity",
            "-inf" | "-Inf" | "-INF" => "-Infinity",
            // `1.` is no number of JSON.
            other => return quoted(other.strip_suffix('.').unwrap_or(other)),
        }),
        _ if is_whole_number(cql_type) => match text.trim() {
            "nan" | "NaN" | "NAN" => Ok(None),
            other => quoted(without_zeros(other)),
        },
        _ if is_compound(cql_type) => from_json(cql_type, text).or_else(|error| {
            // As Python prints a list or a dictionary.
            match python_as_json(text) {
                Some(json) => from_json(cql_type, &json).map_err(|_| error),
                None => Err(error),
            }
        }),
        CqlType::Ascii | CqlType::Blob => quoted(text),
        _ => quoted(text.trim()),
    }
}

/// A number without a fraction of zeros, which makes a whole number one of floating point.
fn without_zeros(number: &str) -> &str {
    match number.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|digit| digit == b'0') => whole,
        _ => number,
    }
}

fn of_number(cql_type: &CqlType, text: &str) -> Result<Option<Bytes>, ValueError> {
    match is_whole_number(cql_type) {
        true => from_json(cql_type, without_zeros(text)),
        false => from_json(cql_type, text),
    }
}

fn of_integer(cql_type: &CqlType, number: i64) -> Result<Option<Bytes>, ValueError> {
    let fast = match cql_type {
        CqlType::Bigint => Some(Value::Bigint(number)),
        CqlType::Int => i32::try_from(number).ok().map(Value::Int),
        _ => None,
    };
    match fast {
        Some(value) => Ok(Some(value.serialize())),
        None => from_json(cql_type, &number.to_string()),
    }
}

fn of_double(cql_type: &CqlType, number: f64, text: &str) -> Result<Option<Bytes>, ValueError> {
    if is_whole_number(cql_type) {
        if number.is_nan() {
            return Ok(None);
        }
        return from_json(cql_type, without_zeros(text));
    }
    match number.is_finite() {
        true => from_json(cql_type, text),
        false => of_text(cql_type, text),
    }
}

fn of_bytes(cql_type: &CqlType, bytes: &Bytes) -> Result<Bytes, ValueError> {
    let fits = match cql_type {
        CqlType::Blob => true,
        CqlType::Uuid => bytes.len() == 16,
        CqlType::Timeuuid => bytes.len() == 16 && bytes[6] >> 4 == 1,
        CqlType::Inet => matches!(bytes.len(), 4 | 16),
        CqlType::Text => std::str::from_utf8(bytes).is_ok(),
        CqlType::Ascii => bytes.is_ascii(),
        _ => false,
    };
    match fits {
        true => Ok(bytes.clone()),
        false => Err(wrong(cql_type, &FileValue::Bytes(bytes.clone()))),
    }
}

fn of_moment(cql_type: &CqlType, value: &FileValue) -> Result<Option<Bytes>, ValueError> {
    let found = match (value, cql_type) {
        (FileValue::Date(days), CqlType::Date) => Value::Date(date_of_days(*days)),
        (FileValue::Date(days), CqlType::Timestamp) => {
            Value::Timestamp(i64::from(*days) * MILLISECONDS_PER_DAY)
        }
        (FileValue::Time(nanoseconds), CqlType::Time) => Value::Time(*nanoseconds),
        (FileValue::Timestamp(millis), CqlType::Timestamp) => Value::Timestamp(*millis),
        // pandas has dates as timestamps at midnight.
        (FileValue::Timestamp(millis), CqlType::Date) if millis % MILLISECONDS_PER_DAY == 0 => {
            let days = i32::try_from(millis / MILLISECONDS_PER_DAY);
            Value::Date(date_of_days(days.map_err(|_| wrong(cql_type, value))?))
        }
        (_, CqlType::Text) => {
            let json = value.to_json();
            return of_text(cql_type, json.trim_matches('"'));
        }
        _ => return Err(wrong(cql_type, value)),
    };
    canonical(cql_type, &found.serialize()).map(Some)
}

/// A value by its JSON, for types that `INSERT JSON` knows how to read.
fn of_json(cql_type: &CqlType, value: &FileValue) -> Result<Option<Bytes>, ValueError> {
    let json = value.to_json();
    match (is_text(cql_type), value) {
        (true, FileValue::Struct(_) | FileValue::Json(_)) => Ok(Some(json.into())),
        _ => from_json(cql_type, &json),
    }
}

fn of_list(
    cql_type: &CqlType,
    elements: &[FileValue],
    value: &FileValue,
) -> Result<Bytes, ValueError> {
    let part = |element_type: &CqlType, element: &FileValue| {
        let null = || ValueError(format!("{cql_type} holds no null"));
        convert(element_type, element)?.ok_or_else(null)
    };
    let joined = match cql_type {
        CqlType::List { element, .. } | CqlType::Set { element, .. } => {
            let parts = elements.iter().map(|value| part(element, value));
            let parts = parts.collect::<Result<Vec<Bytes>, _>>()?;
            value::join_elements(parts.iter().map(Bytes::as_ref))
        }
        CqlType::Vector {
            element,
            dimensions,
        } if elements.len() == usize::from(*dimensions) => {
            let parts = elements.iter().map(|value| part(element, value));
            let parts = parts.collect::<Result<Vec<Bytes>, _>>()?;
            value::join_vector(element, parts.iter().map(Bytes::as_ref))
        }
        CqlType::Text => return Ok(value.to_json().into()),
        _ => return Err(wrong(cql_type, value)),
    };
    canonical(cql_type, &joined)
}

fn of_map(
    cql_type: &CqlType,
    entries: &[(FileValue, FileValue)],
    value: &FileValue,
) -> Result<Bytes, ValueError> {
    let CqlType::Map {
        key, value: held, ..
    } = cql_type
    else {
        return match is_text(cql_type) {
            true => Ok(value.to_json().into()),
            false => Err(wrong(cql_type, value)),
        };
    };
    let null = || ValueError(format!("{cql_type} holds no null"));
    let mut parts = Vec::with_capacity(entries.len());
    for (name, part) in entries {
        let name = convert(key, name)?.ok_or_else(null)?;
        parts.push((name, convert(held, part)?.ok_or_else(null)?));
    }
    let joined = value::join_entries(parts.iter().map(|(key, part)| (&key[..], &part[..])));
    canonical(cql_type, &joined)
}

/// A list or dictionary as Python prints it, such as `['a', None]`, as JSON. `None` if a quote is
/// not closed.
fn python_as_json(text: &str) -> Option<String> {
    let mut json = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let words = ["None", "True", "False"];
        if let Some(word) = words.into_iter().find(|word| rest.starts_with(word)) {
            let meant = if word == "None" {
                "null".to_owned()
            } else {
                word.to_lowercase()
            };
            json.push_str(&meant);
            rest = &rest[word.len()..];
        } else if matches!(letter, '\'' | '"') {
            let (string, after) = python_string(&rest[1..], letter)?;
            json.push_str(&json_string(&string));
            rest = after;
        } else {
            json.push(letter);
            rest = &rest[letter.len_utf8()..];
        }
    }
    Some(json)
}

/// A string of Python up to its closing quote, and what follows.
fn python_string(text: &str, quote: char) -> Option<(String, &str)> {
    let mut string = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => string.push(match letters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            _ if letter == quote => return Some((string, &text[at + 1..])),
            _ => string.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use value::json_text;

    use super::*;

    fn cell(text: &str) -> FileValue {
        FileValue::Cell(text.to_owned())
    }

    /// The JSON of the converted value, or the reason of its refusal.
    fn converted(cql_type: &CqlType, value: &FileValue) -> Result<String, String> {
        let bytes = convert(cql_type, value).map_err(|error| error.0)?;
        json_text(cql_type, bytes.as_deref()).map_err(|error| error.0)
    }

    fn list(element: CqlType) -> CqlType {
        CqlType::List {
            element: Box::new(element),
            frozen: false,
        }
    }

    fn vector(dimensions: u16) -> CqlType {
        CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions,
        }
    }

    #[test]
    fn cells_become_values_of_every_simple_type() {
        for (cql_type, text, json) in [
            (CqlType::Int, "12", "12"),
            (CqlType::Int, "12.0", "12"),
            (CqlType::Bigint, "NaN", "null"),
            (CqlType::Double, "nan", "null"),
            (CqlType::Float, "1.", "1.0"),
            (CqlType::Boolean, "True", "true"),
            (CqlType::Decimal, "1.50", "1.50"),
            (CqlType::Text, " a ", "\" a \""),
            (CqlType::Date, "2024-02-29", "\"2024-02-29\""),
            (
                CqlType::Timestamp,
                "2024-02-29 12:00:00+02:00",
                "\"2024-02-29 10:00:00.000Z\"",
            ),
            (CqlType::Inet, "127.0.0.1", "\"127.0.0.1\""),
            (
                list(CqlType::Text),
                "['it\\'s', \"b\"]",
                "[\"it's\", \"b\"]",
            ),
            (list(CqlType::Int), "[1, 2]", "[1, 2]"),
            (vector(2), "[ 0.5 -2.]", "[0.5, -2.0]"),
        ] {
            let found = converted(&cql_type, &cell(text));
            assert_eq!(found.as_deref(), Ok(json), "{cql_type} {text}");
        }
    }

    #[test]
    fn values_that_do_not_fit_are_refused_with_the_reason() {
        for (cql_type, value, reason) in [
            (CqlType::Int, cell("x"), "int"),
            (CqlType::Int, cell("1.5"), "int"),
            (CqlType::Int, FileValue::Integer(1 << 40), "out of range"),
            (CqlType::Text, FileValue::Integer(1), "UTF-8 string"),
            (CqlType::Bigint, FileValue::Double(0.5), "bigint"),
            (CqlType::Uuid, cell("7"), "uuid"),
            (CqlType::Date, FileValue::Timestamp(1), "date"),
            (vector(2), cell("[1.0]"), "the vector has 1 elements"),
            (
                vector(2),
                FileValue::Floats(vec![1.0, f32::NAN]),
                "element 1",
            ),
            (
                vector(2),
                FileValue::Json("[1, null]".to_owned()),
                "list of numbers",
            ),
            (
                list(CqlType::Int),
                FileValue::List(vec![FileValue::Null]),
                "no null",
            ),
            (list(CqlType::Int), FileValue::Integer(1), "a list"),
        ] {
            let refused = converted(&cql_type, &value).unwrap_err();
            assert!(refused.contains(reason), "{cql_type} {value:?}: {refused}");
        }
    }

    #[test]
    fn values_of_parquet_become_those_of_columns() {
        let struct_value = FileValue::Struct(vec![("a".to_owned(), FileValue::Integer(1))]);
        let uuid = FileValue::Bytes(Bytes::from_static(&[7; 16]));
        let map = CqlType::Map {
            key: Box::new(CqlType::Text),
            value: Box::new(CqlType::Bigint),
            frozen: false,
        };
        let entries = FileValue::Map(vec![(
            FileValue::Text("k".to_owned()),
            FileValue::Integer(2),
        )]);
        for (cql_type, value, json) in [
            (CqlType::Text, struct_value, r#""{\"a\": 1}""#),
            (
                CqlType::Uuid,
                uuid,
                "\"07070707-0707-0707-0707-070707070707\"",
            ),
            (CqlType::Date, FileValue::Date(-1), "\"1969-12-31\""),
            (
                CqlType::Date,
                FileValue::Timestamp(86_400_000),
                "\"1970-01-02\"",
            ),
            (CqlType::Time, FileValue::Time(1), "\"00:00:00.000000001\""),
            (CqlType::Bigint, FileValue::Double(3.0), "3"),
            (CqlType::Bigint, FileValue::Double(f64::NAN), "null"),
            (CqlType::Float, FileValue::Float(0.1), "0.1"),
            (CqlType::Double, FileValue::Integer(2), "2.0"),
            (CqlType::Boolean, FileValue::Boolean(true), "true"),
            (map, entries, r#"{"k": 2}"#),
            (list(CqlType::Double), FileValue::Floats(vec![0.5]), "[0.5]"),
        ] {
            assert_eq!(converted(&cql_type, &value).as_deref(), Ok(json));
        }
    }
}
