//! `ORDER BY v ANN OF ...`: the index service names the nearest keys, the rows are read here.
//!
//! So an answer never holds a stale row: a row that was deleted since, or lost its vector, is left
//! out, and the next neighbours take its place (`ann_query::refill`). Where an index keeps its vectors quantized
//! and `rescoring` is on, the candidates are put in order again by their stored vectors.
//!
//! What of it does not depend on where rows lie is in the crate `ann-query`.

mod execute;
mod prepare;

use std::fmt;
use std::sync::Arc;

use ann_query::options::Candidates;
use storage::catalog::Index;

use super::place::Place;
use crate::bind::PreparedTerm;

pub(super) use execute::execute;
pub(super) use prepare::prepare;

/// A nearest-neighbour query, resolved.
#[derive(Debug)]
pub(super) struct AnnPlan {
    pub index: Arc<Index>,
    /// The name of the vector column.
    pub column: String,
    pub place: Place,
    pub dimensions: u16,
    pub vector: PreparedTerm,
    pub limit: PreparedTerm,
    /// All columns of the primary key, partition key first.
    pub key_columns: Vec<storage::catalog::Column>,
    /// How many columns of it are the partition key's.
    pub partition_columns: usize,
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
