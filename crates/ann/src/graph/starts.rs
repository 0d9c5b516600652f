//! Where walks start.
//!
//! A graph of one level has no map of the whole: from one entry a narrow walk may come to an end in another heap of data than
//! that of its query, and a slot that is linked by such a walk gets the wrong neighbours for good. Of a million made-up
//! vectors in 20 overlapping clusters one query in six found nothing right, whatever the width. So a walk first looks at
//! *landmarks*, some slots out of all, and goes on from the nearest. The upper levels of HNSW (Malkov and Yashunin, 2016)
//! are for the same.
//!
//! Landmarks are not kept, but computed: every so many slots there is one, if it is linked just then. Slots are
//! given out in the order of inserting, which tells nothing of where vectors lie unless it has a period; so the place within
//! each stretch varies. Their number grows with the root of that of the slots: an unlucky start costs the more, the more
//! there is, and measuring them counts for little beside a walk as wide as by default. Few vectors are found from
//! anywhere, and the nearer a walk starts the fewer ways to a slot it tries: so a small graph has none.

use super::Graph;

/// Landmarks to the root of the number of slots, at most; at least half as many.
const LANDMARKS_PER_ROOT: f64 = 0.5;

impl Graph {
    /// Linked slots here and there, beside the entry.
    ///
    /// Who has pinned the epoch before may read what they hold while it stays so.
    pub(super) fn landmarks(&self) -> impl Iterator<Item = u32> + '_ {
        places(self.slots.end()).filter(|&slot| {
            // One that was given out just now may have no room yet.
            self.blocks.get(slot).is_some() && self.block(slot).is_linked()
        })
    }
}

/// Slots below which there are no landmarks.
const SLOTS_MIN: u32 = 1 << 14;

/// Places of landmarks among so many slots. They stay where they are while the stretch does: until there are four times as
/// many slots, at the most.
fn places(slots: u32) -> impl Iterator<Item = u32> {
    let slots = if slots < SLOTS_MIN { 0 } else { slots };
    let most = LANDMARKS_PER_ROOT * f64::from(slots).sqrt();
    let stretch = (f64::from(slots) / most.max(1.0)) as u32;
    let stretch = stretch.max(1).next_power_of_two();
    (0..slots / stretch).map(move |number| number * stretch + scattered(number) % stretch)
}

/// Some other number for each, without a pattern (multiplicative hashing; the upper bits are the better ones).
fn scattered(number: u32) -> u32 {
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
