//! The recipes, a file for each family.

pub mod clusters;
pub mod copies;
pub mod digits;
pub mod factors;
pub mod gaussian;
pub mod lengths;
pub mod places;
pub mod series;
pub mod spaces;
pub mod texts;
pub mod wide;

use crate::draw::{RecipeInput, RecipeOutput};
use crate::random::SplitMixGenerator;

/// The stream that says what vectors and queries have in common, such as the centres of clusters.
const COMMON: u64 = 1;
/// The stream of the vectors.
const BASE: u64 = 2;
/// The stream of the queries.
const QUERIES: u64 = 3;

impl RecipeInput<'_> {
    /// Draws all vectors and queries one by one from one distribution.
    fn each(
        &self,
        dimensions: usize,
        one: impl Fn(&mut SplitMixGenerator) -> Vec<f32>,
    ) -> RecipeOutput {
        let sample = |stream, count| -> Vec<f32> {
            let mut random = self.random(stream);
            (0..count).flat_map(|_| one(&mut random)).collect()
        };
        RecipeOutput {
            dimensions,
            base: sample(BASE, self.rows),
            queries: sample(QUERIES, self.queries),
        }
    }

    /// The random numbers of a stream.
    fn random(&self, stream: u64) -> SplitMixGenerator {
        SplitMixGenerator::new(self.seed, stream)
    }

    /// The number of vectors to make where queries are held out of them.
    fn with_queries(&self) -> usize {
        self.rows + self.queries
    }

    /// Takes the queries out of vectors of which there are too many by that number. The others keep
    /// their order.
    fn hold_out(&self, dimensions: usize, all: &[f32]) -> RecipeOutput {
        let count = all.len() / dimensions;
        let mut held_out = vec![false; count];
        for row in &self.random(QUERIES).permutation(count)[..self.queries] {
            held_out[*row] = true;
        }
        let side = |wanted: bool| -> Vec<f32> {
            let rows = all.chunks_exact(dimensions).zip(&held_out);
            let rows = rows.filter(|(_, held_out)| **held_out == wanted);
            rows.flat_map(|(row, _)| row).copied().collect()
        };
        RecipeOutput {
            dimensions,
            base: side(false),
            queries: side(true),
        }
    }
}
