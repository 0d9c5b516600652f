//! The slots where walks start.
//!
//! A graph of one level has no map of the whole. From one entry a narrow walk may end in another
//! heap of data than that of its query, and a slot that is linked by such a walk gets the wrong
//! neighbours for good. Of a million made-up vectors in 20 overlapping clusters, one query in six
//! found nothing right, whatever the width. So a walk first looks at *landmarks*, some slots out of
//! all, and goes on from the nearest. The upper levels of HNSW (Malkov and Yashunin, 2016) serve
//! the same purpose.
//!
//! Landmarks are not kept, but computed: one slot in every stretch is a landmark, if it is linked
//! just then. Slots are given out in the order of inserting, which tells nothing of where vectors
//! lie unless it has a period; so the place within each stretch varies. The number of landmarks
//! grows with the root of the number of slots: the more slots there are, the more an unlucky start
//! costs, and measuring landmarks counts for little beside a walk of the default width. A small
//! graph has no landmarks: few vectors are found from anywhere, and the nearer a walk starts, the
//! fewer ways to a slot it tries.

use super::Graph;

/// The most landmarks, as a multiple of the root of the number of slots. At least half as many
/// exist.
const LANDMARKS_PER_ROOT: f64 = 0.5;

impl Graph {
    /// The landmarks that are linked just now. Walks start from the entry as well.
    ///
    /// A caller that has pinned the epoch before may read the slots while it stays pinned.
    pub(super) fn landmarks(&self) -> impl Iterator<Item = u32> + '_ {
        let slots = match &self.upper {
            Some(_) => 0,
            None => self.slots.end(),
        };
        places(slots).filter(|&slot| self.is_linked(slot))
    }
}

/// Number of slots below which there are no landmarks.
const SLOTS_MIN: u32 = 1 << 14;

/// The places of landmarks among this many slots. They stay where they are while the stretch does:
/// at most until there are four times as many slots.
fn places(slots: u32) -> impl Iterator<Item = u32> {
    let slots = if slots < SLOTS_MIN { 0 } else { slots };
    let most = LANDMARKS_PER_ROOT * f64::from(slots).sqrt();
    let stretch = (f64::from(slots) / most.max(1.0)) as u32;
    let stretch = stretch.max(1).next_power_of_two();
    (0..slots / stretch).map(move |number| number * stretch + scattered(number) % stretch)
}

/// Maps numbers to others without a pattern (multiplicative hashing; the upper bits are the better
/// ones).
pub(super) fn scattered(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1).rotate_left(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn landmarks_grow_with_the_root_and_stay_where_they_are() {
        for slots in [0, 1, 1_000, SLOTS_MIN - 1] {
            assert_eq!(places(slots).count(), 0, "{slots}");
        }
        for slots in [SLOTS_MIN, 50_000, 1_000_000, u32::MAX / 2] {
            let most = LANDMARKS_PER_ROOT * f64::from(slots).sqrt();
            let count = places(slots).count() as f64;
            assert!(
                (most / 2.0 - 2.0..=most).contains(&count),
                "{count} of {slots}"
            );
            assert!(places(slots).all(|place| place < slots));
        }
        let (few, more): (Vec<u32>, Vec<u32>) =
            (places(40_000).collect(), places(41_000).collect());
        assert_eq!(few, more[..few.len()]);
    }

    #[test]
    fn landmarks_have_no_period() {
        let places: Vec<u32> = places(1_000_000).collect();
        for period in [2, 3, 64, 1_000] {
            let mut counts = vec![0; period];
            for place in &places {
                counts[*place as usize % period] += 1;
            }
            let most = counts.iter().max().copied().unwrap_or_default();
            assert!(most <= 8 + 2 * places.len() / period, "{most} at {period}");
        }
    }
}
