//! The default options find at least 99 of the 100 nearest that are asked for ten at a time.

use ann::{Metric, Options};

use crate::data::{Rng, SPREAD, clustered};
use crate::oracle::{Oracle, build};

/// Mean share of the `k` nearest that is found.
fn recall(metric: Metric, k: usize) -> f64 {
    let mut rng = Rng(21);
    let vectors = clustered(&mut rng, 6_100, 48, 60, SPREAD);
    let (queries, base) = vectors.split_at(100);
    let options = Options {
        metric,
        ..Options::new(48)
    };
    let index = build(options, base);
    let oracle = Oracle::of(metric, base);
    let shares = queries.iter().map(|q| oracle.check(&index, q, k, 1e-6));
    shares.sum::<f64>() / queries.len() as f64
}

#[test]
fn cosine() {
    let recall = recall(Metric::Cosine, 10);
    assert!(recall >= 0.99, "{recall}");
}

#[test]
fn euclidean() {
    let recall = recall(Metric::Euclidean, 10);
    assert!(recall >= 0.99, "{recall}");
}

#[test]
fn dot_product() {
    let recall = recall(Metric::DotProduct, 10);
    assert!(recall >= 0.99, "{recall}");
}

#[test]
fn hamming() {
    let recall = recall(Metric::Hamming, 10);
    assert!(recall >= 0.99, "{recall}");
}

#[test]
fn cosine_of_the_nearest_hundred() {
    let recall = recall(Metric::Cosine, 100);
    assert!(recall >= 0.995, "{recall}");
}
