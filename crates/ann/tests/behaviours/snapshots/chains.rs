//! Snapshots after snapshots: what did not change is linked, and stays as it was.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ann::{Codes, Index, Metric, Options, Saved};

use super::{answers, assert_alike, open_verified};
use crate::data::Rng;

/// 2,048 vectors of 32,000 bytes are a file.
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

fn saved(index: &Index, directory: &Path) -> Saved {
    fs::create_dir(directory).expect("a directory");
    index.save(directory).expect("save")
}

#[test]
fn files_without_changes_are_linked_from_one_to_the_next() {
    let mut rng = Rng(71);
    let options = Options {
        metric: Metric::Euclidean,
        codes: Codes::Nibbles,
        max_connections: 2,
        build_beam_width: 4,
        ..Options::new(DIMENSIONS)
    };
    let index = Index::new(options).expect("valid options");
    for id in 0..FILE_VECTORS + 100 {
        index.insert(id, &vector(&mut rng)).expect("a new id");
    }
    let parent = tempfile::tempdir().expect("a directory");
    let path = |number: u32| parent.path().join(number.to_string());
    let counts = |saved: Saved| (saved.files_written, saved.files_kept);
    assert_eq!(counts(saved(&index, &path(0))), (2, 0));
    // Nothing has changed; moved before the next, as owners do.
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

    // What was opened goes on in the same way.
    let opened = open_verified(&path(2), &index);
    assert_alike(&opened, &index);
    opened.insert(6, &vector(&mut rng)).expect("a new id");
    let before = answers(&opened);
    assert_eq!(counts(saved(&opened, &path(3))), (1, 1));
    // Into the first file come vectors again when its slots are free.
    for id in 0..200 {
        opened.replace(id, &vector(&mut rng)).expect("held");
    }
    assert_eq!(counts(saved(&opened, &path(4))), (2, 0));
    // One that fails has changed nothing; the next one knows what is to be written.
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
