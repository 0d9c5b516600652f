//! Snapshots one after another: a file without changes is linked, and stays as it was.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ann::{
    CodeChoice, DistanceMetric, NeighbourIndex, NeighbourIndexOptions, SaveProgress, SnapshotError,
    SnapshotSummary,
};

use super::{answers, assert_alike, open_verified};
use crate::data::Rng;
use crate::oracle::build;

/// A file has 2,048 vectors of 32,000 bytes.
const DIMENSIONS: usize = 8_000;
const FILE_VECTORS: u32 = 2_048;

/// A vector with a few elements, quickly drawn.
fn vector(rng: &mut Rng) -> Vec<f32> {
    let mut vector = vec![0.5; DIMENSIONS];
    for element in &mut vector[..24] {
        *element = rng.uniform();
    }
    vector
}

fn inode(directory: &Path, number: u32) -> u64 {
    let name = format!("vectors-{number:05}");
    fs::metadata(directory.join(name)).expect("the file").ino()
}

fn saved(index: &NeighbourIndex, directory: &Path) -> SnapshotSummary {
    fs::create_dir(directory).expect("a directory");
    index.save(directory).expect("save")
}

#[test]
fn files_without_changes_are_linked_from_one_to_the_next() {
    let mut rng = Rng(71);
    let options = NeighbourIndexOptions {
        metric: DistanceMetric::Euclidean,
        codes: CodeChoice::Nibbles,
        max_connections: 2,
        build_beam_width: 4,
        ..NeighbourIndexOptions::new(DIMENSIONS)
    };
    let index = NeighbourIndex::new(options).expect("valid options");
    for id in 0..FILE_VECTORS + 100 {
        index.insert(id, &vector(&mut rng)).expect("a new id");
    }
    let parent = tempfile::tempdir().expect("a directory");
    let path = |number: u32| parent.path().join(number.to_string());
    let counts = |saved: SnapshotSummary| (saved.files_written, saved.files_kept);
    assert_eq!(counts(saved(&index, &path(0))), (2, 0));
    // Nothing has changed. The snapshot is moved before the next, as owners do.
    fs::rename(path(0), path(10)).expect("rename");
    assert_eq!(counts(saved(&index, &path(1))), (0, 2));
    assert_eq!(inode(&path(10), 0), inode(&path(1), 0));
    fs::remove_dir_all(path(10)).expect("remove");
    // New slots are in the second file, and the table of ids says which are gone from the first.
    index.replace(5, &vector(&mut rng)).expect("held");
    index.remove(6).expect("held");
    assert_eq!(counts(saved(&index, &path(2))), (1, 1));
    assert_eq!(inode(&path(1), 0), inode(&path(2), 0));
    assert_ne!(inode(&path(1), 1), inode(&path(2), 1));

    // An opened index goes on in the same way.
    let opened = open_verified(&path(2), &index);
    assert_alike(&opened, &index);
    opened.insert(6, &vector(&mut rng)).expect("a new id");
    let before = answers(&opened);
    assert_eq!(counts(saved(&opened, &path(3))), (1, 1));
    // New vectors come into the first file when its slots are free.
    for id in 0..200 {
        opened.replace(id, &vector(&mut rng)).expect("held");
    }
    assert_eq!(counts(saved(&opened, &path(4))), (2, 0));
    // A save that fails changes nothing; the next one still knows what has to be written.
    opened.replace(300, &vector(&mut rng)).expect("held");
    opened.save(&path(4)).expect_err("there is one already");
    opened.save(&path(99)).expect_err("there is no directory");
    let after = saved(&opened, &path(5));
    assert!(after.files_written > 0, "{after:?}");

    drop(opened);
    let third = open_verified(&path(3), &index);
    assert!(answers(&third) == before, "as it was when it was saved");
    assert_alike(&open_verified(&path(2), &index), &index);
    let fifth = open_verified(&path(5), &index);
    assert_eq!(fifth.len() as u32, FILE_VECTORS + 100);
}

#[test]
fn a_save_that_is_stopped_is_as_good_as_none() {
    let mut rng = Rng(72);
    let vectors: Vec<Vec<f32>> = (0..2_300).map(|_| rng.vector(384)).collect();
    let options = NeighbourIndexOptions {
        max_connections: 4,
        build_beam_width: 8,
        ..NeighbourIndexOptions::new(384)
    };
    let index = build(options, &vectors);
    let parent = tempfile::tempdir().expect("a directory");
    let path = |number: usize| parent.path().join(number.to_string());
    saved(&index, &path(0));
    index.replace(7, &vectors[8]).expect("held");

    let mut steps: Vec<SaveProgress> = Vec::new();
    let mut stopped = 0;
    loop {
        steps.clear();
        fs::create_dir(path(1 + stopped)).expect("a directory");
        let asked = index.save_while(&path(1 + stopped), |progress| {
            steps.push(progress);
            steps.len() <= stopped
        });
        let Err(error) = asked else { break };
        assert!(matches!(error, SnapshotError::Stopped), "{error}");
        NeighbourIndex::open(&path(1 + stopped), options).expect_err("it was never finished");
        stopped += 1;
        assert!(stopped < 100, "it ends");
    }
    assert!(
        stopped >= 3,
        "before, within and after the graph: {stopped}"
    );
    let last = steps[steps.len() - 1];
    assert_eq!((steps[0].done, last.done), (0, last.total));
    assert!(steps.is_sorted_by_key(|step| step.done));
    assert!(last.total > 2_300 * 384 * 4, "with all vectors: {last:?}");
    // The changed vector is in the snapshot that was finished, and not in the one before.
    let changed = open_verified(&path(1 + stopped), &index);
    assert_alike(&changed, &index);
    let nearest = |index: &NeighbourIndex| index.search(&vectors[7], 1).expect("search")[0].id;
    assert_ne!(nearest(&changed), 7);
    assert_eq!(nearest(&open_verified(&path(0), &index)), 7);
}
