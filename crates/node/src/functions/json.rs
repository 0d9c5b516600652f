//! `toJson`: a value of any type as text.

use bytes::Bytes;
use cql::error::CqlError;
use cql::types::CqlType;
use cql::value::json_text;

/// The JSON text of a value; that of null is a text too.
pub(super) fn to_json(cql_type: &CqlType, value: Option<&[u8]>) -> Result<Bytes, CqlError> {
    match json_text(cql_type, value) {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(CqlError::invalid(format!(
            "In call to function system.tojson: {error}"
        ))),
    }
}
