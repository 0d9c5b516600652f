//! The scenarios of the model: which index, which vectors, how many.

use ann::{CodeChoice, DistanceMetric, NeighbourIndexOptions, VectorPlacement};

use crate::data::{Rng, of_some_kind};

/// The codes, taken in turn. Vectors of bits have codes of bits in any case.
const CODES: [CodeChoice; 3] = [CodeChoice::Nibbles, CodeChoice::Bytes, CodeChoice::Floats];

/// Number of ids of a scenario. The fewest get no graph; the others grow past the 512 vectors that
/// it takes, and shrink below them.
const IDS: [usize; 4] = [300, 900, 1_500, 2_500];

/// The dimensions, around the sizes of words, of lines and of [`CodeChoice::Auto`]'s choice.
const DIMENSIONS: [usize; 14] = [1, 2, 3, 5, 8, 15, 16, 17, 33, 63, 64, 65, 128, 200];

/// Number of vectors that most are drawn from, for each id: few are drawn twice.
const DRAWN_FROM: usize = 4;

/// A run, whose steps all follow from its number.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub options: NeighbourIndexOptions,
    pub seed: u64,
    number: usize,
    /// Ids are drawn below this. Most of them are held in times of growth.
    pub ids: usize,
}

impl Scenario {
    pub fn numbered(metric: DistanceMetric, number: usize) -> Scenario {
        let mut rng = Rng(1_000 * number as u64 + metric as u64);
        let dimensions = DIMENSIONS[rng.below(DIMENSIONS.len())];
        let codes = CODES[number % CODES.len()];
        let placement = match rng.below(2) {
            0 => VectorPlacement::File,
            _ => VectorPlacement::Memory,
        };
        let options = NeighbourIndexOptions {
            metric,
            codes,
            placement,
            max_connections: 4 + rng.below(13),
            build_beam_width: 32 + rng.below(97),
            ..NeighbourIndexOptions::new(dimensions)
        };
        Scenario {
            options,
            seed: rng.next(),
            number,
            ids: IDS[number % IDS.len()],
        }
    }

    /// The vectors of one kind, another one in each scenario.
    pub fn vectors(&self) -> Vec<Vec<f32>> {
        let number = self.number + self.options.metric as usize * 5;
        of_some_kind(number, DRAWN_FROM * self.ids, self.options.dimensions)
    }

    /// Draws a vector as users have them: mostly different ones of a kind, some equal to others,
    /// some zero, some of another length, some that are like nothing else.
    pub fn draw(&self, vectors: &[Vec<f32>], rng: &mut Rng) -> Vec<f32> {
        let dimensions = self.options.dimensions;
        match rng.below(20) {
            0 => vec![0.0; dimensions],
            1 => vec![rng.below(3) as f32 - 1.0; dimensions],
            2 => {
                let factor = [0.01, 0.5, 3.0][rng.below(3)];
                let vector = &vectors[rng.below(vectors.len())];
                vector.iter().map(|x| x * factor).collect()
            }
            3 => Rng(rng.below(30) as u64 + 1).vector(dimensions),
            4 => vectors[rng.below(30)].clone(),
            _ => vectors[rng.below(vectors.len())].clone(),
        }
    }
}
