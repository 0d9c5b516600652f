//! `toJson` and `fromJson`: the JSON text of a value of any type, and the value that it means.

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use value::{CqlType, json_text};

use super::is_empty_value;

/// The JSON text of a value. Null and an empty value give the text `null`.
pub(super) fn to_json(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Bytes, CqlError> {
    let value = value.filter(|bytes| !is_empty_value(cql_type, bytes));
    match json_text(cql_type, value) {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(CqlError::invalid(format!(
            "In call to function system.tojson: {error}"
        ))),
    }
}

/// The value that a text of JSON means; null for null and for the text `null`.
pub(super) fn from_json(
    cql_type: &CqlType,
    text: Option<&[u8]>,
) -> Result<Option<Bytes>, CqlError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(text);
    value::from_json(cql_type, &text).map_err(|error| {
        CqlError::new(
            ErrorKind::FunctionFailure {
                keyspace: "system".to_owned(),
                function: "fromjson".to_owned(),
                argument_types: vec!["text".to_owned()],
            },
            format!(
                "execution of 'system.fromjson[text]' failed: Could not decode JSON string '{text}': {}",
                error.0
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_value_alone_is_null() {
        assert_eq!(to_json(&CqlType::Int, Some(&[])).unwrap(), "null");
        assert_eq!(to_json(&CqlType::Text, Some(&[])).unwrap(), "\"\"");
        let tuple = CqlType::Tuple(vec![CqlType::Int]);
        assert_eq!(to_json(&tuple, Some(&[0; 4])).unwrap(), "[\"\"]");
    }
}
