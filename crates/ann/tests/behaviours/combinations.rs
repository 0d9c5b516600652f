//! All metrics, forms, codes and places go together.

use ann::{
    CodeChoice, DistanceMetric, NeighbourIndexOptions, SearchOptions, VectorPlacement,
    VectorQuantization,
};

use crate::data::of_some_kind;
use crate::kept::kept;
use crate::oracle::{Oracle, build};

/// Enough vectors for links, and for a walk if one is asked for.
const VECTORS: usize = 700;

/// Enough queries that one neighbour more or less does not decide. With codes of 4 bits for 2
/// elements a walk finds 0.93.
const QUERIES: usize = 60;

/// The error of a distance from a vector as it is kept, beside the larger of it and 1.
const TOLERANCE: f64 = 1e-6;

/// Checks an index of the kind of data of this number.
fn check(number: usize, options: NeighbourIndexOptions) {
    let others = VECTORS / 5;
    let mut vectors = of_some_kind(number, VECTORS + others + QUERIES, options.dimensions);
    let queries = vectors.split_off(VECTORS + others);
    let others = vectors.split_off(VECTORS);
    let index = build(options, &vectors);
    let metric = index.options().metric;
    let kept = |vector: &Vec<f32>| kept(metric, options.quantization, vector);
    let mut oracle = Oracle::of(metric, &vectors.iter().map(kept).collect::<Vec<_>>());
    for (id, vector) in (0..VECTORS as u32).step_by(5).zip(&others) {
        index.replace(id, vector).expect("held");
        oracle.vectors.insert(id, kept(vector));
        index.remove(id + 1).expect("held");
        oracle.vectors.remove(&(id + 1));
    }
    let mean = |search: SearchOptions<'_>| {
        let shares = queries
            .iter()
            .map(|query| oracle.check_with(&index, query, &search, TOLERANCE));
        shares.sum::<f64>() / queries.len() as f64
    };
    let case = format!("{number}, {options:?}");
    assert_eq!(mean(SearchOptions::new(VECTORS)), 1.0, "{case}");
    let by_default = mean(SearchOptions::new(10));
    assert!(by_default >= 0.98, "{case}: {by_default}");
    let walk = mean(SearchOptions {
        beam: Some(200),
        ..SearchOptions::new(10)
    });
    assert!(walk >= 0.9, "{case}: {walk}");
}

fn check_all(dimensions: usize, metric: DistanceMetric) {
    use VectorQuantization::*;
    let mut number = 0;
    for quantization in [F32, F16, Bf16, I8, B1] {
        for codes in [
            CodeChoice::Auto,
            CodeChoice::Nibbles,
            CodeChoice::Bytes,
            CodeChoice::Floats,
        ] {
            for placement in [VectorPlacement::File, VectorPlacement::Memory] {
                let options = NeighbourIndexOptions {
                    metric,
                    quantization,
                    codes,
                    placement,
                    // By products, walks between clusters in clusters need more links.
                    max_connections: match metric {
                        DistanceMetric::DotProduct => 32,
                        _ => 8,
                    },
                    build_beam_width: 32,
                    ..NeighbourIndexOptions::new(dimensions)
                };
                check(number, options);
                number += 1;
            }
        }
    }
}

#[test]
fn cosine() {
    check_all(66, DistanceMetric::Cosine);
}

#[test]
fn euclidean() {
    check_all(17, DistanceMetric::Euclidean);
}

#[test]
fn dot_product() {
    check_all(66, DistanceMetric::DotProduct);
}

#[test]
fn hamming() {
    check_all(66, DistanceMetric::Hamming);
}

#[test]
fn one_and_two_dimensions() {
    let mut number = 0;
    for dimensions in [1, 2] {
        for metric in [
            DistanceMetric::Cosine,
            DistanceMetric::Euclidean,
            DistanceMetric::DotProduct,
        ] {
            for codes in [CodeChoice::Nibbles, CodeChoice::Bytes, CodeChoice::Floats] {
                let options = NeighbourIndexOptions {
                    metric,
                    codes,
                    ..NeighbourIndexOptions::new(dimensions)
                };
                check(number, options);
                number += 1;
            }
        }
    }
}
