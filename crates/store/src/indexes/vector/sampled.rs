//! The vectors of drawn rows, for a map of them.

use index::SimilarityFunction;
use point_map::SampleMetric;

use super::{AsVector, VectorIndex};
use crate::indexes::fresh::LoadedChanges;
use crate::indexes::surrounding_rows::SurroundingRows;

/// The space of an index's vectors, as a map sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VectorSpace {
    /// The number of elements of a vector.
    pub dimensions: usize,
    /// The measure by which vectors are near.
    pub metric: SampleMetric,
}

impl VectorIndex {
    /// The space of the vectors.
    pub(crate) fn space(&self) -> VectorSpace {
        VectorSpace {
            dimensions: self.ann.options().dimensions,
            metric: match self.similarity {
                SimilarityFunction::Cosine => SampleMetric::Cosine,
                SimilarityFunction::DotProduct => SampleMetric::DotProduct,
                // Of elements that are 1 or -1 the squared difference is four times the number that
                // differ.
                SimilarityFunction::Euclidean | SimilarityFunction::Hamming => {
                    SampleMetric::Euclidean
                }
            },
        }
    }

    /// The present vectors of rows, at the precision of the index. Rows that have none are left
    /// out.
    pub(crate) fn present_vectors<V: AsVector>(
        &self,
        rows: &SurroundingRows<'_, V>,
        ids: &[u32],
    ) -> Vec<(u32, Vec<f32>)> {
        let fresh = rows.fresh.now();
        let changed = LoadedChanges::by_id(&fresh);
        let present = ids.iter().filter_map(|id| {
            let vector = self.vector_now(*id, &changed)?;
            Some((*id, vector))
        });
        present.collect()
    }
}
