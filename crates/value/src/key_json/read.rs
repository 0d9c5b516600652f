//! Reading of key values from JSON.

use bytes::Bytes;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{CqlType, Literal, Value, from_literal};

/// Reads a value from its JSON form. Where both a number and a string make sense, both are read.
/// `None` if the JSON is no value of the type.
pub fn from_key_json(cql_type: &CqlType, json: &Json) -> Option<Bytes> {
    match (cql_type, json) {
        (CqlType::Boolean, Json::Bool(truth)) => Some(Value::Boolean(*truth).serialize()),
        (CqlType::Text, Json::String(text)) => Some(Bytes::copy_from_slice(text.as_bytes())),
        (CqlType::Blob, Json::String(text)) => hex(text.strip_prefix("0x")?).map(Bytes::from),
        (CqlType::Uuid | CqlType::Timeuuid, Json::String(text)) => {
            literal(cql_type, Literal::Uuid(Uuid::try_parse(text).ok()?))
        }
        (CqlType::Float, Json::Number(number)) => {
            Some(Value::Float(number.as_f64()? as f32).serialize())
        }
        (CqlType::Double, Json::Number(number)) => {
            Some(Value::Double(number.as_f64()?).serialize())
        }
        (
            CqlType::Ascii | CqlType::Inet | CqlType::Date | CqlType::Time | CqlType::Timestamp,
            Json::String(text),
        ) => literal(cql_type, Literal::String(text.clone())),
        (
            CqlType::Tinyint
            | CqlType::Smallint
            | CqlType::Int
            | CqlType::Bigint
            | CqlType::Varint
            | CqlType::Decimal
            | CqlType::Float
            | CqlType::Double,
            Json::String(text),
        ) => number(cql_type, text),
        (
            CqlType::Tinyint
            | CqlType::Smallint
            | CqlType::Int
            | CqlType::Bigint
            | CqlType::Varint
            | CqlType::Decimal
            | CqlType::Timestamp,
            Json::Number(digits),
        ) => number(cql_type, &digits.to_string()),
        _ => None,
    }
}

fn literal(cql_type: &CqlType, literal: Literal) -> Option<Bytes> {
    from_literal(cql_type, &literal).ok()
}

fn number(cql_type: &CqlType, text: &str) -> Option<Bytes> {
    let is_integer = text
        .strip_prefix('-')
        .unwrap_or(text)
        .bytes()
        .all(|byte| byte.is_ascii_digit());
    literal(
        cql_type,
        if is_integer {
            Literal::Integer(text.to_owned())
        } else {
            Literal::Float(text.to_owned())
        },
    )
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_key_type_is_read() {
        let uuid = "00112233-4455-1677-8899-aabbccddeeff";
        let parsed = Uuid::try_parse(uuid).unwrap();
        let cases = [
            (
                CqlType::Text,
                json!("naïve"),
                Value::Text("naïve".to_owned()),
            ),
            (CqlType::Ascii, json!("a"), Value::Ascii("a".to_owned())),
            (CqlType::Boolean, json!(true), Value::Boolean(true)),
            (CqlType::Tinyint, json!(-5), Value::Tinyint(-5)),
            (CqlType::Smallint, json!(300), Value::Smallint(300)),
            (CqlType::Int, json!(70_000), Value::Int(70_000)),
            (CqlType::Int, json!("-7"), Value::Int(-7)),
            (CqlType::Bigint, json!(i64::MIN), Value::Bigint(i64::MIN)),
            (CqlType::Float, json!(0.1_f32), Value::Float(0.1)),
            (CqlType::Double, json!(1e300), Value::Double(1e300)),
            (CqlType::Varint, json!(7), Value::Varint(7.into())),
            (
                CqlType::Varint,
                json!("123456789012345678901234567890"),
                Value::Varint("123456789012345678901234567890".parse().unwrap()),
            ),
            (CqlType::Uuid, json!(uuid), Value::Uuid(parsed)),
            (CqlType::Timeuuid, json!(uuid), Value::Timeuuid(parsed)),
            (
                CqlType::Date,
                json!("1970-01-02"),
                Value::Date((1 << 31) + 1),
            ),
            (
                CqlType::Time,
                json!("00:00:01.000000002"),
                Value::Time(1_000_000_002),
            ),
            (
                CqlType::Timestamp,
                json!("1970-01-01T00:00:01.500Z"),
                Value::Timestamp(1_500),
            ),
            (
                CqlType::Timestamp,
                json!("1970-01-01 00:00:01.500Z"),
                Value::Timestamp(1_500),
            ),
            (CqlType::Timestamp, json!(1_500), Value::Timestamp(1_500)),
            (
                CqlType::Blob,
                json!("0x00FFa1"),
                Value::Blob(Bytes::from_static(&[0, 255, 161])),
            ),
            (
                CqlType::Inet,
                json!("127.0.0.1"),
                Value::Inet([127, 0, 0, 1].into()),
            ),
        ];
        for (cql_type, json, expected) in cases {
            assert_eq!(
                from_key_json(&cql_type, &json),
                Some(expected.serialize()),
                "{json} as {cql_type}"
            );
        }
    }

    #[test]
    fn decimals_keep_their_scale() {
        let one = from_key_json(&CqlType::Decimal, &json!("1.0")).unwrap();
        let same = from_key_json(&CqlType::Decimal, &json!("1.00")).unwrap();
        assert_ne!(one, same);
        assert_eq!(one.as_ref(), [0, 0, 0, 1, 10]);
    }

    #[test]
    fn values_that_are_no_key_are_refused() {
        for (cql_type, json) in [
            (CqlType::Int, json!(null)),
            (CqlType::Int, json!(3_000_000_000_i64)),
            (CqlType::Int, json!("x")),
            (CqlType::Int, json!("")),
            (CqlType::Text, json!(1)),
            (CqlType::Blob, json!("0x0")),
            (CqlType::Blob, json!("00")),
            (CqlType::Uuid, json!("nope")),
            (CqlType::Duration, json!("1d")),
        ] {
            assert_eq!(
                from_key_json(&cql_type, &json),
                None,
                "{json} as {cql_type}"
            );
        }
    }
}
