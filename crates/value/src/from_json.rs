//! Values from JSON, as `INSERT JSON` and `fromJson` take them.
//!
//! Numbers, dates and collections may stand in a string, too: `"12"` is an `int`, and `"[1, 2]"` a
//! list. The keys of maps always do. The text of a number is kept as it is written, so that no
//! digit of a decimal or varint is lost.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{
    CqlType, Literal, UserType, Value, ValueError, canonical, from_literal, join_elements,
    join_entries, parse_duration,
};

/// A value of JSON, of which lists and objects are still text.
enum Json<'a> {
    Null,
    Boolean(bool),
    /// The digits as they are written.
    Number(&'a str),
    String(String),
    List(&'a str),
    Object(&'a str),
}

/// The fields of a JSON object, as text by name. Of fields with one name the last stays.
///
/// # Errors
/// If the text is no JSON object.
pub fn json_fields(text: &str) -> Result<BTreeMap<String, &RawValue>, ValueError> {
    serde_json::from_str(text).map_err(|error| {
        ValueError(format!(
            "Could not decode JSON string as a map: {error}. (String was: {text})"
        ))
    })
}

/// The serialised value that a text of JSON means; `None` for `null`.
///
/// # Errors
/// If the text is no JSON, or means no value of the type.
pub fn from_json(cql_type: &CqlType, text: &str) -> Result<Option<Bytes>, ValueError> {
    match value(cql_type, text)? {
        Some(bytes) => canonical(cql_type, &bytes).map(Some),
        None => Ok(None),
    }
}

fn value(cql_type: &CqlType, text: &str) -> Result<Option<Bytes>, ValueError> {
    let json = parse(text)?;
    let bytes = match (cql_type, json) {
        (_, Json::Null) => return Ok(None),
        (_, Json::String(inner)) if is_compound(cql_type) => match parse(&inner)? {
            Json::String(_) => return Err(unexpected(cql_type, &Json::String(inner))),
            json => compound(cql_type, &json)?,
        },
        (_, json) if is_compound(cql_type) => compound(cql_type, &json)?,
        (_, Json::String(text)) => from_string(cql_type, text)?,
        (CqlType::Boolean, Json::Boolean(truth)) => {
            from_literal(cql_type, &Literal::Boolean(truth))?
        }
        (_, json @ Json::Number(number)) => match literal(cql_type, number) {
            Some(literal) => from_literal(cql_type, &literal)?,
            None => return Err(unexpected(cql_type, &json)),
        },
        (_, json) => return Err(unexpected(cql_type, &json)),
    };
    Ok(Some(bytes))
}

fn parse(text: &str) -> Result<Json<'_>, ValueError> {
    let no_json = |error| ValueError(format!("Could not decode JSON string '{text}': {error}"));
    let raw: &RawValue = serde_json::from_str(text).map_err(no_json)?;
    let text = raw.get();
    Ok(match text.as_bytes().first() {
        Some(b'n') => Json::Null,
        Some(b't' | b'f') => Json::Boolean(text == "true"),
        Some(b'"') => Json::String(serde_json::from_str(text).map_err(no_json)?),
        Some(b'[') => Json::List(text),
        Some(b'{') => Json::Object(text),
        _ => Json::Number(text),
    })
}

/// The constant that a number stands for; `None` if the type takes no such number.
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
    let wrong = || unexpected(cql_type, &Json::String(text.clone()));
    let literal = match cql_type {
        CqlType::Blob => match text.strip_prefix("0x") {
            Some(digits) => Literal::Blob(hexadecimal(digits).ok_or_else(wrong)?),
            None => {
                return Err(ValueError(format!(
                    "String representation of blob is missing 0x prefix: {text}"
                )));
            }
        },
        CqlType::Boolean => match text.to_ascii_lowercase().as_str() {
            "true" => Literal::Boolean(true),
            "false" => Literal::Boolean(false),
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
            Ok(Json::Number(number)) => literal(cql_type, number).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        },
        _ => Literal::String(text),
    };
    from_literal(cql_type, &literal)
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
fn compound(cql_type: &CqlType, json: &Json<'_>) -> Result<Bytes, ValueError> {
    match (cql_type, json) {
        (CqlType::List { element, .. } | CqlType::Set { element, .. }, Json::List(text)) => {
            let kind = match cql_type {
                CqlType::Set { .. } => "set",
                _ => "list",
            };
            let elements = elements(element, text, kind)?;
            Ok(join_elements(elements.iter().map(Bytes::as_ref)))
        }
        (
            CqlType::Vector {
                element,
                dimensions,
            },
            Json::List(text),
        ) => {
            let elements = elements(element, text, "vector")?;
            if elements.len() != usize::from(*dimensions) {
                return Err(ValueError(format!(
                    "a value of type {cql_type} has {dimensions} elements, got {}",
                    elements.len()
                )));
            }
            let values = elements
                .iter()
                .map(|bytes| Value::deserialize(element, bytes))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(Value::Vector(values).serialize())
        }
        (CqlType::Map { key, value: of, .. }, Json::Object(text)) => map(key, of, text),
        (CqlType::Tuple(types), Json::List(text)) => tuple(types, text),
        (CqlType::UserType { definition, .. }, Json::Object(text)) => user_type(definition, text),
        _ => Err(unexpected(cql_type, json)),
    }
}

fn elements(element: &CqlType, text: &str, kind: &str) -> Result<Vec<Bytes>, ValueError> {
    parts(text)?
        .into_iter()
        .map(|part| {
            value(element, part.get())?
                .ok_or_else(|| ValueError(format!("Invalid null element in {kind}")))
        })
        .collect()
}

fn map(key: &CqlType, of: &CqlType, text: &str) -> Result<Bytes, ValueError> {
    let entries = json_fields(text)?
        .into_iter()
        .map(|(name, json)| {
            // A key that is no text stands for the JSON in it.
            let name = match key {
                CqlType::List { .. }
                | CqlType::Set { .. }
                | CqlType::Map { .. }
                | CqlType::Tuple(_)
                | CqlType::Vector { .. } => {
                    value(key, &name)?.ok_or_else(|| ValueError::new("Invalid null key in map"))?
                }
                _ => from_string(key, name)?,
            };
            let json = value(of, json.get())?
                .ok_or_else(|| ValueError::new("Invalid null value in map"))?;
            Ok((name, json))
        })
        .collect::<Result<Vec<(Bytes, Bytes)>, ValueError>>()?;
    Ok(join_entries(
        entries.iter().map(|(key, value)| (&**key, &**value)),
    ))
}

fn tuple(types: &[CqlType], text: &str) -> Result<Bytes, ValueError> {
    let parts = parts(text)?;
    let count = types.len();
    if parts.len() > count {
        return Err(ValueError(format!(
            "Tuple contains extra items (expected {count}): {text}"
        )));
    }
    if parts.len() < count {
        return Err(ValueError(format!(
            "Tuple is missing items (expected {count}): {text}"
        )));
    }
    let fields = types.iter().zip(parts);
    let fields = fields.map(|(cql_type, part)| value(cql_type, part.get()));
    Ok(joined(&fields.collect::<Result<Vec<_>, _>>()?))
}

/// A value of a user type. Fields that the object does not name are null.
fn user_type(definition: &UserType, text: &str) -> Result<Bytes, ValueError> {
    let mut given = BTreeMap::new();
    for (name, json) in json_fields(text)? {
        given.insert(json_column(&name), json);
    }
    let mut fields = Vec::new();
    for (name, cql_type) in definition.fields() {
        fields.push(match given.remove(name) {
            Some(json) => value(cql_type, json.get())?,
            None => None,
        });
    }
    match given.keys().next() {
        Some(name) => Err(ValueError(format!(
            "Unknown field '{name}' in value of user defined type {}",
            definition.name
        ))),
        None => Ok(joined(&fields)),
    }
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

/// Fields behind their lengths; `None` for null.
fn joined(fields: &[Option<Bytes>]) -> Bytes {
    let mut out = BytesMut::new();
    for field in fields {
        match field {
            Some(field) => {
                out.put_i32(field.len() as i32);
                out.put_slice(field);
            }
            None => out.put_i32(-1),
        }
    }
    out.freeze()
}

fn parts(text: &str) -> Result<Vec<&RawValue>, ValueError> {
    serde_json::from_str(text)
        .map_err(|error| ValueError(format!("Could not decode JSON string '{text}': {error}")))
}

/// The error for JSON of the wrong kind, with the names that Cassandra gives to kinds.
fn unexpected(cql_type: &CqlType, json: &Json<'_>) -> ValueError {
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
        Json::Null => ("null", "null"),
        Json::Boolean(true) => ("Boolean", "true"),
        Json::Boolean(false) => ("Boolean", "false"),
        Json::Number(number) => (number_kind(number), *number),
        Json::String(text) => ("String", text.as_str()),
        Json::List(text) => ("ArrayList", *text),
        Json::Object(text) => ("LinkedHashMap", *text),
    };
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
