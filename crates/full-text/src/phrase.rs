//! The occurrences of a phrase in a document, by the positions of its terms.
//!
//! A term's place is its position in the document less its offset in the phrase: where a document
//! has the phrase as it is, the places of its terms are equal. A phrase with slop occurs where the
//! highest and the lowest place differ by no more than the slop, as in Lucene: two terms in each
//! other's place take a slop of 2. This does not depend on the order in which terms are looked at.
//! In tantivy's scorer it does, for three terms and more and for what it counts, and that order is
//! by how common terms are in a segment; so segments are to be searched by this function, too.

/// Counts the occurrences of a phrase. `parts` has each term's offset in the phrase and its
/// positions in the document, ascending. An occurrence uses a position of each term, and none uses
/// one that another has used for that term.
pub(crate) fn phrase_frequency(parts: &[(u32, &[u32])], slop: u32) -> u32 {
    if parts.is_empty() {
        return 0;
    }
    let slop = i64::from(slop);
    let place = |part: usize, at: usize| {
        let (offset, positions) = parts[part];
        let position = positions.get(at)?;
        Some(i64::from(*position) - i64::from(offset))
    };
    let mut next = vec![0; parts.len()];
    let mut count = 0;
    loop {
        let mut highest = i64::MIN;
        for (part, at) in next.iter().enumerate() {
            let Some(place) = place(part, *at) else {
                return count;
            };
            highest = highest.max(place);
        }
        // A place that is too far below the highest stays so, as places only grow.
        let mut has_moved = false;
        for (part, at) in next.iter_mut().enumerate() {
            while place(part, *at).is_some_and(|place| place < highest - slop) {
                *at += 1;
                has_moved = true;
            }
        }
        if !has_moved {
            count += 1;
            for at in &mut next {
                *at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn phrases_are_counted_with_gaps_and_slop() {
        // The document: a b x b a b.
        let (a, b) = (&[0, 4][..], &[1, 3, 5][..]);
        for (parts, slop, expected) in [
            (vec![(0, a), (1, b)], 0, 2),
            (vec![(0, b), (1, a)], 0, 1),
            (vec![(0, a), (3, b)], 0, 1),
            (vec![(0, a), (2, b)], 0, 0),
            (vec![(0, a), (2, b)], 1, 2),
            (vec![(0, b), (1, a)], 2, 2),
            (vec![(0, a), (1, b), (2, a)], 0, 0),
            (vec![(0, a), (1, b), (2, a)], 2, 2),
            (vec![(0, a), (1, &[][..])], 9, 0),
            (vec![], 9, 0),
        ] {
            assert_eq!(phrase_frequency(&parts, slop), expected, "{parts:?}~{slop}");
        }
    }

    /// Whether a choice of one place of each part is within the slop, by trying all.
    fn occurs(parts: &[(u32, Vec<u32>)], slop: i64, lowest: i64, highest: i64) -> bool {
        let Some(((offset, positions), rest)) = parts.split_first() else {
            return highest - lowest <= slop;
        };
        positions.iter().any(|position| {
            let place = i64::from(*position) - i64::from(*offset);
            occurs(rest, slop, lowest.min(place), highest.max(place))
        })
    }

    proptest! {
        #[test]
        fn a_phrase_occurs_where_a_choice_of_places_is_within_the_slop(
            parts in vec((0..6_u32, btree_set(0..24_u32, 0..5)), 1..5),
            slop in 0..6_u32,
        ) {
            let parts: Vec<(u32, Vec<u32>)> = parts
                .into_iter()
                .map(|(offset, positions)| (offset, positions.into_iter().collect()))
                .collect();
            let views: Vec<(u32, &[u32])> = parts
                .iter()
                .map(|(offset, positions)| (*offset, positions.as_slice()))
                .collect();
            let count = phrase_frequency(&views, slop);
            let expected = occurs(&parts, i64::from(slop), i64::MAX / 2, i64::MIN / 2);
            prop_assert_eq!(count > 0, expected);

            let reversed: Vec<(u32, &[u32])> = views.into_iter().rev().collect();
            prop_assert_eq!(phrase_frequency(&reversed, slop), count);
        }
    }
}
