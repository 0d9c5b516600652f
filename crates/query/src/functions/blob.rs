//! Conversions between a blob and the serialised form of a native type. The bytes are the same.

use bytes::Bytes;
use cql::error::CqlError;
use value::{CqlType, validate};

use crate::statement_clock::StatementClock;

/// The bytes of the one argument, for a result type whose values have the same form.
pub(super) fn same_bytes(arguments: &[&[u8]], _: &StatementClock) -> Result<Bytes, CqlError> {
    Ok(Bytes::copy_from_slice(arguments[0]))
}

/// The bytes of the one argument, if they form a value of `cql_type`.
pub(super) fn checked(cql_type: &CqlType, arguments: &[&[u8]]) -> Result<Bytes, CqlError> {
    match validate(cql_type, arguments[0]) {
        Ok(()) => Ok(Bytes::copy_from_slice(arguments[0])),
        Err(error) => Err(CqlError::invalid(format!(
            "In call to function system.blobas{cql_type}, the blob is no value of type {cql_type}: {error}"
        ))),
    }
}
