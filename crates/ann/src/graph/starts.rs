//! The slots where walks start, in addition to those that the [upper level](super::upper_level)
//! finds.
//!
//! # Landmarks
//!
//! The upper level has no level above it. From one entry a narrow walk may end in another heap of
//! data than that of its query. So a walk of that level first looks at *landmarks*, some slots out
//! of all, and goes on from the nearest.
//!
//! Landmarks are computed: one slot in every stretch is a landmark, if it is linked just then.
//! Slots are given out in the order of inserting, which says nothing of where vectors are unless it
//! has a period; so the place within each stretch varies. The number of landmarks grows with the
//! root of the number of slots: the more slots there are, the more an unlucky start costs, and
//! measuring landmarks counts for little next to a walk. A small graph has none.
//!
//! # Centres
//!
//! Where codes are taken from a few centres, there are clusters, which links may not connect. Then
//! a walk starts from an example of the centre that is nearest to its query, too.

use super::Graph;
use crate::codes::{CodeMeta, CodeQuery, Codebook, ORIGIN};

/// The most centres that a walk looks at. Where there are more, the upper level has slots in each
/// of the larger clusters.
const CENTRES_MAX: usize = 256;

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

impl Graph {
    /// An example of the centre that is nearest to a query, if there are few centres.
    pub(super) fn example_near(&self, codebook: &Codebook, query: &mut CodeQuery) -> Option<u32> {
        let count = codebook.centres().len();
        if !(1..=CENTRES_MAX).contains(&count) {
            return None;
        }
        let centres = (ORIGIN..=count as u32).map(|centre| (codebook.base(query, centre), centre));
        let (_, nearest) = centres.min_by(|a, b| a.0.total_cmp(&b.0))?;
        codebook.centres().example(nearest)
    }
}

impl Graph {
    /// Makes a slot the example of its code's centre, if it is nearer to that than the present one.
    ///
    /// # Safety
    /// The epoch is pinned, and the slot is filled.
    pub(super) unsafe fn offer_example(&self, codebook: &Codebook, slot: u32) {
        // SAFETY: the caller's promise; a slot that is linked is filled.
        let meta = |slot| unsafe { self.block(slot).meta() };
        let new = meta(slot);
        let present = codebook.centres().example(new.centre);
        let present = present.filter(|&present| self.is_linked(present)).map(meta);
        let is_nearer = |present: CodeMeta| {
            let (new, present) = (&new, &present);
            present.centre != new.centre
                || codebook.squared_residual(new) <= codebook.squared_residual(present)
        };
        if present.is_none_or(is_nearer) {
            codebook.centres().set_example(new.centre, slot);
        }
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
