//! The guardrails of changes to the schema, which look at the catalog as it would be.

use ::schema::{Catalog, Keyspace, Table};
use cql::error::CqlError;
use value::CqlType;

use crate::guardrails::{Guardrail, Guardrails, ThresholdViolation, ValueLocation};
use crate::statement::{CatalogChange, CatalogChangeKind, ChangedObject};

/// Looks at a change, which made `after` of `before`.
///
/// # Errors
/// If something is above a threshold for refusals.
pub(super) fn check(
    guardrails: &Guardrails,
    (before, after): (&Catalog, &Catalog),
    change: &CatalogChange,
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    if change.kind == CatalogChangeKind::Dropped {
        return Ok(());
    }
    let is_new = change.kind == CatalogChangeKind::Created;
    let mut checks = GuardrailChecks {
        guardrails,
        keyspace: &change.keyspace,
        warnings,
    };
    match &change.object {
        ChangedObject::Keyspace if is_new => checks.keyspaces(after.keyspaces.len()),
        ChangedObject::Keyspace => Ok(()),
        ChangedObject::Table(name) => {
            let Some(table) = after.table(&change.keyspace, name) else {
                return Ok(());
            };
            let earlier = before.table(&change.keyspace, name);
            if earlier.is_none() {
                let keyspaces = after.keyspaces.values();
                checks.tables(name, keyspaces.map(|keyspace| users_tables(keyspace)).sum())?;
            }
            checks.table(table, earlier.map(|table| &**table))
        }
        ChangedObject::Type(name) => {
            let of = |catalog: &Catalog| {
                let keyspace = catalog.keyspace(&change.keyspace)?;
                Some(keyspace.types.get(name)?.field_types.len())
            };
            match of(after) {
                Some(fields) if of(before).is_none_or(|earlier| earlier < fields) => {
                    checks.fields(name, fields)
                }
                _ => Ok(()),
            }
        }
    }
}

/// The tables of users in a keyspace. A change log is the database's own.
fn users_tables(keyspace: &Keyspace) -> usize {
    let tables = keyspace.tables.values();
    tables.filter(|table| table.log_of.is_none()).count()
}

struct GuardrailChecks<'a> {
    guardrails: &'a Guardrails,
    keyspace: &'a str,
    warnings: &'a mut Vec<String>,
}

impl GuardrailChecks<'_> {
    fn keyspaces(&mut self, count: usize) -> Result<(), CqlError> {
        let name = self.keyspace;
        self.check(Guardrail::Keyspaces, ("", ""), count, |violation| {
            let threshold = violation.threshold;
            match violation.is_failure {
                true => format!(
                    "Cannot have more than {threshold} keyspaces, aborting the creation of keyspace {name}"
                ),
                false => format!(
                    "Creating keyspace {name}, current number of keyspaces {count} exceeds warning threshold of \
                     {threshold}."
                ),
            }
        })
    }

    fn tables(&mut self, name: &str, count: usize) -> Result<(), CqlError> {
        self.check(Guardrail::Tables, (name, ""), count, |violation| {
            let threshold = violation.threshold;
            match violation.is_failure {
                true => format!(
                    "Cannot have more than {threshold} tables, aborting the creation of table {name}"
                ),
                false => format!(
                    "Creating table {name}, current number of tables {count} exceeds warning threshold of \
                     {threshold}."
                ),
            }
        })
    }

    fn table(&mut self, table: &Table, earlier: Option<&Table>) -> Result<(), CqlError> {
        let name = &table.name;
        let columns = table.columns.len();
        if earlier.is_none_or(|earlier| earlier.columns.len() < columns) {
            self.check(Guardrail::ColumnsPerTable, (name, ""), columns, |violation| {
                let threshold = violation.threshold;
                match violation.is_failure {
                    true => format!(
                        "Tables cannot have more than {threshold} columns, but {columns} provided for table {name}"
                    ),
                    false => format!(
                        "The table {name} has {columns} columns, this exceeds the warning threshold of {threshold}."
                    ),
                }
            })?;
        }
        let had = |name: &str| earlier.is_some_and(|earlier| earlier.column(name).is_some());
        for column in table.columns.iter().filter(|column| !had(&column.name)) {
            if let CqlType::Vector { dimensions, .. } = column.cql_type {
                self.vector(name, &column.name, dimensions)?;
            }
        }
        let indexes = |table: &Table| table.indexes.len() + table.secondary_indexes.len();
        let count = indexes(table);
        if let Some(earlier) = earlier
            && indexes(earlier) < count
        {
            let names = table.indexes.keys().chain(table.secondary_indexes.keys());
            let is_new = |name: &&String| {
                !earlier.indexes.contains_key(*name)
                    && !earlier.secondary_indexes.contains_key(*name)
            };
            let index = names.into_iter().find(is_new);
            self.indexes(name, index.map_or("", |name| name), count)?;
        }
        Ok(())
    }

    fn vector(&mut self, table: &str, column: &str, dimensions: u16) -> Result<(), CqlError> {
        let at = (table, column);
        self.check(Guardrail::VectorDimensions, at, dimensions.into(), |violation| {
            format!(
                "{column} has a vector of {dimensions} dimensions, this exceeds the {} threshold of {}.",
                violation.word(),
                violation.threshold
            )
        })
    }

    fn indexes(&mut self, table: &str, index: &str, count: usize) -> Result<(), CqlError> {
        self.check(Guardrail::SecondaryIndexesPerTable, (table, ""), count, |violation| {
            let threshold = violation.threshold;
            match violation.is_failure {
                true => format!(
                    "Tables cannot have more than {threshold} secondary indexes, aborting the creation of secondary \
                     index {index}"
                ),
                false => format!(
                    "Creating secondary index {index}, current number of indexes {count} exceeds warning threshold of \
                     {threshold}."
                ),
            }
        })
    }

    fn fields(&mut self, name: &str, fields: usize) -> Result<(), CqlError> {
        self.check(Guardrail::FieldsPerUdt, ("", ""), fields, |violation| {
            let threshold = violation.threshold;
            match violation.is_failure {
                true => format!(
                    "User types cannot have more than {threshold} columns, but {fields} provided for user type {name}."
                ),
                false => format!(
                    "The user type {name} has {fields} columns, this exceeds the warning threshold of {threshold}."
                ),
            }
        })
    }

    fn check(
        &mut self,
        guardrail: Guardrail,
        (table, column): (&str, &str),
        value: usize,
        message: impl FnOnce(ThresholdViolation) -> String,
    ) -> Result<(), CqlError> {
        let place = ValueLocation {
            keyspace: self.keyspace,
            table,
            column,
            ..ValueLocation::default()
        };
        let warnings = &mut *self.warnings;
        self.guardrails
            .check(guardrail, value as u64, place, message, warnings)
    }
}
