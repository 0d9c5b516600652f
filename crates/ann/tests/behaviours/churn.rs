//! An index stays as good and as small when its vectors are replaced and removed.

use ann::{DistanceMetric, NeighbourIndexOptions};

use crate::data::{Rng, SPREAD, clustered};
use crate::oracle::{Oracle, build};

const DIMENSIONS: usize = 32;

fn mean_recall(oracle: &Oracle, index: &ann::NeighbourIndex, queries: &[Vec<f32>]) -> f64 {
    let shares = queries.iter().map(|q| oracle.check(index, q, 10, 1e-6));
    shares.sum::<f64>() / queries.len() as f64
}

#[test]
fn recall_and_memory_survive_replacing_every_vector() {
    let mut rng = Rng(31);
    let mut vectors = clustered(&mut rng, 3_060, DIMENSIONS, 30, SPREAD);
    let queries = vectors.split_off(3_000);
    let index = build(NeighbourIndexOptions::new(DIMENSIONS), &vectors);
    let memory = index.memory().anonymous();
    for _ in 0..3 {
        // Every id takes over the vector of another one.
        let order = rng.permutation(vectors.len());
        vectors = order.iter().map(|&from| vectors[from].clone()).collect();
        for id in rng.permutation(vectors.len()) {
            index.replace(id as u32, &vectors[id]).expect("held");
            // Replaced vectors keep their nodes until they are mended out of the graph, and tables
            // may be twice as large as they need to be.
            assert!(index.memory().anonymous() < 4 * memory);
        }
        let oracle = Oracle::of(DistanceMetric::Cosine, &vectors);
        let recall = mean_recall(&oracle, &index, &queries);
        assert!(recall >= 0.99, "{recall}");
    }
}

#[test]
fn rows_that_change_all_the_time_do_not_hide_the_others() {
    let mut rng = Rng(34);
    let mut vectors: Vec<_> = (0..2_000).map(|_| rng.vector(8)).collect();
    let options = NeighbourIndexOptions {
        metric: DistanceMetric::Euclidean,
        ..NeighbourIndexOptions::new(8)
    };
    let index = build(options, &vectors);
    for _ in 0..20_000 {
        let id = rng.below(1_000);
        vectors[id] = rng.vector(8);
        index.replace(id as u32, &vectors[id]).expect("held");
    }
    for (id, vector) in (0..).zip(&vectors) {
        let near = index.search(vector, 1).expect("search");
        assert_eq!(near[0].id, id);
    }
}

#[test]
fn remaining_vectors_are_found_among_the_removed() {
    let mut rng = Rng(32);
    let mut vectors = clustered(&mut rng, 6_030, DIMENSIONS, 30, SPREAD);
    let queries = vectors.split_off(6_000);
    let index = build(NeighbourIndexOptions::new(DIMENSIONS), &vectors);
    let mut oracle = Oracle::of(DistanceMetric::Cosine, &vectors);
    // The first inserted include the points where walks start.
    for id in (0..6_000).filter(|id| id % 2 == 0) {
        index.remove(id).expect("held");
        oracle.vectors.remove(&id);
    }
    let recall = mean_recall(&oracle, &index, &queries);
    assert!(recall >= 0.99, "{recall}");
    for (id, vector) in (0..6_000).zip(&vectors).filter(|(id, _)| id % 2 == 0) {
        index.insert(id, vector).expect("free again");
        oracle.vectors.insert(id, vector.clone());
    }
    let recall = mean_recall(&oracle, &index, &queries);
    assert!(recall >= 0.99, "{recall}");
}

#[test]
fn writing_a_vector_again_changes_nothing() {
    use ann::VectorQuantization::{B1, F32, I8};
    for quantization in [F32, I8, B1] {
        let mut rng = Rng(33);
        let vectors: Vec<_> = (0..200).map(|_| rng.vector(9)).collect();
        let options = NeighbourIndexOptions {
            quantization,
            ..NeighbourIndexOptions::new(9)
        };
        let index = build(options, &vectors);
        let query = rng.vector(9);
        let before = (index.search(&query, 200), index.memory().anonymous());
        for (id, vector) in (0..).zip(&vectors) {
            index.replace(id, vector).expect("held");
        }
        assert_eq!(
            (index.search(&query, 200), index.memory().anonymous()),
            before
        );
    }
}
