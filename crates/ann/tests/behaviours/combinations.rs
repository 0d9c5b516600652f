//! All metrics, forms, codes and places go together.

use ann::{Codes, Metric, Options, Placement, Quantization, SearchOptions};

use crate::data::{Rng, clustered};
use crate::oracle::{Oracle, build};

/// Enough vectors for links, and for a walk if one is asked for.
const VECTORS: usize = 700;

/// Enough queries that one neighbour more or less does not decide. With codes of 4 bits for 2
/// elements a walk finds 0.93.
const QUERIES: usize = 60;

/// The error of a distance, beside the larger of it and 1, for elements up to about 2.
fn tolerance(metric: Metric, quantization: Quantization) -> f64 {
    use Quantization::*;
    match (metric, quantization) {
        (Metric::Hamming, _) => 0.0,
        (_, F32) => 1e-6,
        (_, F16) => 0.01,
        (Metric::Cosine, _) => 0.02,
        (_, _) => 0.1,
    }
}

fn check(options: Options) {
    let mut rng = Rng(92);
    let mut vectors = clustered(&mut rng, VECTORS + QUERIES, options.dimensions, 8, 1.0);
    let queries = vectors.split_off(VECTORS);
    let index = build(options, &vectors);
    let metric = index.options().metric;
    let mut oracle = Oracle::of(metric, &vectors);
    for id in (0..VECTORS as u32).step_by(5) {
        let vector = rng.vector(options.dimensions);
        index.replace(id, &vector).expect("held");
        oracle.vectors.insert(id, vector);
        index.remove(id + 1).expect("held");
        oracle.vectors.remove(&(id + 1));
    }
    let tolerance = tolerance(metric, options.quantization);
    let mean = |search: SearchOptions<'_>| {
        let shares = queries
            .iter()
            .map(|query| oracle.check_with(&index, query, &search, tolerance));
        shares.sum::<f64>() / queries.len() as f64
    };
    assert_eq!(mean(SearchOptions::new(VECTORS)), 1.0, "{options:?}");
    let by_default = mean(SearchOptions::new(10));
    assert!(by_default >= 0.98, "{options:?}: {by_default}");
    let walk = mean(SearchOptions {
        beam: Some(200),
        ..SearchOptions::new(10)
    });
    assert!(walk >= 0.9, "{options:?}: {walk}");
}

fn check_all(dimensions: usize, metric: Metric) {
    use Quantization::*;
    for quantization in [F32, F16, Bf16, I8, B1] {
        for codes in [Codes::Auto, Codes::Nibbles, Codes::Bytes, Codes::Floats] {
            for placement in [Placement::File, Placement::Memory] {
                check(Options {
                    metric,
                    quantization,
                    codes,
                    placement,
                    max_connections: 8,
                    build_beam_width: 32,
                    ..Options::new(dimensions)
                });
            }
        }
    }
}

#[test]
fn cosine() {
    check_all(66, Metric::Cosine);
}

#[test]
fn euclidean() {
    check_all(17, Metric::Euclidean);
}

#[test]
fn dot_product() {
    check_all(66, Metric::DotProduct);
}

#[test]
fn hamming() {
    check_all(66, Metric::Hamming);
}

#[test]
fn one_and_two_dimensions() {
    for dimensions in [1, 2] {
        for metric in [Metric::Cosine, Metric::Euclidean, Metric::DotProduct] {
            for codes in [Codes::Nibbles, Codes::Bytes, Codes::Floats] {
                check(Options {
                    metric,
                    codes,
                    ..Options::new(dimensions)
                });
            }
        }
    }
}
