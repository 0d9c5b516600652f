//! CREATE TYPE, ALTER TYPE and DROP TYPE, and the user types that other statements name.

use std::collections::HashSet;

use cql::ast::{AlterType, AlterTypeChange, CreateType, DataType, FieldDefinition};
use cql::error::CqlError;
use cql::parser::is_type_name;
use query::user_types;
use schema::{Catalog, Keyspace};
use value::{CqlType, UserType};

use super::ApplyOutcome;
use crate::statement::CatalogChangeKind;

/// The longest name of a type or a field in bytes, as frames carry it.
const MAX_NAME_BYTES: usize = u16::MAX as usize;

/// A prepared CREATE TYPE.
#[derive(Clone, Debug)]
pub(super) struct CreateTypePlan {
    keyspace: String,
    create: CreateType,
}

/// A prepared ALTER TYPE.
#[derive(Clone, Debug)]
pub(super) struct AlterTypePlan {
    keyspace: String,
    alter: AlterType,
}

/// A prepared DROP TYPE.
#[derive(Clone, Debug)]
pub(super) struct DropTypePlan {
    pub keyspace: String,
    pub name: String,
    pub if_exists: bool,
}

/// The type that is meant by a type in a statement on a keyspace.
///
/// # Errors
/// An unknown user type, one of another keyspace, and a type that can't exist.
pub(super) fn resolve(data_type: &DataType, keyspace: &Keyspace) -> Result<CqlType, CqlError> {
    data_type.resolve(&|name| user_types::find(keyspace, name))
}

impl CreateTypePlan {
    /// The keyspace of the type.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    pub fn prepare(keyspace: &str, create: &CreateType) -> Result<Self, CqlError> {
        let name = &create.name.name;
        check_name(name)?;
        if is_type_name(name) {
            return Err(CqlError::invalid(format!(
                "Invalid (reserved) user type name {name}"
            )));
        }
        let mut seen = HashSet::new();
        for field in &create.fields {
            check_name(&field.name)?;
            if !seen.insert(&field.name) {
                return Err(CqlError::invalid(format!(
                    "Duplicate field name '{}' in type '{name}'",
                    field.name
                )));
            }
        }
        Ok(CreateTypePlan {
            keyspace: keyspace.to_owned(),
            create: create.clone(),
        })
    }

    pub fn apply(&self, catalog: &mut Catalog) -> Result<ApplyOutcome, CqlError> {
        let Some(keyspace) = catalog.keyspace(&self.keyspace) else {
            return super::missing_keyspace(&self.keyspace, false);
        };
        let name = &self.create.name.name;
        if keyspace.types.contains_key(name) {
            if self.create.if_not_exists {
                return Ok(ApplyOutcome::Nothing);
            }
            return Err(CqlError::invalid(format!(
                "A user type with name '{name}' already exists"
            )));
        }
        let fields = self.create.fields.iter();
        let definition = UserType {
            keyspace: self.keyspace.clone(),
            name: name.clone(),
            field_names: fields.clone().map(|field| field.name.clone()).collect(),
            field_types: fields
                .map(|field| field_type(field, keyspace))
                .collect::<Result<_, _>>()?,
        };
        check_size(&definition, None)?;
        catalog.put_type(definition);
        Ok(ApplyOutcome::user_type(
            CatalogChangeKind::Created,
            &self.keyspace,
            name,
        ))
    }
}

impl AlterTypePlan {
    /// The keyspace of the type.
    pub fn keyspace(&self) -> &str {
        &self.keyspace
    }

    pub fn prepare(keyspace: &str, alter: &AlterType) -> Result<Self, CqlError> {
        match &alter.change {
            AlterTypeChange::AddField { field, .. } => check_name(&field.name)?,
            AlterTypeChange::RenameFields { renames, .. } => {
                for (_, to) in renames {
                    check_name(to)?;
                }
            }
            AlterTypeChange::ChangeType { field } => {
                return Err(CqlError::invalid(format!(
                    "Altering field types is no longer supported (field {field})"
                )));
            }
        }
        Ok(AlterTypePlan {
            keyspace: keyspace.to_owned(),
            alter: alter.clone(),
        })
    }

    pub fn apply(&self, catalog: &mut Catalog) -> Result<ApplyOutcome, CqlError> {
        let name = &self.alter.name.name;
        let keyspace = catalog.keyspace(&self.keyspace);
        let known = keyspace.and_then(|keyspace| Some((keyspace, keyspace.types.get(name)?)));
        let Some((keyspace, old)) = known else {
            if self.alter.if_exists {
                return Ok(ApplyOutcome::Nothing);
            }
            return Err(CqlError::invalid(format!(
                "Type {}.{name} doesn't exist",
                self.keyspace
            )));
        };
        let new = match &self.alter.change {
            AlterTypeChange::AddField {
                if_not_exists,
                field,
            } => with_field(keyspace, old, field, *if_not_exists)?,
            AlterTypeChange::RenameFields { if_exists, renames } => {
                with_renamed(old, renames, *if_exists)?
            }
            AlterTypeChange::ChangeType { .. } => UserType::clone(old),
        };
        if new != **old {
            check_size(&new, None)?;
            for other in keyspace.types.values() {
                check_size(other, Some(&new))?;
            }
            let columns = keyspace.tables.values().flat_map(|table| &table.columns);
            for column in columns {
                let size = column.cql_type.check_size(Some(&new));
                size.map_err(|error| CqlError::invalid(error.0))?;
            }
            catalog.put_type(new);
        }
        // As in Cassandra, drivers get an event even if nothing is different.
        Ok(ApplyOutcome::user_type(
            CatalogChangeKind::Updated,
            &self.keyspace,
            name,
        ))
    }
}

impl DropTypePlan {
    pub fn apply(&self, catalog: &mut Catalog) -> Result<ApplyOutcome, CqlError> {
        let DropTypePlan { keyspace, name, .. } = self;
        let known = catalog.keyspace(keyspace);
        let known = known.and_then(|keyspace| Some((keyspace, keyspace.types.get(name)?)));
        let Some((in_keyspace, definition)) = known else {
            if self.if_exists {
                return Ok(ApplyOutcome::Nothing);
            }
            return Err(CqlError::invalid(format!(
                "Type '{keyspace}.{name}' doesn't exist"
            )));
        };
        let types: Vec<&str> = in_keyspace.types_with(definition).collect();
        let tables = in_keyspace.tables_with(definition);
        let tables: Vec<&str> = tables.map(|table| table.name.as_str()).collect();
        for (what, users) in [("user types", types), ("tables", tables)] {
            if !users.is_empty() {
                return Err(CqlError::invalid(format!(
                    "Cannot drop user type '{keyspace}.{name}' as it is still used by {what} {}",
                    users.join(", ")
                )));
            }
        }
        catalog.remove_type(keyspace, name);
        Ok(ApplyOutcome::user_type(
            CatalogChangeKind::Dropped,
            keyspace,
            name,
        ))
    }
}

/// The type of a field. A user type in it must be frozen.
fn field_type(field: &FieldDefinition, keyspace: &Keyspace) -> Result<CqlType, CqlError> {
    let refused = |what: &str| {
        Err(CqlError::invalid(format!(
            "A user type cannot contain {what}"
        )))
    };
    match resolve(&field.data_type, keyspace)? {
        CqlType::Counter => refused("counters"),
        CqlType::UserType { frozen: false, .. } => refused("non-frozen UDTs"),
        cql_type => Ok(cql_type),
    }
}

fn with_field(
    keyspace: &Keyspace,
    old: &UserType,
    field: &FieldDefinition,
    if_not_exists: bool,
) -> Result<UserType, CqlError> {
    let full_name = format!("{}.{}", old.keyspace, old.name);
    let name = &field.name;
    if old.position(name).is_some() {
        if if_not_exists {
            return Ok(old.clone());
        }
        return Err(CqlError::invalid(format!(
            "Cannot add field {name} to type {full_name}: a field with name {name} already exists"
        )));
    }
    let cql_type = field_type(field, keyspace)?;
    let refused = |why: String| {
        Err(CqlError::invalid(format!(
            "Cannot add new field {name} of type {cql_type} to user type {full_name} as {why}"
        )))
    };
    if cql_type.uses(old) {
        return refused("it would create a circular reference".to_owned());
    }
    let tables = keyspace.tables_with(old);
    let in_keys: Vec<String> = tables
        .filter(|table| table.has_in_partition_key(old))
        .map(|table| format!("{}.{}", table.keyspace, table.name))
        .collect();
    if !in_keys.is_empty() {
        return refused(format!(
            "the type is being used in partition key by the following tables: {}",
            in_keys.join(", ")
        ));
    }
    let mut new = old.clone();
    new.field_names.push(name.clone());
    new.field_types.push(cql_type);
    Ok(new)
}

/// The type with other names for its fields. The old names are those before all of the renames.
fn with_renamed(
    old: &UserType,
    renames: &[(String, String)],
    if_exists: bool,
) -> Result<UserType, CqlError> {
    let mut new = old.clone();
    for (from, to) in renames {
        match old.position(from) {
            Some(position) => new.field_names[position].clone_from(to),
            None if if_exists => {}
            None => {
                return Err(CqlError::invalid(format!(
                    "Unknown field {from} in user type {}.{}",
                    old.keyspace, old.name
                )));
            }
        }
    }
    let mut seen = HashSet::new();
    match new.field_names.iter().find(|name| !seen.insert(*name)) {
        None => Ok(new),
        Some(repeated) => Err(CqlError::invalid(format!(
            "Duplicate field name {repeated} in type {}.{}",
            old.keyspace, old.name
        ))),
    }
}

fn check_size(definition: &UserType, newer: Option<&UserType>) -> Result<(), CqlError> {
    let size = definition.check_size(newer);
    size.map_err(|error| {
        CqlError::invalid(format!(
            "Type {}.{} is too large: {}",
            definition.keyspace, definition.name, error.0
        ))
    })
}

fn check_name(name: &str) -> Result<(), CqlError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(CqlError::invalid(format!(
            "Names of user types and their fields must have between 1 and {MAX_NAME_BYTES} bytes"
        )));
    }
    Ok(())
}
