//! Metadata: the names and types of a result's columns and of a statement's bind markers.

use std::sync::Arc;

use crate::types::CqlType;

/// One column of a result, or one bind marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The keyspace of the table it belongs to.
    pub keyspace: Arc<str>,
    /// The table it belongs to.
    pub table: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The type.
    pub cql_type: CqlType,
}

/// The columns of a result or the bind markers of a statement, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The columns or markers.
    pub columns: Vec<ColumnSpec>,
}

/// What PREPARE answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The id for EXECUTE.
    pub id: bytes::Bytes,
    /// The bind markers.
    pub bind: Metadata,
    /// For each partition key column, in order, the position of the marker that gives its value. Empty
    /// unless markers give them all: then the driver can compute the token.
    pub partition_key_indexes: Vec<u16>,
    /// The columns of the result; `None` if there is no result set.
    pub result: Option<Metadata>,
}
