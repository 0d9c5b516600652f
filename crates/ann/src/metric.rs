//! The metrics, and the similarity scores that users see.

/// The measure of the distance of two vectors. Smaller is nearer for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DistanceMetric {
    /// `1 - cos`, in [0, 2]. A zero vector is just beyond, at the float after 2. A query of zeros
    /// is at the distance 0 from zero vectors, and at 1 from all others.
    Cosine,
    /// The squared Euclidean distance.
    Euclidean,
    /// `1 - a.b`.
    DotProduct,
    /// The number of differing bits; a float counts as one bit, set when strictly positive.
    Hamming,
}

impl DistanceMetric {
    /// The similarity score of a distance: larger is more alike.
    ///
    /// | metric | score | range |
    /// | --- | --- | --- |
    /// | cosine | `(2 - d) / 2` | 0 to 1 |
    /// | Euclidean | `1 / (1 + d)` | 0 to 1 |
    /// | dot product | `(2 - d) / 2` | unbounded, 0 to 1 for unit vectors |
    /// | Hamming | `1 - d / dimensions` | 0 to 1 |
    ///
    /// `dimensions` are those of the vectors; only Hamming looks at them.
    pub fn similarity(self, distance: f32, dimensions: usize) -> f32 {
        match self {
            // Halved before the subtraction, so that the largest distances do not overflow.
            DistanceMetric::Cosine | DistanceMetric::DotProduct => 1.0 - distance / 2.0,
            DistanceMetric::Euclidean => 1.0 / (1.0 + distance),
            DistanceMetric::Hamming => 1.0 - distance / dimensions as f32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DistanceMetric;

    #[test]
    fn scores_follow_the_table() {
        assert_eq!(DistanceMetric::Cosine.similarity(0.0, 3), 1.0);
        assert_eq!(DistanceMetric::Cosine.similarity(1.0, 3), 0.5);
        assert_eq!(DistanceMetric::Cosine.similarity(2.0, 3), 0.0);
        assert_eq!(DistanceMetric::Euclidean.similarity(0.0, 3), 1.0);
        assert_eq!(DistanceMetric::Euclidean.similarity(3.0, 3), 0.25);
        assert_eq!(DistanceMetric::DotProduct.similarity(-9.0, 3), 5.5);
        assert_eq!(DistanceMetric::Hamming.similarity(3.0, 4), 0.25);
        assert_eq!(DistanceMetric::Hamming.similarity(0.0, 4), 1.0);
    }

    #[test]
    fn the_largest_distances_have_finite_scores() {
        for metric in [DistanceMetric::Euclidean, DistanceMetric::DotProduct] {
            assert!(metric.similarity(f32::MAX, 1).is_finite());
        }
        assert!(
            DistanceMetric::DotProduct
                .similarity(f32::MIN, 1)
                .is_finite()
        );
        assert_eq!(
            DistanceMetric::Euclidean.similarity(f32::MAX, 1),
            1.0 / f32::MAX
        );
    }
}
