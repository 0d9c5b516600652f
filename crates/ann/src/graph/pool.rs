//! The candidates of a walk: the nearest slots seen so far, and which of them are still to expand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::reach::WalkReach;

/// The most slots that an index can have: one bit of a [`PackedCandidate`] has another meaning.
pub(crate) const SLOTS_MAX: u32 = 1 << 31;

/// The candidates of a walk.
pub(crate) trait Frontier {
    /// The distance below which a slot is worth offering.
    fn bound(&self) -> f32;
    fn offer(&mut self, distance: f32, slot: u32);
    /// Gives out the nearest slot that has not been given out; None when the walk is over.
    fn next(&mut self) -> Option<u32>;
    /// The distance of the nearest slot that was offered; infinite if there is none.
    fn nearest(&self) -> f32;
    /// Sets the error that the estimates of near slots have.
    fn blur(&mut self, error: f32);
}

/// A distance and a slot in one word, which orders by distance and then by slot. The lowest bit
/// says whether the slot has been expanded; there it changes no order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PackedCandidate(u64);

impl PackedCandidate {
    const EXPANDED: u64 = 1;

    pub(super) fn new(distance: f32, slot: u32) -> PackedCandidate {
        debug_assert!(slot < SLOTS_MAX);
        let bits = distance.to_bits();
        // Floats order as their bits do, the negative ones backwards.
        let ordered = match bits >> 31 {
            0 => bits | 1 << 31,
            _ => !bits,
        };
        PackedCandidate(u64::from(ordered) << 32 | u64::from(slot) << 1)
    }

    pub(super) fn distance(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(match ordered >> 31 {
            1 => ordered & !(1 << 31),
            _ => !ordered,
        })
    }

    pub(super) fn slot(self) -> u32 {
        self.0 as u32 >> 1
    }
}

/// The nearest `width` slots in a sorted array, which is the fastest for widths up to some
/// hundreds. A slot's links are chosen from it.
#[derive(Debug)]
pub(crate) struct CandidatePool {
    width: usize,
    /// The most slots that are retained: more than the width as long as they are in doubt.
    most: usize,
    keys: Vec<PackedCandidate>,
    /// All keys before this index have been expanded.
    cursor: usize,
    /// Number of the nearest slots that are retained however far they are, while there is room.
    kept: usize,
    reach: WalkReach,
    /// The distance beyond which no slot is expanded.
    limit: f32,
    /// The distance up to which slots are in doubt: they are retained and expanded whatever the
    /// width.
    doubt: f32,
    /// The distance from which on no slot is retained.
    bound: f32,
}

impl Default for CandidatePool {
    fn default() -> CandidatePool {
        CandidatePool {
            width: 0,
            most: 0,
            keys: Vec::new(),
            cursor: 0,
            kept: 0,
            reach: WalkReach::UNLIMITED,
            limit: f32::INFINITY,
            doubt: f32::NEG_INFINITY,
            bound: f32::INFINITY,
        }
    }
}

impl CandidatePool {
    /// Empties the pool, and gives it room for `width` slots.
    pub(crate) fn reset(&mut self, width: usize) {
        self.reset_within(WalkReach::UNLIMITED, (width, width), width);
    }

    /// Empties the pool for a walk that ends at a distance: slots beyond `reach` are not expanded,
    /// and are retained only if they are among the nearest `kept` of all. `width` slots are
    /// retained, or up to `most` that are in doubt.
    pub(crate) fn reset_within(
        &mut self,
        reach: WalkReach,
        (width, most): (usize, usize),
        kept: usize,
    ) {
        self.width = width;
        self.most = most.max(width);
        self.keys.clear();
        self.keys.reserve(width);
        self.cursor = 0;
        self.kept = kept;
        self.reach = reach;
        self.limit = f32::INFINITY;
        self.doubt = f32::NEG_INFINITY;
        self.bound = f32::INFINITY;
    }

    /// The distance of the neighbour of this rank, counted from 1; None if there are fewer.
    #[inline(always)]
    pub(super) fn distance(&self, rank: usize) -> Option<f32> {
        Some(self.keys.get(rank.checked_sub(1)?)?.distance())
    }

    /// Brings limit and bound as near as the slots found allow.
    #[inline(always)]
    fn draw_near(&mut self) {
        let farthest = self.distance(self.width).unwrap_or(f32::INFINITY);
        self.bound = farthest;
        if let Some(last) = self.distance(self.reach.wanted()) {
            self.limit = self.reach.limit(last);
            if let Some(kept) = self.distance(self.kept) {
                self.bound = farthest.min(kept.max(self.limit));
            }
            if self.most > self.width {
                self.doubt = self.reach.doubt(last);
                let full = self.keys.len() == self.most;
                let last = self.keys.last().filter(|_| full);
                let farthest = last.map_or(f32::INFINITY, |key| key.distance());
                self.bound = self.bound.max(self.doubt).min(farthest);
            }
        }
    }

    /// The distances and slots found, nearest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (f32, u32)> + '_ {
        self.keys.iter().map(|key| (key.distance(), key.slot()))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<PackedCandidate>()
    }
}

impl Frontier for CandidatePool {
    #[inline(always)]
    fn bound(&self) -> f32 {
        self.bound
    }

    #[inline(always)]
    fn offer(&mut self, distance: f32, slot: u32) {
        let key = PackedCandidate::new(distance, slot);
        // A slot that is in doubt takes no place of those that the width has room for.
        let is_full = |keys: &Vec<PackedCandidate>| match keys.last() {
            Some(farthest) if farthest.distance() <= self.doubt => keys.len() == self.most,
            _ => keys.len() >= self.width,
        };
        if is_full(&self.keys) {
            match self.keys.last() {
                Some(farthest) if key < *farthest => {
                    self.keys.pop();
                    if self.keys.len() > self.width && is_full(&self.keys) {
                        self.keys.pop();
                    }
                }
                _ => return,
            };
        }
        let at = self.keys.partition_point(|other| *other < key);
        self.keys.insert(at, key);
        self.cursor = self.cursor.min(at);
        self.draw_near();
    }

    fn nearest(&self) -> f32 {
        self.distance(1).unwrap_or(f32::INFINITY)
    }

    fn blur(&mut self, error: f32) {
        self.reach = self.reach.blurred(error);
        self.draw_near();
    }

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        while let Some(key) = self.keys.get_mut(self.cursor) {
            let is_wide = self.cursor >= self.width && key.distance() > self.doubt;
            if key.distance() > self.limit || is_wide {
                return None;
            }
            self.cursor += 1;
            if key.0 & PackedCandidate::EXPANDED == 0 {
                key.0 |= PackedCandidate::EXPANDED;
                return Some(key.slot());
            }
        }
        None
    }
}

/// The nearest `width` slots in heaps, for widths that a sorted array is too slow for.
pub(crate) struct CandidateHeaps {
    width: usize,
    /// Slots to expand, nearest first.
    open: BinaryHeap<Reverse<PackedCandidate>>,
    /// Slots that were found, farthest first.
    found: BinaryHeap<PackedCandidate>,
}

impl CandidateHeaps {
    pub(crate) fn new(width: usize) -> CandidateHeaps {
        CandidateHeaps {
            width,
            open: BinaryHeap::new(),
            found: BinaryHeap::with_capacity(width.min(1 << 16)),
        }
    }

    /// The distances and slots found, nearest first.
    pub(crate) fn into_found(self) -> impl Iterator<Item = (f32, u32)> {
        let keys = self.found.into_sorted_vec().into_iter();
        keys.map(|key| (key.distance(), key.slot()))
    }
}

impl Frontier for CandidateHeaps {
    fn bound(&self) -> f32 {
        match self.found.peek() {
            Some(farthest) if self.found.len() == self.width => farthest.distance(),
            _ => f32::INFINITY,
        }
    }

    fn offer(&mut self, distance: f32, slot: u32) {
        let key = PackedCandidate::new(distance, slot);
        self.open.push(Reverse(key));
        if self.found.len() < self.width {
            self.found.push(key);
        } else if let Some(mut farthest) = self.found.peek_mut()
            && key < *farthest
        {
            *farthest = key;
        }
    }

    fn next(&mut self) -> Option<u32> {
        let Reverse(nearest) = self.open.pop()?;
        let full = self.found.len() == self.width;
        if full && self.found.peek().is_some_and(|far| nearest > *far) {
            return None;
        }
        Some(nearest.slot())
    }

    fn nearest(&self) -> f32 {
        // The errors of codes have no part in how far such a walk looks.
        f32::NEG_INFINITY
    }

    fn blur(&mut self, _: f32) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reach::DistanceGrowth;
    use super::*;

    /// Distances of all signs, close together and far apart.
    fn distance() -> impl Strategy<Value = f32> {
        prop_oneof![
            (-3i8..4).prop_map(f32::from),
            -1e30f32..1e30,
            Just(f32::INFINITY),
        ]
    }

    proptest! {
        #[test]
        fn keys_order_as_distance_and_slot(
            a in distance(), b in distance(), s in 0..SLOTS_MAX, t in 0..SLOTS_MAX,
        ) {
            let (x, y) = (PackedCandidate::new(a, s), PackedCandidate::new(b, t));
            prop_assert_eq!((x.distance(), x.slot()), (a, s));
            prop_assert_eq!(x.cmp(&y), a.total_cmp(&b).then(s.cmp(&t)));
        }

        #[test]
        fn both_frontiers_keep_the_nearest_and_give_each_out_once(
            offers in proptest::collection::vec(distance(), 1..80),
            width in 1usize..30,
        ) {
            let mut pool = CandidatePool::default();
            pool.reset(width);
            let mut heaps = CandidateHeaps::new(width);
            let mut given = Vec::new();
            for (slot, &distance) in (0..).zip(&offers) {
                prop_assert_eq!(pool.bound(), heaps.bound());
                pool.offer(distance, slot);
                heaps.offer(distance, slot);
                if slot % 3 == 0 {
                    let next = pool.next();
                    prop_assert_eq!(next.is_some(), heaps.next().is_some());
                    given.extend(next);
                }
            }
            given.extend(std::iter::from_fn(|| pool.next()));
            let once = given.len();
            given.sort_unstable();
            given.dedup();
            prop_assert_eq!(given.len(), once);
            let mut all: Vec<(f32, u32)> = offers.into_iter().zip(0..).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            all.truncate(width);
            prop_assert_eq!(pool.iter().collect::<Vec<_>>(), all.clone());
            prop_assert_eq!(heaps.into_found().collect::<Vec<_>>(), all);
        }

        #[test]
        fn a_pool_within_reach_ends_beyond_it_and_keeps_the_nearest(
            offers in proptest::collection::vec(0f32..2.0, 1..80),
            spread in 0.05f32..1.0,
            wanted in 1usize..8,
            more in 0usize..8,
        ) {
            let spread = DistanceGrowth::of(spread);
            let reach = spread.reach(wanted, 2 * wanted).expect("a known spread");
            let mut pool = CandidatePool::default();
            pool.reset_within(reach, (64, 64), wanted + more);
            let mut given = Vec::new();
            for (slot, &distance) in (0..).zip(&offers) {
                pool.offer(distance, slot);
                if slot % 3 == 0 {
                    given.extend(pool.next());
                }
            }
            given.extend(std::iter::from_fn(|| pool.next()));
            let mut all: Vec<(f32, u32)> = offers.into_iter().zip(0..).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let limit = all.get(wanted - 1).map_or(f32::INFINITY, |last| reach.limit(last.0));
            for &(distance, slot) in all.iter().take(64) {
                if distance <= limit {
                    prop_assert!(given.contains(&slot), "{distance} of {limit}");
                }
            }
            let found: Vec<(f32, u32)> = pool.iter().collect();
            all.truncate(wanted + more);
            prop_assert_eq!(&found[..all.len()], &all[..]);
        }

        /// The estimates of a walk become more or less certain on the way. What is in doubt by the
        /// smallest error of them is in doubt all the time.
        #[test]
        fn candidates_in_doubt_are_expanded_whatever_the_width(
            offers in proptest::collection::vec(prop_oneof![0f32..2.0, quarter()], 1..120),
            errors in proptest::collection::vec(0f32..0.3, 1..20),
            spread in proptest::option::of(0.05f32..1.0),
            wanted in 1usize..8,
            more in 0usize..8,
            (wider, most) in (1usize..4, 0usize..60),
        ) {
            let width = wanted * wider;
            let reach = spread.and_then(|spread| DistanceGrowth::of(spread).reach(wanted, width));
            let reach = reach.unwrap_or(WalkReach::unlimited(wanted));
            let most = width.max(most);
            let mut pool = CandidatePool::default();
            pool.reset_within(reach, (width, most), wanted + more);
            let mut given = Vec::new();
            for (slot, &distance) in (0..).zip(&offers) {
                let error = errors[(slot as usize / 6).min(errors.len() - 1)];
                if slot % 6 == 0 {
                    pool.blur(error);
                }
                if distance < pool.bound() {
                    pool.offer(distance, slot);
                }
                if slot % 3 == 0 {
                    given.extend(pool.next());
                }
            }
            given.extend(std::iter::from_fn(|| pool.next()));
            let once: std::collections::BTreeSet<u32> = given.iter().copied().collect();
            prop_assert_eq!(once.len(), given.len());

            let mut all: Vec<(f32, u32)> = offers.into_iter().zip(0..).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let found: Vec<(f32, u32)> = pool.iter().collect();
            prop_assert!(found.len() <= most);
            let certain = all.len().min(width.min(wanted + more));
            prop_assert_eq!(&found[..certain], &all[..certain]);
            let Some((last, _)) = all.get(wanted - 1) else {
                prop_assert_eq!(given.len(), all.len());
                return Ok(());
            };
            let error = errors.iter().copied().fold(f32::INFINITY, f32::min);
            let reach = reach.blurred(error);
            let (doubt, limit) = (reach.doubt(*last), reach.limit(*last));
            for (rank, &(distance, slot)) in all.iter().take(most).enumerate() {
                if most > width && distance < doubt || rank < width && distance < limit {
                    prop_assert!(found.contains(&(distance, slot)), "{distance} of {doubt}");
                    prop_assert!(given.contains(&slot), "{distance} of {doubt}");
                }
            }
        }
    }

    /// Distances of which many are equal.
    fn quarter() -> impl Strategy<Value = f32> {
        (0u8..8).prop_map(|quarters| f32::from(quarters) / 4.0)
    }

    #[test]
    fn doubts_make_a_pool_as_wide_as_they_reach_and_no_wider() {
        let mut pool = CandidatePool::default();
        pool.reset_within(WalkReach::unlimited(2), (3, 5), 3);
        // Two and a half errors beyond the second neighbour.
        pool.blur(1.0);
        for (slot, distance) in (0..).zip([9.0, 1.0, 2.0, 4.4, 4.6, 4.3, 3.0]) {
            pool.offer(distance, slot);
        }
        let slots = |pool: &CandidatePool| pool.iter().map(|(_, slot)| slot).collect::<Vec<_>>();
        assert_eq!(slots(&pool), [1, 2, 6, 5, 3]);
        // Of more, the nearest five stay.
        pool.offer(4.2, 7);
        assert_eq!(slots(&pool), [1, 2, 6, 7, 5]);
        // With smaller errors the last two are in doubt no more.
        pool.blur(0.5);
        let given: Vec<u32> = std::iter::from_fn(|| pool.next()).collect();
        assert_eq!(given, [1, 2, 6]);
        pool.offer(2.5, 8);
        assert_eq!(pool.next(), Some(8));
        assert_eq!(pool.next(), None);
    }

    #[test]
    fn slots_beyond_reach_are_neither_expanded_nor_retained() {
        let spread = DistanceGrowth::of(1.0);
        let mut pool = CandidatePool::default();
        // Twice as wide as wanted means 2^0.8 times as far.
        pool.reset_within(spread.reach(2, 4).expect("a known spread"), (100, 100), 3);
        for (slot, distance) in (0..).zip([1.0, 2.0, 3.0, 3.5, 9.0]) {
            assert_eq!(pool.bound() > distance, distance < 3.5, "{distance}");
            pool.offer(distance, slot);
        }
        let given: Vec<u32> = std::iter::from_fn(|| pool.next()).collect();
        assert_eq!(given, [0, 1, 2]);
    }
}
