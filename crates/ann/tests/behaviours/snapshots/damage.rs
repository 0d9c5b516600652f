//! Files with a flipped byte, without their end, or of another snapshot: nothing is answered from
//! damaged files.

use std::fs;
use std::path::{Path, PathBuf};

use ann::{DistanceMetric, NeighbourIndex, NeighbourIndexOptions, SnapshotError, VectorsState};
use tempfile::TempDir;

use super::{answers, assert_alike, open_verified};
use crate::data::Rng;
use crate::oracle::build;

pub(super) const DIMENSIONS: usize = 384;

/// A saved index of more than a chunk of vectors, so that some are mapped.
pub(super) fn saved() -> (NeighbourIndex, TempDir) {
    let mut rng = Rng(55);
    let vectors: Vec<Vec<f32>> = (0..2_300).map(|_| rng.vector(DIMENSIONS)).collect();
    let options = NeighbourIndexOptions {
        max_connections: 4,
        build_beam_width: 8,
        ..NeighbourIndexOptions::new(DIMENSIONS)
    };
    let index = build(options, &vectors);
    let directory = tempfile::tempdir().expect("a directory");
    index.save(directory.path()).expect("save");
    (index, directory)
}

fn flip(path: &Path, offset: usize, bits: u8) {
    use std::os::unix::fs::FileExt;

    let file = fs::File::options().read(true).write(true).open(path);
    let file = file.expect("the file");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset as u64).expect("read");
    file.write_all_at(&[byte[0] ^ bits], offset as u64)
        .expect("write");
}

/// Offsets in every region of a file: at the borders that `docs/snapshot-format.md` draws, and some
/// between them.
fn offsets(path: &Path, rng: &mut Rng) -> Vec<usize> {
    let bytes = fs::metadata(path).expect("the file").len() as usize;
    let mut offsets: Vec<usize> = (0..112).step_by(3).collect();
    offsets.extend([112, 2_000, 4_079, 4_080, 4_095, 4_096, 4_097]);
    offsets.extend((0..40).map(|_| rng.below(bytes)));
    // Tables and list of checksums lie at the end.
    offsets.extend((0..40).map(|_| bytes - 1 - rng.below(30_000)));
    offsets.push(bytes - 1);
    offsets
}

#[test]
fn every_flipped_byte_is_found() {
    let (index, directory) = saved();
    let mut rng = Rng(56);
    let path = |name: &str| directory.path().join(name);
    for offset in offsets(&path("graph"), &mut rng) {
        flip(&path("graph"), offset, 1 << rng.below(8));
        let error = NeighbourIndex::open(directory.path(), *index.options()).expect_err("refused");
        assert!(error.to_string().contains("graph"), "{offset}: {error}");
        index.save(directory.path()).expect_err("not over another");
        restore(&index, &directory);
    }
    for offset in offsets(&path("vectors-00000"), &mut rng) {
        let bits = 1 << rng.below(8);
        flip(&path("vectors-00000"), offset, bits);
        match NeighbourIndex::open(directory.path(), *index.options()) {
            Err(error) => assert!(error.to_string().contains("vectors-00000"), "{error}"),
            Ok(opened) => {
                // Candidates come from sound codes, and nothing breaks.
                assert_eq!(answers(&opened).len(), answers(&index).len());
                let state = opened.verify_vectors(|| true);
                let VectorsState::Damaged(error) = &state else {
                    panic!("{offset}: {state}");
                };
                let SnapshotError::Damaged {
                    path, offset: at, ..
                } = &**error
                else {
                    panic!("{error}");
                };
                assert!(path.ends_with("vectors-00000"));
                assert!((*at..at + (1 << 20)).contains(&(offset as u64)));
                assert!(state.to_string().contains("damaged near byte"), "{state}");
                // The index stays damaged, and the damage is not spread.
                assert!(matches!(opened.vectors_state(), VectorsState::Damaged(_)));
                let other = tempfile::tempdir().expect("a directory");
                let error = opened.save(other.path()).expect_err("refused");
                assert!(matches!(error, SnapshotError::Source(_)), "{error}");
            }
        }
        flip(&path("vectors-00000"), offset, bits);
    }
    assert_alike(&open_verified(directory.path(), &index), &index);
}

/// Writes `graph` anew, as it is not known any more which bit was flipped.
fn restore(index: &NeighbourIndex, directory: &TempDir) {
    let sound = tempfile::tempdir().expect("a directory");
    index.save(sound.path()).expect("save");
    fs::copy(sound.path().join("graph"), directory.path().join("graph")).expect("copy");
}

#[test]
fn damage_that_was_not_found_yet_is_found_before_it_is_copied() {
    let (index, directory) = saved();
    flip(&directory.path().join("vectors-00000"), 4_096 + 77, 4);
    let opened =
        NeighbourIndex::open(directory.path(), *index.options()).expect("the graph is sound");
    let mut rng = Rng(9);
    // While the file can be linked, damage can be found later.
    let linked = tempfile::tempdir().expect("a directory");
    assert_eq!(opened.save(linked.path()).expect("save").files_kept, 1);
    opened
        .insert(7_000, &rng.vector(DIMENSIONS))
        .expect("insert");
    let copied = tempfile::tempdir().expect("a directory");
    let error = opened.save(copied.path()).expect_err("it is found");
    assert!(error.to_string().contains("vectors-00000"), "{error}");
    assert!(matches!(opened.vectors_state(), VectorsState::Damaged(_)));
    assert!(NeighbourIndex::open(copied.path(), *index.options()).is_err());
}

#[test]
fn files_of_another_length_and_of_another_snapshot_are_refused() {
    let (index, directory) = saved();
    let options = *index.options();
    let mut rng = Rng(57);
    for name in ["graph", "vectors-00000"] {
        let path = directory.path().join(name);
        let sound = fs::read(&path).expect("read");
        let random = (0..10).map(|_| rng.below(sound.len()));
        let lengths = [0, 1, 4_095, 4_096, 4_097, sound.len() - 1];
        for length in random.chain(lengths).collect::<Vec<_>>() {
            fs::write(&path, &sound[..length]).expect("write");
            let error = NeighbourIndex::open(directory.path(), options).expect_err("refused");
            assert!(error.to_string().contains(name), "{length}: {error}");
        }
        let longer = [&sound[..], &[0]].concat();
        fs::write(&path, longer).expect("write");
        NeighbourIndex::open(directory.path(), options).expect_err("refused");
        fs::remove_file(&path).expect("remove");
        let error = NeighbourIndex::open(directory.path(), options).expect_err("refused");
        assert!(matches!(error, SnapshotError::Io { .. }), "{error}");
        fs::write(&path, sound).expect("write");
    }
    // The other snapshot has the same lengths, with other vectors.
    index.replace(9, &rng.vector(DIMENSIONS)).expect("held");
    index.replace(9, &rng.vector(DIMENSIONS)).expect("held");
    let other = tempfile::tempdir().expect("a directory");
    index.save(other.path()).expect("save");
    fs::copy(
        other.path().join("vectors-00000"),
        directory.path().join("vectors-00000"),
    )
    .expect("copy");
    match NeighbourIndex::open(directory.path(), options) {
        Err(error) => assert!(error.to_string().contains("vectors-00000"), "{error}"),
        Ok(opened) => {
            let state = opened.verify_vectors(|| true);
            assert!(matches!(state, VectorsState::Damaged(_)), "{state}");
        }
    }
}

#[test]
fn an_index_of_other_options_is_refused() {
    let (index, directory) = saved();
    let options = *index.options();
    let open = |options| NeighbourIndex::open(directory.path(), options);
    let refused = |options, part: &str| {
        let error = open(options).expect_err("refused");
        assert!(error.to_string().contains(part), "{error}");
    };
    let metric = DistanceMetric::Euclidean;
    refused(NeighbourIndexOptions { metric, ..options }, "metric");
    let dimensions = DIMENSIONS - 1;
    refused(
        NeighbourIndexOptions {
            dimensions,
            ..options
        },
        "dimensions",
    );
    let max_connections = 5;
    refused(
        NeighbourIndexOptions {
            max_connections,
            ..options
        },
        "max_connections",
    );
    let search_beam_width = 0;
    refused(
        NeighbourIndexOptions {
            search_beam_width,
            ..options
        },
        "out of the valid range",
    );
    let search_beam_width = 500;
    open(NeighbourIndexOptions {
        search_beam_width,
        ..options
    })
    .expect("of the process, not of the data");
    let missing: PathBuf = directory.path().join("nothing");
    let error = NeighbourIndex::open(&missing, options).expect_err("refused");
    assert!(error.to_string().contains("nothing"), "{error}");
}
