//! Finds the user types that a statement names.

use std::sync::Arc;

use cql::ast::TableName;
use cql::ast::data_type::unknown_type;
use cql::error::CqlError;
use schema::Keyspace;
use value::UserType;

/// Finds a user type for a statement on a keyspace.
///
/// # Errors
/// If there is none of that name, or it is one of another keyspace.
pub fn find(keyspace: &Keyspace, name: &TableName) -> Result<Arc<UserType>, CqlError> {
    if let Some(other) = &name.keyspace
        && *other != keyspace.name
    {
        return Err(CqlError::invalid(format!(
            "Statement on keyspace {} cannot refer to a user type in keyspace {other}; user types \
             can only be used in the keyspace they are defined in",
            keyspace.name
        )));
    }
    let definition = keyspace.types.get(&name.name).cloned();
    definition.ok_or_else(|| {
        unknown_type(&TableName {
            keyspace: Some(keyspace.name.clone()),
            name: name.name.clone(),
        })
    })
}
