//! `ORDER BY v ANN OF ...`: the index service names the keys of the nearest rows, and the rows are
//! read here.
//!
//! So an answer never holds a stale row. A row that has been deleted or has lost its vector is left
//! out, and the next neighbours take its place (`query::refill`). If an index keeps its vectors
//! quantized and `rescoring` is on, the candidates are put in order again by their stored vectors.
//!
//! The crate `query` has the parts that do not depend on where rows lie.

mod execute;
mod prepare;

use std::fmt;
use std::sync::Arc;

use index::Candidates;
use schema::Index;

use super::place::Place;
use crate::bind::PreparedTerm;

pub(super) use execute::execute;
pub(super) use prepare::prepare;

/// A nearest-neighbour query, resolved.
#[derive(Debug)]
pub(super) struct AnnPlan {
    /// The vector index that is searched.
    pub index: Arc<Index>,
    /// The name of the vector column.
    pub column: String,
    /// The place of the vector column in a row.
    pub place: Place,
    /// The number of elements of a vector.
    pub dimensions: u16,
    /// The vector to look for.
    pub vector: PreparedTerm,
    /// LIMIT.
    pub limit: PreparedTerm,
    /// All columns of the primary key, partition key first.
    pub key_columns: Vec<schema::Column>,
    /// The number of partition key columns, which are the first of `key_columns`.
    pub partition_columns: usize,
    /// The number of candidates to ask for, and whether they are put in order again.
    pub candidates: Candidates,
}

impl fmt::Display for AnnPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "nearest {} by index {}", self.column, self.index.name)?;
        if self.candidates.oversampling != 1.0 {
            writeln!(f, "oversampling {}", self.candidates.oversampling)?;
        }
        if let Some(similarity) = self.candidates.rescoring {
            writeln!(f, "rescoring by {similarity:?}")?;
        }
        Ok(())
    }
}
