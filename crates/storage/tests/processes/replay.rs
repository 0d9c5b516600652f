//! Tests of starts after a kill: what they replay of the journals is written out, so that the next
//! start has nothing to replay.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use schema::Table;
use storage::{Durability, Storage, StorageOptions};
use value::CqlType;

use crate::disk;
use crate::support::*;

/// The signal by which a process ends itself as if it were killed: nothing is closed.
const ABORTED: i32 = 6;
/// The most bytes that a start leaves in a journal.
const LEFT_MAX: u64 = 1 << 20;
const VALUE_BYTES: usize = 2_000;
const PATIENCE: Duration = Duration::from_secs(300);

/// The work of one start.
#[derive(Clone, Copy, Debug)]
struct Work {
    tables: usize,
    /// The rows of each table before this start.
    rows: usize,
    /// The rows that it adds to each table.
    added: usize,
    /// Whether it waits until what it replayed is written out.
    waits: bool,
}

fn table(number: usize) -> Table {
    TableBuilder::new("ks", &format!("t{number}"))
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("v", CqlType::Text)
        .build()
}

/// Makes all tables at once.
fn make(storage: &Storage, tables: usize) {
    create(storage, &table(0), true);
    let rest: Vec<Table> = (1..tables).map(table).collect();
    let made = storage.change_catalog(move |catalog| {
        for table in rest {
            catalog.put_table(table);
        }
        Ok::<(), ()>(())
    });
    block_on(made).unwrap();
}

/// The table of that number as the storage has it.
fn held(storage: &Storage, number: usize) -> Arc<Table> {
    let catalog = storage.catalog();
    let table = catalog.table("ks", &format!("t{number}"));
    table.expect("the table exists").clone()
}

fn journals(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory.join("db")).unwrap();
    let is_journal = |path: &Path| path.extension().is_some_and(|kind| kind == "jnl");
    let entries = entries.flatten();
    entries.filter(|entry| is_journal(&entry.path())).count()
}

fn open_unsynced(directory: &Path) -> Storage {
    let options = StorageOptions {
        durability: Durability::Buffered {
            sync_interval: Duration::from_secs(1),
        },
        ..options()
    };
    open_with(directory, options).expect("the directory opens")
}

/// Does the work, and returns the storage with the bytes that it replayed.
fn run(directory: &Path, work: Work) -> (Storage, u64) {
    let storage = open_unsynced(directory);
    let replayed = storage.statistics().replayed_bytes;
    if work.rows == 0 {
        make(&storage, work.tables);
    }
    for number in 0..work.tables {
        let table = held(&storage, number);
        assert_eq!(read_all(&storage, &table).len(), work.rows, "t{number}");
        for c in (work.rows as i32..).take(work.added) {
            let cells = vec![set(V, text(&"x".repeat(VALUE_BYTES)))];
            let row = insert(vec![int(c)], cells, 10);
            write(&storage, &table, vec![int(1)], vec![row]);
        }
    }
    if work.waits {
        eventually("what was replayed is written out", || {
            journals(directory) == 1
        });
        // Nothing of it is counted as memory any more.
        eventually("the memory is free", || {
            storage.statistics().write_buffer_bytes < LEFT_MAX
        });
    }
    (storage, replayed)
}

#[test]
#[ignore = "run by the tests below as a process of its own"]
fn one_start() {
    let value = |name| std::env::var(name).expect("set by the tests below");
    let number = |name| value(name).parse::<usize>().expect("a number");
    let directory = PathBuf::from(value("DIRECTORY"));
    let work = Work {
        tables: number("TABLES"),
        rows: number("ROWS"),
        added: number("ADDED"),
        waits: number("WAITS") == 1,
    };
    let (_storage, replayed) = run(&directory, work);
    std::fs::write(directory.join("replayed"), replayed.to_string()).unwrap();
    std::process::abort();
}

/// Does the work in a process that is then as good as killed. Returns the bytes that it replayed.
fn killed_start(directory: &Path, work: Work) -> u64 {
    let numbers = [work.tables, work.rows, work.added, usize::from(work.waits)];
    let numbers = numbers.map(|number| number.to_string());
    let [tables, rows, added, waits] = numbers.each_ref().map(Path::new);
    let mut process = disk::spawn_test(
        "replay::one_start",
        &[
            ("DIRECTORY", directory),
            ("TABLES", tables),
            ("ROWS", rows),
            ("ADDED", added),
            ("WAITS", waits),
        ],
    );
    let status = process.ended(PATIENCE);
    assert_eq!(status.signal(), Some(ABORTED), "{work:?}: {status}");
    let replayed = std::fs::read_to_string(directory.join("replayed")).unwrap();
    replayed.parse().unwrap()
}

#[test]
fn the_start_after_a_replay_has_nothing_to_replay() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("data");
    let work = |rows, added, waits| Work {
        tables: 3,
        rows,
        added,
        waits,
    };
    assert_eq!(killed_start(&directory, work(0, 600, false)), 0);
    let replayed = killed_start(&directory, work(600, 0, true));
    assert!(replayed > 3 * 600 * VALUE_BYTES as u64, "{replayed}");
    let replayed = killed_start(&directory, work(600, 5, false));
    assert!(replayed < LEFT_MAX, "{replayed}");
    // So little stays where it is, and is replayed again.
    for _ in 0..2 {
        let replayed = killed_start(&directory, work(605, 0, false));
        assert!(replayed > 0 && replayed < LEFT_MAX, "{replayed}");
    }
    // What is written after a replay counts like any other write.
    let storage = open(&directory);
    let first = held(&storage, 0);
    let row = insert(vec![int(0)], vec![set(V, text("later"))], 20);
    write(&storage, &first, vec![int(1)], vec![row]);
    block_on(storage.close()).unwrap();
    let storage = open(&directory);
    assert_eq!(storage.statistics().replayed_bytes, 0);
    let rows = read_partition(&storage, &first, vec![int(1)]);
    assert_eq!(simple_value(&rows[0], V), Some(text("later")));
    assert_eq!(rows.len(), 605);
}

#[test]
fn a_kill_while_what_was_replayed_is_written_out_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("data");
    let work = |rows, added| Work {
        tables: 8,
        rows,
        added,
        waits: false,
    };
    killed_start(&directory, work(0, 100));
    // Each of these starts ends at another point of the work behind it.
    for start in 0..6 {
        killed_start(&directory, work(100 + start, 1));
    }
    killed_start(&directory, work(106, 0));
}

#[test]
fn more_tables_than_the_queues_of_work_hold_are_opened_again() {
    // The engine's queues hold 1,000.
    const TABLES: usize = 1_050;
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("data");
    let work = |rows, added| Work {
        tables: TABLES,
        rows,
        added,
        waits: false,
    };
    killed_start(&directory, work(0, 1));
    let replayed = killed_start(&directory, work(1, 0));
    assert!(replayed > LEFT_MAX, "{replayed}");
}
