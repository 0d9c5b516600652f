//! Distances and scores are those of the contract, and answers are in their order.

use ann::{DistanceMetric, NeighbourIndexOptions};

use crate::oracle::build;

/// The answer to `query` over three vectors of four dimensions: (id, distance, score).
fn answer(metric: DistanceMetric, query: [f32; 4]) -> Vec<(u32, f32, f32)> {
    let vectors = [
        vec![1.0, 0.0, 0.0, 0.0],
        vec![0.0, 3.0, 0.0, 4.0],
        vec![-2.0, 0.0, 0.0, 0.0],
    ];
    let options = NeighbourIndexOptions {
        metric,
        ..NeighbourIndexOptions::new(4)
    };
    let found = build(options, &vectors).search(&query, 3).expect("search");
    let row = |n: ann::Neighbour| (n.id, n.distance, metric.similarity(n.distance, 4));
    found.into_iter().map(row).collect()
}

#[test]
fn cosine_is_one_minus_the_cosine() {
    let expected = [(0, 0.0, 1.0), (1, 1.0, 0.5), (2, 2.0, 0.0)];
    assert_eq!(
        answer(DistanceMetric::Cosine, [5.0, 0.0, 0.0, 0.0]),
        expected
    );
}

#[test]
fn euclidean_is_the_squared_distance() {
    let expected = [(0, 0.0, 1.0), (2, 9.0, 0.1), (1, 26.0, 1.0 / 27.0)];
    assert_eq!(
        answer(DistanceMetric::Euclidean, [1.0, 0.0, 0.0, 0.0]),
        expected
    );
}

#[test]
fn dot_product_is_one_minus_the_product() {
    let expected = [(1, -24.0, 13.0), (0, 1.0, 0.5), (2, 1.0, 0.5)];
    assert_eq!(
        answer(DistanceMetric::DotProduct, [0.0, 3.0, 0.0, 4.0]),
        expected
    );
}

#[test]
fn hamming_counts_differing_signs() {
    let expected = [(0, 1.0, 0.75), (1, 1.0, 0.75), (2, 2.0, 0.5)];
    let mut found = answer(DistanceMetric::Hamming, [1.0, 1.0, -1.0, 0.0]);
    // Vector 1 is 0101, the query 0011 from the high end: two bits differ.
    found.sort_by_key(|row| row.0);
    assert_eq!(found, [expected[0], (1, 2.0, 0.5), expected[2]]);
}
