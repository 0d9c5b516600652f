//! The user types of a table that comes from another keyspace: those of the same names here.
//!
//! They are taken when a copy begins and again when its table is made, as types may be dropped or
//! changed in between. A table that names a type that is missing could not be read at a start.

use std::sync::Arc;

use schema::{Keyspace, Table};
use value::{CqlType, UserType};

use crate::StorageError;

/// Gives the columns of a table the types of a keyspace.
///
/// # Errors
/// If the keyspace lacks a type that the table needs, or has another one of the same name.
pub(crate) fn take_types_of(table: &mut Table, keyspace: &Keyspace) -> Result<(), StorageError> {
    for column in &mut table.columns {
        column.cql_type = type_in(&column.cql_type, keyspace)?;
    }
    for dropped in table.dropped_columns.values_mut() {
        // The type of a dropped column may have been dropped, too.
        let known = type_in(&dropped.cql_type, keyspace);
        dropped.cql_type = known.unwrap_or_else(|_| dropped.cql_type.without_user_types());
    }
    Ok(())
}

/// A type with the user types of a keyspace in the place of those of the same names.
fn type_in(cql_type: &CqlType, keyspace: &Keyspace) -> Result<CqlType, StorageError> {
    let boxed = |inner: &CqlType| type_in(inner, keyspace).map(Box::new);
    Ok(match cql_type {
        CqlType::List { element, frozen } => CqlType::List {
            element: boxed(element)?,
            frozen: *frozen,
        },
        CqlType::Set { element, frozen } => CqlType::Set {
            element: boxed(element)?,
            frozen: *frozen,
        },
        CqlType::Map { key, value, frozen } => CqlType::Map {
            key: boxed(key)?,
            value: boxed(value)?,
            frozen: *frozen,
        },
        CqlType::Tuple(parts) => {
            let parts = parts.iter().map(|part| type_in(part, keyspace));
            CqlType::Tuple(parts.collect::<Result<_, _>>()?)
        }
        CqlType::Vector {
            element,
            dimensions,
        } => CqlType::Vector {
            element: boxed(element)?,
            dimensions: *dimensions,
        },
        CqlType::UserType { definition, frozen } => CqlType::UserType {
            definition: user_type_in(definition, keyspace)?,
            frozen: *frozen,
        },
        other => other.clone(),
    })
}

fn user_type_in(definition: &UserType, keyspace: &Keyspace) -> Result<Arc<UserType>, StorageError> {
    let fields = definition.field_types.iter();
    let fields = fields.map(|field| type_in(field, keyspace));
    let wanted = UserType {
        keyspace: keyspace.name.clone(),
        field_types: fields.collect::<Result<_, _>>()?,
        ..definition.clone()
    };
    match keyspace.types.get(&definition.name) {
        Some(known) if **known == wanted => Ok(Arc::clone(known)),
        Some(_) => Err(StorageError::Invalid(format!(
            "the type {}.{} differs from the one that the table uses: copy the table to another \
             keyspace",
            keyspace.name, definition.name
        ))),
        None => Err(StorageError::Invalid(format!(
            "the keyspace {} has no type {}, which the table uses: make it first",
            keyspace.name, definition.name
        ))),
    }
}
