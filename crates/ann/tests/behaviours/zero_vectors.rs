//! A zero vector has no direction. Under the cosine it comes after all others, opposite ones
//! included; under the other metrics it is a vector like any other.

use ann::{
    DistanceMetric, IdFilter, IdSet, NeighbourIndexOptions, SearchOptions, VectorQuantization,
};

use crate::data::Rng;
use crate::oracle::{Oracle, build};

/// The distance of a zero vector: the float after that of an opposite one.
const BEYOND: f32 = 2.0f32.next_up();

#[test]
fn a_zero_vector_is_near_a_query_of_zeros_alone() {
    for quantization in [
        VectorQuantization::F32,
        VectorQuantization::F16,
        VectorQuantization::I8,
    ] {
        let options = NeighbourIndexOptions {
            quantization,
            ..NeighbourIndexOptions::new(2)
        };
        let vectors = [vec![0.0, -0.0], vec![1.0, 1.0], vec![-1.0, -1.0]];
        let index = build(options, &vectors);

        let found = index.search(&[2.0, 2.0], 3).expect("search");
        let ids: Vec<u32> = found.iter().map(|n| n.id).collect();
        assert_eq!(ids, [1, 2, 0], "after what is opposite");
        assert_eq!((found[1].distance, found[2].distance), (2.0, BEYOND));

        for k in [2, 3] {
            let found = index.search(&[0.0, 0.0], k).expect("search");
            assert_eq!(found.len(), k);
            assert_eq!((found[0].id, found[0].distance), (0, 0.0));
            assert!(found[1..].iter().all(|n| n.distance == 1.0), "{found:?}");
        }
    }
}

#[test]
fn zero_vectors_come_after_all_others_in_the_answers_of_walks() {
    let mut rng = Rng(1);
    let mut vectors: Vec<_> = (0..3_000).map(|_| rng.vector(8)).collect();
    for zero in 0..300 {
        vectors[zero * 10].fill(0.0);
    }
    for (quantization, tolerance) in [
        (VectorQuantization::F32, 1e-6),
        (VectorQuantization::I8, 0.05),
    ] {
        let options = NeighbourIndexOptions {
            quantization,
            ..NeighbourIndexOptions::new(8)
        };
        let index = build(options, &vectors);
        let oracle = Oracle::of(DistanceMetric::Cosine, &vectors);
        for _ in 0..20 {
            let query = rng.vector(8);
            assert_eq!(oracle.check(&index, &query, 3_000, tolerance), 1.0);
            assert!(oracle.check(&index, &query, 10, tolerance) >= 0.9);
            // The last of those with a direction come before the first of the others.
            let found = index.search(&query, 2_750).expect("search");
            assert!(found[..2_700].iter().all(|n| n.id % 10 != 0));
            assert!(found[2_700..].iter().all(|n| n.distance == BEYOND));
        }
        assert_eq!(oracle.check(&index, &[0.0; 8], 10, tolerance), 1.0);
    }
}

#[test]
fn zero_vectors_come_last_where_all_else_is_opposite() {
    let mut rng = Rng(2);
    let one_side = |rng: &mut Rng| {
        let mut vector = rng.vector(8);
        vector[0] = 4.0;
        vector
    };
    let mut vectors: Vec<_> = (0..2_000).map(|_| one_side(&mut rng)).collect();
    let zeros = [3, 500, 1_999];
    for zero in zeros {
        vectors[zero].fill(0.0);
    }
    let index = build(NeighbourIndexOptions::new(8), &vectors);
    let query = one_side(&mut rng).iter().map(|x| -x).collect::<Vec<_>>();
    let is_zero = |id: u32| zeros.contains(&(id as usize));
    for k in [10, 1_900] {
        let found = index.search(&query, k).expect("search");
        assert!(found.iter().all(|n| !is_zero(n.id) && n.distance > 1.0));
    }
    let few: IdSet = [3, 7, 500, 900].into_iter().collect();
    let admits = |id: u32| id < 4 || is_zero(id);
    let filters = [IdFilter::Ids(&few), IdFilter::Predicate(&admits)];
    for exact in [false, true] {
        for filter in filters {
            let search = SearchOptions {
                exact,
                filter: Some(filter),
                ..SearchOptions::new(4)
            };
            let found = index.search_with(&query, &search).expect("search");
            let zero_at: Vec<bool> = found.iter().map(|n| is_zero(n.id)).collect();
            assert!(zero_at.is_sorted(), "{exact}, {zero_at:?}");
        }
        let all = SearchOptions {
            exact,
            ..SearchOptions::new(2_000)
        };
        let found = index.search_with(&query, &all).expect("search");
        let ids: Vec<u32> = found[1_997..].iter().map(|n| n.id).collect();
        assert_eq!(ids, [3, 500, 1_999]);
    }
}

#[test]
fn a_vector_may_become_zero_and_come_back() {
    let vectors = [vec![1.0, 0.0], vec![0.0, 1.0]];
    let index = build(NeighbourIndexOptions::new(2), &vectors);
    let distance_of_0 = || {
        let found = index.search(&[1.0, 0.0], 2).expect("search");
        let of_0 = found.iter().find(|n| n.id == 0);
        of_0.expect("held").distance
    };
    assert_eq!(distance_of_0(), 0.0);
    index.replace(0, &[0.0, 0.0]).expect("replace");
    assert_eq!(distance_of_0(), BEYOND);
    index.replace(0, &[0.0, 0.0]).expect("replace");
    index.replace(0, &[-3.0, 0.0]).expect("replace");
    assert_eq!(distance_of_0(), 2.0);
    index.replace(0, &[0.0, 0.0]).expect("replace");
    index.remove(0).expect("remove");
    index.remove(1).expect("remove");
    assert!(index.is_empty());
    index.insert(0, &[0.0, 0.0]).expect("insert");
    assert_eq!(distance_of_0(), BEYOND);
}

#[test]
fn other_metrics_measure_zero_vectors_as_they_are() {
    for (metric, expected) in [
        (DistanceMetric::Euclidean, 25.0),
        (DistanceMetric::DotProduct, 1.0),
        (DistanceMetric::Hamming, 2.0),
    ] {
        let options = NeighbourIndexOptions {
            metric,
            ..NeighbourIndexOptions::new(2)
        };
        let index = build(options, &[vec![0.0, 0.0]]);
        let found = index.search(&[3.0, 4.0], 1).expect("search");
        assert_eq!(found[0].distance, expected, "{metric:?}");
    }
}
