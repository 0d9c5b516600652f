//! Answers of statements, before they take the form of the native protocol.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use client_memory::MemoryCharge;
use cql::wire::ColumnSpec;

/// The answer of a statement.
#[derive(Debug)]
pub struct ExecutionResult {
    /// The outcome of the statement.
    pub outcome: ExecutionOutcome,
    /// Warnings, which drivers show with the result.
    pub warnings: Vec<String>,
}

/// The outcome of a statement.
#[derive(Debug)]
pub enum ExecutionOutcome {
    /// The statement is done and returns nothing.
    Void,
    /// The rows of a result set.
    Rows(ResultRows),
    /// The connection now uses this keyspace.
    SetKeyspace(String),
    /// The schema has changed.
    SchemaChange(CatalogChange),
}

/// Rows in the form in which the native protocol carries them.
#[derive(Debug)]
pub struct ResultRows {
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
    pub charge: Option<MemoryCharge>,
}

/// A change of the schema, as it is reported to drivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogChange {
    /// The kind of change.
    pub kind: CatalogChangeKind,
    /// The keyspace that changed, or in which something changed.
    pub keyspace: String,
    /// The object that changed.
    pub object: ChangedObject,
}

/// The object that a schema change is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangedObject {
    /// The keyspace itself.
    Keyspace,
    /// A table, by its name.
    Table(String),
    /// A user type, by its name.
    Type(String),
}

/// The kind of a schema change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatalogChangeKind {
    /// The object is new.
    Created,
    /// The object was altered.
    Updated,
    /// The object was dropped.
    Dropped,
}
