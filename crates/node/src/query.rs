//! The common parts of all kinds of statements: preparation, parameters and answers.

use std::net::SocketAddr;
use std::sync::Arc;

use ::schema::TableId;
use bytes::{Bytes, BytesMut};
use client_memory::{Account, Charge};
use cql::ast::{Parsed, Statement};
use cql::error::CqlError;
use cql::wire::Consistency;
use storage::Storage;
use store_api::Stores;
use value::CqlType;

use crate::system::SystemTables;
use crate::{describe, modify, schema, select};

/// The data and services that statements use.
pub struct Database {
    /// The user's keyspaces and tables.
    pub storage: Storage,
    /// The tables of `system`, `system_schema` and the other system keyspaces. Their rows are made
    /// from the catalog when they are read.
    pub system: SystemTables,
    /// The index services that `ANN OF` asks.
    pub stores: Stores,
}

/// The name and type of a bind marker or of a result column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// The keyspace of the table that the column belongs to.
    pub keyspace: String,
    /// The name of the table that the column belongs to.
    pub table: String,
    /// The name of the marker or column.
    pub name: String,
    /// The type of the marker's values or of the column.
    pub cql_type: CqlType,
}

/// A value that a client gives for a bind marker, not yet checked against the marker's type.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundValue {
    /// A serialised value.
    Value(Bytes),
    /// Null.
    Null,
    /// Unset: a column keeps its value. Unset is an error wherever a value is needed.
    Unset,
}

/// The values and settings of one execution.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// One value for each bind marker, in the markers' order. The server has put named values in
    /// their places and checked the number of values.
    pub values: Vec<BoundValue>,
    /// The number of rows in a page; `None` for all rows in one page.
    pub page_size: Option<usize>,
    /// The state with which the previous page ended ([`Rows::paging_state`]).
    pub paging_state: Option<Bytes>,
    /// The write timestamp of the request, in microseconds since the epoch, if the client gave one.
    pub timestamp_micros: Option<i64>,
    /// The consistency level of the statement.
    pub consistency: Consistency,
    /// The serial consistency level of a condition, if the client gave one.
    pub serial_consistency: Option<Consistency>,
    /// The address of this node to which the client connected. `system.local` names it, since this
    /// client can reach it.
    pub server_address: Option<SocketAddr>,
    /// The account that is charged for the answer while it grows.
    pub memory: Account,
}

/// The answer of a statement.
#[derive(Debug)]
pub struct Answer {
    /// The outcome of the statement.
    pub outcome: Outcome,
    /// Warnings, which drivers show beside the result.
    pub warnings: Vec<String>,
}

/// The outcome of a statement.
#[derive(Debug)]
pub enum Outcome {
    /// The statement is done and returns nothing.
    Void,
    /// The rows of a result set.
    Rows(Rows),
    /// The connection now uses this keyspace.
    SetKeyspace(String),
    /// The schema has changed.
    SchemaChange(SchemaChange),
}

/// Rows in the form in which the native protocol carries them.
#[derive(Debug)]
pub struct Rows {
    /// The name and type of each column.
    pub columns: Arc<[ColumnSpec]>,
    /// The cells, row by row and column by column. Each is its length as a big-endian i32 (-1 for
    /// null), then the serialised value.
    pub body: BytesMut,
    /// The number of rows.
    pub count: u32,
    /// The state that the client sends to get the next page; `None` if there are no more rows.
    pub paging_state: Option<Bytes>,
    /// The charge for the bytes of the body, if they were charged as they grew.
    pub charge: Option<Charge>,
}

/// A change of the schema, as drivers are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// The kind of change.
    pub kind: SchemaChangeKind,
    /// The keyspace that changed, or the keyspace of the table that changed.
    pub keyspace: String,
    /// The table that changed; `None` if the keyspace itself changed.
    pub table: Option<String>,
}

/// The kind of a schema change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaChangeKind {
    /// The keyspace or table is new.
    Created,
    /// The keyspace or table was altered.
    Updated,
    /// The keyspace or table was dropped.
    Dropped,
}

/// A statement resolved against the catalog. A plan is valid for one version of the catalog. When
/// the version has changed, the server prepares the statement again from its parsed form.
#[derive(Debug)]
pub enum StatementPlan {
    /// SELECT.
    Select(select::SelectPlan),
    /// INSERT, UPDATE, DELETE, BATCH or TRUNCATE.
    Modify(modify::ModifyPlan),
    /// CREATE, ALTER or DROP.
    Schema(schema::SchemaPlan),
    /// DESCRIBE.
    Describe(describe::DescribePlan),
    /// USE.
    Use {
        /// The name of the keyspace, which existed when the statement was prepared.
        keyspace: String,
    },
}

/// Resolves a parsed statement into a plan. `keyspace` is the keyspace in use.
///
/// # Errors
/// Unknown names, wrong types and restrictions that cannot be served: every error that can be found
/// before the values are known.
pub fn prepare(
    database: &Database,
    keyspace: Option<&str>,
    parsed: &Parsed,
) -> Result<StatementPlan, CqlError> {
    match &parsed.statement {
        Statement::Select(select) => {
            select::prepare(database, keyspace, select, &parsed.markers).map(StatementPlan::Select)
        }
        Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Batch(_)
        | Statement::Truncate { .. } => {
            modify::prepare(database, keyspace, &parsed.statement, &parsed.markers)
                .map(StatementPlan::Modify)
        }
        Statement::Describe(describe) => {
            describe::prepare(database, keyspace, describe).map(StatementPlan::Describe)
        }
        Statement::Use { keyspace } => {
            if database.storage.catalog().keyspace(keyspace).is_none()
                && database.system.keyspace(keyspace).is_none()
            {
                return Err(CqlError::invalid(format!(
                    "Keyspace '{keyspace}' does not exist"
                )));
            }
            Ok(StatementPlan::Use {
                keyspace: keyspace.clone(),
            })
        }
        Statement::Unsupported(words) => Err(CqlError::invalid(format!(
            "{words} is not supported by Annulus"
        ))),
        _ => schema::prepare(database, keyspace, &parsed.statement).map(StatementPlan::Schema),
    }
}

impl StatementPlan {
    /// The name and type of each bind marker, in the markers' order.
    pub fn variables(&self) -> &[ColumnSpec] {
        match self {
            StatementPlan::Select(plan) => plan.variables(),
            StatementPlan::Modify(plan) => plan.variables(),
            StatementPlan::Schema(_) | StatementPlan::Describe(_) | StatementPlan::Use { .. } => {
                &[]
            }
        }
    }

    /// The positions of the bind markers that make up the partition key, in the key's order.
    /// Drivers route requests by them. Empty if the key is not made of markers alone.
    pub fn partition_key_variables(&self) -> &[u16] {
        match self {
            StatementPlan::Select(plan) => plan.partition_key_variables(),
            StatementPlan::Modify(plan) => plan.partition_key_variables(),
            StatementPlan::Schema(_) | StatementPlan::Describe(_) | StatementPlan::Use { .. } => {
                &[]
            }
        }
    }

    /// The tables that the plan reads or writes; empty for plans that find their tables only when
    /// they are executed.
    pub fn tables(&self) -> Vec<TableId> {
        match self {
            StatementPlan::Select(plan) => vec![plan.table()],
            StatementPlan::Modify(plan) => plan.tables(),
            StatementPlan::Schema(_) | StatementPlan::Describe(_) | StatementPlan::Use { .. } => {
                Vec::new()
            }
        }
    }

    /// The columns of the answer. `None` if the answer has no rows, or if its columns are not known
    /// beforehand (conditional writes).
    pub fn result_columns(&self) -> Option<&Arc<[ColumnSpec]>> {
        match self {
            StatementPlan::Select(plan) => Some(plan.result_columns()),
            StatementPlan::Describe(plan) => Some(plan.result_columns()),
            StatementPlan::Modify(_) | StatementPlan::Schema(_) | StatementPlan::Use { .. } => None,
        }
    }

    /// Executes the statement.
    pub async fn execute(
        &self,
        database: &Database,
        parameters: Parameters,
    ) -> Result<Answer, CqlError> {
        match self {
            StatementPlan::Select(plan) => select::execute(database, plan, parameters).await,
            StatementPlan::Modify(plan) => modify::execute(database, plan, parameters).await,
            StatementPlan::Schema(plan) => schema::execute(database, plan).await,
            StatementPlan::Describe(plan) => describe::execute(database, plan),
            StatementPlan::Use { keyspace } => Ok(Answer {
                outcome: Outcome::SetKeyspace(keyspace.clone()),
                warnings: Vec::new(),
            }),
        }
    }
}
