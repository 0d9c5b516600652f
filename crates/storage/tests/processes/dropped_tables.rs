//! Tests that dropped tables leave nothing behind, neither bytes nor anything that harms tables
//! made later, whatever ends the process in between.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use schema::{Catalog, Table};
use storage::{Storage, StorageOptions};
use value::CqlType;

use crate::disk;
use crate::support::*;

const ROWS: i32 = 3;

/// The work between two starts.
#[derive(Clone, Copy, Debug)]
struct Variant {
    dropped: usize,
    dropped_had_rows: bool,
    others: usize,
    /// Whether the process is killed each time; else the storage is closed.
    killed: bool,
}

const VARIANTS: [Variant; 4] = [
    variant(12, false, 0, true),
    variant(12, true, 2, true),
    variant(12, false, 2, false),
    variant(1, true, 0, true),
];

const fn variant(dropped: usize, dropped_had_rows: bool, others: usize, killed: bool) -> Variant {
    Variant {
        dropped,
        dropped_had_rows,
        others,
        killed,
    }
}

fn table(keyspace: &str, number: usize) -> Table {
    TableBuilder::new(keyspace, &format!("t{number}"))
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("v", CqlType::Text)
        .build()
}

fn change(storage: &Storage, edit: impl FnOnce(&mut Catalog) + Send + 'static) {
    block_on(storage.change_catalog(|catalog| {
        edit(catalog);
        Ok::<(), ()>(())
    }))
    .unwrap();
}

fn make(storage: &Storage, keyspace: &str, count: usize, with_rows: bool) {
    for number in 0..count {
        let table = table(keyspace, number);
        create(storage, &table, true);
        for c in 0..(if with_rows { ROWS } else { 0 }) {
            let cells = vec![set(V, text("here"))];
            write(
                storage,
                &table,
                vec![int(1)],
                vec![insert(vec![int(c)], cells, 10)],
            );
        }
    }
}

fn check(storage: &Storage, keyspace: &str, count: usize) {
    for number in 0..count {
        let catalog = storage.catalog();
        let table = catalog.table(keyspace, &format!("t{number}")).unwrap();
        let rows = read_all(storage, table).len();
        assert_eq!(rows, ROWS as usize, "{keyspace}.{number}");
    }
}

/// Makes tables and drops them again.
fn drop_some(storage: &Storage, variant: Variant) {
    make(storage, "others", variant.others, true);
    make(storage, "old", variant.dropped, variant.dropped_had_rows);
    change(storage, |catalog| {
        catalog.keyspaces.remove("old");
    });
    // The folders of dropped tables are removed between two requests.
    let nothing = storage::mutation::AtomicWrite {
        mutations: vec![],
        condition: None,
    };
    block_on(storage.write(nothing)).unwrap();
}

/// One start of the process: 0 drops tables, 1 makes others, 2 and 3 only look.
fn run_start(directory: &Path, variant: Variant, start: usize) -> Storage {
    let storage = open(directory);
    match start {
        0 => drop_some(&storage, variant),
        1 => make(&storage, "new", variant.dropped, true),
        _ => {}
    }
    check(&storage, "others", variant.others);
    if start > 0 {
        check(&storage, "new", variant.dropped);
    }
    storage
}

#[test]
#[ignore = "run by the test below as a process of its own"]
fn one_start() {
    let value = |name| std::env::var(name).expect("set by the test below");
    let number = |name| value(name).parse::<usize>().expect("a number");
    let variant = VARIANTS[number("VARIANT")];
    let _storage = run_start(&PathBuf::from(value("DIRECTORY")), variant, number("START"));
    // Ends like a kill: nothing is closed.
    std::process::abort();
}

#[test]
fn a_table_made_after_a_drop_and_a_start_outlives_the_next_start() {
    for (index, &variant) in VARIANTS.iter().enumerate() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("data");
        for start in 0..4 {
            println!("{variant:?}, start {start}");
            if !variant.killed {
                let storage = run_start(&directory, variant, start);
                block_on(storage.close()).unwrap();
                continue;
            }
            let [index, start] = [index, start].map(|number| number.to_string());
            let status = disk::spawn_test(
                "dropped_tables::one_start",
                &[
                    ("DIRECTORY", &directory),
                    ("VARIANT", Path::new(&index)),
                    ("START", Path::new(&start)),
                ],
            )
            .0
            .wait()
            .unwrap();
            assert_eq!(status.signal(), Some(6), "it came to its end: {status}");
        }
    }
}

/// Files and bytes below a folder.
fn size(path: &Path) -> (usize, u64) {
    let mut sum = (0, 0);
    let Ok(entries) = std::fs::read_dir(path) else {
        return sum;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let (files, bytes) = match entry.metadata() {
            Ok(meta) if meta.is_file() => (1, meta.len()),
            Ok(_) => size(&path),
            // The file was removed meanwhile.
            Err(_) => (0, 0),
        };
        sum = (sum.0 + files, sum.1 + bytes);
    }
    sum
}

fn journals(directory: &Path) -> usize {
    std::fs::read_dir(directory.join("db"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "jnl"))
        .count()
}

#[test]
fn tables_made_and_dropped_leave_nothing_behind() {
    const PAIRS: usize = 100;
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    for _ in 0..PAIRS {
        make(&storage, "old", 1, true);
        change(&storage, |catalog| catalog.remove_table("old", "t0"));
    }
    let (files, bytes) = size(&directory.path().join("db/keyspaces"));
    assert!(
        files < 100 && bytes < 256 << 10,
        "{files} files of {bytes} bytes"
    );
}

#[test]
fn a_dropped_table_frees_its_disk_while_others_have_not_been_written_out() {
    const VALUE_BYTES: usize = 1 << 20;
    // These are more bytes than fjall puts into one journal.
    const VALUES: i32 = 80;
    let directory = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        memtable_bytes: 4 << 20,
        ..options()
    };
    let storage = open_with(directory.path(), options).unwrap();
    make(&storage, "others", 2, true);
    let big = table("old", 0);
    create(&storage, &big, true);
    for p in 0..VALUES {
        let cells = vec![set(V, text(&"x".repeat(VALUE_BYTES)))];
        let row = insert(vec![int(1)], cells, 10);
        write(&storage, &big, vec![int(p)], vec![row]);
    }
    assert!(journals(directory.path()) > 1, "one waits for `others`");
    // The table may be merged just now. Its files are removed when that is over, without a request
    // from outside.
    change(&storage, |catalog| catalog.remove_table("old", "t0"));
    let spaces = directory.path().join("db/keyspaces");
    eventually("the bytes of the dropped table are gone", || {
        size(&spaces).1 <= VALUE_BYTES as u64
    });
    check(&storage, "others", 2);
    drop(storage);
    check(&open(directory.path()), "others", 2);
}

#[test]
fn writers_do_not_wait_until_all_dropped_tables_are_gone() {
    const TABLES: usize = 12;
    const ATTEMPTS: usize = 10;
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    make(&storage, "others", 1, true);
    let table = storage.catalog().table("others", "t0").unwrap().clone();
    let folders = || {
        let spaces = directory.path().join("db/keyspaces");
        std::fs::read_dir(spaces).unwrap().count()
    };
    let before = folders();
    let overtook = (0..ATTEMPTS).any(|_| {
        make(&storage, "old", TABLES, false);
        let dropped = storage.change_catalog(|catalog| {
            catalog.keyspaces.remove("old");
            Ok::<(), ()>(())
        });
        let row = insert(vec![int(1)], vec![], 20);
        let written = storage.write(write_of(&table, vec![int(1)], vec![row]));
        // The write stands in the queue before the folders are removed.
        let left = block_on(async {
            let (dropped, written) = tokio::join!(dropped, written);
            dropped.unwrap();
            written.unwrap();
            folders() - before
        });
        eventually("they go", || folders() <= before);
        left > 1
    });
    assert!(overtook, "a write is done while tables are still to go");
}
