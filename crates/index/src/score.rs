//! The conversion of distances to scores (contract, section 1.5).

use crate::SimilarityFunction;

/// The tolerance for rounding: the distance of equal or of opposite vectors may be this far beyond
/// the range of the metric.
const ROUNDING: f32 = 1e-3;

/// A distance and its score, both finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DistanceAndScore {
    /// The distance; a smaller one is nearer.
    pub distance: f32,
    /// The similarity score; a higher one is nearer.
    pub similarity: f32,
    /// The distance as the index has measured it, by which rows are in order: that of a zero vector
    /// by cosine is beyond all others.
    pub measured: f32,
}

/// The error for a distance that the metric can't have.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("the index computed the impossible {metric:?} distance {distance}")]
pub struct ImpossibleDistance {
    metric: SimilarityFunction,
    distance: f32,
}

/// Computes the score of a distance. Values beyond the range of `f32` are saturated.
///
/// # Errors
/// If the metric can't have such a distance: it is NaN, or out of range by more than rounding
/// explains.
pub fn score(
    metric: SimilarityFunction,
    dimensions: usize,
    distance: f32,
) -> Result<DistanceAndScore, ImpossibleDistance> {
    let measured = distance;
    let impossible = Err(ImpossibleDistance { metric, distance });
    let (distance, similarity) = match metric {
        _ if distance.is_nan() => return impossible,
        SimilarityFunction::Cosine => {
            if !(-ROUNDING..=2.0 + ROUNDING).contains(&distance) {
                return impossible;
            }
            // A zero vector has the next float after 2.
            let distance = distance.clamp(0.0, 2.0);
            (distance, (2.0 - distance) / 2.0)
        }
        SimilarityFunction::Euclidean => {
            if distance < -ROUNDING {
                return impossible;
            }
            let distance = distance.max(0.0);
            (distance, 1.0 / (1.0 + distance))
        }
        SimilarityFunction::DotProduct => (distance, (2.0 - distance) / 2.0),
        SimilarityFunction::Hamming => (distance, 1.0 - distance / dimensions as f32),
    };
    Ok(DistanceAndScore {
        distance: distance.clamp(f32::MIN, f32::MAX),
        similarity: similarity.clamp(f32::MIN, f32::MAX),
        measured,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use SimilarityFunction::*;

    fn similarity(metric: SimilarityFunction, distance: f32) -> Option<f32> {
        score(metric, 8, distance)
            .ok()
            .map(|scored| scored.similarity)
    }

    #[test]
    fn the_formulas() {
        assert_eq!(similarity(Cosine, 0.0), Some(1.0));
        assert_eq!(similarity(Cosine, 1.0), Some(0.5));
        assert_eq!(similarity(Cosine, 2.0), Some(0.0));
        assert_eq!(similarity(Euclidean, 3.0), Some(0.25));
        assert_eq!(similarity(DotProduct, -3.0), Some(2.5));
        assert_eq!(similarity(Hamming, 2.0), Some(0.75));
    }

    #[test]
    fn rounding_is_forgiven_and_nonsense_is_not() {
        assert_eq!(
            score(Cosine, 8, -1e-7),
            Ok(DistanceAndScore {
                distance: 0.0,
                similarity: 1.0,
                measured: -1e-7,
            })
        );
        assert_eq!(similarity(Cosine, 2.1), None);
        let zero = score(Cosine, 8, 2.0f32.next_up()).unwrap();
        assert_eq!((zero.distance, zero.similarity), (2.0, 0.0));
        assert!(zero.measured > 2.0);
        assert_eq!(similarity(Euclidean, -1.0), None);
        for metric in [Cosine, Euclidean, DotProduct] {
            assert_eq!(similarity(metric, f32::NAN), None);
        }
    }

    #[test]
    fn infinities_are_saturated() {
        let far = score(DotProduct, 8, f32::INFINITY).unwrap();
        assert_eq!((far.distance, far.similarity), (f32::MAX, f32::MIN));
        assert_eq!(similarity(Euclidean, f32::INFINITY), Some(0.0));
    }
}
