//! What makes an index that index: a difference in any of this means another index.

use std::fmt;

use store_api::types::{IndexInfo, IndexOptions, Quantization, SimilarityFunction};
use uuid::Uuid;

use crate::keys::KeySchema;

/// The name that requests use.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexName {
    /// The keyspace, case preserved.
    pub keyspace: String,
    /// The index, case preserved.
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
    /// Every token that a key can have: the lowest `i64` is none.
    pub const WHOLE_RING: TokenRange = TokenRange {
        start: i64::MIN + 1,
        end: i64::MAX,
    };

    /// How many tokens there are in the range.
    pub fn width(&self) -> u128 {
        (i128::from(self.end) - i128::from(self.start) + 1).unsigned_abs()
    }
}

/// A table, as it was created at one time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableIdentity {
    /// The keyspace, case preserved.
    pub keyspace: String,
    /// The table, case preserved.
    pub table: String,
    /// Another one after the table was dropped and created again.
    pub id: Uuid,
}

impl fmt::Display for TableIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.keyspace, self.table)
    }
}

/// Options of a vector index, in effect (contract, section 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorOptions {
    /// Elements of a vector.
    pub dimensions: usize,
    /// As configured.
    pub similarity: SimilarityFunction,
    /// What a vector is kept as.
    pub quantization: Quantization,
    /// The `m` of HNSW.
    pub maximum_node_connections: usize,
    /// The `ef_construction` of HNSW.
    pub construction_beam_width: usize,
    /// The `ef` of HNSW, if the schema has it: a search keeps about so many candidates then. Else as many as good
    /// recall needs.
    pub search_beam_width: Option<usize>,
}

/// What is said of an index whose schema has no `search_beam_width`.
const SEARCH_BEAM_WIDTH: usize = 64;

impl VectorOptions {
    /// The width of a search as it is told (contract, section 3.2).
    pub fn search_beam_width_told(&self) -> usize {
        self.search_beam_width.unwrap_or(SEARCH_BEAM_WIDTH)
    }

    /// A bit for each element leaves only the Hamming distance.
    pub fn effective_similarity(&self) -> SimilarityFunction {
        match self.quantization {
            Quantization::B1 => SimilarityFunction::Hamming,
            _ => self.similarity,
        }
    }

    /// The same for the index library, which is to keep full vectors in this place.
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

/// Everything that makes an index that index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexIdentity {
    /// Its name.
    pub name: IndexName,
    /// The indexed table.
    pub table: TableIdentity,
    /// When the table was last truncated, milliseconds since the epoch. Truncation writes nothing
    /// to the log, so it makes the index another one.
    pub truncated_ms: Option<i64>,
    /// The indexed column.
    pub column: String,
    /// Options in effect.
    pub options: VectorOptions,
    /// Made anew by each CREATE INDEX.
    pub version: Option<Uuid>,
    /// The table's primary key.
    pub keys: KeySchema,
    /// The part of the ring whose rows it holds.
    pub range: TokenRange,
}

impl IndexIdentity {
    /// What the HTTP API says of it.
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
