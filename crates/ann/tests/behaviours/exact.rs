//! An exact search answers with the true nearest, on any data and in any form.

use ann::{AccessPath, SearchOptions};
use ann::{
    CodeChoice, DistanceMetric, IdFilter, IdSet, Neighbour, NeighbourIndex, NeighbourIndexOptions,
    VectorQuantization,
};
use vector_sets::RealSamples;

use crate::kept::kept;
use crate::oracle::{admits, build, distance};

/// Number of queries of an index.
const QUERIES: usize = 8;

/// The share of a distance, or of 1 if that is more, by which the `f32` in an answer may be off.
/// Under the Euclidean distance it is a share of the distance alone.
const ROUNDED: f64 = 2e-7;

/// Vectors of a kind, some of them equal and some zero, and queries. One of the queries is a vector
/// that is there.
fn made(name: &str, rows: usize) -> (Vec<Vec<f32>>, Vec<Vec<f32>>) {
    let set = vector_sets::find(name).expect("a kind");
    let made = set.make(17, rows, QUERIES, &RealSamples::default());
    let mut vectors: Vec<Vec<f32>> = made.vectors().map(<[f32]>::to_vec).collect();
    vectors.truncate(rows);
    for at in (7..rows).step_by(50) {
        vectors[at] = match at % 3 {
            0 => vec![0.0; made.dimensions],
            _ => vectors[at - 5].clone(),
        };
    }
    let mut queries: Vec<Vec<f32>> = made.each_query().map(<[f32]>::to_vec).collect();
    queries[0] = vectors[rows / 2].clone();
    (vectors, queries)
}

/// Whether two distances are the same number, but for its rounding.
fn are_equal(metric: DistanceMetric, a: f64, b: f64) -> bool {
    let unit = match metric {
        DistanceMetric::Euclidean => b.abs(),
        _ => b.abs().max(1.0),
    };
    (a - b).abs() <= ROUNDED * unit
}

/// Checks that an answer has the nearest of all in their order.
fn check(
    (metric, query, search): (DistanceMetric, &[f32], &SearchOptions<'_>),
    found: &[Neighbour],
    kept: &[Vec<f32>],
) {
    let of = |id: u32| distance(metric, query, &kept[id as usize]);
    let admitted = (0..kept.len() as u32).filter(|id| admits(search, *id));
    let mut nearest: Vec<f64> = admitted.map(of).collect();
    nearest.sort_by(f64::total_cmp);
    nearest.truncate(search.k);
    assert_eq!(found.len(), nearest.len());
    assert!(found.is_sorted_by(|a, b| (a.distance, a.id) < (b.distance, b.id)));
    for (found, nearest) in found.iter().zip(nearest) {
        assert!(admits(search, found.id));
        let told = f64::from(found.distance);
        assert!(are_equal(metric, told, of(found.id)), "{found:?}");
        assert!(
            are_equal(metric, told, nearest),
            "{found:?} in place of one at {nearest}"
        );
    }
}

/// Searches exactly for few and for many, with every kind of filter and without.
fn check_index(index: &NeighbourIndex, queries: &[Vec<f32>], kept: &[Vec<f32>]) {
    let metric = index.options().metric;
    let rows = kept.len() as u32;
    let is_third = |id: u32| id.is_multiple_of(3);
    let mut few = IdSet::default();
    for id in (0..rows).filter(|id| id * 7 % 40 < 3) {
        few.insert(id);
    }
    let filters = [
        None,
        Some(IdFilter::Ids(&few)),
        Some(IdFilter::Predicate(&is_third)),
    ];
    for (number, query) in queries.iter().enumerate() {
        for filter in filters {
            let search = SearchOptions {
                k: [1, 10, 100][number % 3],
                // These have no meaning.
                beam: Some(1),
                rescored: Some(1),
                exact: true,
                filter,
            };
            let answer = index.explain(query, &search);
            let (found, explanation) = answer.expect("a valid query");
            assert_ne!(explanation.way, AccessPath::Walk);
            check((metric, query, &search), &found, kept);
        }
    }
}

/// Checks an index of a kind of vectors.
fn check_kind(name: &str, rows: usize, options: NeighbourIndexOptions) {
    let (vectors, queries) = made(name, rows);
    let options = NeighbourIndexOptions {
        dimensions: vectors[0].len(),
        max_connections: 4,
        build_beam_width: 16,
        ..options
    };
    println!("{name} {options:?}");
    let index = build(options, &vectors);
    let NeighbourIndexOptions {
        metric,
        quantization,
        ..
    } = *index.options();
    let kept: Vec<Vec<f32>> = vectors
        .iter()
        .map(|vector| kept(metric, quantization, vector))
        .collect();
    check_index(&index, &queries, &kept);
}

/// Data of very different kinds: clusters, near copies, a large mean, heavy tails, few directions,
/// different scales and lengths, counts.
const KINDS: [&str; 10] = [
    "nested-clusters",
    "clusters-200x150-in-order",
    "copies-1000x30",
    "mean-10-euclidean",
    "heavy-tails",
    "low-rank",
    "scales",
    "random-lengths-1",
    "histograms",
    "globe",
];

const CODES: [CodeChoice; 3] = [CodeChoice::Nibbles, CodeChoice::Bytes, CodeChoice::Floats];

fn check_kinds(metric: DistanceMetric) {
    for (number, name) in KINDS.into_iter().enumerate() {
        for (rows, codes) in [(512, CODES[number % 3]), (2_000, CODES[(number + 1) % 3])] {
            let options = NeighbourIndexOptions {
                metric,
                codes,
                ..NeighbourIndexOptions::new(1)
            };
            check_kind(name, rows, options);
        }
    }
}

#[test]
fn cosine() {
    check_kinds(DistanceMetric::Cosine);
}

#[test]
fn euclidean() {
    check_kinds(DistanceMetric::Euclidean);
}

#[test]
fn dot_product() {
    check_kinds(DistanceMetric::DotProduct);
}

#[test]
fn hamming() {
    check_kinds(DistanceMetric::Hamming);
}

/// Distances are exact of the vectors as they are kept, though codes are made of what was given.
#[test]
fn every_form_and_every_code() {
    use VectorQuantization::*;
    for (number, quantization) in [F16, Bf16, I8, B1].into_iter().enumerate() {
        for metric in [
            DistanceMetric::Cosine,
            DistanceMetric::Euclidean,
            DistanceMetric::DotProduct,
        ] {
            for (turn, codes) in CODES.into_iter().enumerate() {
                let options = NeighbourIndexOptions {
                    metric,
                    quantization,
                    codes,
                    ..NeighbourIndexOptions::new(1)
                };
                let name = KINDS[(3 * number + turn + metric as usize) % KINDS.len()];
                check_kind(name, 700, options);
                check_kind("nested-clusters", 700, options);
            }
        }
    }
}

#[test]
fn many_vectors() {
    for (name, metric) in [
        ("clusters-200x150", DistanceMetric::Euclidean),
        ("random-lengths-0.2", DistanceMetric::DotProduct),
    ] {
        let options = NeighbourIndexOptions {
            metric,
            ..NeighbourIndexOptions::new(1)
        };
        check_kind(name, 20_000, options);
    }
}

/// The products of all vectors are small, though the vectors are long: they lie at right angles to
/// the queries, nearly.
#[test]
fn products_that_cancel_out() {
    let (mut vectors, mut queries) = made("heavy-tails", 2_000);
    for vector in &mut vectors {
        vector.iter_mut().for_each(|x| *x += 1e6);
    }
    for query in &mut queries {
        // Differences of neighbouring elements add up to nothing.
        let first = query[0];
        let next: Vec<f32> = query[1..].iter().copied().chain([first]).collect();
        query
            .iter_mut()
            .zip(next)
            .for_each(|(x, next)| *x = (*x - next).round());
    }
    for codes in CODES {
        let options = NeighbourIndexOptions {
            metric: DistanceMetric::DotProduct,
            codes,
            ..NeighbourIndexOptions::new(vectors[0].len())
        };
        check_index(&build(options, &vectors), &queries, &vectors);
    }
}

/// Vectors that were replaced and removed are none of the nearest.
#[test]
fn after_changes() {
    let (vectors, queries) = made("clusters-every-width", 2_000);
    let options = NeighbourIndexOptions {
        metric: DistanceMetric::Euclidean,
        ..NeighbourIndexOptions::new(vectors[0].len())
    };
    let index = build(options, &vectors[..1_500]);
    let mut left = vectors[..1_500].to_vec();
    for (id, vector) in (0..500).zip(&vectors[1_500..]) {
        index.replace(id, vector).expect("held");
        left[id as usize].clone_from(vector);
    }
    for id in (700..1_500).rev() {
        index.remove(id).expect("held");
    }
    left.truncate(700);
    check_index(&index, &queries, &left);
}

/// A scan is the yardstick of searches: it measures all that it is given, in any pieces.
#[test]
fn a_scan_of_pieces_finds_the_nearest_of_all() {
    let (vectors, queries) = made("clusters-200x150", 3_000);
    for quantization in [VectorQuantization::F32, VectorQuantization::I8] {
        let options = NeighbourIndexOptions {
            metric: DistanceMetric::Euclidean,
            quantization,
            ..NeighbourIndexOptions::new(vectors[0].len())
        };
        let index = build(options, &vectors);
        let held: IdSet = (0..vectors.len() as u32).collect();
        for query in &queries {
            let exact = SearchOptions {
                exact: true,
                ..SearchOptions::new(10)
            };
            let nearest = index.search_with(query, &exact).expect("search");
            assert_eq!(index.scan(query, 10, &held), Ok(nearest.clone()));
            let mut found = Vec::new();
            for first in (0..vectors.len() as u32).step_by(700) {
                // Ids that are not held are passed over.
                let piece: IdSet = (first..first + 700).collect();
                found.extend(index.scan(query, 10, &piece).expect("scan"));
            }
            found.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.id.cmp(&b.id)));
            found.truncate(10);
            assert_eq!(found, nearest);
        }
    }
}
