//! The vectors that are laid out.

use crate::pace::{LayoutPace, LayoutStopped};
use crate::products::product;

/// About the number of elements between two pauses: less than a millisecond.
const PAUSE_ELEMENTS: usize = 1 << 18;

/// The measure by which vectors are near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleMetric {
    /// The angle between them.
    Cosine,
    /// The length of their difference.
    Euclidean,
    /// The product of their elements: the larger, the nearer.
    DotProduct,
}

/// A sample of vectors, in the order of their points.
#[derive(Clone, Debug)]
pub struct VectorSample {
    dimensions: usize,
    metric: SampleMetric,
    elements: Vec<f32>,
    /// The squared length of each vector.
    squares: Vec<f32>,
}

impl VectorSample {
    /// Makes a sample of vectors whose finite elements come one after the other. Panics if the last
    /// vector is not whole, which is a mistake of the caller.
    ///
    /// # Errors
    /// If `pace` says that the sample is not wanted any more.
    pub fn new(
        dimensions: usize,
        metric: SampleMetric,
        mut elements: Vec<f32>,
        pace: &mut LayoutPace<'_>,
    ) -> Result<VectorSample, LayoutStopped> {
        let length = dimensions.max(1);
        assert!(elements.len().is_multiple_of(length), "whole vectors");
        // Whole vectors.
        let piece = length * (PAUSE_ELEMENTS / length).max(1);
        match metric {
            // The squared difference of two directions is twice the distance between them.
            SampleMetric::Cosine => {
                for vectors in elements.chunks_mut(piece) {
                    vectors.chunks_mut(length).for_each(normalise);
                    pace.pause()?;
                }
            }
            // One unit for all vectors is as good as another, and in this one no square is lost.
            SampleMetric::Euclidean | SampleMetric::DotProduct => {
                let mut most = 0.0_f32;
                for vectors in elements.chunks(piece) {
                    most = most.max(largest(vectors));
                    pace.pause()?;
                }
                // Zeros stay what they are.
                let unit = if most > 0.0 { most } else { 1.0 };
                for vectors in elements.chunks_mut(piece) {
                    vectors.iter_mut().for_each(|element| *element /= unit);
                    pace.pause()?;
                }
            }
        }
        let mut squares = Vec::with_capacity(elements.len() / length);
        for vectors in elements.chunks(piece) {
            squares.extend(vectors.chunks(length).map(|vector| product(vector, vector)));
            pace.pause()?;
        }
        Ok(VectorSample {
            dimensions,
            metric,
            elements,
            squares,
        })
    }

    /// The number of vectors.
    pub fn len(&self) -> usize {
        self.squares.len()
    }

    /// Whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.squares.is_empty()
    }

    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// One vector; under [`SampleMetric::Cosine`] its direction.
    pub(crate) fn vector(&self, at: usize) -> &[f32] {
        &self.elements[at * self.dimensions..][..self.dimensions]
    }

    /// All vectors, in the order in which they came.
    pub(crate) fn vectors(&self) -> impl Iterator<Item = &[f32]> {
        (0..self.len()).map(|at| self.vector(at))
    }

    /// How far two vectors with this product are from each other: their squared difference, or
    /// what takes its place.
    pub(crate) fn separation(&self, one: usize, other: usize, product: f32) -> f32 {
        match self.metric {
            SampleMetric::Cosine | SampleMetric::Euclidean => {
                self.squares[one] + self.squares[other] - 2.0 * product
            }
            SampleMetric::DotProduct => -product,
        }
    }
}

/// The largest size of an element.
fn largest(elements: &[f32]) -> f32 {
    let sizes = elements.iter().map(|element| element.abs());
    sizes.fold(0.0, f32::max)
}

/// Makes a vector one of length 1. A zero vector has no direction and stays as it is.
fn normalise(vector: &mut [f32]) {
    let squares = vector.iter().map(|element| f64::from(*element).powi(2));
    let length = squares.sum::<f64>().sqrt();
    if length > 0.0 {
        for element in vector {
            *element = (f64::from(*element) / length) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separations(metric: SampleMetric, vectors: &[[f32; 2]]) -> Vec<f32> {
        let mut go_on = |_| true;
        let mut pace = LayoutPace::new(&mut go_on);
        let sample = VectorSample::new(2, metric, vectors.concat(), &mut pace).unwrap();
        let separations = (1..vectors.len()).map(|at| {
            let product = product(sample.vector(0), sample.vector(at));
            sample.separation(0, at, product)
        });
        separations.collect()
    }

    #[test]
    fn vectors_are_apart_by_the_metric() {
        let vectors = [[3.0, 0.0], [5.0, 0.0], [0.0, 1.0], [0.0, 0.0]];
        let of = |metric| separations(metric, &vectors);
        assert_eq!(of(SampleMetric::Cosine), [0.0, 2.0, 1.0]);
        // In fifths, the largest element.
        let euclidean = of(SampleMetric::Euclidean)
            .into_iter()
            .map(|apart| apart * 25.0);
        for (found, wanted) in euclidean.zip([4.0, 10.0, 9.0]) {
            assert!((found - wanted).abs() < 1e-5, "{found} {wanted}");
        }
        let products = of(SampleMetric::DotProduct);
        assert!((products[0] * 25.0 + 15.0).abs() < 1e-5 && products[1..] == [0.0, 0.0]);
    }

    #[test]
    fn a_large_sample_is_made_with_pauses_and_can_be_stopped() {
        for metric in [
            SampleMetric::Cosine,
            SampleMetric::Euclidean,
            SampleMetric::DotProduct,
        ] {
            for stops_at in [usize::MAX, 1, 5, 9] {
                let mut pauses = 0;
                let mut pause = |_| {
                    pauses += 1;
                    pauses < stops_at
                };
                let mut pace = LayoutPace::new(&mut pause);
                let elements = vec![1.0; 5 * PAUSE_ELEMENTS];
                let sample = VectorSample::new(1 << 10, metric, elements, &mut pace);
                assert_eq!(sample.is_ok(), stops_at == usize::MAX, "{metric:?}");
                // Each step over all elements has five.
                assert!(pauses >= stops_at.min(10), "{metric:?}: {pauses}");
            }
        }
    }

    #[test]
    fn huge_vectors_are_at_finite_separations() {
        let vectors = [
            [f32::MAX, f32::MAX],
            [f32::MAX, -f32::MAX],
            [f32::MAX, f32::MAX],
        ];
        for metric in [
            SampleMetric::Cosine,
            SampleMetric::Euclidean,
            SampleMetric::DotProduct,
        ] {
            let separations = separations(metric, &vectors);
            assert!(
                separations.iter().all(|apart| apart.is_finite()),
                "{metric:?} {separations:?}"
            );
        }
    }
}
