//! The nearest vectors of each: all pairs are measured, each once.

use crate::pace::{LayoutPace, LayoutStopped};
use crate::products::products;
use crate::sample::VectorSample;

/// The steps of a layout that measuring all pairs counts as.
pub(crate) const PAIR_STEPS: u64 = 400;

/// About the number of elements in a block of vectors, so that a block stays in the cache while
/// another one is measured with it.
const BLOCK_ELEMENTS: usize = 1 << 15;

/// The fewest and the most vectors of a block.
const BLOCK_VECTORS: (usize, usize) = (4, 256);

/// The number of vectors that one is measured with at once.
const AT_ONCE: usize = 4;

/// A vector that is near another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NearVector {
    /// How far it is from the other one; see [`VectorSample::separation`].
    pub separation: f32,
    /// Its place in the sample.
    pub at: u32,
}

/// The nearest vectors of each vector of a sample.
#[derive(Debug)]
pub(crate) struct NearestVectors {
    /// The number of nearest that each vector has.
    count: usize,
    /// The nearest of the first vector, nearest first, then those of the second.
    near: Vec<NearVector>,
}

impl NearestVectors {
    /// Finds the `count` nearest vectors of each, or all others if there are no more.
    pub(crate) fn find(
        sample: &VectorSample,
        count: usize,
        pace: &mut LayoutPace<'_>,
    ) -> Result<NearestVectors, LayoutStopped> {
        let vectors = sample.len();
        let count = count.min(vectors.saturating_sub(1));
        let mut found = FoundPairs::new(vectors, count);
        let (fewest, most) = BLOCK_VECTORS;
        let block = (BLOCK_ELEMENTS / sample.dimensions().max(1)).clamp(fewest, most);
        let blocks: Vec<usize> = (0..vectors).step_by(block).collect();
        let pairs = (blocks.len() * (blocks.len() + 1) / 2).max(1) as u64;
        let mut measured = 0;
        for (at, first) in blocks.iter().enumerate() {
            for second in &blocks[at..] {
                let end = |begin: usize| (begin + block).min(vectors);
                for one in *first..end(*first) {
                    found.measure(sample, one, *second, end(*second));
                }
                measured += 1;
                pace.reach(PAIR_STEPS * measured / pairs)?;
            }
        }
        Ok(NearestVectors {
            count,
            near: found.near,
        })
    }

    /// The number of vectors of the sample.
    pub(crate) fn vectors(&self) -> usize {
        match self.count {
            0 => 0,
            count => self.near.len() / count,
        }
    }

    /// The number of nearest that each vector has.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The nearest vectors of one, nearest first.
    pub(crate) fn of(&self, at: usize) -> &[NearVector] {
        &self.near[at * self.count..][..self.count]
    }
}

/// The nearest of the pairs that were measured.
struct FoundPairs {
    count: usize,
    near: Vec<NearVector>,
}

impl FoundPairs {
    fn new(vectors: usize, count: usize) -> FoundPairs {
        let none = NearVector {
            separation: f32::INFINITY,
            at: u32::MAX,
        };
        FoundPairs {
            count,
            near: vec![none; vectors * count],
        }
    }

    /// Measures a vector with those from `begin` to `end` that come after it.
    fn measure(&mut self, sample: &VectorSample, one: usize, begin: usize, end: usize) {
        if self.count == 0 {
            return;
        }
        let mut other = begin.max(one + 1);
        let vector = sample.vector(one);
        while other + AT_ONCE <= end {
            let others: [&[f32]; AT_ONCE] = std::array::from_fn(|more| sample.vector(other + more));
            for product in products(vector, others) {
                self.note(sample, one, other, product);
                other += 1;
            }
        }
        for other in other..end {
            let [product] = products(vector, [sample.vector(other)]);
            self.note(sample, one, other, product);
        }
    }

    fn note(&mut self, sample: &VectorSample, one: usize, other: usize, product: f32) {
        let separation = sample.separation(one, other, product);
        for (one, other) in [(one, other), (other, one)] {
            let near = &mut self.near[one * self.count..][..self.count];
            let last = near.len() - 1;
            if separation < near[last].separation {
                let place = near.partition_point(|near| near.separation <= separation);
                near[place..].rotate_right(1);
                near[place] = NearVector {
                    separation,
                    at: other as u32,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::RandomDraws;
    use crate::products::product;
    use crate::sample::SampleMetric;

    fn sample_of(dimensions: usize, metric: SampleMetric, elements: Vec<f32>) -> VectorSample {
        let mut go_on = |_| true;
        let mut pace = LayoutPace::new(&mut go_on);
        VectorSample::new(dimensions, metric, elements, &mut pace).unwrap()
    }

    fn found(sample: &VectorSample, count: usize) -> NearestVectors {
        let mut go_on = |_| true;
        let mut pace = LayoutPace::new(&mut go_on);
        NearestVectors::find(sample, count, &mut pace).unwrap()
    }

    #[test]
    fn the_nearest_are_those_of_a_sort_of_all() {
        const DIMENSIONS: usize = 131;
        for metric in [
            SampleMetric::Cosine,
            SampleMetric::Euclidean,
            SampleMetric::DotProduct,
        ] {
            let mut draws = RandomDraws::new(5);
            // More than two blocks.
            let elements = (0..530 * DIMENSIONS).map(|_| draws.signed_unit());
            let sample = sample_of(DIMENSIONS, metric, elements.collect());
            let nearest = found(&sample, 7);
            for one in 0..sample.len() {
                let others = (0..sample.len()).filter(|other| *other != one);
                let mut all: Vec<(f32, usize)> = others
                    .map(|other| {
                        let product = product(sample.vector(one), sample.vector(other));
                        (sample.separation(one, other, product), other)
                    })
                    .collect();
                all.sort_by(|a, b| a.0.total_cmp(&b.0));
                let wanted: Vec<usize> = all[..7].iter().map(|(_, other)| *other).collect();
                let near = nearest.of(one).iter().map(|near| near.at as usize);
                assert_eq!(near.collect::<Vec<_>>(), wanted, "{metric:?} {one}");
            }
        }
    }

    #[test]
    fn vectors_are_near_all_others_where_there_are_few() {
        for vectors in 0..4_u8 {
            let elements = (0..vectors).map(f32::from).collect();
            let sample = sample_of(1, SampleMetric::Euclidean, elements);
            let nearest = found(&sample, 10);
            assert_eq!(nearest.count(), usize::from(vectors.saturating_sub(1)));
            for one in 0..nearest.vectors() {
                assert!(nearest.of(one).iter().all(|near| near.at as usize != one));
            }
        }
    }
}
