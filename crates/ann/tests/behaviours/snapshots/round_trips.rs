//! An opened index is the one that was saved, to the last hop of a walk, and can be changed.

use ann::{
    CodeChoice, DistanceMetric, NeighbourIndex, NeighbourIndexOptions, VectorPlacement,
    VectorQuantization, VectorsState,
};

use super::{assert_alike, open_verified};
use crate::data::Rng;
use crate::oracle::{Oracle, build};

/// Numbers of vectors, around the one at which an index trains.
const SIZES: [usize; 6] = [0, 1, 40, 511, 512, 900];

/// Draws vectors, of which some are zero.
fn vectors(rng: &mut Rng, n: usize, dimensions: usize) -> Vec<Vec<f32>> {
    let draw = |number: usize| match number % 13 {
        7 => vec![0.0; dimensions],
        _ => rng.vector(dimensions),
    };
    (0..n).map(draw).collect()
}

/// Replaces and removes some, so that there are dead slots and free ones.
fn churn(index: &NeighbourIndex, rng: &mut Rng) {
    let held = index.len() as u32;
    for _ in 0..held / 3 {
        let id = rng.below(held as usize) as u32;
        let vector = rng.vector(index.options().dimensions);
        // The change may be legal or not.
        match rng.below(4) {
            0 => index.remove(id).unwrap_or_default(),
            1 => index.insert(id, &vector).unwrap_or_default(),
            _ => index.replace(id, &vector).unwrap_or_default(),
        }
    }
}

fn check(options: NeighbourIndexOptions, size: usize) {
    let mut rng = Rng(size as u64);
    let index = build(options, &vectors(&mut rng, size, options.dimensions));
    let directory = tempfile::tempdir().expect("a directory");
    let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
    for (path, churned) in [(&first, false), (&second, true)] {
        if churned {
            churn(&index, &mut rng);
        }
        std::fs::create_dir(path).expect("a directory");
        let saved = index.save(path).expect("save");
        assert_eq!(saved.vectors, index.len());
        let opened = open_verified(path, &index);
        assert_eq!(opened.len(), index.len());
        assert!(opened.ids().iter().eq(index.ids().iter()));
        assert_eq!(opened.ids().len(), index.len());
        assert_alike(&opened, &index);
    }
    // The opened index goes on.
    let opened = open_verified(&second, &index);
    for id in 0..600 {
        let vector = rng.vector(options.dimensions);
        let result = opened.insert(id, &vector);
        assert_eq!(result, index.insert(id, &vector));
    }
    churn(&opened, &mut Rng(8));
    churn(&index, &mut Rng(8));
    assert_eq!(opened.len(), index.len());
    let all = |index: &NeighbourIndex| index.search(&vec![0.3; options.dimensions], usize::MAX);
    assert!(all(&opened) == all(&index), "{options:?}, {size}");
    // The saved files are untouched by all that.
    open_verified(&first, &index);
    open_verified(&second, &index);
}

fn check_all(metric: DistanceMetric, dimensions: usize) {
    use VectorQuantization::*;
    let mut number = 0;
    for quantization in [F32, F16, Bf16, I8, B1] {
        for codes in [CodeChoice::Nibbles, CodeChoice::Bytes, CodeChoice::Floats] {
            for size in SIZES {
                number += 1;
                check(
                    NeighbourIndexOptions {
                        metric,
                        quantization,
                        codes,
                        placement: [VectorPlacement::File, VectorPlacement::Memory][number % 2],
                        max_connections: 6,
                        build_beam_width: 24,
                        ..NeighbourIndexOptions::new(dimensions)
                    },
                    size,
                );
            }
        }
    }
}

#[test]
fn cosine() {
    check_all(DistanceMetric::Cosine, 20);
}

#[test]
fn euclidean() {
    check_all(DistanceMetric::Euclidean, 7);
}

#[test]
fn dot_product() {
    check_all(DistanceMetric::DotProduct, 66);
}

#[test]
fn hamming() {
    check_all(DistanceMetric::Hamming, 33);
}

/// Checks that mapped vectors are copied before they are changed. Chunks of 2,048 vectors are
/// mapped; the rest is copied when the snapshot is opened.
#[test]
fn vectors_that_are_mapped_are_copied_before_they_are_changed() {
    let options = NeighbourIndexOptions {
        max_connections: 4,
        build_beam_width: 8,
        ..NeighbourIndexOptions::new(384)
    };
    let mut rng = Rng(3);
    let mut vectors = vectors(&mut rng, 5_000, 384);
    let index = build(options, &vectors);
    let directory = tempfile::tempdir().expect("a directory");
    index.save(directory.path()).expect("save");
    let opened = open_verified(directory.path(), &index);
    assert_eq!(opened.memory().mapped(), index.memory().mapped());
    assert_alike(&opened, &index);
    // So many vectors change that slots of all chunks are used again, while somebody reads them.
    for round in 0..3 {
        for (id, vector) in (0..3_000).zip(&mut vectors) {
            *vector = rng.vector(384);
            opened.replace(id, vector).expect("held");
            if id % 100 == round {
                let nearest = opened.search(vector, 1).expect("search");
                assert_eq!(nearest[0].id, id);
            }
        }
    }
    let mut oracle = Oracle::of(DistanceMetric::Cosine, &vectors);
    let share = oracle.check(&opened, &rng.vector(384), 5_000, 1e-6);
    assert_eq!(share, 1.0);
    oracle.vectors.clear();
    assert_alike(&open_verified(directory.path(), &index), &index);
}

#[test]
fn the_state_of_vectors_is_visible_while_they_are_verified() {
    let mut rng = Rng(4);
    let index = build(
        NeighbourIndexOptions::new(384),
        &vectors(&mut rng, 3_000, 384),
    );
    assert!(matches!(index.vectors_state(), VectorsState::Verified));
    let directory = tempfile::tempdir().expect("a directory");
    index.save(directory.path()).expect("save");
    let opened = NeighbourIndex::open(directory.path(), *index.options()).expect("open");
    let bytes = 4096 + 1536 * (index.len() - index.len() / 13) as u64;
    let VectorsState::Verifying { done: 0, total } = opened.vectors_state() else {
        panic!("{}", opened.vectors_state());
    };
    // Some hold zero vectors, which have no slots.
    assert!(
        (bytes - 13 * 1536..bytes + 13 * 1536).contains(&total),
        "{total} {bytes}"
    );
    // One piece is verified, and the rest after the files are gone.
    let state = opened.verify_vectors(|| false);
    assert!(matches!(state, VectorsState::Verifying { done, .. } if done == 1 << 20));
    std::fs::remove_dir_all(directory.path()).expect("the files");
    let mut asked = 0;
    let state = opened.verify_vectors(|| {
        asked += 1;
        true
    });
    assert!(matches!(state, VectorsState::Verified), "{state}");
    assert_eq!(asked, total.div_ceil(1 << 20) - 2);
    assert_alike(&opened, &index);

    // Vectors that have to stay in memory are read and verified at once.
    let directory = tempfile::tempdir().expect("a directory");
    index.save(directory.path()).expect("save");
    let options = NeighbourIndexOptions {
        placement: VectorPlacement::Memory,
        ..*index.options()
    };
    let pinned = NeighbourIndex::open(directory.path(), options).expect("open");
    assert!(matches!(pinned.vectors_state(), VectorsState::Verified));
    assert_eq!(pinned.memory().mapped(), 0);
    assert_alike(&pinned, &index);
}
