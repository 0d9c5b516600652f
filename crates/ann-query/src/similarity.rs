//! The similarity of two float vectors, as CQL's functions and a vector index score it.
//!
//! | function | score | range |
//! | --- | --- | --- |
//! | cosine | (1 + cos) / 2 | 0 to 1; NaN for a zero vector |
//! | euclidean | 1 / (1 + squared distance) | above 0, to 1 |
//! | dot product | (1 + a · b) / 2 | unbounded unless the vectors are of unit length |
//!
//! Sums are taken in f64, so that the f32 result is the nearest one but for its last bit. The
//! cosine alone is rounded to f32 first, as Cassandra and an index do it: so the score of opposite
//! vectors is 0, and not what rounding left of it.

/// A measure of how near two vectors are; a higher score is nearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Similarity {
    /// The cosine of the angle between the vectors.
    Cosine,
    /// The distance of the vectors.
    Euclidean,
    /// The scalar product of the vectors.
    DotProduct,
}

impl Similarity {
    /// The similarity that the option `similarity_function` of a vector index names, in any case of
    /// letters.
    pub fn by_name(name: &str) -> Option<Similarity> {
        [
            ("cosine", Similarity::Cosine),
            ("euclidean", Similarity::Euclidean),
            ("dot_product", Similarity::DotProduct),
        ]
        .into_iter()
        .find_map(|(known, similarity)| known.eq_ignore_ascii_case(name).then_some(similarity))
    }

    /// The score of two serialised `vector<float, n>` of the same length.
    pub fn score(self, a: &[u8], b: &[u8]) -> f32 {
        let score = match self {
            Similarity::Cosine => {
                let dot = sum(a, b, |a, b| a * b);
                let norms = sum(a, a, |a, b| a * b).sqrt() * sum(b, b, |a, b| a * b).sqrt();
                // Rounding must not carry a score out of its range.
                let cosine = (dot / norms).clamp(-1.0, 1.0) as f32;
                return (1.0 + cosine) / 2.0;
            }
            Similarity::Euclidean => 1.0 / (1.0 + sum(a, b, |a, b| (a - b) * (a - b))),
            Similarity::DotProduct => (1.0 + sum(a, b, |a, b| a * b)) / 2.0,
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
            (Similarity::Cosine, vec![1.0, 0.0], vec![2.0, 0.0], 1.0),
            (Similarity::Cosine, vec![1.0, 0.0], vec![0.0, 3.0], 0.5),
            (Similarity::Cosine, vec![1.0, 0.0], vec![-1.0, 0.0], 0.0),
            (Similarity::Euclidean, vec![1.0, 2.0], vec![1.0, 2.0], 1.0),
            (
                Similarity::Euclidean,
                vec![0.0, 0.0],
                vec![1.0, 1.0],
                1.0 / 3.0,
            ),
            (Similarity::DotProduct, vec![1.0, 2.0], vec![3.0, 4.0], 6.0),
            (
                Similarity::DotProduct,
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
                let score = Similarity::Cosine.score(&vector(elements), &vector(&opposite));
                assert_eq!(score, 0.0, "{elements:?} by {factor}");
            }
        }
    }

    #[test]
    fn the_cosine_of_a_zero_vector_is_no_number() {
        let score = Similarity::Cosine.score(&vector(&[0.0, 0.0]), &vector(&[1.0, 0.0]));
        assert!(score.is_nan());
    }

    #[test]
    fn every_element_counts() {
        for length in 1..20 {
            let ones = vector(&vec![1.0; length]);
            let score = Similarity::DotProduct.score(&ones, &ones);
            assert_eq!(score, (1.0 + length as f32) / 2.0);
        }
    }

    #[test]
    fn names_go_in_any_case() {
        assert_eq!(
            Similarity::by_name("DOT_PRODUCT"),
            Some(Similarity::DotProduct)
        );
        assert_eq!(Similarity::by_name("hamming"), None);
    }
}
