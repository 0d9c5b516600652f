//! The candidates of a walk: the nearest slots seen so far, and which of them are still to expand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slots an index can have: one bit of a [`Key`] says something else.
pub(crate) const SLOTS_MAX: u32 = 1 << 31;

/// What a walk asks of its candidates.
pub(crate) trait Frontier {
    /// A slot is worth offering if it is nearer than this.
    fn bound(&self) -> f32;
    fn offer(&mut self, distance: f32, slot: u32);
    /// The nearest slot that has not been given out; None when the walk is over.
    fn next(&mut self) -> Option<u32>;
}

/// A distance and a slot in one word that orders as the pair does, by distance and then by slot; and
/// a bit that says whether the slot has been expanded, in the lowest place, where it changes no
/// order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key(u64);

impl Key {
    const EXPANDED: u64 = 1;

    fn new(distance: f32, slot: u32) -> Key {
        debug_assert!(slot < SLOTS_MAX);
        let bits = distance.to_bits();
        // Floats order as their bits do, the negative ones backwards.
        let ordered = match bits >> 31 {
            0 => bits | 1 << 31,
            _ => !bits,
        };
        Key(u64::from(ordered) << 32 | u64::from(slot) << 1)
    }

    fn distance(self) -> f32 {
        let ordered = (self.0 >> 32) as u32;
        f32::from_bits(match ordered >> 31 {
            1 => ordered & !(1 << 31),
            _ => !ordered,
        })
    }

    fn slot(self) -> u32 {
        self.0 as u32 >> 1
    }
}

/// The nearest `width` slots in a sorted array: the fastest for widths up to some hundreds, and
/// what a slot's own neighbourhood is chosen from.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    width: usize,
    keys: Vec<Key>,
    /// All before this one have been expanded.
    cursor: usize,
}

impl Pool {
    /// Empties the pool, and gives it room for `width` slots.
    pub(crate) fn reset(&mut self, width: usize) {
        self.width = width;
        self.keys.clear();
        self.keys.reserve(width);
        self.cursor = 0;
    }

    /// Distances and slots, nearest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (f32, u32)> + '_ {
        self.keys.iter().map(|key| (key.distance(), key.slot()))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity() * size_of::<Key>()
    }
}

impl Frontier for Pool {
    #[inline(always)]
    fn bound(&self) -> f32 {
        match self.keys.last() {
            Some(farthest) if self.keys.len() == self.width => farthest.distance(),
            _ => f32::INFINITY,
        }
    }

    #[inline(always)]
    fn offer(&mut self, distance: f32, slot: u32) {
        let key = Key::new(distance, slot);
        if self.keys.len() == self.width {
            match self.keys.last() {
                Some(farthest) if key < *farthest => self.keys.pop(),
                _ => return,
            };
        }
        let at = self.keys.partition_point(|other| *other < key);
        self.keys.insert(at, key);
        self.cursor = self.cursor.min(at);
    }

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        while let Some(key) = self.keys.get_mut(self.cursor) {
            self.cursor += 1;
            if key.0 & Key::EXPANDED == 0 {
                key.0 |= Key::EXPANDED;
                return Some(key.slot());
            }
        }
        None
    }
}

/// The nearest `width` slots that somebody `wants`, found by way of any slots: for filters, and for
/// widths that a sorted array is too slow for.
///
/// The walk goes on until the nearest slot left to expand is farther than all of the `width`
/// wanted: where few are wanted it widens by itself, as far as `hops_max` allows.
pub(crate) struct Heaps<W> {
    width: usize,
    hops_max: usize,
    wants: W,
    /// To expand, nearest first.
    open: BinaryHeap<Reverse<Key>>,
    /// The wanted, farthest first.
    found: BinaryHeap<Key>,
}

impl<W: Fn(u32) -> bool> Heaps<W> {
    pub(crate) fn new(width: usize, hops_max: usize, wants: W) -> Heaps<W> {
        Heaps {
            width,
            hops_max,
            wants,
            open: BinaryHeap::new(),
            found: BinaryHeap::with_capacity(width.min(1 << 16)),
        }
    }

    /// The wanted, nearest first; and whether the walk came to its natural end.
    pub(crate) fn into_found(self) -> (Vec<(f32, u32)>, bool) {
        let ended = self.hops_max > 0;
        let keys = self.found.into_sorted_vec();
        let found = keys.into_iter().map(|key| (key.distance(), key.slot()));
        (found.collect(), ended)
    }
}

impl<W: Fn(u32) -> bool> Frontier for Heaps<W> {
    fn bound(&self) -> f32 {
        match self.found.peek() {
            Some(farthest) if self.found.len() == self.width => farthest.distance(),
            _ => f32::INFINITY,
        }
    }

    fn offer(&mut self, distance: f32, slot: u32) {
        let key = Key::new(distance, slot);
        self.open.push(Reverse(key));
        if (self.wants)(slot) {
            if self.found.len() < self.width {
                self.found.push(key);
            } else if let Some(mut farthest) = self.found.peek_mut()
                && key < *farthest
            {
                *farthest = key;
            }
        }
    }

    fn next(&mut self) -> Option<u32> {
        let Reverse(nearest) = self.open.pop()?;
        let full = self.found.len() == self.width;
        if self.hops_max == 0 || full && self.found.peek().is_some_and(|far| nearest > *far) {
            return None;
        }
        self.hops_max -= 1;
        Some(nearest.slot())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
            let (x, y) = (Key::new(a, s), Key::new(b, t));
            prop_assert_eq!((x.distance(), x.slot()), (a, s));
            prop_assert_eq!(x.cmp(&y), a.total_cmp(&b).then(s.cmp(&t)));
        }

        #[test]
        fn both_frontiers_keep_the_nearest_and_give_each_out_once(
            offers in proptest::collection::vec(distance(), 1..80),
            width in 1usize..30,
        ) {
            let mut pool = Pool::default();
            pool.reset(width);
            let mut heaps = Heaps::new(width, usize::MAX, |_| true);
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
            prop_assert_eq!(heaps.into_found().0, all);
        }
    }

    #[test]
    fn heaps_go_on_until_enough_are_wanted_or_the_hops_are_spent() {
        let walk = |hops_max| {
            let mut heaps = Heaps::new(2, hops_max, |slot| slot % 10 == 9);
            heaps.offer(0.0, 0);
            let mut hops = 0;
            while let Some(slot) = heaps.next() {
                hops += 1;
                heaps.offer((slot + 1) as f32, slot + 1);
            }
            (hops, heaps.into_found())
        };
        let found = vec![(9.0, 9), (19.0, 19)];
        assert_eq!(walk(100), (20, (found, true)));
        assert_eq!(walk(15), (15, (vec![(9.0, 9)], false)));
    }
}
