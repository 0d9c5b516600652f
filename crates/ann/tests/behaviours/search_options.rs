//! Every search gets an answer, whatever it asks for. Widths and precisions below what is needed
//! are raised; those above what there is do no harm.

use ann::{CodeChoice, DistanceMetric, IdFilter, NeighbourIndexOptions, SearchOptions};

use crate::data::{Rng, clustered};
use crate::oracle::{Oracle, build};

const VECTORS: usize = 900;

#[test]
fn every_width_and_precision_is_answered_in_full() {
    let sizes = [None, Some(0), Some(1), Some(3), Some(100), Some(usize::MAX)];
    let is_third = |id| id % 3 == 0;
    for codes in [CodeChoice::Nibbles, CodeChoice::Floats] {
        let mut rng = Rng(90);
        let vectors = clustered(&mut rng, VECTORS, 24, 10, 1.0);
        let options = NeighbourIndexOptions {
            metric: DistanceMetric::Euclidean,
            codes,
            ..NeighbourIndexOptions::new(24)
        };
        let index = build(options, &vectors);
        let oracle = Oracle::of(DistanceMetric::Euclidean, &vectors);
        for k in [0, 1, 10, VECTORS - 1, VECTORS, VECTORS + 1, usize::MAX] {
            for beam in sizes {
                for rescored in sizes {
                    for filter in [None, Some(IdFilter::Predicate(&is_third))] {
                        let search = SearchOptions {
                            k,
                            beam,
                            rescored,
                            filter,
                            ..SearchOptions::new(k)
                        };
                        let recall = oracle.check_with(&index, &rng.vector(24), &search, 1e-6);
                        if k >= VECTORS || beam == rescored && beam == Some(usize::MAX) {
                            assert_eq!(recall, 1.0, "{search:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn wider_walks_find_no_less() {
    let mut rng = Rng(91);
    let vectors = clustered(&mut rng, 3_000, 32, 30, 2.0);
    let options = NeighbourIndexOptions {
        codes: CodeChoice::Bytes,
        ..NeighbourIndexOptions::new(32)
    };
    let index = build(options, &vectors);
    let oracle = Oracle::of(DistanceMetric::Cosine, &vectors);
    let queries: Vec<_> = (0..40).map(|_| rng.vector(32)).collect();
    let recalls = [10, 40, 160, 640].map(|beam| {
        let search = SearchOptions {
            beam: Some(beam),
            ..SearchOptions::new(10)
        };
        let shares = queries
            .iter()
            .map(|query| oracle.check_with(&index, query, &search, 1e-6));
        shares.sum::<f64>() / queries.len() as f64
    });
    assert!(recalls.is_sorted(), "{recalls:?}");
    assert!(recalls[0] > 0.3 && recalls[3] > 0.995, "{recalls:?}");
}
