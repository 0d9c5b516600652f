//! `DESCRIBE`: the schema as text, in the form of Cassandra 4's server-side statement, which
//! `cqlsh` prints.
//!
//! Lists of names have the columns `keyspace_name, type, name`. Descriptions also have
//! `create_statement`. The statements, executed in this order, create an equal schema. Therefore
//! objects that no statement can create (system tables, CDC logs) are left out or put in a comment.

mod create;
mod elements;
mod whole;

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use cql::ast::{Describe, DescribeTarget, TableName};
use cql::error::CqlError;
use cql::quote::Identifier;
use elements::CombinedSchema;
use value::CqlType;

use crate::database::CqlDatabase;
use crate::statement::{ColumnSpec, ExecutionOutcome, ExecutionResult, ResultRows};

pub use whole::{
    KeyspaceText, SchemaObject, SchemaStatement, keyspace_statements, keyspaces_as_cql,
};

/// A prepared DESCRIBE statement.
#[derive(Debug)]
pub struct DescribePlan {
    target: DescribedObject,
    /// Whether tables are described with their ids and the columns that were dropped.
    internals: bool,
    columns: Arc<[ColumnSpec]>,
}

/// A [`DescribeTarget`] whose names are known to exist.
#[derive(Debug, PartialEq, Eq)]
enum DescribedObject {
    Cluster,
    Keyspaces,
    /// The tables of one keyspace, or of all keyspaces.
    Tables {
        keyspace: Option<String>,
    },
    /// The user types of one keyspace, or of all keyspaces.
    Types {
        keyspace: Option<String>,
    },
    /// An empty list, for kinds of objects that do not exist here, such as functions.
    Nothing,
    Schema {
        full: bool,
    },
    Keyspace {
        name: String,
        only: bool,
    },
    Table {
        keyspace: String,
        name: String,
    },
    Type {
        keyspace: String,
        name: String,
    },
    Index {
        keyspace: String,
        name: String,
    },
}

impl DescribedObject {
    fn column_names(&self) -> &'static [&'static str] {
        match self {
            DescribedObject::Cluster => &["cluster", "partitioner", "snitch"],
            DescribedObject::Keyspaces
            | DescribedObject::Tables { .. }
            | DescribedObject::Types { .. }
            | DescribedObject::Nothing => &["keyspace_name", "type", "name"],
            DescribedObject::Schema { .. }
            | DescribedObject::Keyspace { .. }
            | DescribedObject::Table { .. }
            | DescribedObject::Type { .. }
            | DescribedObject::Index { .. } => {
                &["keyspace_name", "type", "name", "create_statement"]
            }
        }
    }
}

impl DescribePlan {
    /// The columns of the answer, all of type text.
    pub fn result_columns(&self) -> &Arc<[ColumnSpec]> {
        &self.columns
    }
}

/// Resolves the names in a DESCRIBE statement.
///
/// # Errors
/// If a name does not exist, or if a keyspace is needed and none is in use.
pub fn prepare(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    describe: &Describe,
) -> Result<DescribePlan, CqlError> {
    let catalog = database.storage.catalog();
    let schema = CombinedSchema {
        catalog: &catalog,
        system: &database.system,
    };
    let target = resolve(&schema, keyspace, describe)?;
    Ok(plan(target, describe.internals))
}

fn plan(target: DescribedObject, internals: bool) -> DescribePlan {
    let columns = target.column_names().iter().map(|name| ColumnSpec {
        keyspace: "system".into(),
        table: "describe".into(),
        name: (*name).into(),
        cql_type: CqlType::Text,
    });
    DescribePlan {
        columns: columns.collect(),
        target,
        internals,
    }
}

/// Executes a DESCRIBE statement. The whole answer is one page.
pub fn execute(database: &CqlDatabase, plan: &DescribePlan) -> Result<ExecutionResult, CqlError> {
    let catalog = database.storage.catalog();
    let schema = CombinedSchema {
        catalog: &catalog,
        system: &database.system,
    };
    Ok(answer(plan, &rows(&schema, plan)?))
}

fn answer(plan: &DescribePlan, rows: &[Vec<String>]) -> ExecutionResult {
    let mut body = BytesMut::new();
    for value in rows.iter().flatten() {
        body.put_u32(value.len() as u32);
        body.put_slice(value.as_bytes());
    }
    ExecutionResult {
        outcome: ExecutionOutcome::Rows(ResultRows {
            columns: plan.columns.clone(),
            body,
            count: rows.len() as u32,
            paging_state: None,
            charge: None,
        }),
        warnings: Vec::new(),
    }
}

fn resolve(
    schema: &CombinedSchema<'_>,
    in_use: Option<&str>,
    describe: &Describe,
) -> Result<DescribedObject, CqlError> {
    Ok(match &describe.target {
        DescribeTarget::Cluster => DescribedObject::Cluster,
        DescribeTarget::Schema { full } => DescribedObject::Schema { full: *full },
        DescribeTarget::Keyspaces => DescribedObject::Keyspaces,
        DescribeTarget::Tables => DescribedObject::Tables {
            keyspace: in_use.map(str::to_owned),
        },
        DescribeTarget::Types => DescribedObject::Types {
            keyspace: in_use.map(str::to_owned),
        },
        DescribeTarget::Type(name) => {
            let keyspace = keyspace_or_in_use(name.keyspace.as_deref(), in_use)?;
            schema.user_type(keyspace, &name.name)?;
            DescribedObject::Type {
                keyspace: keyspace.to_owned(),
                name: name.name.clone(),
            }
        }
        DescribeTarget::Keyspace { name, only } => {
            let name = keyspace_or_in_use(name.as_deref(), in_use)?;
            schema.keyspace(name)?;
            DescribedObject::Keyspace {
                name: name.to_owned(),
                only: *only,
            }
        }
        DescribeTarget::Table(table) => {
            let keyspace = keyspace_or_in_use(table.keyspace.as_deref(), in_use)?;
            schema.table(keyspace, &table.name)?;
            DescribedObject::Table {
                keyspace: keyspace.to_owned(),
                name: table.name.clone(),
            }
        }
        DescribeTarget::Index { keyspace, name } => {
            let keyspace = keyspace_or_in_use(keyspace.as_deref(), in_use)?;
            schema.describe_index(keyspace, name)?;
            DescribedObject::Index {
                keyspace: keyspace.to_owned(),
                name: name.clone(),
            }
        }
        DescribeTarget::Empty { name: None, .. } => DescribedObject::Nothing,
        DescribeTarget::Empty {
            kind,
            name: Some(name),
        } => {
            let keyspace = keyspace_or_in_use(name.keyspace.as_deref(), in_use)?;
            schema.keyspace(keyspace)?;
            return Err(CqlError::invalid(format!(
                "{} '{}' not found in keyspace '{keyspace}'",
                capitalised(kind),
                name.name
            )));
        }
        DescribeTarget::Any(name) => resolve_any(schema, in_use, name)?,
    })
}

/// Resolves a name without a kind: it may be a keyspace, or a table, user type or index of the
/// keyspace in use.
fn resolve_any(
    schema: &CombinedSchema<'_>,
    in_use: Option<&str>,
    name: &TableName,
) -> Result<DescribedObject, CqlError> {
    if name.keyspace.is_none() && schema.keyspace(&name.name).is_ok() {
        return Ok(DescribedObject::Keyspace {
            name: name.name.clone(),
            only: false,
        });
    }
    let Some(keyspace) = name.keyspace.as_deref().or(in_use) else {
        return Err(CqlError::invalid(format!(
            "'{}' not found in keyspaces",
            name.name
        )));
    };
    schema.keyspace(keyspace)?;
    if schema.table(keyspace, &name.name).is_ok() {
        return Ok(DescribedObject::Table {
            keyspace: keyspace.to_owned(),
            name: name.name.clone(),
        });
    }
    if schema.user_type(keyspace, &name.name).is_ok() {
        return Ok(DescribedObject::Type {
            keyspace: keyspace.to_owned(),
            name: name.name.clone(),
        });
    }
    if schema.describe_index(keyspace, &name.name).is_ok() {
        return Ok(DescribedObject::Index {
            keyspace: keyspace.to_owned(),
            name: name.name.clone(),
        });
    }
    Err(CqlError::invalid(format!(
        "'{}' not found in keyspace '{keyspace}'",
        name.name
    )))
}

fn keyspace_or_in_use<'a>(
    named: Option<&'a str>,
    in_use: Option<&'a str>,
) -> Result<&'a str, CqlError> {
    named
        .or(in_use)
        .ok_or_else(|| CqlError::invalid("No keyspace specified and no current keyspace"))
}

fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

fn rows(schema: &CombinedSchema<'_>, plan: &DescribePlan) -> Result<Vec<Vec<String>>, CqlError> {
    let internals = plan.internals;
    Ok(match &plan.target {
        DescribedObject::Cluster => vec![vec![
            schema.catalog.cluster_name.clone(),
            "Murmur3Partitioner".to_owned(),
            "SimpleSnitch".to_owned(),
        ]],
        DescribedObject::Nothing => Vec::new(),
        DescribedObject::Keyspaces => schema
            .keyspaces()
            .map(|keyspace| named(&keyspace.name, "keyspace", &keyspace.name))
            .collect(),
        DescribedObject::Tables { keyspace } => schema
            .keyspaces()
            .filter(|candidate| keyspace.as_ref().is_none_or(|name| candidate.name == *name))
            .flat_map(|keyspace| elements::by_name(&keyspace.tables))
            .filter(|table| table.log_of.is_none())
            .map(|table| named(&table.keyspace, "table", &table.name))
            .collect(),
        DescribedObject::Types { keyspace } => schema
            .keyspaces()
            .filter(|candidate| keyspace.as_ref().is_none_or(|name| candidate.name == *name))
            .flat_map(|keyspace| elements::by_name(&keyspace.types))
            .map(|definition| named(&definition.keyspace, "type", &definition.name))
            .collect(),
        DescribedObject::Type { keyspace, name } => {
            vec![elements::describe_type(schema.user_type(keyspace, name)?)]
        }
        DescribedObject::Schema { full } => schema
            .keyspaces()
            .filter(|keyspace| *full || !schema.is_system(&keyspace.name))
            .flat_map(|keyspace| schema.describe_keyspace(keyspace, false, internals))
            .collect(),
        DescribedObject::Keyspace { name, only } => {
            schema.describe_keyspace(schema.keyspace(name)?, *only, internals)
        }
        DescribedObject::Table { keyspace, name } => {
            schema.describe_table(schema.table(keyspace, name)?, internals)
        }
        DescribedObject::Index { keyspace, name } => {
            vec![schema.describe_index(keyspace, name)?]
        }
    })
}

/// A row of a list, with quotes around names that need them, as in Cassandra.
fn named(keyspace: &str, kind: &str, name: &str) -> Vec<String> {
    vec![
        Identifier(keyspace).to_string(),
        kind.to_owned(),
        Identifier(name).to_string(),
    ]
}

fn described(keyspace: &str, kind: &str, name: &str, statement: String) -> Vec<String> {
    let mut row = named(keyspace, kind, name);
    row.push(statement);
    row
}

#[cfg(test)]
mod tests;
