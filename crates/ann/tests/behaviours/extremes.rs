//! The longest and the shortest vectors of floats have finite distances, and the right ones.

use ann::{AccessPath, DistanceMetric, NeighbourIndexOptions, SearchOptions, VectorQuantization};

use crate::oracle::{Oracle, build};

const METRICS: [DistanceMetric; 4] = [
    DistanceMetric::Cosine,
    DistanceMetric::Euclidean,
    DistanceMetric::DotProduct,
    DistanceMetric::Hamming,
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
    use VectorQuantization::*;
    for metric in METRICS {
        for quantization in [F32, F16, Bf16, I8, B1] {
            let options = NeighbourIndexOptions {
                metric,
                quantization,
                ..NeighbourIndexOptions::new(3)
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
    let index = build(NeighbourIndexOptions::new(2), &vectors);
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
    let index = build(NeighbourIndexOptions::new(5), &vectors);
    for query in &vectors {
        for n in index.search(query, 8).expect("search") {
            assert!((0.0..=2.0).contains(&n.distance), "{n:?}");
            assert!(n.distance < 1e-5 || n.distance > 2.0 - 1e-5, "{n:?}");
        }
    }
}

#[test]
fn walks_survive_distances_beyond_the_floats() {
    // There are enough vectors for a walk, in which the engine's own sums overflow to infinity and
    // to NaN.
    let mut rng = crate::data::Rng(5);
    let vectors: Vec<Vec<f32>> = (0..1_500)
        .map(|_| rng.vector(4).iter().map(|x| x * f32::MAX).collect())
        .collect();
    for metric in METRICS {
        let options = NeighbourIndexOptions {
            metric,
            ..NeighbourIndexOptions::new(4)
        };
        let index = build(options, &vectors);
        for query in &vectors[..20] {
            let found = index.search(query, 10).expect("search");
            assert_eq!(found.len(), 10);
            assert!(found.iter().all(|n| n.distance.is_finite()));
        }
    }
}

#[test]
fn a_vector_beyond_the_floats_hides_nothing() {
    // The outlier comes before training, while the index is young, and when it is grown.
    for outlier in [0, 100, 600, 3_000] {
        for (metric, dimensions) in [
            (DistanceMetric::Euclidean, 16),
            (DistanceMetric::Euclidean, 96),
        ] {
            let mut rng = crate::data::Rng(6);
            let mut vectors: Vec<_> = (0..4_000).map(|_| rng.vector(dimensions)).collect();
            let queries = vectors.split_off(3_970);
            vectors[outlier] = vec![1e20; dimensions];
            let options = NeighbourIndexOptions {
                metric,
                ..NeighbourIndexOptions::new(dimensions)
            };
            let index = build(options, &vectors);
            let oracle = Oracle::of(metric, &vectors);
            let shares = queries.iter().map(|q| oracle.check(&index, q, 10, 1e-5));
            let recall = shares.sum::<f64>() / queries.len() as f64;
            assert!(recall >= 0.95, "{outlier}, {dimensions}: {recall}");
            let beam = Some(200);
            let search = SearchOptions {
                beam,
                ..SearchOptions::new(10)
            };
            let (_, explanation) = index.explain(&queries[0], &search).expect("search");
            assert_eq!(explanation.way, AccessPath::Walk);
            let found = index.search(&vectors[outlier], 1).expect("search");
            assert_eq!(found[0].id, outlier as u32);
        }
    }
}

#[test]
fn the_length_of_a_query_is_of_no_consequence_to_its_direction() {
    let mut rng = crate::data::Rng(7);
    let vectors: Vec<_> = (0..3_000).map(|_| rng.vector(80)).collect();
    let index = build(NeighbourIndexOptions::new(80), &vectors);
    let query = rng.vector(80);
    let ids = |factor: f32| {
        let query: Vec<f32> = query.iter().map(|x| x * factor).collect();
        let found = index.search(&query, 10).expect("search");
        found.iter().map(|n| n.id).collect::<Vec<_>>()
    };
    let expected = ids(1.0);
    for factor in [1e-36, 1e-20, 1e20, 1e37] {
        assert_eq!(ids(factor), expected, "{factor}");
    }
}

#[test]
fn dot_products_near_the_end_of_the_floats_are_in_the_order_of_their_scores() {
    // The scores are floats, up to the largest. The products are not, nor are the sums on the way
    // to some.
    let mut vectors: Vec<Vec<f32>> = (0..40)
        .map(|n| vec![1e38 + n as f32 * 6e36, 1e38 + n as f32 * 6e36, 0.0, 0.0])
        .collect();
    vectors.push(vec![f32::MAX, f32::MAX, f32::MIN, 1e37]);
    let query = [1.0; 4];
    let score = |id: u32| {
        let terms = vectors[id as usize].iter().map(|x| f64::from(*x));
        (1.0 + terms.sum::<f64>()) / 2.0
    };
    let mut expected: Vec<u32> = (0..vectors.len() as u32).collect();
    expected.sort_by(|a, b| score(*b).total_cmp(&score(*a)));
    let options = NeighbourIndexOptions {
        metric: DistanceMetric::DotProduct,
        ..NeighbourIndexOptions::new(4)
    };
    let index = build(options, &vectors);
    for k in [1, 5, 20, vectors.len()] {
        let found = index.search(&query, k).expect("search");
        let ids: Vec<u32> = found.iter().map(|n| n.id).collect();
        assert_eq!(ids, expected[..k], "{k}");
        assert!(found.iter().all(|n| n.distance.is_finite()));
    }
}
