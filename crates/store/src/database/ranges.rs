//! The split of the ring for a scan.

use crate::identity::TokenRange;

/// Splits a part of the ring at the tokens of the cluster's nodes, so that each piece is on one set
/// of replicas. Splits further until there are about `pieces_min` pieces for the whole ring.
pub fn split(range: TokenRange, ring: &[i64], pieces_min: usize) -> Vec<TokenRange> {
    let mut tokens: Vec<i64> = ring
        .iter()
        .copied()
        .filter(|token| (range.start..range.end).contains(token))
        .collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens.push(range.end);
    let width_max = (TokenRange::WHOLE_RING.width() / pieces_min.max(1) as u128).max(1);
    let mut pieces = Vec::new();
    let mut start = range.start;
    for token in tokens {
        let owned = TokenRange { start, end: token };
        let count = owned.width().div_ceil(width_max);
        for piece in 0..count {
            let offset =
                |piece: u128| (i128::from(start) + (owned.width() * piece / count) as i128) as i64;
            pieces.push(TokenRange {
                start: offset(piece),
                end: if piece + 1 == count {
                    token
                } else {
                    offset(piece + 1) - 1
                },
            });
        }
        start = token.saturating_add(1);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The pieces follow each other without a gap, end at every token, and cover the range.
        #[test]
        fn pieces_cover_the_range(
            ring in proptest::collection::vec(any::<i64>(), 0..20),
            ends in any::<(i64, i64)>(),
            pieces_min in 1..50usize,
        ) {
            let range = TokenRange {
                start: ends.0.min(ends.1).max(TokenRange::WHOLE_RING.start),
                end: ends.0.max(ends.1).max(TokenRange::WHOLE_RING.start),
            };
            for range in [range, TokenRange::WHOLE_RING] {
                let pieces = split(range, &ring, pieces_min);
                prop_assert_eq!(pieces[0].start, range.start);
                prop_assert_eq!(pieces[pieces.len() - 1].end, range.end);
                for pair in pieces.windows(2) {
                    prop_assert!(pair[0].start <= pair[0].end);
                    prop_assert_eq!(pair[0].end + 1, pair[1].start);
                }
                for token in &ring {
                    if (range.start..=range.end).contains(token) {
                        prop_assert!(pieces.iter().any(|piece| piece.end == *token));
                    }
                }
            }
        }
    }

    #[test]
    fn one_node_still_gives_many_pieces() {
        let pieces = split(TokenRange::WHOLE_RING, &[0], 16);
        assert!((16..=18).contains(&pieces.len()), "{}", pieces.len());
        let widest = pieces.iter().map(TokenRange::width).max().unwrap();
        let narrowest = pieces.iter().map(TokenRange::width).min().unwrap();
        assert!(widest <= 2 * narrowest);
    }
}
