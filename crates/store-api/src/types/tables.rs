//! The sizes of tables.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A table of the database, in the answer of `GET /api/v1/tables`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TableSize {
    /// The keyspace.
    pub keyspace: String,
    /// The name of the table.
    pub table: String,
    /// The bytes of its files, compressed. Rows that are not written out yet have none.
    pub disk_bytes: u64,
    /// The number of its rows, estimated: versions and deleted rows count until the files are
    /// merged.
    pub rows_estimate: u64,
    /// The bytes of the files of its secondary indexes.
    pub index_disk_bytes: u64,
    /// The names of its indexes of all classes.
    pub indexes: Vec<String>,
}
