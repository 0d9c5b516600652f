//! The recall of the default options: at least 0.99.

use ann::{DistanceMetric, NeighbourIndexOptions, SearchOptions};

use crate::data::{Rng, SPREAD, clustered, heaps};
use crate::oracle::{Oracle, build};

/// Mean share of the `k` nearest that is found.
fn recall(metric: DistanceMetric, k: usize) -> f64 {
    let vectors = clustered(&mut Rng(21), 6_100, 48, 60, SPREAD);
    recall_among(&vectors, metric, k)
}

/// The mean share that is found where the first hundred vectors are queries, and the others are
/// searched.
fn recall_among(vectors: &[Vec<f32>], metric: DistanceMetric, k: usize) -> f64 {
    let (queries, base) = vectors.split_at(100);
    let options = NeighbourIndexOptions {
        metric,
        ..NeighbourIndexOptions::new(base[0].len())
    };
    let index = build(options, base);
    let oracle = Oracle::of(metric, base);
    let shares = queries.iter().map(|q| oracle.check(&index, q, k, 1e-6));
    shares.sum::<f64>() / queries.len() as f64
}

#[test]
fn cosine() {
    let recall = recall(DistanceMetric::Cosine, 10);
    assert!(recall >= 0.99, "{recall}");
}

#[test]
fn euclidean() {
    let recall = recall(DistanceMetric::Euclidean, 10);
    assert!(recall >= 0.99, "{recall}");
}

#[test]
fn dot_product() {
    let recall = recall(DistanceMetric::DotProduct, 10);
    assert!(recall >= 0.99, "{recall}");
}

#[test]
fn hamming() {
    let recall = recall(DistanceMetric::Hamming, 10);
    assert!(recall >= 0.99, "{recall}");
}

#[test]
fn cosine_of_the_nearest_hundred() {
    let recall = recall(DistanceMetric::Cosine, 100);
    assert!(recall >= 0.995, "{recall}");
}

/// A narrow walk that begins in one heap has to come to another, and so do the walks that link new
/// vectors.
#[test]
fn a_narrow_walk_begins_near_its_query() {
    let vectors = heaps(&mut Rng(22), 30_100, 96, 20, 32);
    let (queries, base) = vectors.split_at(100);
    let options = NeighbourIndexOptions {
        metric: DistanceMetric::Euclidean,
        build_beam_width: 32,
        ..NeighbourIndexOptions::new(base[0].len())
    };
    let index = build(options, base);
    let oracle = Oracle::of(DistanceMetric::Euclidean, base);
    let search = SearchOptions {
        beam: Some(28),
        ..SearchOptions::new(10)
    };
    let shares = queries
        .iter()
        .map(|query| oracle.check_with(&index, query, &search, 1e-6));
    let recall = shares.sum::<f64>() / queries.len() as f64;
    assert!(recall >= 0.96, "{recall}");
}
