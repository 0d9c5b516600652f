//! A snapshot of the format's version 1 opens, answers, is renewed, and is saved as version 2.
//!
//! The folder `version_1` holds one. The code of commit 34bb35f3, the last of that version, made it
//! of what [`held`] draws: 600 vectors were inserted, then the changes made in their order, then
//! two ids got one vector, and the index was saved.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ann::{
    DistanceMetric, NeighbourIndex, NeighbourIndexOptions, SearchOptions, VectorQuantization,
};

use super::{assert_alike, open_verified};
use crate::data::Rng;
use crate::oracle::Oracle;

/// Number of elements of a vector: with so many, codes are of 4 bits.
const DIMENSIONS: usize = 65;

/// The error of the distances of vectors with 8 bits an element.
const TOLERANCE: f64 = 0.01;

/// The most calls of [`NeighbourIndex::maintain`] that renew the index.
const CALLS_MAX: usize = 10_000;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/behaviours/snapshots/version_1")
}

fn options() -> NeighbourIndexOptions {
    NeighbourIndexOptions {
        metric: DistanceMetric::Cosine,
        quantization: VectorQuantization::I8,
        ..NeighbourIndexOptions::new(DIMENSIONS)
    }
}

/// The vectors that the index of the fixture holds.
fn held() -> BTreeMap<u32, Vec<f32>> {
    let mut rng = Rng(47);
    let mut held: BTreeMap<u32, Vec<f32>> =
        (0..600).map(|id| (id, rng.vector(DIMENSIONS))).collect();
    for number in 0..60 {
        let (id, vector) = (10 * number, rng.vector(DIMENSIONS));
        match number % 3 {
            0 => held.remove(&id),
            1 => held.insert(id, vector),
            _ => held.insert(id, vec![0.0; DIMENSIONS]),
        };
    }
    for id in [600, 601] {
        held.insert(id, vec![0.5; DIMENSIONS]);
    }
    held
}

/// Checks that an index finds what measuring each vector finds.
fn check(index: &NeighbourIndex, oracle: &Oracle) {
    let mut rng = Rng(7);
    let mut recall = 0.0;
    for _ in 0..50 {
        let query = rng.vector(DIMENSIONS);
        recall += oracle.check(index, &query, 10, TOLERANCE) / 50.0;
        let exact = SearchOptions {
            exact: true,
            ..SearchOptions::new(10)
        };
        let found = index.search_with(&query, &exact).expect("a valid query");
        assert_eq!(oracle.judge(&found, &query, &exact, TOLERANCE), 1.0);
    }
    assert!(recall >= 0.99, "{recall}");
}

/// The version in the header of a snapshot.
fn version(snapshot: &Path) -> u32 {
    let graph = std::fs::read(snapshot.join("graph")).expect("the file is there");
    u32::from_le_bytes(*graph[8..].first_chunk().expect("four bytes"))
}

#[test]
fn version_1_is_read_renewed_and_saved_as_version_2() {
    let vectors = held();
    let oracle = Oracle {
        metric: DistanceMetric::Cosine,
        vectors,
    };
    assert_eq!(version(&fixture()), 1);
    let index = NeighbourIndex::open(&fixture(), options()).expect("a sound snapshot");
    assert!(index.ids().iter().eq(oracle.vectors.keys().copied()));
    check(&index, &oracle);
    let calls = (0..CALLS_MAX).take_while(|_| index.maintain()).count();
    assert!((1..CALLS_MAX).contains(&calls), "{calls}");
    assert_eq!(index.len(), oracle.vectors.len());
    check(&index, &oracle);
    let directory = tempfile::tempdir().expect("a directory");
    index.save(directory.path()).expect("save");
    assert_eq!(version(directory.path()), 2);
    let opened = open_verified(directory.path(), &index);
    assert_alike(&opened, &index);
    check(&opened, &oracle);
    assert!(!opened.maintain(), "it is renewed once");
}
