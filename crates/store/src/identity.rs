//! The identity of an index. A difference in any part of it means another index.

use std::fmt;

use store_api::types::{IndexInfo, IndexOptions, Quantization, SimilarityFunction};
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

/// The options of a vector index that are in effect (contract, section 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorOptions {
    /// The number of elements of a vector.
    pub dimensions: usize,
    /// The similarity function, as configured.
    pub similarity: SimilarityFunction,
    /// The form in which vectors are kept.
    pub quantization: Quantization,
    /// The `m` of HNSW.
    pub maximum_node_connections: usize,
    /// The `ef_construction` of HNSW.
    pub construction_beam_width: usize,
    /// The `ef` of HNSW, if the schema has it. A search then keeps about this many candidates, and
    /// without it as many as good recall needs.
    pub search_beam_width: Option<usize>,
}

/// The width that the API reports for an index whose schema has no `search_beam_width`.
const SEARCH_BEAM_WIDTH: usize = 64;

impl VectorOptions {
    /// The width of a search that the API reports (contract, section 3.2).
    pub fn search_beam_width_told(&self) -> usize {
        self.search_beam_width.unwrap_or(SEARCH_BEAM_WIDTH)
    }

    /// The similarity function in effect. Vectors of one bit an element (`B1`) have only the
    /// Hamming distance.
    pub fn effective_similarity(&self) -> SimilarityFunction {
        match self.quantization {
            Quantization::B1 => SimilarityFunction::Hamming,
            _ => self.similarity,
        }
    }

    /// The options for the index library. `placement` says where it keeps full vectors.
    pub fn ann(&self, placement: ann::Placement) -> ann::Options {
        ann::Options {
            dimensions: self.dimensions,
            metric: match self.effective_similarity() {
                SimilarityFunction::Cosine => ann::Metric::Cosine,
                SimilarityFunction::Euclidean => ann::Metric::Euclidean,
                SimilarityFunction::DotProduct => ann::Metric::DotProduct,
                SimilarityFunction::Hamming => ann::Metric::Hamming,
            },
            quantization: match self.quantization {
                Quantization::F32 => ann::Quantization::F32,
                Quantization::F16 => ann::Quantization::F16,
                Quantization::Bf16 => ann::Quantization::Bf16,
                Quantization::I8 => ann::Quantization::I8,
                Quantization::B1 => ann::Quantization::B1,
            },
            codes: ann::Codes::Auto,
            placement,
            max_connections: self.maximum_node_connections,
            build_beam_width: self.construction_beam_width,
            search_beam_width: self.search_beam_width_told(),
        }
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
