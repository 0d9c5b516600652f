//! Asking for as many as the index holds, or more, returns every one in exact order.

use std::collections::BTreeSet;

use ann::{DistanceMetric, NeighbourIndexOptions};

use crate::data::Rng;
use crate::oracle::{Oracle, build};

#[test]
fn nothing_is_missing_after_many_changes() {
    for metric in [
        DistanceMetric::Cosine,
        DistanceMetric::Euclidean,
        DistanceMetric::DotProduct,
    ] {
        let mut rng = Rng(11);
        let vectors: Vec<_> = (0..2_000).map(|_| rng.vector(6)).collect();
        let options = NeighbourIndexOptions {
            metric,
            ..NeighbourIndexOptions::new(6)
        };
        let index = build(options, &vectors);
        let mut oracle = Oracle::of(metric, &vectors);
        for _ in 0..4_000 {
            let id = rng.below(2_500) as u32;
            let vector = rng.vector(6);
            let held = oracle.vectors.contains_key(&id);
            match (held, rng.below(2)) {
                (true, 0) => {
                    index.remove(id).expect("held");
                    oracle.vectors.remove(&id);
                    continue;
                }
                (true, _) => index.replace(id, &vector).expect("held"),
                (false, _) => index.insert(id, &vector).expect("not held"),
            }
            oracle.vectors.insert(id, vector);
        }
        let held = oracle.vectors.len();
        assert_eq!(index.len(), held);
        for k in [held - 1, held, held + 1, 100_000, usize::MAX] {
            assert_eq!(oracle.check(&index, &rng.vector(6), k, 1e-6), 1.0);
        }
        let found = index.search(&rng.vector(6), held).expect("search");
        let ids: BTreeSet<u32> = found.iter().map(|n| n.id).collect();
        assert!(ids.iter().eq(oracle.vectors.keys()));
    }
}

#[test]
fn as_many_as_100_000_can_be_asked_for() {
    let mut rng = Rng(12);
    let vectors: Vec<_> = (0..101_000).map(|_| rng.vector(2)).collect();
    let options = NeighbourIndexOptions {
        metric: DistanceMetric::Euclidean,
        max_connections: 4,
        build_beam_width: 8,
        ..NeighbourIndexOptions::new(2)
    };
    let index = build(options, &vectors);
    let oracle = Oracle::of(DistanceMetric::Euclidean, &vectors);
    // The searches are a walk, a scan for a part, and a scan for all.
    assert!(oracle.check(&index, &[0.5, 0.5], 2_000, 1e-6) > 0.9);
    for k in [100_000, 200_000] {
        assert_eq!(oracle.check(&index, &[0.5, 0.5], k, 1e-6), 1.0);
    }
}
