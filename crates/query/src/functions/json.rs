//! `toJson`: the JSON text of a value of any type.

use bytes::Bytes;
use cql::error::CqlError;
use value::{CqlType, json_text};

/// The JSON text of a value. Null gives the text `null`.
pub(super) fn to_json(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Bytes, CqlError> {
    match json_text(cql_type, value) {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(CqlError::invalid(format!(
            "In call to function system.tojson: {error}"
        ))),
    }
}
