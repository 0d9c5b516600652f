//! The Java class names of types, as Cassandra's drivers and schema tables know them.

use super::primitives::DecodeError;
use crate::types::CqlType;

/// The marshal class of a type: `org.apache.cassandra.db.marshal.Int32Type`.
pub fn marshal_name(cql_type: &CqlType) -> String {
    let _ = cql_type;
    todo!()
}

/// Reads a marshal class name, with or without its package.
///
/// # Errors
/// If it names no type that is known here, or nests too deep.
pub fn parse_marshal_name(name: &str) -> Result<CqlType, DecodeError> {
    let _ = name;
    todo!()
}
