//! Two indexes that one thread makes by the same changes in the same order are alike to the last
//! byte.

use ann::{
    CodeChoice, DistanceMetric, Explanation, Neighbour, NeighbourIndex, NeighbourIndexOptions,
    SearchOptions,
};

use crate::data::{Rng, SPREAD, clustered};

const VECTORS: usize = 1_500;

/// Inserts, replaces and removes, enough of them for slots to be used again.
fn churned(options: NeighbourIndexOptions) -> NeighbourIndex {
    let mut rng = Rng(85);
    let dimensions = options.dimensions;
    let vectors = clustered(&mut rng, VECTORS, dimensions, 20, SPREAD);
    let index = NeighbourIndex::new(options).expect("valid options");
    for (id, vector) in (0..).zip(&vectors) {
        index.insert(id, vector).expect("a new id");
    }
    for _ in 0..VECTORS {
        let id = rng.below(VECTORS) as u32;
        let vector = rng.vector(dimensions);
        match rng.below(3) {
            // A change may be legal or not; it is so both times.
            0 => index.remove(id).unwrap_or_default(),
            1 => index.insert(id, &vector).unwrap_or_default(),
            _ => index.replace(id, &vector).unwrap_or_default(),
        }
    }
    index
}

/// The answers of an index to a few fixed queries, and the work that it did for them.
fn answers(index: &NeighbourIndex) -> Vec<(Vec<Neighbour>, Explanation)> {
    let mut rng = Rng(86);
    let mut answers = Vec::new();
    for _ in 0..20 {
        let query = rng.vector(index.options().dimensions);
        for beam in [None, Some(40)] {
            let search = SearchOptions {
                beam,
                ..SearchOptions::new(10)
            };
            answers.push(index.explain(&query, &search).expect("search"));
        }
    }
    answers
}

#[test]
fn two_indexes_made_alike_answer_alike_and_work_alike() {
    for (metric, codes, dimensions) in [
        (DistanceMetric::Cosine, CodeChoice::Nibbles, 70),
        (DistanceMetric::Euclidean, CodeChoice::Bytes, 33),
        (DistanceMetric::DotProduct, CodeChoice::Floats, 5),
        (DistanceMetric::Hamming, CodeChoice::Auto, 90),
    ] {
        let options = NeighbourIndexOptions {
            metric,
            codes,
            ..NeighbourIndexOptions::new(dimensions)
        };
        let (one, other) = (churned(options), churned(options));
        assert_eq!(one.len(), other.len());
        assert_eq!(answers(&one), answers(&other), "{metric:?} {codes:?}");
        assert_eq!(one.memory().graph, other.memory().graph);
    }
}

#[test]
fn a_search_changes_nothing() {
    let index = churned(NeighbourIndexOptions::new(16));
    assert_eq!(answers(&index), answers(&index));
}
