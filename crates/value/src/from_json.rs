//! Values from JSON, as `INSERT JSON` and `fromJson` take them.
//!
//! Numbers, dates and collections may be in a string, too: `"12"` is an `int`, and `"[1, 2]"` a
//! list. The keys of maps always do. The text of a number is used as it is written, so that no
//! digit of a decimal or varint is lost.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use serde::de::{Deserializer as _, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::collection::put_field;
use crate::literal::excerpt;
use crate::{
    CqlType, Literal, UserType, Value, ValueError, canonical, from_literal, parse_duration,
};

/// A value of JSON, of which lists and objects are still text.
enum ShallowJson<'a> {
    Null,
    Boolean(bool),
    /// The digits as they are written.
    Number(&'a str),
    String(String),
    List(&'a str),
    Object(&'a str),
}

/// The most bytes of a JSON text. Its values take a few times as many while it is read.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;

/// Hands the fields of a JSON object over one by one: each name with the text of its value. No
/// field is stored here.
///
/// # Errors
/// If the text is too long or no JSON object, and the first error of `take`.
pub fn json_fields(
    text: &str,
    take: impl FnMut(String, &str) -> Result<(), ValueError>,
) -> Result<(), ValueError> {
    check_length(text)?;
    let mut refused = None;
    let fields = ObjectFieldVisitor {
        take,
        refused: &mut refused,
    };
    let read = each(text, fields);
    outcome(read, refused, |error| {
        ValueError(format!(
            "Could not decode JSON string as a map: {error}. (String was: {})",
            excerpt(text)
        ))
    })
}

/// The serialised value that a text of JSON means; `None` for `null`.
///
/// # Errors
/// If the text is too long or no JSON, or means no value of the type.
pub fn from_json(cql_type: &CqlType, text: &str) -> Result<Option<Bytes>, ValueError> {
    check_length(text)?;
    match value(cql_type, text)? {
        Some(bytes) => canonical(cql_type, &bytes).map(Some),
        None => Ok(None),
    }
}

fn value(cql_type: &CqlType, text: &str) -> Result<Option<Bytes>, ValueError> {
    let json = parse(text)?;
    let bytes = match (cql_type, json) {
        (_, ShallowJson::Null) => return Ok(None),
        (_, ShallowJson::String(inner)) if is_compound(cql_type) => match parse(&inner)? {
            ShallowJson::String(_) => {
                return Err(unexpected(cql_type, &ShallowJson::String(inner)));
            }
            json => compound(cql_type, &json)?,
        },
        (_, json) if is_compound(cql_type) => compound(cql_type, &json)?,
        (_, ShallowJson::String(text)) => from_string(cql_type, text)?,
        (CqlType::Boolean, ShallowJson::Boolean(truth)) => {
            from_literal(cql_type, &Literal::Boolean(truth))?
        }
        (_, json @ ShallowJson::Number(number)) => match literal(cql_type, number) {
            Some(literal) => from_literal(cql_type, &literal)?,
            None => return Err(unexpected(cql_type, &json)),
        },
        (_, json) => return Err(unexpected(cql_type, &json)),
    };
    Ok(Some(bytes))
}

fn parse(text: &str) -> Result<ShallowJson<'_>, ValueError> {
    let no_json = |error| not_json(text, &error);
    let raw: &RawValue = serde_json::from_str(text).map_err(no_json)?;
    let text = raw.get();
    Ok(match text.as_bytes().first() {
        Some(b'n') => ShallowJson::Null,
        Some(b't' | b'f') => ShallowJson::Boolean(text == "true"),
        Some(b'"') => ShallowJson::String(serde_json::from_str(text).map_err(no_json)?),
        Some(b'[') => ShallowJson::List(text),
        Some(b'{') => ShallowJson::Object(text),
        _ => ShallowJson::Number(text),
    })
}

/// The constant that a number means; `None` if the type takes no such number.
fn literal(cql_type: &CqlType, number: &str) -> Option<Literal> {
    let is_whole = !number.contains(['.', 'e', 'E']);
    match cql_type {
        CqlType::Tinyint
        | CqlType::Smallint
        | CqlType::Int
        | CqlType::Bigint
        | CqlType::Counter
        | CqlType::Varint
        | CqlType::Timestamp => is_whole.then(|| Literal::Integer(number.to_owned())),
        CqlType::Float | CqlType::Double | CqlType::Decimal => Some(match is_whole {
            true => Literal::Integer(number.to_owned()),
            false => Literal::Float(number.to_owned()),
        }),
        _ => None,
    }
}

fn from_string(cql_type: &CqlType, text: String) -> Result<Bytes, ValueError> {
    if text.is_empty() && is_empty_of(cql_type) {
        return Ok(Bytes::new());
    }
    let wrong = || unexpected(cql_type, &ShallowJson::String(text.clone()));
    let literal = match cql_type {
        CqlType::Blob => match text.strip_prefix("0x") {
            Some(digits) => Literal::Blob(hexadecimal(digits).ok_or_else(wrong)?),
            None => {
                return Err(ValueError(format!(
                    "String representation of blob is missing 0x prefix: {}",
                    excerpt(&text)
                )));
            }
        },
        CqlType::Boolean => match text.to_ascii_lowercase().as_str() {
            "true" => Literal::Boolean(true),
            // To Cassandra, an empty text is one that is not true.
            "false" | "" => Literal::Boolean(false),
            _ => return Err(wrong()),
        },
        CqlType::Uuid | CqlType::Timeuuid => {
            Literal::Uuid(Uuid::try_parse(&text).map_err(|_| wrong())?)
        }
        CqlType::Duration => {
            let negative = text.strip_prefix('-');
            let parsed = parse_duration(negative.unwrap_or(&text)).map_err(|_| wrong())?;
            let sign = if negative.is_some() { -1 } else { 1 };
            Literal::Duration {
                months: sign * parsed.0,
                days: sign * parsed.1,
                nanoseconds: i64::from(sign) * parsed.2,
            }
        }
        CqlType::Float | CqlType::Double if ["NaN", "Infinity", "-Infinity"].contains(&&*text) => {
            Literal::Float(text)
        }
        CqlType::Tinyint
        | CqlType::Smallint
        | CqlType::Int
        | CqlType::Bigint
        | CqlType::Counter
        | CqlType::Varint
        | CqlType::Float
        | CqlType::Double
        | CqlType::Decimal => match parse(&text) {
            Ok(ShallowJson::Number(number)) => literal(cql_type, number).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        },
        _ => Literal::String(text),
    };
    from_literal(cql_type, &literal)
}

/// Whether an empty string is the empty value of the type, as in Cassandra. There it is one of a
/// tinyint, smallint and duration, too, for which empty bytes are refused everywhere else.
fn is_empty_of(cql_type: &CqlType) -> bool {
    matches!(
        cql_type,
        CqlType::Int
            | CqlType::Bigint
            | CqlType::Decimal
            | CqlType::Float
            | CqlType::Double
            | CqlType::Uuid
            | CqlType::Timeuuid
    )
}

fn hexadecimal(digits: &str) -> Option<Bytes> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8))
        .collect()
}

/// Whether values of the type have other values in them.
fn is_compound(cql_type: &CqlType) -> bool {
    matches!(
        cql_type,
        CqlType::List { .. }
            | CqlType::Set { .. }
            | CqlType::Map { .. }
            | CqlType::Tuple(_)
            | CqlType::Vector { .. }
            | CqlType::UserType { .. }
    )
}

/// A value of a type that has other values in it.
fn compound(cql_type: &CqlType, json: &ShallowJson<'_>) -> Result<Bytes, ValueError> {
    match (cql_type, json) {
        (CqlType::List { element, .. }, ShallowJson::List(text)) => elements(element, text, "list"),
        (CqlType::Set { element, .. }, ShallowJson::List(text)) => elements(element, text, "set"),
        (
            CqlType::Vector {
                element,
                dimensions,
            },
            ShallowJson::List(text),
        ) => vector(element, *dimensions, text),
        (CqlType::Map { key, value: of, .. }, ShallowJson::Object(text)) => map(key, of, text),
        (CqlType::Tuple(types), ShallowJson::List(text)) => tuple(types, text),
        (CqlType::UserType { definition, .. }, ShallowJson::Object(text)) => {
            user_type(definition, text)
        }
        _ => Err(unexpected(cql_type, json)),
    }
}

/// A collection: the number of its parts or entries, and each part after its length.
fn collection(
    fill: impl FnOnce(&mut BytesMut) -> Result<usize, ValueError>,
) -> Result<Bytes, ValueError> {
    let mut out = BytesMut::new();
    out.put_i32(0);
    let count = fill(&mut out)?;
    out[..4].copy_from_slice(&(count as i32).to_be_bytes());
    Ok(out.freeze())
}

fn elements(element: &CqlType, text: &str, kind: &str) -> Result<Bytes, ValueError> {
    collection(|out| {
        let mut count = 0;
        json_elements(text, |json| {
            put_field(out, &part(element, json, || format!("element in {kind}"))?);
            count += 1;
            Ok(())
        })?;
        Ok(count)
    })
}

fn vector(element: &CqlType, dimensions: u16, text: &str) -> Result<Bytes, ValueError> {
    let wanted = usize::from(dimensions);
    let mut values = Vec::with_capacity(wanted);
    let mut count = 0;
    json_elements(text, |json| {
        count += 1;
        if count <= wanted {
            let bytes = part(element, json, || "element in vector".to_owned())?;
            if bytes.is_empty() && element.fixed_length().is_some() {
                return Err(ValueError("Invalid empty element in vector".to_owned()));
            }
            values.push(Value::deserialize(element, &bytes)?);
        }
        Ok(())
    })?;
    if count != wanted {
        return Err(ValueError(format!(
            "a value of type vector<{element}, {dimensions}> has {dimensions} elements, got {count}"
        )));
    }
    Ok(Value::Vector(values).serialize())
}

fn map(key: &CqlType, of: &CqlType, text: &str) -> Result<Bytes, ValueError> {
    collection(|out| {
        let mut count = 0;
        json_fields(text, |name, json| {
            let name = match is_compound(key) {
                true => part(key, &name, || "key in map".to_owned())?,
                false => from_string(key, name)?,
            };
            put_field(out, &name);
            put_field(out, &part(of, json, || "value in map".to_owned())?);
            count += 1;
            Ok(())
        })?;
        Ok(count)
    })
}

/// A value within a collection, where null has no place.
fn part(
    cql_type: &CqlType,
    json: &str,
    place: impl FnOnce() -> String,
) -> Result<Bytes, ValueError> {
    value(cql_type, json)?.ok_or_else(|| ValueError(format!("Invalid null {}", place())))
}

fn tuple(types: &[CqlType], text: &str) -> Result<Bytes, ValueError> {
    let count = types.len();
    let wrong = |what: &str| {
        ValueError(format!(
            "Tuple {what} items (expected {count}): {}",
            excerpt(text)
        ))
    };
    let mut fields = Vec::with_capacity(count);
    json_elements(text, |json| {
        let cql_type = types.get(fields.len());
        fields.push(value(
            cql_type.ok_or_else(|| wrong("contains extra"))?,
            json,
        )?);
        Ok(())
    })?;
    match fields.len() == count {
        true => Ok(joined(&fields)),
        false => Err(wrong("is missing")),
    }
}

/// A value of a user type. Fields that the object does not name are null.
fn user_type(definition: &UserType, text: &str) -> Result<Bytes, ValueError> {
    let mut fields = vec![None; definition.field_types.len()];
    json_fields(text, |name, json| {
        let name = json_column(&name);
        let Some(position) = definition.position(&name) else {
            return Err(ValueError(format!(
                "Unknown field '{}' in value of user defined type {}",
                excerpt(&name),
                definition.name
            )));
        };
        fields[position] = value(&definition.field_types[position], json)?;
        Ok(())
    })?;
    Ok(joined(&fields))
}

/// The name that a field of an object means: as it is written in double quotes, else in lower case.
pub fn json_column(field: &str) -> String {
    match field
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
    {
        Some(exact) => exact.to_owned(),
        None => field.to_lowercase(),
    }
}

/// Fields after their lengths; `None` for null.
fn joined(fields: &[Option<Bytes>]) -> Bytes {
    let mut out = BytesMut::new();
    for field in fields {
        match field {
            Some(field) => put_field(&mut out, field),
            None => out.put_i32(-1),
        }
    }
    out.freeze()
}

/// Hands the elements of a JSON list over one by one.
fn json_elements(
    text: &str,
    take: impl FnMut(&str) -> Result<(), ValueError>,
) -> Result<(), ValueError> {
    let mut refused = None;
    let read = each(
        text,
        ListElementVisitor {
            take,
            refused: &mut refused,
        },
    );
    outcome(read, refused, |error| not_json(text, &error))
}

/// Hands the parts of a list or an object over. It reads the whole text.
fn each<'de>(text: &'de str, parts: impl Visitor<'de, Value = ()>) -> serde_json::Result<()> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_any(parts)?;
    reader.end()
}

/// The error with which a part was refused, or else that of the reading.
fn outcome(
    read: serde_json::Result<()>,
    refused: Option<ValueError>,
    not_read: impl FnOnce(serde_json::Error) -> ValueError,
) -> Result<(), ValueError> {
    match (refused, read) {
        (Some(refused), _) => Err(refused),
        (None, read) => read.map_err(not_read),
    }
}

/// Takes the fields of an object, up to the first that is refused.
struct ObjectFieldVisitor<'r, F> {
    take: F,
    refused: &'r mut Option<ValueError>,
}

/// Takes the elements of a list, up to the first that is refused.
struct ListElementVisitor<'r, F> {
    take: F,
    refused: &'r mut Option<ValueError>,
}

impl<'de, F: FnMut(String, &str) -> Result<(), ValueError>> Visitor<'de>
    for ObjectFieldVisitor<'_, F>
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        while let Some((name, json)) = fields.next_entry::<String, &RawValue>()? {
            if let Err(error) = (self.take)(name, json.get()) {
                *self.refused = Some(error);
                return Err(A::Error::custom("a field is refused"));
            }
        }
        Ok(())
    }
}

impl<'de, F: FnMut(&str) -> Result<(), ValueError>> Visitor<'de> for ListElementVisitor<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(json) = elements.next_element::<&RawValue>()? {
            if let Err(error) = (self.take)(json.get()) {
                *self.refused = Some(error);
                return Err(A::Error::custom("an element is refused"));
            }
        }
        Ok(())
    }
}

fn check_length(text: &str) -> Result<(), ValueError> {
    match text.len() > TEXT_BYTES_MAX {
        true => Err(ValueError(format!(
            "a JSON text has {TEXT_BYTES_MAX} bytes at most, this one {}: bind the values instead",
            text.len()
        ))),
        false => Ok(()),
    }
}

fn not_json(text: &str, error: &serde_json::Error) -> ValueError {
    let text = excerpt(text);
    ValueError(format!("Could not decode JSON string '{text}': {error}"))
}

/// The error for JSON of the wrong kind, with the names that Cassandra gives to kinds.
fn unexpected(cql_type: &CqlType, json: &ShallowJson<'_>) -> ValueError {
    let expected = match cql_type {
        CqlType::List { .. } | CqlType::Vector { .. } => "a list",
        CqlType::Set { .. } => "a list (representing a set)",
        CqlType::Map { .. } | CqlType::UserType { .. } => "a map",
        CqlType::Tuple(_) => "a list representation of a tuple",
        CqlType::Ascii => "an ascii string",
        CqlType::Text => "a UTF-8 string",
        CqlType::Int => "an int value",
        CqlType::Tinyint => "a byte value",
        CqlType::Smallint => "a short value",
        CqlType::Date => "a string representation of a date value",
        CqlType::Time => "a string representation of a time value",
        CqlType::Timestamp => "a long or a datestring representation of a timestamp value",
        CqlType::Uuid => "a string representation of a uuid",
        CqlType::Timeuuid => "a string representation of a timeuuid",
        CqlType::Inet => "a string representation of an inet value",
        CqlType::Blob => "a string representation of a blob",
        other => &format!("a {other} value"),
    };
    let (kind, text) = match json {
        ShallowJson::Null => ("null", "null"),
        ShallowJson::Boolean(true) => ("Boolean", "true"),
        ShallowJson::Boolean(false) => ("Boolean", "false"),
        ShallowJson::Number(number) => (number_kind(number), *number),
        ShallowJson::String(text) => ("String", text.as_str()),
        ShallowJson::List(text) => ("ArrayList", *text),
        ShallowJson::Object(text) => ("LinkedHashMap", *text),
    };
    let text = excerpt(text);
    ValueError(format!("Expected {expected}, but got a {kind}: {text}"))
}

fn number_kind(number: &str) -> &'static str {
    if number.contains(['.', 'e', 'E']) {
        "Double"
    } else if number.parse::<i32>().is_ok() {
        "Integer"
    } else if number.parse::<i64>().is_ok() {
        "Long"
    } else {
        "BigInteger"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_text;

    fn of(text: &str) -> Box<CqlType> {
        Box::new(match text {
            "int" => CqlType::Int,
            _ => CqlType::Text,
        })
    }

    #[test]
    fn values_come_back_as_the_json_that_they_were_read_from() {
        let map = CqlType::Map {
            key: Box::new(CqlType::Tuple(vec![CqlType::Int, CqlType::Text])),
            value: of("int"),
            frozen: false,
        };
        let vector = CqlType::Vector {
            element: of("text"),
            dimensions: 2,
        };
        for (cql_type, text) in [
            (&map, r#"{"[1, \"a\"]": 5, "[2, null]": 6}"#),
            (&vector, r#"["a", "b"]"#),
            (&CqlType::Decimal, "3.140"),
        ] {
            let bytes = from_json(cql_type, text).unwrap();
            assert_eq!(json_text(cql_type, bytes.as_deref()).unwrap(), text);
        }
        assert_eq!(from_json(&map, "null"), Ok(None));
    }

    #[test]
    fn reading_ends_at_the_first_part_that_is_refused() {
        let mut seen = Vec::new();
        let text = r#"{"a": 1, "b": [2], "c": 3, no json"#;
        let refused = json_fields(text, |name, json| {
            seen.push(format!("{name}{json}"));
            match name.as_str() {
                "b" => Err(ValueError::new("enough")),
                _ => Ok(()),
            }
        });
        assert_eq!(refused, Err(ValueError::new("enough")));
        assert_eq!(seen, ["a1", "b[2]"]);
        let error = json_fields("[1]", |_, _| Ok(())).unwrap_err().0;
        assert!(error.contains("expected a JSON object"), "{error}");
    }

    #[test]
    fn errors_show_the_beginning_of_a_text_and_no_text_is_endless() {
        let list = CqlType::List {
            element: of("int"),
            frozen: false,
        };
        for text in [
            format!("[1, {}]", "x".repeat(1000)),
            format!("\"{}\"", "x".repeat(1000)),
            format!("{{\"{}\": 1}}", "x".repeat(1000)),
            " ".repeat(TEXT_BYTES_MAX + 1),
        ] {
            let error = from_json(&list, &text).unwrap_err().0;
            assert!(error.len() < 300, "{} bytes", error.len());
        }
    }
}
