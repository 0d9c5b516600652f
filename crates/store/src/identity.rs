//! The identity of an index. A difference in any part of it means another index.

use std::fmt;

use index::VectorOptions;
use store_api::types::{IndexInfo, IndexOptions};
use uuid::Uuid;

use crate::keys::KeySchema;

/// The name of an index in requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexName {
    /// The name of the keyspace, case preserved.
    pub keyspace: String,
    /// The name of the index, case preserved.
    pub index: String,
}

impl fmt::Display for IndexName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.keyspace, self.index)
    }
}

/// A part of the token ring, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenRange {
    /// The first token.
    pub start: i64,
    /// The last token.
    pub end: i64,
}

impl TokenRange {
    /// Every token that a key can have. The lowest `i64` is the token of no key.
    pub const WHOLE_RING: TokenRange = TokenRange {
        start: i64::MIN + 1,
        end: i64::MAX,
    };

    /// The number of tokens in the range.
    pub fn width(&self) -> u128 {
        (i128::from(self.end) - i128::from(self.start) + 1).unsigned_abs()
    }
}

/// The identity of a table. A table that is dropped and created again has another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableIdentity {
    /// The name of the keyspace, case preserved.
    pub keyspace: String,
    /// The name of the table, case preserved.
    pub table: String,
    /// The id of the table, which is another one after the table was dropped and created again.
    pub id: Uuid,
}

impl fmt::Display for TableIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.keyspace, self.table)
    }
}

/// The identity of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexIdentity {
    /// The name of the index.
    pub name: IndexName,
    /// The indexed table.
    pub table: TableIdentity,
    /// The time of the last truncation of the table, in milliseconds since the epoch. Truncation
    /// writes nothing to the log, so it makes the index another one.
    pub truncated_ms: Option<i64>,
    /// The indexed column.
    pub column: String,
    /// The options in effect.
    pub options: VectorOptions,
    /// The version that each CREATE INDEX makes anew.
    pub version: Option<Uuid>,
    /// The table's primary key.
    pub keys: KeySchema,
    /// The part of the ring whose rows the index holds.
    pub range: TokenRange,
}

impl IndexIdentity {
    /// The description of the index in the HTTP API.
    pub fn info(&self) -> IndexInfo {
        IndexInfo {
            keyspace: self.name.keyspace.clone(),
            index: self.name.index.clone(),
            options: IndexOptions::Vector {
                dimensions: self.options.dimensions,
                maximum_node_connections: self.options.maximum_node_connections,
                construction_beam_width: self.options.construction_beam_width,
                search_beam_width: self.options.search_beam_width_told(),
                similarity_function: self.options.similarity,
                quantization: self.options.quantization,
            },
        }
    }
}
