//! The input and the output of a recipe.

use crate::random::SplitMixGenerator;

/// The stream that chooses among real vectors.
const CHOICE: u64 = 11;

/// The size of what is drawn, and where its random numbers and real vectors come from.
pub struct RecipeInput<'a> {
    /// Another seed gives other vectors of the same kind.
    pub seed: u64,
    /// Vectors wanted.
    pub rows: usize,
    /// Queries wanted.
    pub queries: usize,
    /// Real vectors, where there are any.
    pub real: &'a RealSamples<'a>,
}

/// Real vectors that recipes start from. Recipes make something like them where they are missing.
#[derive(Clone, Copy, Default)]
pub struct RealSamples<'a> {
    /// Embeddings of texts, of length 1 in [`crate::TEXT_DIMENSIONS`] dimensions.
    pub texts: Option<ExistingVectors<'a>>,
    /// Images of digits, in [`crate::DIGIT_DIMENSIONS`] dimensions.
    pub digits: Option<ExistingVectors<'a>>,
}

/// Vectors and queries as a recipe draws them.
pub struct RecipeOutput {
    /// Elements of a vector.
    pub dimensions: usize,
    /// The vectors, one after the other.
    pub base: Vec<f32>,
    /// The queries, one after the other.
    pub queries: Vec<f32>,
}

/// Vectors and queries that are there already.
#[derive(Clone, Copy)]
pub struct ExistingVectors<'a> {
    /// The vectors, one after the other.
    pub base: &'a [f32],
    /// The queries, one after the other.
    pub queries: &'a [f32],
}

impl ExistingVectors<'_> {
    /// Takes vectors and queries in random order. Panics if there are not as many.
    pub(crate) fn choose(&self, draw: &RecipeInput<'_>, dimensions: usize) -> RecipeOutput {
        let choose = |from: &[f32], count: usize, stream| -> Vec<f32> {
            let held = from.len() / dimensions;
            assert!(
                count <= held,
                "{count} real vectors are wanted of {held}: ask for fewer rows or queries"
            );
            let order = SplitMixGenerator::new(draw.seed, stream).permutation(held);
            let rows = order[..count].iter();
            rows.flat_map(|row| &from[row * dimensions..][..dimensions])
                .copied()
                .collect()
        };
        RecipeOutput {
            dimensions,
            base: choose(self.base, draw.rows, CHOICE),
            queries: choose(self.queries, draw.queries, CHOICE + 1),
        }
    }
}
