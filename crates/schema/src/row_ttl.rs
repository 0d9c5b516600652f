//! The column that says when a row expires, which ScyllaDB calls per-row TTL.

use uuid::Uuid;
use value::CqlType;

use crate::{Column, ColumnId, Table};

/// The column whose value is the time at which its row expires.
///
/// The storage keeps an entry for each row that has such a value, in the order of the values, as it
/// does for a secondary index. No query is served by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowTtl {
    /// A regular column of a type that [`RowTtl::takes`].
    pub column: ColumnId,
    /// A new one is made whenever a table gets such a column. The entries are stored under it.
    pub version: Uuid,
}

impl RowTtl {
    /// Whether a column of this type can tell when its row expires: a `timestamp`, or a `bigint` or
    /// `int` of seconds since the epoch.
    pub fn takes(cql_type: &CqlType) -> bool {
        matches!(
            cql_type,
            CqlType::Timestamp | CqlType::Bigint | CqlType::Int
        )
    }
}

impl Table {
    /// The column whose value is the time at which its row expires.
    pub fn row_ttl_column(&self) -> Option<&Column> {
        self.column_by_id(self.row_ttl?.column)
    }
}
