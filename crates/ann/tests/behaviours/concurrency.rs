//! Any thread may do anything at any time, and no one waits for ever.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use ann::{DistanceMetric, IndexError, NeighbourIndex, NeighbourIndexOptions};

use crate::data::Rng;
use crate::oracle::distance;

const DIMENSIONS: usize = 8;
/// Number of ids that no one touches; enough for searches to walk.
const STABLE: u32 = 2_000;
const WRITERS: u32 = 3;
/// Number of ids of each writer, beyond the stable ones.
const OWN: u32 = 800;

fn index() -> NeighbourIndex {
    let options = NeighbourIndexOptions {
        metric: DistanceMetric::Euclidean,
        ..NeighbourIndexOptions::new(DIMENSIONS)
    };
    NeighbourIndex::new(options).expect("valid options")
}

/// The vector that a stable id has for good.
fn stable(id: u32) -> Vec<f32> {
    Rng(u64::from(id)).vector(DIMENSIONS)
}

/// Inserts, replaces and removes ids of the writer's own; returns the ids it leaves and their
/// vectors.
fn write(index: &NeighbourIndex, writer: u32) -> Vec<(u32, Vec<f32>)> {
    let mut rng = Rng(1_000_000 + u64::from(writer));
    let mut own: Vec<Option<Vec<f32>>> = vec![None; OWN as usize];
    let first = STABLE + writer * OWN;
    for _ in 0..2_500 {
        let at = rng.below(own.len());
        let (id, vector) = (first + at as u32, rng.vector(DIMENSIONS));
        match (&own[at], rng.below(3)) {
            (Some(_), 0) => {
                index.remove(id).expect("held");
                own[at] = None;
                continue;
            }
            (Some(_), _) => index.replace(id, &vector).expect("held"),
            (None, _) => index.insert(id, &vector).expect("not held"),
        }
        own[at] = Some(vector);
    }
    let left = (first..).zip(own);
    left.filter_map(|(id, vector)| Some((id, vector?)))
        .collect()
}

/// Searches until `done`. Every answer has the vectors that no one touches, with their distances.
fn read(index: &NeighbourIndex, seed: u64, done: &AtomicBool) -> usize {
    let mut rng = Rng(seed);
    let mut searches = 0;
    while !done.load(Ordering::Relaxed) || searches < 20 {
        let id = rng.below(STABLE as usize) as u32;
        let query = stable(id);
        let near = index.search(&query, 5).expect("search");
        assert_eq!((near[0].id, near[0].distance), (id, 0.0));
        assert!(near.is_sorted_by(|a, b| a.distance <= b.distance));
        searches += 1;
        if searches % 10 == 0 {
            everything_stable_is_there(index, &query);
        }
    }
    searches
}

fn everything_stable_is_there(index: &NeighbourIndex, query: &[f32]) {
    let all = index.search(query, usize::MAX).expect("search");
    let mut seen = BTreeSet::new();
    for n in &all {
        assert!(seen.insert(n.id), "{} twice", n.id);
        if n.id < STABLE {
            let real = distance(DistanceMetric::Euclidean, query, &stable(n.id));
            assert!((f64::from(n.distance) - real).abs() < 1e-5);
        }
    }
    assert!(seen.range(..STABLE).copied().eq(0..STABLE));
}

#[test]
fn writers_and_searchers_side_by_side() {
    let index = index();
    for id in 0..STABLE {
        index.insert(id, &stable(id)).expect("insert");
    }
    let done = AtomicBool::new(false);
    let mut expected: Vec<(u32, Vec<f32>)> = thread::scope(|scope| {
        let raise = Raise(&done);
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn({
                    let index = &index;
                    move || write(index, writer)
                })
            })
            .collect();
        let readers: Vec<_> = (0..4)
            .map(|seed| {
                scope.spawn({
                    let (index, done) = (&index, &done);
                    move || read(index, seed, done)
                })
            })
            .collect();
        let left = writers.into_iter().map(|w| w.join().expect("writer"));
        let left = left.flatten().collect();
        drop(raise);
        for reader in readers {
            assert!(reader.join().expect("reader") >= 20);
        }
        left
    });
    expected.extend((0..STABLE).map(|id| (id, stable(id))));
    expected.sort_by_key(|(id, _)| *id);

    assert_eq!(index.len(), expected.len());
    let query = vec![0.1; DIMENSIONS];
    let mut all = index.search(&query, usize::MAX).expect("search");
    all.sort_by_key(|n| n.id);
    assert!(all.iter().map(|n| n.id).eq(expected.iter().map(|e| e.0)));
    for (n, (_, vector)) in all.iter().zip(&expected) {
        let real = distance(DistanceMetric::Euclidean, &query, vector);
        assert!((f64::from(n.distance) - real).abs() < 1e-5);
    }
    // Each vector is also found by walking to it.
    for (id, vector) in &expected {
        assert_eq!(index.search(vector, 1).expect("search")[0].id, *id);
    }
}

#[test]
fn one_of_many_inserts_of_an_id_wins() {
    let index = index();
    let wins = AtomicUsize::new(0);
    thread::scope(|scope| {
        for seed in 0..4 {
            let (index, wins) = (&index, &wins);
            scope.spawn(move || {
                let mut rng = Rng(seed);
                for id in 0..300 {
                    match index.insert(id, &rng.vector(DIMENSIONS)) {
                        Ok(()) => wins.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            assert_eq!(error, IndexError::Exists(id));
                            0
                        }
                    };
                }
            });
        }
    });
    assert_eq!(wins.into_inner(), 300);
    assert_eq!(index.len(), 300);
}

#[test]
fn more_searchers_than_cores_take_turns() {
    let index = index();
    for id in 0..STABLE {
        index.insert(id, &stable(id)).expect("insert");
    }
    thread::scope(|scope| {
        for seed in 0..64 {
            let index = &index;
            scope.spawn(move || {
                let mut rng = Rng(seed);
                for _ in 0..10 {
                    let id = rng.below(STABLE as usize) as u32;
                    let near = index.search(&stable(id), 3).expect("search");
                    assert_eq!(near[0].id, id);
                }
            });
        }
    });
}

/// Raises a flag when dropped, so that a failing test stops its threads too.
pub struct Raise<'a>(pub &'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn searches_get_through_while_writers_never_pause() {
    let index = index();
    for id in 0..STABLE {
        index.insert(id, &stable(id)).expect("insert");
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _raise = Raise(&done);
        for writer in 0..WRITERS {
            let (index, done) = (&index, &done);
            scope.spawn(move || {
                let mut rng = Rng(1_000_000 + u64::from(writer));
                let id = STABLE + writer;
                index.insert(id, &rng.vector(DIMENSIONS)).expect("insert");
                while !done.load(Ordering::Relaxed) {
                    index.replace(id, &rng.vector(DIMENSIONS)).expect("held");
                }
            });
        }
        // This would never end if the writers kept the index to themselves.
        for id in 0..1_000 {
            let near = index.search(&stable(id), 1).expect("search");
            assert_eq!(near[0].id, id);
        }
    });
}
