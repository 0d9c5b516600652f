//! Answers, and the collector of the nearest ones.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// One answer of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// The id that the vector was inserted under.
    pub id: u32,
    /// The distance by the metric of the index, finite; smaller is nearer.
    pub distance: f32,
}

/// Keeps the `k` nearest of the neighbours it is shown. Of equal distances the lower id is nearer,
/// so that an answer does not depend on the order of insertion.
pub(crate) struct TopNeighbours {
    k: usize,
    heap: BinaryHeap<OrderedNeighbour>,
}

impl TopNeighbours {
    /// Makes a collector of `k` neighbours. `at_most` bounds how many will be shown, so that a huge
    /// `k` costs nothing.
    pub(crate) fn new(k: usize, at_most: usize) -> TopNeighbours {
        let heap = BinaryHeap::with_capacity(k.min(at_most));
        TopNeighbours { k, heap }
    }

    pub(crate) fn show(&mut self, id: u32, distance: f32) {
        let shown = OrderedNeighbour(Neighbour { id, distance });
        if self.heap.len() < self.k {
            self.heap.push(shown);
        } else if let Some(mut farthest) = self.heap.peek_mut()
            && shown < *farthest
        {
            *farthest = shown;
        }
    }

    /// The neighbours collected, nearest first.
    pub(crate) fn into_sorted(self) -> Vec<Neighbour> {
        let ranked = self.heap.into_sorted_vec();
        ranked.into_iter().map(|ranked| ranked.0).collect()
    }
}

/// Orders by distance, then by id.
#[derive(PartialEq)]
struct OrderedNeighbour(Neighbour);

impl Eq for OrderedNeighbour {}

impl Ord for OrderedNeighbour {
    fn cmp(&self, other: &OrderedNeighbour) -> Ordering {
        let by_distance = self.0.distance.total_cmp(&other.0.distance);
        by_distance.then(self.0.id.cmp(&other.0.id))
    }
}

impl PartialOrd for OrderedNeighbour {
    fn partial_cmp(&self, other: &OrderedNeighbour) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keeps_what_sorting_all_would_keep(
            distances in proptest::collection::vec(0u8..20, 0..60),
            k in 0usize..70,
        ) {
            let mut nearest = TopNeighbours::new(k, distances.len());
            let mut sorted = Vec::new();
            for (id, distance) in distances.into_iter().enumerate() {
                let (id, distance) = (id as u32, f32::from(distance));
                nearest.show(id, distance);
                sorted.push((distance, id));
            }
            sorted.sort_by(|a, b| a.partial_cmp(b).expect("no NaN"));
            sorted.truncate(k);
            let kept = nearest.into_sorted().into_iter().map(|n| (n.distance, n.id));
            prop_assert_eq!(kept.collect::<Vec<_>>(), sorted);
        }
    }
}
