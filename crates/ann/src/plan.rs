//! How a search is done: by a walk through the graph, or by a scan of everything.
//!
//! The constants were measured with `m` 16 and `ef_construction` 128, on 10,000 and 50,000 real
//! sentence embeddings of 384 dimensions.

/// Width of the narrowest walk.
///
/// Recall@10 at the default width of 64 is 0.975 on the smaller set and 0.987 on the larger; at
/// 128 it is 0.994 or better, and at this width 0.997.
const BEAM_MIN: usize = 192;

/// What each neighbour asked for adds to the width. With it recall@k stays at 0.996 to 0.998 for
/// every k from 1 to 1,000; with a width equal to k it falls to 0.93 at 100.
const BEAM_PER_NEIGHBOUR: usize = 2;

/// Vectors that a scan passes in the time that a walk takes for one unit of beam width. A walk
/// measures more vectors for each unit in a larger graph, the least in one that it nearly exhausts.
const SCANNED_PER_BEAM: usize = 6;

/// The walk keeps its candidates in a sorted array; moving them costs as much as its distances
/// once the beam is about `SCANNED_PER_BEAM` times this wide.
const BEAM_PER_EXTRA_SCANNED: usize = 4_000;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Measure every vector: exact.
    Scan,
    /// Walk the graph, keeping this many candidates.
    Walk { beam: usize },
}

impl Plan {
    /// For `k` neighbours out of `held` vectors, in a graph that has `nodes` nodes for them (those
    /// of removed vectors are walked through, too). `width` is the width the options ask for.
    pub(crate) fn new(k: usize, width: usize, held: usize, nodes: usize) -> Plan {
        if k >= held {
            return Plan::Scan;
        }
        let beam = k
            .saturating_mul(BEAM_PER_NEIGHBOUR)
            .saturating_add(BEAM_MIN)
            .max(width);
        let per_beam = SCANNED_PER_BEAM + beam / BEAM_PER_EXTRA_SCANNED;
        let walk = beam as f64 * per_beam as f64 * (nodes as f64 / held as f64);
        if walk >= held as f64 {
            Plan::Scan
        } else {
            Plan::Walk { beam }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_everything_scans() {
        assert_eq!(Plan::new(1_000_000, 64, 1_000_000, 1_000_000), Plan::Scan);
        assert_eq!(Plan::new(usize::MAX, 64, 10, 10), Plan::Scan);
        assert_eq!(Plan::new(1, 64, 0, 0), Plan::Scan);
    }

    #[test]
    fn few_vectors_are_scanned_and_many_walked() {
        assert_eq!(Plan::new(10, 64, 1_000, 1_000), Plan::Scan);
        assert_eq!(Plan::new(10, 64, 10_000, 10_000), Plan::Walk { beam: 212 });
    }

    #[test]
    fn a_large_share_of_the_vectors_is_scanned() {
        assert_eq!(Plan::new(1_000, 64, 10_000, 10_000), Plan::Scan);
        assert_eq!(Plan::new(100_000, 64, 1_000_000, 1_000_000), Plan::Scan);
        let deep = Plan::new(1_000, 64, 1_000_000, 1_000_000);
        assert_eq!(deep, Plan::Walk { beam: 2_192 });
    }

    #[test]
    fn a_graph_of_mostly_removed_vectors_is_scanned() {
        assert!(matches!(
            Plan::new(10, 64, 10_000, 20_000),
            Plan::Walk { .. }
        ));
        assert_eq!(Plan::new(10, 64, 10_000, 100_000), Plan::Scan);
    }

    #[test]
    fn a_wider_beam_than_the_narrowest_is_honoured() {
        assert_eq!(
            Plan::new(1, 4_096, 1_000_000, 1_000_000),
            Plan::Walk { beam: 4_096 }
        );
    }
}
