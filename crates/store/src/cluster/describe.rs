//! From what the schema says of an index to what it is.

use std::collections::HashMap;

use scylla::cluster::ClusterState;
use scylla::frame::response::result::ColumnType;
use uuid::Uuid;

use super::index_target::Target;
use super::schema_statements::ListedIndex;
use crate::identity::{IndexIdentity, TableIdentity, TokenRange};
use crate::index_options::{dimensions, is_vector_index, vector_options, version};
use crate::keys::{KeyColumn, KeySchema, is_key_type};

/// What the schema says of an index. What it doesn't say was made or dropped a moment ago.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The options of the index.
    pub options: Option<HashMap<String, String>>,
    /// What it is on, by the options.
    pub target: Option<Target>,
    /// The type of the target's column.
    pub column_type: Option<String>,
    /// The id of the table.
    pub table_id: Option<Uuid>,
    /// When the table was last truncated.
    pub truncated_ms: Option<i64>,
}

/// What an entry of the schema's list of indexes is.
#[derive(Clone, Debug, PartialEq)]
pub enum Described {
    /// One to be built.
    Index(Box<IndexIdentity>),
    /// One that isn't for us, or not yet.
    NotOurs,
    /// The schema is about to change, or the driver hasn't seen all of it.
    Unclear,
}

/// Describes an index; with a remark for the operator, if there is one to be made.
pub fn describe(
    state: &ClusterState,
    listed: &ListedIndex,
    facts: &Facts,
) -> (Described, Option<String>) {
    if !is_vector_index(&listed.options) {
        return (Described::NotOurs, None);
    }
    let Facts {
        options: Some(options),
        target: Some(target),
        column_type: Some(column_type),
        table_id: Some(table_id),
        truncated_ms,
    } = facts
    else {
        return (Described::Unclear, None);
    };
    let not_ours = |why: String| (Described::NotOurs, Some(why));
    if !target.local_key.is_empty() {
        return not_ours("not built: local indexes are not supported yet".to_owned());
    }
    let Some(dimensions) = dimensions(column_type) else {
        return not_ours(format!(
            "not built: {} is a {column_type}, not a vector of floats",
            target.column
        ));
    };
    let keys = match key_schema(state, listed) {
        Ok(Some(keys)) => keys,
        Ok(None) => return (Described::Unclear, None),
        Err(why) => return not_ours(why),
    };
    let remark = (!target.filter_columns.is_empty())
        .then(|| "built without its filter columns: searches can't be filtered yet".to_owned());
    let identity = IndexIdentity {
        options: vector_options(&listed.name, dimensions, options),
        name: listed.name.clone(),
        table: TableIdentity {
            keyspace: listed.name.keyspace.clone(),
            table: listed.table.clone(),
            id: *table_id,
        },
        truncated_ms: *truncated_ms,
        column: target.column.clone(),
        version: version(options),
        keys,
        range: TokenRange::WHOLE_RING,
    };
    (Described::Index(Box::new(identity)), remark)
}

/// The primary key of an index's table, from the driver's metadata; none until the table and its
/// log stand there.
fn key_schema(state: &ClusterState, listed: &ListedIndex) -> Result<Option<KeySchema>, String> {
    let log = format!("{}_scylla_cdc_log", listed.table);
    let Some(keyspace) = state.get_keyspace(&listed.name.keyspace) else {
        return Ok(None);
    };
    let Some(table) = keyspace.tables.get(&listed.table) else {
        return Ok(None);
    };
    if !keyspace.tables.contains_key(&log) || table.partition_key.is_empty() {
        return Ok(None);
    }
    let columns = |names: &[String]| -> Result<Vec<KeyColumn>, String> {
        names
            .iter()
            .map(
                |name| match table.columns.get(name).map(|column| &column.typ) {
                    Some(ColumnType::Native(typ)) if is_key_type(typ) => Ok(KeyColumn {
                        name: name.clone(),
                        typ: typ.clone(),
                    }),
                    typ => Err(format!(
                        "not built: key column {name} has a type that can't be indexed: {typ:?}"
                    )),
                },
            )
            .collect()
    };
    Ok(Some(KeySchema {
        partition: columns(&table.partition_key)?,
        clustering: columns(&table.clustering_key)?,
    }))
}
