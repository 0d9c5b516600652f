//! Tests that a reader of the log that advances a window of time and never looks back sees every
//! row, whatever timestamps the writers give.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bytes::Bytes;
use schema::Table;
use storage::Storage;
use storage::clock::{Clock, SystemClock};
use storage::read::{ClusteringBound, PartitionSelection};
use value::timeuuid;

use crate::support::*;

const WRITERS: i32 = 6;
const WRITES: i32 = 400;

/// The timestamps of the writers: the present, the near and the far past and future, and one that
/// is always the same.
fn timestamp(number: i32, equal: i64) -> i64 {
    const DAY_MICROS: i64 = 86_400_000_000;
    let now = SystemClock.now_micros();
    match number % 7 {
        0 => now - 3_000,
        1 => now + 3_000,
        2 => now - DAY_MICROS,
        3 => now + DAY_MICROS,
        4 => equal,
        _ => now,
    }
}

fn bound(micros: i64) -> Bytes {
    let id = timeuuid::min_for_micros(micros).expect("a time in range");
    Bytes::copy_from_slice(id.as_bytes())
}

/// The keys `c` of the log rows from one time to another.
fn window(storage: &Storage, log: &Table, stream: &Bytes, from: i64, to: i64) -> Vec<i32> {
    let mut request = request(log, PartitionSelection::One(vec![stream.clone()]));
    request.slices = vec![slice(
        ClusteringBound::Inclusive(vec![bound(from)]),
        ClusteringBound::Exclusive(vec![bound(to)]),
    )];
    let c = log.column("c").expect("a key column of the base").id;
    read(storage, request)
        .iter()
        .map(|row| {
            let value = simple_value(row, c).expect("a key");
            i32::from_be_bytes(value[..].try_into().expect("an int"))
        })
        .collect()
}

#[test]
fn no_row_is_missed() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open(directory.path());
    let mut table = simple_table();
    table.cdc = Some(cdc_options());
    create(&storage, &table, true);
    let table = storage.catalog().table("ks", "t").unwrap().clone();
    let log = storage
        .catalog()
        .table("ks", "t_scylla_cdc_log")
        .unwrap()
        .clone();
    let stream = table
        .log
        .as_ref()
        .unwrap()
        .streams
        .as_ref()
        .unwrap()
        .streams[0]
        .clone();

    let equal = SystemClock.now_micros();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (storage, table) = (storage.clone(), Arc::clone(&table));
            thread::spawn(move || {
                for number in 0..WRITES {
                    let c = writer * WRITES + number;
                    let change = insert(vec![int(c)], vec![], timestamp(number, equal));
                    write(&storage, &table, vec![int(c % 5)], vec![change]);
                }
            })
        })
        .collect();

    let done = Arc::new(AtomicBool::new(false));
    let reader = {
        let (storage, done) = (storage.clone(), Arc::clone(&done));
        thread::spawn(move || {
            let mut seen: BTreeMap<i32, usize> = BTreeMap::new();
            let mut from = equal - 600_000_000;
            let mut windows = 0;
            loop {
                let is_last = done.load(Ordering::SeqCst);
                let to = SystemClock.now_micros();
                block_on(storage.settle_log(to)).expect("it settles");
                for c in window(&storage, &log, &stream, from, to) {
                    *seen.entry(c).or_default() += 1;
                }
                (from, windows) = (to, windows + 1);
                if is_last {
                    return (seen, windows);
                }
            }
        })
    };
    for writer in writers {
        writer.join().unwrap();
    }
    // Commits in one microsecond take times a little ahead of the clock, so the reader ends later.
    let latest = storage.clock().latest_micros();
    eventually("the clock has passed the last commit", || {
        SystemClock.now_micros() > latest
    });
    done.store(true, Ordering::SeqCst);
    let (seen, windows) = reader.join().unwrap();
    let expected: BTreeMap<i32, usize> = (0..WRITERS * WRITES).map(|c| (c, 1)).collect();
    assert_eq!(seen, expected, "each row once, in {windows} windows");
    assert!(windows > 50, "the reader kept up: {windows} windows");
}

#[test]
fn the_mark_survives_a_restart_with_a_clock_that_went_back() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let mut table = simple_table();
    table.cdc = Some(cdc_options());
    {
        let storage = open_at(directory.path(), &clock);
        create(&storage, &table, true);
        clock.advance_seconds(60);
        block_on(storage.settle_log(START_MICROS + 60_000_000)).unwrap();
        block_on(storage.close()).unwrap();
    }
    clock.set_micros(START_MICROS + 1_000_000);
    let storage = open_at(directory.path(), &clock);
    write(
        &storage,
        &table,
        vec![int(1)],
        vec![insert(vec![int(1)], vec![], START_MICROS)],
    );
    let log = storage
        .catalog()
        .table("ks", "t_scylla_cdc_log")
        .unwrap()
        .clone();
    let row = &read_all(&storage, &log)[0];
    let time = uuid::Uuid::from_slice(&row.clustering.as_ref().unwrap()[0]).unwrap();
    assert!(timeuuid::unix_micros(&time) > START_MICROS + 60_000_000);
}
