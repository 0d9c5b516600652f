//! Tests that only a data directory of Annulus is opened, by one process at a time, and never one
//! of a newer version.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use storage::{Storage, StorageError};

use crate::support::*;

fn error(directory: &Path) -> StorageError {
    match Storage::open(directory, options()) {
        Err(error) => error,
        Ok(_) => panic!("it opens"),
    }
}

#[test]
fn a_directory_in_use_is_locked() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let StorageError::Locked(text) = error(directory.path()) else {
        panic!("it is locked");
    };
    assert!(text.contains(directory.path().to_str().unwrap()), "{text}");
    drop(storage);
    open(directory.path());
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(directory.path()));
    let marker = directory.path().join("annulus-storage");
    fs::write(&marker, "annulus storage 2\n").unwrap();
    let StorageError::NewerFormat(text) = error(directory.path()) else {
        panic!("it is newer");
    };
    assert!(text.contains("format 2"), "{text}");
    fs::write(&marker, "annulus storage 1\n").unwrap();
    open(directory.path());
}

#[test]
fn a_foreign_directory_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("db")).unwrap();
    fs::write(directory.path().join("db/photos"), "precious").unwrap();
    let StorageError::Io(text) = error(directory.path()) else {
        panic!("it is foreign");
    };
    assert!(text.contains("holds other files"), "{text}");
    assert_eq!(
        fs::read_dir(directory.path()).unwrap().count(),
        1,
        "nothing was added"
    );
    assert_eq!(
        fs::read(directory.path().join("db/photos")).unwrap(),
        b"precious"
    );

    fs::write(directory.path().join("annulus-storage"), "something else").unwrap();
    assert!(matches!(error(directory.path()), StorageError::Corrupt(_)));
}

#[test]
fn a_data_directory_is_closed_to_other_users() {
    let parent = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let new = parent.path().join("new");
    drop(open(&new));
    assert_eq!(mode(&new), 0o700);
    // The directory may be of an older version, or was there before.
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    drop(open(&new));
    assert_eq!(mode(&new), 0o700);
    // A refused directory is left as it is.
    let foreign = parent.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::set_permissions(&foreign, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(foreign.join("file"), "").unwrap();
    error(&foreign);
    assert_eq!(mode(&foreign), 0o755);
}

#[test]
fn a_file_is_no_directory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let StorageError::Io(text) = error(&file) else {
        panic!("it can't be opened");
    };
    assert!(text.contains(file.to_str().unwrap()), "{text}");
}

#[test]
fn a_directory_that_was_never_finished_is_made_again() {
    for leftovers in [&["db/0.jnl", "db/lock"][..], &["db/version"], &[]] {
        let directory = tempfile::tempdir().unwrap();
        let marker = directory.path().join("annulus-storage");
        fs::write(marker, "annulus storage 1 being made\n").unwrap();
        fs::create_dir(directory.path().join("db")).unwrap();
        for name in leftovers {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let table = simple_table();
        let storage = open(directory.path());
        create(&storage, &table, true);
        drop(storage);
        assert!(open(directory.path()).catalog().table("ks", "t").is_some());
    }
}
