//! Tests that a damaged directory is refused with the remedy, and that nothing in it is changed.
//! The recovery says what it loses.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use schema::Table;
use storage::{Storage, StorageError};

use crate::support::*;

const ROWS: i32 = 20;

/// Copies the directory while it is open, which is the state that a kill leaves.
fn killed(directory: &Path) -> tempfile::TempDir {
    let image = tempfile::tempdir().unwrap();
    copy(directory, image.path());
    image
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            let mut content = fs::read(&path).unwrap();
            if path.extension().is_some_and(|extension| extension == "jnl") {
                let end = content.iter().rposition(|byte| *byte != 0);
                content.truncate(end.map_or(0, |end| end + 1));
            }
            fs::write(target, content).unwrap();
        }
    }
}

fn filled(directory: &Path) -> (Storage, Table) {
    let storage = open(directory);
    let table = simple_table();
    create(&storage, &table, true);
    for c in 0..ROWS {
        let cells = vec![set(V, text(&format!("the value of {c}")))];
        write(
            &storage,
            &table,
            vec![int(1)],
            vec![insert(vec![int(c)], cells, 1)],
        );
    }
    (storage, table)
}

fn journal(directory: &Path) -> PathBuf {
    directory.join("db/0.jnl")
}

fn refusal(directory: &Path) -> String {
    match Storage::open(directory, options()) {
        Err(StorageError::Corrupt(text)) => text,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opens"),
    }
}

fn flip(path: &Path, offset: usize) {
    let content = fs::read(path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[content[offset] ^ 0x10], offset as u64)
        .unwrap();
}

fn find(content: &[u8], wanted: &[u8]) -> usize {
    let mut windows = content.windows(wanted.len());
    windows.position(|window| window == wanted).unwrap()
}

#[test]
fn a_flipped_bit_of_the_journal_is_refused_and_recovered_from() {
    let home = tempfile::tempdir().unwrap();
    let (_storage, table) = filled(home.path());
    let image = killed(home.path());
    let journal = journal(image.path());
    let written = fs::read(&journal).unwrap();
    let row = find(&written, b"the value of 12");
    flip(&journal, row);
    let damaged = fs::read(&journal).unwrap();

    let text = refusal(image.path());
    assert!(text.contains(journal.to_str().unwrap()), "{text}");
    assert!(text.contains("7 whole batches"), "{text}");
    assert!(text.contains("annulus recover"), "{text}");
    assert_eq!(fs::read(&journal).unwrap(), damaged, "it is left alone");

    let loss = storage::recover(image.path(), false).unwrap().unwrap();
    assert_eq!(loss.batches_after, 7);
    assert!((loss.offset as usize) < row && loss.kept.is_empty());
    let of_table = loss
        .tables
        .iter()
        .find(|lost| lost.table == "ks.t")
        .unwrap();
    assert_eq!(of_table.writes, 7);
    assert!(of_table.first_micros > START_MICROS && of_table.last_micros >= of_table.first_micros);
    refusal(image.path());

    let loss = storage::recover(image.path(), true).unwrap().unwrap();
    let [kept] = &loss.kept[..] else {
        panic!("{loss:?}")
    };
    assert_eq!(fs::read(kept).unwrap(), damaged[loss.offset as usize..]);
    let storage = open(image.path());
    assert_eq!(read_all(&storage, &table).len(), 12);
    drop(storage);
    assert_eq!(storage::recover(image.path(), true).unwrap(), None);
    assert!(kept.exists());
}

#[test]
fn the_last_write_is_not_lost_in_silence_either() {
    let home = tempfile::tempdir().unwrap();
    let (_storage, _) = filled(home.path());
    let image = killed(home.path());
    let journal = journal(image.path());
    let row = find(&fs::read(&journal).unwrap(), b"the value of 19");
    flip(&journal, row);
    assert!(refusal(image.path()).contains("0 whole batches"));
}

#[test]
fn a_flipped_bit_of_a_manifest_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (storage, _) = filled(home.path());
    block_on(storage.close()).unwrap();
    let mut manifests = 0;
    for folder in fs::read_dir(home.path().join("db/keyspaces")).unwrap() {
        let folder = folder.unwrap().path();
        let current = fs::read(folder.join("current")).unwrap();
        let number = u64::from_le_bytes(current[..8].try_into().unwrap());
        for path in [folder.join("current"), folder.join(format!("v{number}"))] {
            let image = killed(home.path());
            let path = image.path().join(path.strip_prefix(home.path()).unwrap());
            flip(&path, fs::read(&path).unwrap().len() / 2);
            refusal(image.path());
            manifests += 1;
        }
    }
    assert!(manifests >= 6, "`current` and a manifest each: {manifests}");
}

#[test]
fn an_older_sequence_number_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (_storage, _) = filled(home.path());
    let image = killed(home.path());
    let journal = journal(image.path());
    let written = fs::read(&journal).unwrap();
    let row = find(&written, b"the value of 12");
    flip(&journal, row);
    let head = storage::recover(image.path(), false)
        .unwrap()
        .unwrap()
        .offset;
    fs::write(&journal, written).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&journal).unwrap();
    file.write_all_at(&3_u64.to_le_bytes(), head + 5).unwrap();
    assert!(refusal(image.path()).contains("sequence number"));
}

#[test]
fn a_clean_stop_leaves_nothing_in_the_journal() {
    let home = tempfile::tempdir().unwrap();
    let (storage, table) = filled(home.path());
    block_on(storage.close()).unwrap();
    drop(storage);
    let journals = fs::read_dir(home.path().join("db")).unwrap();
    let bytes: u64 = journals
        .map(|entry| entry.unwrap())
        .filter(|entry| {
            entry
                .path()
                .extension()
                .is_some_and(|extension| extension == "jnl")
        })
        .map(|entry| entry.metadata().unwrap().len())
        .sum();
    assert_eq!(bytes, 0);
    for _ in 0..2 {
        assert_eq!(read_all(&open(home.path()), &table).len(), ROWS as usize);
    }
}

#[test]
fn a_scrub_finds_a_flipped_bit_of_any_file() {
    let home = tempfile::tempdir().unwrap();
    let (storage, table) = filled(home.path());
    let cells = vec![set(V, text(&"large ".repeat(1000)))];
    let change = insert(vec![int(ROWS)], cells, 1);
    write(&storage, &table, vec![int(1)], vec![change]);
    block_on(storage.close()).unwrap();
    let whole = storage::scrub(home.path(), &mut |_| true).unwrap();
    assert!(whole.faults.is_empty(), "{whole:?}");
    let mut files = Vec::new();
    for space in fs::read_dir(home.path().join("db/keyspaces")).unwrap() {
        for kind in ["tables", "blobs"] {
            let folder = space.as_ref().unwrap().path().join(kind);
            let entries = fs::read_dir(folder).into_iter().flatten();
            files.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let middle = fs::read(&file).unwrap().len() / 2;
        flip(&file, middle);
        let found = storage::scrub(home.path(), &mut |_| true).unwrap();
        let [fault] = &found.faults[..] else {
            panic!("{}: {found:?}", file.display())
        };
        assert!(
            fault.to_string().contains(file.to_str().unwrap()),
            "{fault}"
        );
        flip(&file, middle);
    }
    assert!(
        storage::scrub(home.path(), &mut |_| true)
            .unwrap()
            .faults
            .is_empty()
    );
}
