//! How much vectors attract each other on a map.
//!
//! A vector's nearest have weights that fall with the separation, `exp(-falloff * separation)`. The
//! falloff is chosen for each vector, so that the entropy of its weights is that of as many equal
//! ones as the perplexity says. So a vector among many has as many that count as one far out.

use crate::nearest::{NearVector, NearestVectors};
use crate::pace::{LayoutPace, LayoutStopped};

/// The number of times that the interval of a falloff is halved.
const HALVINGS: usize = 60;

/// The difference of an entropy from the wanted one at which the search ends.
const CLOSE_ENOUGH: f32 = 1e-4;

/// The largest falloff. Beyond it all weight is with the nearest ones.
const FALLOFF_MAX: f32 = 1e30;

/// The number of vectors that are weighed between two pauses: about a millisecond.
const WEIGHED_BETWEEN_PAUSES: usize = 128;

/// The number of lists that are merged between two pauses.
const MERGED_BETWEEN_PAUSES: usize = 512;

/// The weights by which the points of a map attract each other, the same both ways. All together
/// are 1.
#[derive(Debug)]
pub(crate) struct NeighbourWeights {
    /// The end of each point's neighbours in `neighbours`.
    ends: Vec<usize>,
    neighbours: Vec<WeightedNeighbour>,
}

/// A point that attracts another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WeightedNeighbour {
    /// Its place in the sample.
    pub at: u32,
    /// How much it attracts.
    pub weight: f32,
}

impl NeighbourWeights {
    /// Weighs the nearest of each vector so that about `perplexity` of them count. A vector that is
    /// among another one's nearest is attracted by that one, too.
    pub(crate) fn balanced(
        nearest: &NearestVectors,
        perplexity: f32,
        pace: &mut LayoutPace<'_>,
    ) -> Result<NeighbourWeights, LayoutStopped> {
        let vectors = nearest.vectors();
        let entropy = perplexity.min(nearest.count() as f32 / 3.0).max(1.0).ln();
        let mut lists = NeighbourLists::for_nearest(nearest);
        let mut weights = vec![0.0; nearest.count()];
        let share = 0.5 / vectors.max(1) as f32;
        for one in 0..vectors {
            if one % WEIGHED_BETWEEN_PAUSES == 0 {
                pace.pause()?;
            }
            let near = nearest.of(one);
            weigh(near, entropy, &mut weights);
            for (near, weight) in near.iter().zip(&weights) {
                lists.add(one, near.at, weight * share);
                lists.add(near.at as usize, one as u32, weight * share);
            }
        }
        lists.merged(pace)
    }

    /// The points that attract one.
    pub(crate) fn of(&self, at: usize) -> &[WeightedNeighbour] {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.neighbours[begin..self.ends[at]]
    }
}

/// The lists of neighbours of all points, in one block of memory.
struct NeighbourLists {
    begins: Vec<usize>,
    ends: Vec<usize>,
    neighbours: Vec<WeightedNeighbour>,
}

impl NeighbourLists {
    /// Makes room for the nearest of each vector, and for those that it is near to.
    fn for_nearest(nearest: &NearestVectors) -> NeighbourLists {
        let mut room = vec![nearest.count(); nearest.vectors()];
        for one in 0..nearest.vectors() {
            nearest
                .of(one)
                .iter()
                .for_each(|near| room[near.at as usize] += 1);
        }
        let mut begins = Vec::with_capacity(room.len());
        let mut end = 0;
        for room in room {
            begins.push(end);
            end += room;
        }
        let none = WeightedNeighbour { at: 0, weight: 0.0 };
        NeighbourLists {
            ends: begins.clone(),
            begins,
            neighbours: vec![none; end],
        }
    }

    fn add(&mut self, one: usize, at: u32, weight: f32) {
        self.neighbours[self.ends[one]] = WeightedNeighbour { at, weight };
        self.ends[one] += 1;
    }

    /// Makes one neighbour of those that came twice.
    fn merged(mut self, pace: &mut LayoutPace<'_>) -> Result<NeighbourWeights, LayoutStopped> {
        let mut end: usize = 0;
        let mut ends = Vec::with_capacity(self.ends.len());
        for (begin, list_end) in self.begins.iter().zip(&self.ends) {
            self.neighbours[*begin..*list_end].sort_unstable_by_key(|neighbour| neighbour.at);
            let first = end;
            for from in *begin..*list_end {
                let next = self.neighbours[from];
                match end.checked_sub(1).filter(|last| *last >= first) {
                    Some(last) if self.neighbours[last].at == next.at => {
                        self.neighbours[last].weight += next.weight;
                    }
                    _ => {
                        self.neighbours[end] = next;
                        end += 1;
                    }
                }
            }
            ends.push(end);
            if ends.len() % MERGED_BETWEEN_PAUSES == 0 {
                pace.pause()?;
            }
        }
        self.neighbours.truncate(end);
        Ok(NeighbourWeights {
            ends,
            neighbours: self.neighbours,
        })
    }
}

/// Weighs the nearest of one vector. The weights have the sum 1.
fn weigh(near: &[NearVector], entropy: f32, weights: &mut [f32]) {
    let (Some(first), Some(last)) = (near.first(), near.last()) else {
        return;
    };
    let beyond = |near: &NearVector| near.separation - first.separation;
    let widest = beyond(last);
    let mut falloff = if widest > FALLOFF_MAX.recip() {
        widest.recip()
    } else {
        1.0
    };
    let (mut low, mut high) = (0.0_f32, FALLOFF_MAX);
    for _ in 0..HALVINGS {
        let (mut sum, mut beyond_sum) = (0.0, 0.0);
        for (near, weight) in near.iter().zip(&mut *weights) {
            let beyond = beyond(near);
            *weight = (-falloff * beyond).exp();
            sum += *weight;
            beyond_sum += if *weight > 0.0 { *weight * beyond } else { 0.0 };
        }
        weights.iter_mut().for_each(|weight| *weight /= sum);
        let excess = sum.ln() + falloff * beyond_sum / sum - entropy;
        if excess.abs() < CLOSE_ENOUGH {
            return;
        }
        if excess > 0.0 {
            low = falloff;
            falloff = if high < FALLOFF_MAX {
                f32::midpoint(low, high)
            } else {
                falloff * 2.0
            };
        } else {
            high = falloff;
            falloff = f32::midpoint(low, high);
        }
        if falloff >= FALLOFF_MAX {
            // The nearest are all as near, and have the weight of all.
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{SampleMetric, VectorSample};

    #[test]
    fn weights_are_balanced_with_pauses() {
        let elements = (0..1000_u16).map(f32::from).collect();
        let mut go_on = |_| true;
        let mut pace = LayoutPace::new(&mut go_on);
        let sample = VectorSample::new(1, SampleMetric::Euclidean, elements, &mut pace).unwrap();
        let nearest = NearestVectors::find(&sample, 9, &mut pace).unwrap();
        let mut pauses = 0;
        let mut pause = |_| {
            pauses += 1;
            true
        };
        let mut pace = LayoutPace::new(&mut pause);
        NeighbourWeights::balanced(&nearest, 3.0, &mut pace).unwrap();
        assert_eq!(pauses, 1000_usize.div_ceil(WEIGHED_BETWEEN_PAUSES) + 1);
        let mut left = pauses;
        let mut stop = |_| {
            left -= 1;
            left > 0
        };
        let mut pace = LayoutPace::new(&mut stop);
        let stopped = NeighbourWeights::balanced(&nearest, 3.0, &mut pace);
        assert_eq!(stopped.unwrap_err(), LayoutStopped, "in the last pause");
    }

    fn weights_of(separations: &[f32], entropy: f32) -> Vec<f32> {
        let near = separations.iter().zip(1..);
        let near: Vec<NearVector> = near
            .map(|(separation, at)| NearVector {
                separation: *separation,
                at,
            })
            .collect();
        let mut weights = vec![0.0; near.len()];
        weigh(&near, entropy, &mut weights);
        weights
    }

    fn perplexity(weights: &[f32]) -> f32 {
        let entropy = weights.iter().filter(|weight| **weight > 0.0);
        let entropy: f32 = entropy.map(|weight| -weight * weight.ln()).sum();
        entropy.exp()
    }

    #[test]
    fn as_many_count_wherever_a_vector_is() {
        let near: Vec<f32> = (1..=45_u8).map(|at| f32::from(at) * 1e-3).collect();
        let far: Vec<f32> = near.iter().map(|near| 5e4 + near * 1e9).collect();
        for separations in [near, far] {
            let weights = weights_of(&separations, 15_f32.ln());
            assert!((perplexity(&weights) - 15.0).abs() < 0.1, "{weights:?}");
            assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-4);
            assert!(weights.is_sorted_by(|a, b| a >= b));
        }
    }

    #[test]
    fn vectors_that_are_as_near_have_the_same_weight() {
        assert_eq!(weights_of(&[2.0; 4], 2_f32.ln()), [0.25; 4]);
        assert_eq!(weights_of(&[0.0; 4], 0.0), [0.25; 4]);
        let extreme = weights_of(&[f32::MIN / 4.0, 0.0, f32::MAX / 4.0], 0.0);
        assert!(
            extreme.iter().all(|weight| weight.is_finite()),
            "{extreme:?}"
        );
        assert!(weights_of(&[], 1.0).is_empty());
    }
}
