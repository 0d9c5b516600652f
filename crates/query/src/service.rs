//! Answers of the index service: keys, which become serialised values, and refusals, which become
//! errors of the statement.

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use store_api::{ClientError, KeyValue};
use value::{CqlType, from_key_json, validate};

/// The serialised values of a primary key, whose columns are of `types`. `None` if the values sent
/// are not of these types, or not as many, or the type of a column is not known.
pub fn key_values<'t>(
    types: impl ExactSizeIterator<Item = Option<&'t CqlType>>,
    sent: &[KeyValue],
) -> Option<Vec<Bytes>> {
    if sent.len() != types.len() {
        return None;
    }
    types
        .zip(sent)
        .map(|(cql_type, value)| key_value(cql_type?, value))
        .collect()
}

fn key_value(cql_type: &CqlType, sent: &KeyValue) -> Option<Bytes> {
    match sent {
        KeyValue::Json(json) => from_key_json(cql_type, json),
        KeyValue::Cql(bytes) => validate(cql_type, bytes).is_ok().then(|| bytes.clone()),
    }
}

/// The error for a search that the index service refused. Overload has the code upon which drivers
/// try another node or try again later. Any other error counts as the statement's fault, as in
/// ScyllaDB.
pub fn refused(error: ClientError) -> CqlError {
    match error {
        ClientError::Overloaded { .. } => CqlError::new(ErrorKind::Overloaded, error.to_string()),
        error => CqlError::invalid(error.to_string()),
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
        assert_eq!(key_value(&CqlType::Int, &json), Some(seven.clone()));
        let sent = [json, key(b"a")];
        let (int, text) = (CqlType::Int, CqlType::Text);
        let values = |types: &[Option<&CqlType>]| key_values(types.iter().copied(), &sent);
        let whole = vec![seven, Bytes::from_static(b"a")];
        assert_eq!(values(&[Some(&int), Some(&text)]), Some(whole));
        assert_eq!(values(&[Some(&int), None]), None);
        assert_eq!(values(&[Some(&int)]), None);
    }
}
