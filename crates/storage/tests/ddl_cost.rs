//! Tests that the thousandth table costs about as many bytes as the first, so that making and
//! dropping tables all day fills no disk.

mod support;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use storage::Storage;
use support::*;
use value::CqlType;

/// Bytes that this process has written so far.
fn written() -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.unwrap().parse().unwrap()
}

fn make(storage: &Storage, name: &str) {
    let table = TableBuilder::new("ks", name)
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("v", CqlType::Text)
        .build();
    create(storage, &table, true);
    write(
        storage,
        &table,
        vec![int(1)],
        vec![insert(vec![int(1)], vec![], 1)],
    );
}

fn remove(storage: &Storage, name: &str) {
    let name = name.to_owned();
    let removed = block_on(storage.change_catalog(move |catalog| {
        catalog.remove_table("ks", &name);
        Ok::<(), ()>(())
    }));
    removed.unwrap();
}

fn files(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => files(&entry.path()),
            false => 1,
        })
        .sum()
}

/// A number from the environment. `DDL_PAIRS` sets how many tables are made and dropped,
/// `DDL_TABLES` how many exist, for longer runs by hand.
fn from_environment(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// A directory in memory where the system has one, as the test counts bytes, not the speed of a
/// disk.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// The number of tables over which a cost is the mean. It is large, as the engine merges its own
/// small tables every few.
const SAMPLE: usize = 50;

struct Costs {
    bytes: u64,
    time: Duration,
}

fn costs(work: impl Fn(usize)) -> Costs {
    let (before, started) = (written(), Instant::now());
    (0..SAMPLE).for_each(work);
    Costs {
        bytes: (written() - before) / SAMPLE as u64,
        time: started.elapsed() / SAMPLE as u32,
    }
}

fn compare(what: &str, first: &Costs, last: &Costs) {
    println!(
        "{what}: {} bytes and {:?} at first, {} bytes and {:?} in the end",
        first.bytes, first.time, last.bytes, last.time
    );
    assert!(
        last.bytes <= 4 * first.bytes,
        "{what}: {} bytes, at first {}",
        last.bytes,
        first.bytes
    );
}

/// This is the only test of its process, as it counts all bytes that the process writes.
#[test]
fn tables_cost_in_the_end_what_they_did_at_first() {
    let directory = directory();
    let (pairs, tables) = (
        from_environment("DDL_PAIRS", 1_000),
        from_environment("DDL_TABLES", 400),
    );
    let storage = open(directory.path());
    let pair = |_| {
        make(&storage, "pair");
        remove(&storage, "pair");
    };
    let first = costs(pair);
    (2 * SAMPLE..pairs).for_each(pair);
    compare("making and dropping a table", &first, &costs(pair));

    let make_one = |n| make(&storage, &format!("t{n}"));
    let first = costs(make_one);
    (SAMPLE..tables - SAMPLE).for_each(make_one);
    let last = costs(|n| make_one(tables - SAMPLE + n));
    compare("making a table", &first, &last);
    compare("a pair beside many tables", &first, &costs(pair));

    let started = Instant::now();
    block_on(storage.close()).unwrap();
    drop(storage);
    println!(
        "stop {:?}, {} files",
        started.elapsed(),
        files(directory.path())
    );
    let started = Instant::now();
    let storage = open(directory.path());
    println!("start {:?}", started.elapsed());
    let started = Instant::now();
    assert_eq!(storage.catalog().keyspaces["ks"].tables.len(), tables);
    (0..tables).for_each(|n| remove(&storage, &format!("t{n}")));
    println!("dropping all {:?}", started.elapsed());
    block_on(storage.close()).unwrap();
}
