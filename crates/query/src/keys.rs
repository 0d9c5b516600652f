//! Keys in an answer of the index service, which become serialised values.

use bytes::Bytes;
use store_api::KeyValue;
use value::{CqlType, from_key_json, validate};

/// The serialised value of a key column; `None` if the value sent is not of its type.
pub fn key_value(cql_type: &CqlType, sent: &KeyValue) -> Option<Bytes> {
    match sent {
        KeyValue::Json(json) => from_key_json(cql_type, json),
        KeyValue::Cql(bytes) => validate(cql_type, bytes).is_ok().then(|| bytes.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use value::Value;

    use super::*;

    #[test]
    fn serialised_values_are_taken_as_they_are_if_they_are_of_the_type() {
        let key = |bytes: &'static [u8]| KeyValue::Cql(Bytes::from_static(bytes));
        for (cql_type, bytes, is_valid) in [
            (CqlType::Int, &[0, 0, 0, 7][..], true),
            (CqlType::Int, &[7], false),
            (CqlType::Text, "naïve".as_bytes(), true),
            (CqlType::Text, &[0xff], false),
            // The key 1.00 is another partition than 1.0.
            (CqlType::Decimal, &[0, 0, 0, 2, 100], true),
            (CqlType::Decimal, &[0, 0, 0], false),
            (CqlType::Uuid, &[0; 15], false),
        ] {
            let expected = is_valid.then(|| Bytes::from_static(bytes));
            assert_eq!(key_value(&cql_type, &key(bytes)), expected, "{cql_type}");
        }
        let json = KeyValue::Json(json!(7));
        let seven = Value::Int(7).serialize();
        assert_eq!(key_value(&CqlType::Int, &json), Some(seven));
    }
}
