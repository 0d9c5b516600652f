//! The metric of a vector index and the form of its vectors: the words of the options, and the
//! score of two vectors.
//!
//! | metric | score | range |
//! | --- | --- | --- |
//! | cosine | (1 + cos) / 2 | 0 to 1; NaN for a zero vector |
//! | euclidean | 1 / (1 + squared distance) | above 0, to 1 |
//! | dot product | (1 + a · b) / 2 | unbounded unless the vectors are of unit length |
//! | Hamming | the part of the elements whose signs are equal | 0 to 1 |
//!
//! Sums are taken in f64, so that the f32 result is the nearest one but for its last bit. Only the
//! cosine is rounded to f32 first, as Cassandra and an index do it: so the score of opposite
//! vectors is 0, and not what rounding left of it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The function that says how near two vectors are; a higher score is nearer. Its JSON is that of
/// the HTTP API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = SimilarityFunction)]
pub enum SimilarityFunction {
    /// By the squared Euclidean distance.
    Euclidean,
    /// By the angle.
    Cosine,
    /// By the inner product.
    DotProduct,
    /// By the number of differing bits. No option names it: it is in effect for vectors of bits.
    Hamming,
}

/// The longest vector that an index holds whose metric counts lengths: the distances of two such
/// vectors, and the sums on the way to them, are 32-bit floats with room to spare.
pub const LENGTH_MAX: f64 = 1e18;

/// The error for a vector that is longer than [`LENGTH_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "the vector has a length of {length:e}, and an index by euclidean or dot_product holds vectors \
     up to a length of {LENGTH_MAX:e}: scale its elements down, or index it by cosine"
)]
pub struct VectorTooLong {
    /// The length of the vector.
    pub length: f64,
}

/// The form in which an element of a vector is stored. Its JSON is that of the HTTP API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Quantization {
    /// 32-bit float.
    F32,
    /// 16-bit float, IEEE.
    F16,
    /// 16-bit float, the upper half of 32.
    Bf16,
    /// A byte.
    I8,
    /// A bit.
    B1,
}

/// The words of the option `similarity_function`; the first is its default.
pub(crate) const METRICS: [(&str, SimilarityFunction); 3] = [
    ("cosine", SimilarityFunction::Cosine),
    ("euclidean", SimilarityFunction::Euclidean),
    ("dot_product", SimilarityFunction::DotProduct),
];

/// The words of the option `quantization`; the first is its default.
pub(crate) const QUANTIZATIONS: [(&str, Quantization); 5] = [
    ("f32", Quantization::F32),
    ("f16", Quantization::F16),
    ("bf16", Quantization::Bf16),
    ("i8", Quantization::I8),
    ("b1", Quantization::B1),
];

impl SimilarityFunction {
    /// The word of the option `similarity_function` that names the metric; `None` if no word does.
    pub fn word(self) -> Option<&'static str> {
        let named = METRICS.iter().find(|(_, metric)| *metric == self);
        named.map(|(word, _)| *word)
    }

    /// Whether the lengths of vectors count, so that they are [bounded](LENGTH_MAX).
    pub fn counts_lengths(self) -> bool {
        matches!(
            self,
            SimilarityFunction::Euclidean | SimilarityFunction::DotProduct
        )
    }

    /// Checks that a vector of finite elements is not too long for an index.
    ///
    /// # Errors
    /// If lengths count, and that of the vector is above [`LENGTH_MAX`].
    pub fn check_length(self, vector: impl IntoIterator<Item = f32>) -> Result<(), VectorTooLong> {
        if !self.counts_lengths() {
            return Ok(());
        }
        let squares = vector.into_iter().map(|x| f64::from(x) * f64::from(x));
        let length = squares.sum::<f64>().sqrt();
        match length <= LENGTH_MAX {
            true => Ok(()),
            false => Err(VectorTooLong { length }),
        }
    }

    /// Checks a serialised vector as [`SimilarityFunction::check_length`] does.
    ///
    /// # Errors
    /// As [`SimilarityFunction::check_length`].
    pub fn check_serialised_length(self, vector: &[u8]) -> Result<(), VectorTooLong> {
        let (elements, _) = vector.as_chunks::<4>();
        self.check_length(elements.iter().map(|bytes| f32::from_be_bytes(*bytes)))
    }

    /// The score of two serialised `vector<float, n>` of the same length.
    pub fn score(self, a: &[u8], b: &[u8]) -> f32 {
        let score = match self {
            SimilarityFunction::Cosine => {
                let dot = sum(a, b, |a, b| a * b);
                let norms = sum(a, a, |a, b| a * b).sqrt() * sum(b, b, |a, b| a * b).sqrt();
                // Rounding must not carry a score out of its range.
                let cosine = (dot / norms).clamp(-1.0, 1.0) as f32;
                return (1.0 + cosine) / 2.0;
            }
            SimilarityFunction::Euclidean => 1.0 / (1.0 + sum(a, b, |a, b| (a - b) * (a - b))),
            SimilarityFunction::DotProduct => (1.0 + sum(a, b, |a, b| a * b)) / 2.0,
            SimilarityFunction::Hamming => {
                let equal = sum(a, b, |a, b| f64::from((a > 0.0) == (b > 0.0)));
                equal / (a.len() / size_of::<f32>()) as f64
            }
        };
        score as f32
    }
}

/// The sum of `term` over the pairs of elements. Four partial sums let the processor overlap them.
fn sum(a: &[u8], b: &[u8], term: impl Fn(f64, f64) -> f64) -> f64 {
    const LANES: usize = 4;
    let (a, _) = a.as_chunks::<4>();
    let (b, _) = b.as_chunks::<4>();
    let element = |bytes: &[u8; 4]| f64::from(f32::from_be_bytes(*bytes));
    let (a_lanes, a_rest) = a.as_chunks::<LANES>();
    let (b_lanes, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a_lanes.iter().zip(b_lanes) {
        for lane in 0..LANES {
            sums[lane] += term(element(&a[lane]), element(&b[lane]));
        }
    }
    let rest: f64 = a_rest
        .iter()
        .zip(b_rest)
        .map(|(a, b)| term(element(a), element(b)))
        .sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(elements: &[f32]) -> Vec<u8> {
        elements.iter().flat_map(|e| e.to_be_bytes()).collect()
    }

    #[test]
    fn scores_follow_their_formulas() {
        let cases = [
            (
                SimilarityFunction::Cosine,
                vec![1.0, 0.0],
                vec![2.0, 0.0],
                1.0,
            ),
            (
                SimilarityFunction::Cosine,
                vec![1.0, 0.0],
                vec![0.0, 3.0],
                0.5,
            ),
            (
                SimilarityFunction::Cosine,
                vec![1.0, 0.0],
                vec![-1.0, 0.0],
                0.0,
            ),
            (
                SimilarityFunction::Euclidean,
                vec![1.0, 2.0],
                vec![1.0, 2.0],
                1.0,
            ),
            (
                SimilarityFunction::Euclidean,
                vec![0.0, 0.0],
                vec![1.0, 1.0],
                1.0 / 3.0,
            ),
            (
                SimilarityFunction::DotProduct,
                vec![1.0, 2.0],
                vec![3.0, 4.0],
                6.0,
            ),
            (
                SimilarityFunction::Hamming,
                vec![1.0, 2.0],
                vec![3.0, -4.0],
                0.5,
            ),
            (
                SimilarityFunction::DotProduct,
                vec![1.0, 2.0, 3.0, 4.0, 5.0],
                vec![1.0; 5],
                8.0,
            ),
        ];
        for (similarity, a, b, expected) in cases {
            let score = similarity.score(&vector(&a), &vector(&b));
            assert_eq!(score, expected, "{similarity:?} of {a:?} and {b:?}");
        }
    }

    #[test]
    fn opposite_vectors_have_no_similarity() {
        for elements in [
            &[0.1, 0.2][..],
            &[0.3, 0.7, 0.9],
            &[1e-20, 3e-20],
            &[0.1; 384],
        ] {
            for factor in [1.0, 3.0, 0.7] {
                let opposite: Vec<f32> = elements.iter().map(|e| e * -factor).collect();
                let score = SimilarityFunction::Cosine.score(&vector(elements), &vector(&opposite));
                assert_eq!(score, 0.0, "{elements:?} by {factor}");
            }
        }
    }

    #[test]
    fn the_cosine_of_a_zero_vector_is_no_number() {
        let score = SimilarityFunction::Cosine.score(&vector(&[0.0, 0.0]), &vector(&[1.0, 0.0]));
        assert!(score.is_nan());
    }

    #[test]
    fn vectors_are_bounded_where_lengths_count() {
        for metric in [
            SimilarityFunction::Euclidean,
            SimilarityFunction::DotProduct,
        ] {
            assert_eq!(metric.check_length([6e17, -8e17]), Ok(()));
            let error = metric.check_length([6e17, 9e17]).unwrap_err();
            assert!(error.length > LENGTH_MAX, "{error}");
            let bytes = vector(&[1e19, 0.0]);
            let error = metric.check_serialised_length(&bytes).unwrap_err();
            assert!(
                error.to_string().contains("up to a length of 1e18"),
                "{error}"
            );
            assert!(metric.check_length([f32::MAX; 16_000]).is_err());
        }
        for metric in [SimilarityFunction::Cosine, SimilarityFunction::Hamming] {
            assert_eq!(metric.check_length([f32::MAX; 16_000]), Ok(()));
        }
    }

    #[test]
    fn every_element_counts() {
        for length in 1..20 {
            let ones = vector(&vec![1.0; length]);
            let score = SimilarityFunction::DotProduct.score(&ones, &ones);
            assert_eq!(score, (1.0 + length as f32) / 2.0);
        }
    }
}
