//! Descriptions of keyspaces, tables and indexes, found by name among the user's and the system's.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use cql::error::CqlError;
use schema::{Catalog, Keyspace, Table};
use value::UserType;

use super::{create, described};
use crate::system::SystemTables;

/// The user's schema together with the system tables.
pub(super) struct CombinedSchema<'a> {
    pub catalog: &'a Catalog,
    pub system: &'a SystemTables,
}

impl<'a> CombinedSchema<'a> {
    /// All keyspaces, in the order of their names.
    pub fn keyspaces(&self) -> impl Iterator<Item = &'a Arc<Keyspace>> + use<'a> {
        let mut keyspaces: Vec<&'a Arc<Keyspace>> = self
            .system
            .keyspaces()
            .chain(self.catalog.keyspaces.values())
            .collect();
        keyspaces.sort_by(|a, b| order(&a.name, &b.name));
        keyspaces.into_iter()
    }

    /// Whether the keyspace is one of the system's.
    pub fn is_system(&self, keyspace: &str) -> bool {
        self.system.keyspace(keyspace).is_some()
    }

    /// A keyspace by its name, or the error of Cassandra if there is none.
    pub fn keyspace(&self, name: &str) -> Result<&'a Keyspace, CqlError> {
        self.system
            .keyspace(name)
            .or_else(|| self.catalog.keyspace(name))
            .map(|keyspace| &**keyspace)
            .ok_or_else(|| CqlError::invalid(format!("'{name}' not found in keyspaces")))
    }

    /// A table by its name, or the error of Cassandra if there is none.
    pub fn table(&self, keyspace: &str, name: &str) -> Result<&'a Table, CqlError> {
        let table = self.keyspace(keyspace)?.tables.get(name);
        table.map(|table| &**table).ok_or_else(|| {
            CqlError::invalid(format!("Table '{name}' not found in keyspace '{keyspace}'"))
        })
    }

    /// A user type by its name, or the error of Cassandra if there is none.
    pub fn user_type(&self, keyspace: &str, name: &str) -> Result<&'a UserType, CqlError> {
        let definition = self.keyspace(keyspace)?.types.get(name);
        definition.map(|definition| &**definition).ok_or_else(|| {
            CqlError::invalid(format!(
                "User defined type '{name}' not found in '{keyspace}'"
            ))
        })
    }

    /// Describes an index. An index name is unique in its keyspace.
    pub fn describe_index(&self, keyspace: &str, name: &str) -> Result<Vec<String>, CqlError> {
        let mut tables = self.keyspace(keyspace)?.tables.values();
        tables
            .find_map(|table| {
                let mut indexes = indexes(table).into_iter();
                let (_, statement) = indexes.find(|(known, _)| *known == name)?;
                Some(described(&table.keyspace, "index", name, statement))
            })
            .ok_or_else(|| {
                CqlError::invalid(format!("Index '{name}' not found in keyspace '{keyspace}'"))
            })
    }

    /// Describes the keyspace, and its types and its tables with their indexes unless `only` is
    /// set. Each type comes after those that it uses.
    pub fn describe_keyspace(
        &self,
        keyspace: &Keyspace,
        only: bool,
        internals: bool,
    ) -> Vec<Vec<String>> {
        let statement = create::keyspace(keyspace);
        let statement = if self.is_system(&keyspace.name) {
            as_comment(
                "This keyspace is the system's own and cannot be created.",
                &statement,
            )
        } else {
            statement
        };
        let mut rows = vec![described(
            &keyspace.name,
            "keyspace",
            &keyspace.name,
            statement,
        )];
        if !only {
            let types = keyspace.types_in_order().into_iter();
            rows.extend(types.map(|definition| describe_type(definition)));
            rows.extend(
                by_name(&keyspace.tables)
                    .filter(|table| table.log_of.is_none())
                    .flat_map(|table| self.describe_table(table, internals)),
            );
        }
        rows
    }

    /// Describes the table and its indexes.
    pub fn describe_table(&self, table: &Table, internals: bool) -> Vec<Vec<String>> {
        let statement = create::table(table, internals);
        let statement = if self.is_system(&table.keyspace) {
            as_comment(
                "This table is the system's own and cannot be created.",
                &statement,
            )
        } else if table.log_of.is_some() {
            as_comment(
                "This is a CDC log: it is created with its table's option cdc, or with a vector or full-text index.",
                &statement,
            )
        } else {
            statement
        };
        let mut rows = vec![described(&table.keyspace, "table", &table.name, statement)];
        let indexes = indexes(table).into_iter();
        rows.extend(
            indexes.map(|(name, statement)| described(&table.keyspace, "index", name, statement)),
        );
        rows
    }
}

/// Describes a user type.
pub(super) fn describe_type(definition: &UserType) -> Vec<String> {
    let statement = create::user_type(definition);
    described(&definition.keyspace, "type", &definition.name, statement)
}

/// The names of a table's indexes in their order, with the statements that create them.
pub(super) fn indexes(table: &Table) -> Vec<(&str, String)> {
    let of_services = table.indexes.values();
    let of_services = of_services.map(|index| (&*index.name, create::index(table, index)));
    let secondary = table.secondary_indexes.values();
    let secondary = secondary.map(|index| (&*index.name, create::secondary_index(table, index)));
    let mut indexes: Vec<(&str, String)> = of_services.chain(secondary).collect();
    indexes.sort_by(|(a, _), (b, _)| order(a, b));
    indexes
}

/// Tables or types in the order of their names, as lists show them.
pub(super) fn by_name<T>(elements: &BTreeMap<String, T>) -> impl Iterator<Item = &T> {
    let mut elements: Vec<(&String, &T)> = elements.iter().collect();
    elements.sort_by(|(a, _), (b, _)| order(a, b));
    elements.into_iter().map(|(_, element)| element)
}

/// Compares names without regard to case, as Cassandra orders them.
fn order(a: &str, b: &str) -> Ordering {
    let lower = |name: &str| name.to_ascii_lowercase();
    lower(a).cmp(&lower(b)).then_with(|| a.cmp(b))
}

/// A statement in a comment. It is shown for keyspaces and tables that cannot be created by a
/// statement, and has no effect when the text is executed.
fn as_comment(why: &str, statement: &str) -> String {
    format!("/*\n{why}\n\n{}\n*/", statement.replace("*/", "* /"))
}
