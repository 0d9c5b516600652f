//! Equal vectors are answers of their own, and do not hide the rest.

use ann::{DistanceMetric, IdFilter, NeighbourIndexOptions, SearchOptions};

use crate::data::{Rng, SPREAD, clustered};
use crate::oracle::{Oracle, build};

#[test]
fn every_copy_is_returned() {
    let options = NeighbourIndexOptions {
        metric: DistanceMetric::Euclidean,
        ..NeighbourIndexOptions::new(3)
    };
    let index = build(options, &vec![vec![1.0, 2.0, 3.0]; 2_000]);
    let found = index.search(&[1.0, 2.0, 3.0], 5_000).expect("search");
    assert!(found.iter().map(|n| n.id).eq(0..2_000));
    assert!(found.iter().all(|n| n.distance == 0.0));
    assert_eq!(index.search(&[1.0; 3], 10).expect("search").len(), 10);
}

#[test]
fn other_vectors_are_found_among_many_copies() {
    for copies in [100, 500, 2_000] {
        let mut rng = Rng(41);
        let mut vectors = clustered(&mut rng, 4_060, 32, 40, SPREAD);
        let queries = vectors.split_off(4_000);
        for copy in 1..copies {
            vectors[copy] = vectors[0].clone();
        }
        let index = build(NeighbourIndexOptions::new(32), &vectors);
        let oracle = Oracle::of(DistanceMetric::Cosine, &vectors);
        let shares = queries.iter().map(|q| oracle.check(&index, q, 10, 1e-6));
        let recall = shares.sum::<f64>() / queries.len() as f64;
        assert!(recall >= 0.99, "{copies} copies: {recall}");
    }
}

#[test]
fn copies_take_the_memory_of_one_and_are_changed_one_by_one() {
    const COPIES: u32 = 3_000;
    let mut rng = Rng(42);
    let others: Vec<_> = (0..1_000).map(|_| rng.vector(80)).collect();
    let index = build(NeighbourIndexOptions::new(80), &others);
    let before = index.memory();
    let vector = rng.vector(80);
    let ids = 1_000..1_000 + COPIES;
    for id in ids.clone() {
        index.insert(id, &vector).expect("a new id");
    }
    let memory = index.memory();
    let of_blocks = |memory: ann::ComponentMemory| memory.graph + memory.codes;
    assert!(of_blocks(memory) < of_blocks(before) + of_blocks(before) / 100);
    assert!(memory.vectors_mapped < before.vectors_mapped + before.vectors_mapped / 100);

    // Of equal vectors the lowest ids come first, and a filter may ask for any of them.
    let found = |search: &SearchOptions<'_>| {
        let found = index.search_with(&vector, search).expect("search");
        let copies = found.iter().filter(|n| n.distance < 1e-6);
        copies.map(|n| n.id).collect::<Vec<_>>()
    };
    assert_eq!(found(&SearchOptions::new(4)), [1_000, 1_001, 1_002, 1_003]);
    let beam = Some(64);
    for wanted in [1_500, 3_999] {
        let admits = |id| id == wanted || id < 900;
        let filter = Some(IdFilter::Predicate(&admits));
        let search = SearchOptions {
            beam,
            filter,
            ..SearchOptions::new(3)
        };
        assert_eq!(found(&search), [wanted]);
    }

    // Copies leave by replacing and by removal, the first one first.
    for id in ids.clone().step_by(2) {
        index
            .replace(id, &others[id as usize % 1_000])
            .expect("held");
    }
    for id in ids.clone().skip(1).step_by(2).take(1_000) {
        index.remove(id).expect("held");
    }
    let left: Vec<u32> = ids.skip(1).step_by(2).skip(1_000).collect();
    assert_eq!(found(&SearchOptions::new(left.len() + 10)), left);
    left.iter().for_each(|id| index.remove(*id).expect("held"));
    assert!(found(&SearchOptions::new(10)).is_empty());
    index.insert(5_000, &vector).expect("a new id");
    assert_eq!(found(&SearchOptions::new(10)), [5_000]);
}
