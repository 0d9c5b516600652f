//! The candidates of a walk for the few slots that a filter admits.
//!
//! The walk passes through any slots, the nearest to the query first, and of those it finds, the
//! admitted ones are retained. Where one slot in ten is admitted, the tenth admitted is about the
//! hundredth of all, so the walk looks as far as one for a hundred neighbours of all. That is much
//! less than ten times as far as one for ten. How many of all are nearer than the last one wanted
//! shows on the way, whether the filter has to do with the query or not.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pool::{Frontier, PackedCandidate};
use super::reach::WalkReach;

/// Width that each slot passed by adds, as each neighbour of a plain walk does.
pub(crate) const BEAM_PER_PASSED: f64 = 1.5;

/// Number of slots that a walk has room for at its start.
const ROOM: usize = 1 << 10;

/// The bounds of a walk for admitted slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkBounds {
    /// Number of admitted slots to find.
    pub wanted: usize,
    /// Number of hops if all slots were admitted.
    pub width: usize,
    /// How far a walk of that width looks.
    pub reach: WalkReach,
    /// Number of hops after which the walk is given up.
    pub hops_max: usize,
    /// Number of hops after which it is given up if it has not found as many as are wanted.
    pub starved_max: usize,
}

/// The nearest slots that `admits` takes, found by way of any slots.
pub(crate) struct FilteredFrontier<A> {
    bounds: WalkBounds,
    admits: A,
    /// Slots to expand, nearest first.
    open: BinaryHeap<Reverse<PackedCandidate>>,
    /// Admitted slots that were found, farthest first.
    found: BinaryHeap<PackedCandidate>,
    /// The distance from which on no slot is worth offering.
    bound: f32,
    hops: usize,
    /// Number of hops up to the last one that was no farther than what was found.
    within: usize,
    given_up: bool,
    nearest: f32,
}

impl<A: Fn(u32) -> bool> FilteredFrontier<A> {
    pub(crate) fn new(bounds: WalkBounds, admits: A) -> FilteredFrontier<A> {
        FilteredFrontier {
            bounds,
            admits,
            open: BinaryHeap::with_capacity(ROOM),
            found: BinaryHeap::with_capacity(bounds.wanted.min(ROOM)),
            bound: f32::INFINITY,
            hops: 0,
            within: 0,
            given_up: false,
            nearest: f32::INFINITY,
        }
    }

    /// The distances and slots of those admitted, nearest first; None if the walk was given up.
    pub(crate) fn into_found(self) -> Option<impl Iterator<Item = (f32, u32)>> {
        let found = self.found.into_sorted_vec().into_iter();
        let found = found.map(|key| (key.distance(), key.slot()));
        (!self.given_up).then_some(found)
    }

    /// Adds an admitted slot to those found.
    fn admit(&mut self, key: PackedCandidate) {
        let WalkBounds { wanted, reach, .. } = self.bounds;
        if self.found.len() < wanted {
            self.found.push(key);
        } else if let Some(mut farthest) = self.found.peek_mut()
            && key < *farthest
        {
            *farthest = key;
        }
        if self.found.len() == wanted
            && let Some(farthest) = self.found.peek()
        {
            self.bound = reach.limit(farthest.distance());
        }
    }
}

impl<A: Fn(u32) -> bool> Frontier for FilteredFrontier<A> {
    fn bound(&self) -> f32 {
        self.bound
    }

    fn offer(&mut self, distance: f32, slot: u32) {
        let key = PackedCandidate::new(distance, slot);
        self.open.push(Reverse(key));
        self.nearest = self.nearest.min(distance);
        if (self.admits)(slot) {
            self.admit(key);
        }
    }

    fn next(&mut self) -> Option<u32> {
        let Reverse(nearest) = self.open.pop()?;
        let WalkBounds {
            wanted,
            width,
            reach,
            hops_max,
            starved_max,
        } = self.bounds;
        let full = self.found.len() == wanted;
        match self.found.peek().filter(|_| full) {
            Some(farthest) if nearest > *farthest => {
                let passed = self.within.saturating_sub(wanted);
                let width = width + (passed as f64 * BEAM_PER_PASSED) as usize;
                let reach = reach.widened(self.within, width);
                if self.hops >= width || nearest.distance() > reach.limit(farthest.distance()) {
                    return None;
                }
            }
            _ => self.within = self.hops + 1,
        }
        if self.hops >= hops_max || !full && self.hops >= starved_max {
            self.given_up = true;
            return None;
        }
        self.hops += 1;
        Some(nearest.slot())
    }

    fn nearest(&self) -> f32 {
        self.nearest
    }

    fn blur(&mut self, error: f32) {
        self.bounds.reach = self.bounds.reach.blurred(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks along a line of slots of which one in ten is admitted; returns the number of hops and
    /// the slots found.
    fn walk(bounds: WalkBounds) -> (usize, Option<Vec<u32>>) {
        let mut sieve = FilteredFrontier::new(bounds, |slot| slot % 10 == 9);
        sieve.offer(0.0, 0);
        let mut hops = 0;
        while let Some(slot) = sieve.next() {
            hops += 1;
            sieve.offer((slot + 1) as f32, slot + 1);
        }
        (
            hops,
            sieve
                .into_found()
                .map(|found| found.map(|(_, slot)| slot).collect()),
        )
    }

    const BOUNDS: WalkBounds = WalkBounds {
        wanted: 2,
        width: 4,
        reach: WalkReach::UNLIMITED,
        hops_max: 100,
        starved_max: 100,
    };

    #[test]
    fn a_walk_goes_on_until_enough_are_found_and_somewhat_farther() {
        // Twenty hops come to the second admitted slot, 18 of them pass by others.
        assert_eq!(walk(BOUNDS), (31, Some(vec![9, 19])));
    }

    #[test]
    fn a_walk_is_given_up_when_its_hops_are_spent() {
        let bounds = WalkBounds {
            hops_max: 15,
            ..BOUNDS
        };
        assert_eq!(walk(bounds), (15, None));
        let starved = |starved_max| {
            walk(WalkBounds {
                starved_max,
                ..BOUNDS
            })
        };
        assert_eq!(starved(15), (15, None));
        assert_eq!(starved(25), (31, Some(vec![9, 19])));
    }
}
