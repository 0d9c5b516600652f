//! Numbers drawn from a seed, the same for one seed everywhere.

use std::collections::BTreeSet;

/// Numbers that look random (Steele, Lea, Flood: SplitMix, 2014).
#[derive(Clone, Debug)]
pub struct RandomDraws {
    state: u64,
}

impl RandomDraws {
    /// Begins with a seed.
    pub fn new(seed: u64) -> RandomDraws {
        RandomDraws { state: seed }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`, which is at least 1.
    fn below(&mut self, end: usize) -> usize {
        // The upper half of a product is spread as evenly as its factor.
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }

    /// A number from -1 to 1.
    pub(crate) fn signed_unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }
}

/// Draws `count` of the places from 0 to `len`, each with the same chance (Floyd's sampling), or
/// all if there are no more. They come in ascending order.
pub fn drawn_places(len: usize, count: usize, seed: u64) -> Vec<usize> {
    if count >= len {
        return (0..len).collect();
    }
    let mut draws = RandomDraws::new(seed);
    let mut places = BTreeSet::new();
    for last in len - count..len {
        if !places.insert(draws.below(last + 1)) {
            places.insert(last);
        }
    }
    places.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_places_differ_and_follow_from_the_seed() {
        let places = drawn_places(1000, 100, 7);
        assert_eq!(places.len(), 100);
        assert!(places.is_sorted_by(|a, b| a < b));
        assert!(places.iter().all(|place| *place < 1000));
        assert_eq!(places, drawn_places(1000, 100, 7));
        assert_ne!(places, drawn_places(1000, 100, 8));
        assert_eq!(drawn_places(3, 3, 0), [0, 1, 2]);
        assert_eq!(drawn_places(3, 100, 0), [0, 1, 2]);
        assert!(drawn_places(0, 100, 0).is_empty());
    }

    #[test]
    fn each_place_is_drawn_about_as_often() {
        let mut times = [0; 20];
        for seed in 0..4000 {
            for place in drawn_places(20, 5, seed) {
                times[place] += 1;
            }
        }
        // 1,000 each, with a deviation of 27.
        assert!(
            times.iter().all(|times| (850..1150).contains(times)),
            "{times:?}"
        );
    }
}
