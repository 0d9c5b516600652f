//! Two indexes that one thread makes by the same changes in the same order are alike to the last
//! byte.

use ann::{Codes, Explanation, Index, Metric, Neighbour, Options, SearchOptions};

use crate::data::{Rng, SPREAD, clustered};

const VECTORS: usize = 1_500;

/// Inserts, replaces and removes, enough of them for slots to be used again.
fn churned(options: Options) -> Index {
    let mut rng = Rng(85);
    let dimensions = options.dimensions;
    let vectors = clustered(&mut rng, VECTORS, dimensions, 20, SPREAD);
    let index = Index::new(options).expect("valid options");
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
fn answers(index: &Index) -> Vec<(Vec<Neighbour>, Explanation)> {
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
        (Metric::Cosine, Codes::Nibbles, 70),
        (Metric::Euclidean, Codes::Bytes, 33),
        (Metric::DotProduct, Codes::Floats, 5),
        (Metric::Hamming, Codes::Auto, 90),
    ] {
        let options = Options {
            metric,
            codes,
            ..Options::new(dimensions)
        };
        let (one, other) = (churned(options), churned(options));
        assert_eq!(one.len(), other.len());
        assert_eq!(answers(&one), answers(&other), "{metric:?} {codes:?}");
        assert_eq!(one.memory().graph, other.memory().graph);
    }
}

#[test]
fn a_search_changes_nothing() {
    let index = churned(Options::new(16));
    assert_eq!(answers(&index), answers(&index));
}
