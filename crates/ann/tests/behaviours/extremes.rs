//! The longest and the shortest vectors floats can make have finite distances, the right ones.

use ann::{Metric, Options, Quantization};

use crate::oracle::build;

const METRICS: [Metric; 4] = [
    Metric::Cosine,
    Metric::Euclidean,
    Metric::DotProduct,
    Metric::Hamming,
];

#[test]
fn no_finite_vector_has_an_infinite_distance() {
    let (max, min, tiny) = (f32::MAX, f32::MIN, f32::from_bits(1));
    let vectors = [
        vec![max, max, max],
        vec![min, min, min],
        vec![max, min, 0.0],
        vec![tiny, tiny, tiny],
        vec![tiny, -tiny, 0.0],
        vec![0.0, 0.0, 0.0],
    ];
    use Quantization::*;
    for metric in METRICS {
        for quantization in [F32, F16, Bf16, I8, B1] {
            let options = Options {
                metric,
                quantization,
                ..Options::new(3)
            };
            let index = build(options, &vectors);
            for query in &vectors {
                let found = index.search(query, 6).expect("search");
                assert_eq!(found.len(), 6);
                for n in found {
                    assert!(n.distance.is_finite(), "{metric:?} {quantization:?} {n:?}");
                    let score = index.options().metric.similarity(n.distance, 3);
                    assert!(score.is_finite());
                }
            }
        }
    }
}

#[test]
fn directions_of_the_longest_and_the_shortest_vectors_are_told_apart() {
    let (max, tiny) = (f32::MAX, f32::from_bits(1));
    let vectors = [vec![max, 0.0], vec![0.0, tiny], vec![-max, 0.0]];
    let index = build(Options::new(2), &vectors);
    for query in [[tiny, 0.0], [max, 0.0]] {
        let found = index.search(&query, 3).expect("search");
        let rows: Vec<(u32, f32)> = found.iter().map(|n| (n.id, n.distance)).collect();
        assert_eq!(rows, [(0, 0.0), (1, 1.0), (2, 2.0)]);
    }
}

#[test]
fn a_cosine_distance_never_leaves_its_range() {
    // Parallel and opposite vectors, whose cosines rounding likes to carry past 1.
    let base = [0.1f32, 0.7, -0.3, 0.9, 0.123_456_79];
    let scaled = |factor: f32| base.iter().map(|x| x * factor).collect::<Vec<f32>>();
    let factors = [1.0, 3.0, 0.3, 1e20, 1e-20, -1.0, -3.0, -0.7];
    let vectors: Vec<_> = factors.map(scaled).to_vec();
    let index = build(Options::new(5), &vectors);
    for query in &vectors {
        for n in index.search(query, 8).expect("search") {
            assert!((0.0..=2.0).contains(&n.distance), "{n:?}");
            assert!(n.distance < 1e-5 || n.distance > 2.0 - 1e-5, "{n:?}");
        }
    }
}

#[test]
fn walks_survive_distances_beyond_the_floats() {
    // Enough vectors for a walk, in which the engine's own sums overflow to infinity and to NaN.
    let mut rng = crate::data::Rng(5);
    let vectors: Vec<Vec<f32>> = (0..1_500)
        .map(|_| rng.vector(4).iter().map(|x| x * f32::MAX).collect())
        .collect();
    for metric in METRICS {
        let options = Options {
            metric,
            ..Options::new(4)
        };
        let index = build(options, &vectors);
        for query in &vectors[..20] {
            let found = index.search(query, 10).expect("search");
            assert_eq!(found.len(), 10);
            assert!(found.iter().all(|n| n.distance.is_finite()));
        }
    }
}
