//! The memory that an index reports grows with its content, and what is free is used again.

use ann::{NeighbourIndex, NeighbourIndexOptions, VectorPlacement};

use crate::data::Rng;

const DIMENSIONS: usize = 128;
const VECTOR_BYTES: usize = 4 * DIMENSIONS;
/// Bytes of a node: four bits a dimension, a header, and 32 links of four bytes.
const NODE_BYTES: usize = DIMENSIONS / 2 + 32 + 32 * 4;

fn insert(index: &NeighbourIndex, ids: std::ops::Range<u32>) {
    let mut rng = Rng(61 + u64::from(ids.start));
    for id in ids {
        index.insert(id, &rng.vector(DIMENSIONS)).expect("insert");
    }
}

#[test]
fn it_starts_small_and_grows_with_the_vectors() {
    let index = NeighbourIndex::new(NeighbourIndexOptions::new(DIMENSIONS)).expect("valid options");
    let empty = index.memory();
    assert!(empty.anonymous() < 64 * 1024, "{empty:?}");
    assert_eq!(empty.mapped(), 0);
    insert(&index, 0..1_000);
    let thousand = index.memory();
    insert(&index, 1_000..3_000);
    let full = index.memory();
    assert_eq!(full.mapped() - thousand.mapped(), 2_000 * VECTOR_BYTES);
    // Each vector also has a word in the table of ids.
    let least = 2_000 * (NODE_BYTES + 4);
    let growth = full.anonymous() - thousand.anonymous();
    assert!((least..least * 3 / 2).contains(&growth), "{growth}");
}

#[test]
fn pinned_vectors_stay_in_memory() {
    let options = NeighbourIndexOptions {
        placement: VectorPlacement::Memory,
        ..NeighbourIndexOptions::new(DIMENSIONS)
    };
    let index = NeighbourIndex::new(options).expect("valid options");
    insert(&index, 0..1_000);
    assert_eq!(index.memory().mapped(), 0);
    assert_eq!(index.memory().vectors_pinned, 1_000 * VECTOR_BYTES);
}

#[test]
fn room_of_removed_vectors_is_used_again() {
    let index = NeighbourIndex::new(NeighbourIndexOptions::new(DIMENSIONS)).expect("valid options");
    insert(&index, 0..3_000);
    let full = index.memory();
    for id in 0..2_800 {
        index.remove(id).expect("held");
    }
    insert(&index, 0..2_800);
    let again = index.memory();
    // Some of it still waits for searches that might see it.
    let most = full.mapped() + full.mapped() / 20;
    assert!(again.mapped() <= most, "{full:?} {again:?}");
}

#[test]
fn ids_used_over_and_over_do_not_add_up() {
    let index = NeighbourIndex::new(NeighbourIndexOptions::new(DIMENSIONS)).expect("valid options");
    insert(&index, 0..500);
    let full = index.memory().mapped();
    for _ in 0..20 {
        for id in 0..500 {
            index.remove(id).expect("held");
            insert(&index, id..id + 1);
        }
    }
    let most = index.memory().mapped();
    assert!(most < full + full / 3, "{full} {most}");
}

#[test]
fn codes_are_counted_apart_from_links() {
    let index = NeighbourIndex::new(NeighbourIndexOptions::new(DIMENSIONS)).expect("valid options");
    insert(&index, 0..3_000);
    let memory = index.memory();
    // Four bits a dimension fill one line of the cache.
    assert_eq!(memory.codes, 3_000 * DIMENSIONS / 2);
    assert!(memory.graph >= 3_000 * 32 * 4, "{memory:?}");
}

#[test]
fn the_dead_are_counted_until_their_room_is_free() {
    let index = NeighbourIndex::new(NeighbourIndexOptions::new(DIMENSIONS)).expect("valid options");
    insert(&index, 0..7_000);
    while index.maintain() {}
    assert_eq!(index.maintenance_debt().pending, 0);
    for id in 0..2_000 {
        index.remove(id).expect("held");
    }
    let after = index.maintenance_debt();
    // After so many changes all vectors get better links.
    assert!(after.dead > 0 && after.pending >= 5_000, "{after:?}");
    while index.maintain() {}
    let tended = index.maintenance_debt();
    assert_eq!(tended.pending, 0, "{tended:?}");
    assert!(tended.dead < 32, "{tended:?}");
}
