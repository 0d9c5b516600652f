//! `memory_bytes` says what the process really holds, grows with the content and falls with it.

use ann::{Index, Options};

use crate::data::Rng;

const DIMENSIONS: usize = 128;
const VECTOR_BYTES: usize = 4 * DIMENSIONS;

fn insert(index: &Index, ids: std::ops::Range<u32>) {
    let mut rng = Rng(61);
    for id in ids {
        index.insert(id, &rng.vector(DIMENSIONS)).expect("insert");
    }
}

#[test]
fn it_starts_small_and_grows_with_the_vectors() {
    let index = Index::new(Options::new(DIMENSIONS)).expect("valid options");
    let empty = index.memory().anonymous();
    assert!(empty < 1024 * 1024, "{empty}");
    insert(&index, 0..1_000);
    let thousand = index.memory().anonymous();
    insert(&index, 1_000..3_000);
    let growth = index.memory().anonymous() - thousand;
    // A vector, 32 links of four bytes, and the tables.
    let least = 2_000 * (VECTOR_BYTES + 32 * 4);
    assert!((least..least * 3 / 2).contains(&growth), "{growth}");
}

#[test]
fn memory_of_removed_vectors_is_given_back() {
    let index = Index::new(Options::new(DIMENSIONS)).expect("valid options");
    let empty = index.memory().anonymous();
    insert(&index, 0..3_000);
    let full = index.memory().anonymous();
    for id in 0..2_800 {
        index.remove(id).expect("held");
    }
    let few = index.memory().anonymous() - empty;
    assert!(few < (full - empty) / 4, "{empty} {few} {full}");
    assert_eq!(
        index.search(&[1.0; DIMENSIONS], 999).map(|f| f.len()),
        Ok(200)
    );

    for id in 2_800..3_000 {
        index.remove(id).expect("held");
    }
    // What is left are the pages of the ids.
    let left = index.memory().anonymous() - empty;
    assert!(left < 64 * 1024, "{left}");
    insert(&index, 0..10);
    assert_eq!(
        index.search(&[1.0; DIMENSIONS], 999).map(|f| f.len()),
        Ok(10)
    );
}

#[test]
fn ids_used_over_and_over_do_not_add_up() {
    let index = Index::new(Options::new(DIMENSIONS)).expect("valid options");
    insert(&index, 0..500);
    let full = index.memory().anonymous();
    let mut most = 0;
    for round in 0..20 {
        for id in 0..500 {
            index.remove(id).expect("held");
            insert(&index, id..id + 1);
            if round > 3 {
                most = most.max(index.memory().anonymous());
            }
        }
    }
    // A thousand nodes of the past are tolerated.
    assert!(most < 5 * full, "{full} {most}");
}
