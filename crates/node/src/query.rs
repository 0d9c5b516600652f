//! What every kind of statement has in common: how it is prepared, what it is given, what it
//! answers.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use client_memory::{Account, Charge};
use cql::ast::{Parsed, Statement};
use cql::error::CqlError;
use cql::types::CqlType;
use cql::wire::Consistency;
use storage::Storage;
use storage::catalog::TableId;
use store_api::Stores;

use crate::system::SystemTables;
use crate::{describe, modify, schema, select};

/// Everything that a statement may touch.
pub struct Database {
    /// The user's keyspaces and tables.
    pub storage: Storage,
    /// The tables of `system`, `system_schema` and the like, made from the catalog as they are read.
    pub system: SystemTables,
    /// The index services.
    pub stores: Stores,
}

/// A bind marker's or result column's name and type.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// The keyspace of the table it belongs to.
    pub keyspace: String,
    /// The table it belongs to.
    pub table: String,
    /// The name.
    pub name: String,
    /// The type.
    pub cql_type: CqlType,
}

/// A value given for a bind marker, not yet checked against its type.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundValue {
    /// A serialised value.
    Value(Bytes),
    /// Null.
    Null,
    /// "Leave as it is"; an error wherever a value is needed.
    Unset,
}

/// What comes with an execution.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// One a marker, in their order (named values are put in place by the server). The server has
    /// checked the count.
    pub values: Vec<BoundValue>,
    /// Rows a page; `None` for all in one.
    pub page_size: Option<usize>,
    /// Where the last page ended, as [`Rows::paging_state`] said.
    pub paging_state: Option<Bytes>,
    /// The write timestamp of the request, in microseconds, if the client gave one.
    pub timestamp_micros: Option<i64>,
    /// The consistency level.
    pub consistency: Consistency,
    /// The level of a condition, if the client gave one.
    pub serial_consistency: Option<Consistency>,
    /// The address of ours that the client's connection came to; `system.local` names it, as it is
    /// one that this client can reach.
    pub server_address: Option<SocketAddr>,
    /// What the answer is charged to while it grows.
    pub memory: Account,
}

/// The answer of a statement.
#[derive(Debug)]
pub struct Answer {
    /// What came of it.
    pub outcome: Outcome,
    /// Shown by drivers beside the result.
    pub warnings: Vec<String>,
}

/// What came of a statement.
#[derive(Debug)]
pub enum Outcome {
    /// It is done.
    Void,
    /// Rows.
    Rows(Rows),
    /// The connection now uses this keyspace.
    SetKeyspace(String),
    /// The schema has changed.
    SchemaChange(SchemaChange),
}

/// Rows in the form of the wire.
#[derive(Debug)]
pub struct Rows {
    /// What the cells of each row are.
    pub columns: Arc<[ColumnSpec]>,
    /// For each row, for each column: the length as a big-endian i32 (-1 for null), then the
    /// serialised value.
    pub body: BytesMut,
    /// How many rows there are.
    pub count: u32,
    /// There are more rows; give this back to get them.
    pub paging_state: Option<Bytes>,
    /// What the body is charged for, if it was as it grew.
    pub charge: Option<Charge>,
}

/// What drivers are told of a changed schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// What happened.
    pub kind: SchemaChangeKind,
    /// The keyspace, changed itself or around what changed.
    pub keyspace: String,
    /// `None`: the keyspace itself.
    pub table: Option<String>,
}

/// What happened to a part of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaChangeKind {
    /// It is new.
    Created,
    /// It is another now.
    Updated,
    /// It is gone.
    Dropped,
}

/// A statement resolved against the catalog. It holds for that catalog's version only; the server
/// prepares it anew from the parsed form when the version has changed.
#[derive(Debug)]
pub enum Plan {
    /// SELECT.
    Select(select::Plan),
    /// INSERT, UPDATE, DELETE, BATCH and TRUNCATE.
    Modify(modify::Plan),
    /// CREATE, ALTER and DROP.
    Schema(schema::Plan),
    /// DESCRIBE.
    Describe(describe::Plan),
    /// USE.
    Use {
        /// The keyspace to use, which was there when the statement was prepared.
        keyspace: String,
    },
}

/// Resolves a statement.
///
/// # Errors
/// Unknown names, wrong types, restrictions that cannot be served: everything that can be known
/// before the values are.
pub fn prepare(
    database: &Database,
    keyspace: Option<&str>,
    parsed: &Parsed,
) -> Result<Plan, CqlError> {
    match &parsed.statement {
        Statement::Select(select) => {
            select::prepare(database, keyspace, select, &parsed.markers).map(Plan::Select)
        }
        Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Batch(_)
        | Statement::Truncate { .. } => {
            modify::prepare(database, keyspace, &parsed.statement, &parsed.markers)
                .map(Plan::Modify)
        }
        Statement::Describe(describe) => {
            describe::prepare(database, keyspace, describe).map(Plan::Describe)
        }
        Statement::Use { keyspace } => {
            if database.storage.catalog().keyspace(keyspace).is_none()
                && database.system.keyspace(keyspace).is_none()
            {
                return Err(CqlError::invalid(format!(
                    "Keyspace '{keyspace}' does not exist"
                )));
            }
            Ok(Plan::Use {
                keyspace: keyspace.clone(),
            })
        }
        Statement::Unsupported(words) => Err(CqlError::invalid(format!(
            "{words} is not supported by Annulus"
        ))),
        _ => schema::prepare(database, keyspace, &parsed.statement).map(Plan::Schema),
    }
}

impl Plan {
    /// One spec a bind marker, in their order.
    pub fn variables(&self) -> &[ColumnSpec] {
        match self {
            Plan::Select(plan) => plan.variables(),
            Plan::Modify(plan) => plan.variables(),
            Plan::Schema(_) | Plan::Describe(_) | Plan::Use { .. } => &[],
        }
    }

    /// The positions among the markers that make up the partition key, in its order; empty if
    /// they don't make it up alone. Drivers route by it.
    pub fn partition_key_variables(&self) -> &[u16] {
        match self {
            Plan::Select(plan) => plan.partition_key_variables(),
            Plan::Modify(plan) => plan.partition_key_variables(),
            Plan::Schema(_) | Plan::Describe(_) | Plan::Use { .. } => &[],
        }
    }

    /// The tables that rows are read from or written to; none for what looks them up when it is executed.
    pub fn tables(&self) -> Vec<TableId> {
        match self {
            Plan::Select(plan) => vec![plan.table()],
            Plan::Modify(plan) => plan.tables(),
            Plan::Schema(_) | Plan::Describe(_) | Plan::Use { .. } => Vec::new(),
        }
    }

    /// The columns of the answer; `None` if it has no rows, or they are not known beforehand
    /// (conditional writes).
    pub fn result_columns(&self) -> Option<&Arc<[ColumnSpec]>> {
        match self {
            Plan::Select(plan) => Some(plan.result_columns()),
            Plan::Describe(plan) => Some(plan.result_columns()),
            Plan::Modify(_) | Plan::Schema(_) | Plan::Use { .. } => None,
        }
    }

    /// Carries the statement out.
    pub async fn execute(
        &self,
        database: &Database,
        parameters: Parameters,
    ) -> Result<Answer, CqlError> {
        match self {
            Plan::Select(plan) => select::execute(database, plan, parameters).await,
            Plan::Modify(plan) => modify::execute(database, plan, parameters).await,
            Plan::Schema(plan) => schema::execute(database, plan).await,
            Plan::Describe(plan) => describe::execute(database, plan, parameters).await,
            Plan::Use { keyspace } => Ok(Answer {
                outcome: Outcome::SetKeyspace(keyspace.clone()),
                warnings: Vec::new(),
            }),
        }
    }
}
