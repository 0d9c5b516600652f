//! The default options find no less than hnswlib does at the same parameters, on data of many
//! kinds. `make bench-recall` compares more of them, in full size.
//!
//! The recall of hnswlib is written down in `hnswlib.txt`, as it is no part of a test's build.

use ann::{DistanceMetric, NeighbourIndex, NeighbourIndexOptions, SearchOptions};
use vector_sets::{ChurnPattern, GeneratedSet, RealSamples, VectorChange, VectorSet};

/// Neighbours wanted.
const K: usize = 10;
/// Recall may be below hnswlib's by this much.
const ALLOWED: f64 = 0.005;
/// Recall after deletes may be below hnswlib's by this much.
const ALLOWED_AFTER_CHANGES: f64 = 0.01;
/// A vector is a neighbour if it is farther than the last one by no more than this share.
const TIE: f64 = 1e-6;

/// The set that a line of `hnswlib.txt` is about, made, and the recall of hnswlib.
fn recorded(name: &str) -> (VectorSet, GeneratedSet, f64) {
    let lines = include_str!("hnswlib.txt").lines();
    let mut lines = lines.filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = lines
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .unwrap_or_else(|| panic!("hnswlib.txt has no {name}"))
        .split_whitespace()
        .collect();
    let number = |column: usize| columns[column].parse().expect("a number");
    let set = vector_sets::find(name).expect("a set of vector-sets");
    let made = set.make(
        number(2) as u64,
        number(0) as usize,
        number(1) as usize,
        &RealSamples::default(),
    );
    (set, made, number(3))
}

/// Builds an index with the default options, by one thread, so that it is the same each time.
fn build(set: &VectorSet, made: &GeneratedSet) -> NeighbourIndex {
    let metric = match set.metric {
        vector_sets::NeighbourMetric::Cosine => DistanceMetric::Cosine,
        vector_sets::NeighbourMetric::Euclidean => DistanceMetric::Euclidean,
        vector_sets::NeighbourMetric::DotProduct => DistanceMetric::DotProduct,
        vector_sets::NeighbourMetric::Hamming => DistanceMetric::Hamming,
    };
    let options = NeighbourIndexOptions {
        metric,
        ..NeighbourIndexOptions::new(made.dimensions)
    };
    let index = NeighbourIndex::new(options).expect("valid options");
    for (id, vector) in (0..).zip(made.vectors()) {
        index.insert(id, vector).expect("a new id");
    }
    for change in &made.changes {
        match change {
            VectorChange::Replace(id, vector) => index.replace(*id, vector),
            VectorChange::Remove(id) => index.remove(*id),
        }
        .expect("an id that is held");
    }
    index
}

/// The mean share of the true neighbours that searches find.
fn recall(set: &VectorSet, made: &GeneratedSet, index: &NeighbourIndex) -> f64 {
    let left = made.left();
    let mut found = 0;
    for query in made.each_query() {
        let vectors = left.vectors.chunks_exact(made.dimensions);
        let distances: Vec<f64> = vectors
            .map(|vector| set.metric.distance(query, vector))
            .collect();
        let mut sorted = distances.clone();
        let (_, last, _) = sorted.select_nth_unstable_by(K - 1, f64::total_cmp);
        let limit = *last + TIE * last.abs();
        let answer = index
            .search_with(query, &SearchOptions::new(K))
            .expect("a valid query");
        assert_eq!(answer.len(), K);
        let is_near = |id| {
            let row = left.ids.binary_search(id).expect("an id that is held");
            distances[row] <= limit
        };
        found += answer.iter().filter(|found| is_near(&found.id)).count();
    }
    found as f64 / (K * made.each_query().len()) as f64
}

/// Asserts that our recall on a set is not below hnswlib's.
fn compare(name: &str) {
    let (set, made, hnswlib) = recorded(name);
    let index = build(&set, &made);
    let ours = recall(&set, &made, &index);
    let allowed = match set.changes {
        ChurnPattern::None => ALLOWED,
        ChurnPattern::HalfDeleted | ChurnPattern::ThirdReplacedHalfDeleted => ALLOWED_AFTER_CHANGES,
    };
    assert!(
        ours >= hnswlib - allowed,
        "{name}: {ours:.4}, and hnswlib finds {hnswlib:.4}"
    );
}

#[test]
fn texts() {
    compare("texts");
}

#[test]
fn dot_products_of_slightly_different_lengths() {
    compare("random-lengths-0.2");
}

#[test]
fn dot_products_of_very_different_lengths() {
    compare("random-lengths-1");
}

#[test]
fn dot_products_where_long_vectors_come_last() {
    compare("long-last");
}

#[test]
fn dot_products_of_texts_of_different_lengths() {
    compare("texts-lengths-0.5");
}

#[test]
fn items_for_users() {
    compare("recommendation");
}

#[test]
fn near_copies() {
    compare("copies-1000x30");
}

#[test]
fn faces_of_few_people() {
    compare("faces");
}

#[test]
fn narrow_clusters() {
    compare("clusters-200x150");
}

#[test]
fn one_cluster_after_the_other() {
    compare("clusters-30x1000-in-order");
}

#[test]
fn clusters_within_clusters() {
    compare("nested-clusters");
}

#[test]
fn windows_of_a_series() {
    compare("walk-windows");
}

#[test]
fn random_vectors_of_which_half_are_deleted() {
    compare("gaussian-64-half-deleted");
}

#[test]
fn clusters_that_were_replaced_and_deleted() {
    compare("clusters-changed");
}

#[test]
fn vectors_far_from_the_origin() {
    compare("mean-10-euclidean");
}
