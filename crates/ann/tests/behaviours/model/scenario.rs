//! What a run of the model is about: which index, which vectors, how many.

use ann::{Codes, Metric, Options, Placement};

use crate::data::Rng;

/// Metrics and codes there are.
pub const COMBINATIONS: usize = 10;

const METRICS: [Metric; 3] = [Metric::Cosine, Metric::Euclidean, Metric::DotProduct];
const CODES: [Codes; 3] = [Codes::Nibbles, Codes::Bytes, Codes::Floats];

/// Around the sizes of words, lines and of [`Codes::Auto`]'s choice.
const DIMENSIONS: [usize; 14] = [1, 2, 3, 5, 8, 15, 16, 17, 33, 63, 64, 65, 128, 200];

/// The steps of a run, told by a number.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub options: Options,
    pub seed: u64,
    /// Ids are drawn below this. Most of them are held in times of growth.
    pub ids: usize,
}

impl Scenario {
    pub fn numbered(number: usize) -> Scenario {
        let mut rng = Rng(number as u64);
        let dimensions = DIMENSIONS[rng.below(DIMENSIONS.len())];
        let (metric, codes) = match number % COMBINATIONS {
            9 => (Metric::Hamming, Codes::Auto),
            pair => (METRICS[pair / 3], CODES[pair % 3]),
        };
        let placement = match rng.below(2) {
            0 => Placement::File,
            _ => Placement::Memory,
        };
        let options = Options {
            metric,
            codes,
            placement,
            max_connections: 4 + rng.below(13),
            build_beam_width: 32 + rng.below(97),
            ..Options::new(dimensions)
        };
        Scenario {
            options,
            seed: rng.next(),
            ids: [200, 700, 1_000, 1_500, 2_500][rng.below(5)],
        }
    }

    /// Vectors as users have them: mostly different, some alike, some zero, some of another length.
    pub fn draw(&self, rng: &mut Rng) -> Vec<f32> {
        let dimensions = self.options.dimensions;
        match rng.below(20) {
            0 => vec![0.0; dimensions],
            1 => vec![rng.below(3) as f32 - 1.0; dimensions],
            2 => {
                let factor = [0.01, 0.5, 3.0][rng.below(3)];
                let vector = rng.vector(dimensions);
                vector.iter().map(|x| x * factor).collect()
            }
            _ => rng.vector(dimensions),
        }
    }
}
