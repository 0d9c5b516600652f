//! A snapshot of an index that others change is opened as it was saved, or is refused.

mod chains;
mod damage;
mod former_version;
mod kills;
mod round_trips;
mod unreadable;

use std::path::Path;

use ann::{Explanation, Neighbour, NeighbourIndex, SearchOptions, VectorsState};

use crate::data::Rng;

/// The answers of an index to a few queries, and the work that it did for them.
fn answers(index: &NeighbourIndex) -> Vec<(Vec<Neighbour>, Explanation)> {
    let mut rng = Rng(412);
    let queries: Vec<Vec<f32>> = (0..8)
        .map(|_| rng.vector(index.options().dimensions))
        .collect();
    let searches = [
        SearchOptions::new(10),
        SearchOptions {
            beam: Some(40),
            ..SearchOptions::new(5)
        },
        SearchOptions::new(usize::MAX),
    ];
    let pairs = queries
        .iter()
        .flat_map(|query| searches.map(|s| (query, s)));
    pairs
        .map(|(query, search)| index.explain(query, &search).expect("a valid query"))
        .collect()
}

/// Checks that two indexes answer alike and work alike. Dead slots of the upper level, which walks
/// pass through, are not part of a snapshot: so one index may take a few hops more.
fn assert_alike(one: &NeighbourIndex, other: &NeighbourIndex) {
    assert_eq!(one.len(), other.len());
    for (number, (a, b)) in answers(one).iter().zip(answers(other)).enumerate() {
        let work = |work: &Explanation| (work.way, work.walk_given_up, work.rescored);
        assert_eq!(
            work(&a.1),
            work(&b.1),
            "query {number} of {:?}",
            one.options()
        );
        let hops = a.1.hops.abs_diff(b.1.hops);
        assert!(
            hops <= 64,
            "query {number} of {:?}: {hops} hops",
            one.options()
        );
        let same = a.0 == b.0;
        assert!(same, "query {number} of {:?}: other answers", one.options());
    }
}

/// Opens, and verifies the full vectors to the end.
fn open_verified(snapshot: &Path, like: &NeighbourIndex) -> NeighbourIndex {
    let index = NeighbourIndex::open(snapshot, *like.options()).expect("a sound snapshot");
    let state = index.verify_vectors(|| true);
    assert!(matches!(state, VectorsState::Verified), "{state}");
    index
}
