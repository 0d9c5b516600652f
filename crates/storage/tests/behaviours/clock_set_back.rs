//! Tests that no write is lost, or hidden from readers of the log, when the clock is set back while
//! the storage runs or while it is closed.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use schema::Table;
use storage::clock::{Clock, SystemClock};
use storage::mutation::PartitionChange;
use storage::read::{ClusteringBound, PartitionSelection};
use storage::{Storage, StorageOptions};
use value::timeuuid;

use crate::support::*;

const HOUR_MICROS: i64 = 3_600_000_000;

/// Copies the files as they are now, which is the state that a killed process leaves.
fn killed(directory: &Path) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            match entry.file_type().unwrap().is_dir() {
                true => copy(&entry.path(), &to),
                false => drop(fs::copy(entry.path(), to).unwrap()),
            }
        }
    }
    let left = tempfile::tempdir().unwrap();
    copy(directory, left.path());
    left
}

fn logged_table(storage: &Storage) -> (Arc<Table>, Arc<Table>) {
    let mut table = simple_table();
    table.cdc = Some(cdc_options());
    create(storage, &table, true);
    tables(storage)
}

fn tables(storage: &Storage) -> (Arc<Table>, Arc<Table>) {
    let catalog = storage.catalog();
    let of = |name| Arc::clone(catalog.table("ks", name).unwrap());
    (of("t"), of("t_scylla_cdc_log"))
}

/// Writes a row with the time that the server gives, and returns that time.
fn write_now(storage: &Storage, table: &Table, c: i32, value: i32) -> i64 {
    let micros = storage.clock().next_write_micros();
    let change = insert(vec![int(c)], vec![set(V, int(value))], micros);
    write(storage, table, vec![int(1)], vec![change]);
    micros
}

fn value(storage: &Storage, table: &Table, c: i32) -> Option<Bytes> {
    read_all(storage, table)
        .iter()
        .find(|row| row.clustering.as_deref() == Some(&[int(c)][..]))
        .and_then(|row| simple_value(row, V))
}

/// The keys `c` of the log rows from one time to another, as a reader that never looks back gets
/// them.
fn window(storage: &Storage, table: &Table, log: &Table, from: i64, to: i64) -> Vec<i32> {
    block_on(storage.settle_log(to)).unwrap();
    let streams = table.log.as_ref().unwrap().streams.as_ref().unwrap();
    let bound = |micros| {
        let id = timeuuid::min_for_micros(micros).unwrap();
        vec![Bytes::copy_from_slice(id.as_bytes())]
    };
    let mut request = request(
        log,
        PartitionSelection::One(vec![streams.streams[0].clone()]),
    );
    request.slices = vec![slice(
        ClusteringBound::Inclusive(bound(from)),
        ClusteringBound::Exclusive(bound(to)),
    )];
    let c = log.column("c").unwrap().id;
    read(storage, request)
        .iter()
        .map(|row| i32::from_be_bytes(simple_value(row, c).unwrap()[..].try_into().unwrap()))
        .collect()
}

#[test]
fn over_a_restart_a_later_write_wins_and_its_log_row_is_behind_what_was_read() {
    for is_killed in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(START_MICROS);
        let storage = open_at(directory.path(), &clock);
        let (table, log) = logged_table(&storage);
        clock.advance_seconds(7);
        let before = write_now(&storage, &table, 1, 10);
        // The log is read for a while without any write.
        clock.advance_seconds(30);
        let read_to = storage.clock().now_micros();
        window(&storage, &table, &log, 0, read_to);

        let left = is_killed.then(|| killed(directory.path()));
        block_on(storage.close()).unwrap();
        drop(storage);
        let path = left.as_ref().map_or(directory.path(), |left| left.path());

        clock.set_micros(START_MICROS - HOUR_MICROS);
        let storage = open_at(path, &clock);
        let (table, log) = tables(&storage);
        let after = write_now(&storage, &table, 1, 20);
        assert!(after > before, "killed: {is_killed}");
        assert_eq!(value(&storage, &table, 1), Some(int(20)));
        clock.advance_seconds(1);
        let seen = window(
            &storage,
            &table,
            &log,
            read_to,
            storage.clock().now_micros(),
        );
        assert_eq!(seen, [1], "killed: {is_killed}");
        // The new time is only a little ahead of the times that were given out, also after a kill.
        let ahead = after - read_to;
        assert!((0..2_000_000).contains(&ahead), "{ahead} ahead");
    }
}

#[test]
fn times_given_without_a_log_rise_over_a_kill_too() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let table = simple_table();
    create(&storage, &table, true);
    let mut last = 0;
    for number in 0..50 {
        clock.advance_micros(300_000);
        last = write_now(&storage, &table, 1, number);
    }
    let left = killed(directory.path());
    clock.set_micros(START_MICROS - HOUR_MICROS);
    let storage = open_at(left.path(), &clock);
    assert!(write_now(&storage, &table, 1, 77) > last);
    assert_eq!(value(&storage, &table, 1), Some(int(77)));
}

/// Such a write was acknowledged with its time as any other.
#[test]
fn the_time_of_a_write_that_changes_nothing_rises_over_a_kill_too() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let table = simple_table();
    create(&storage, &table, true);
    let delete = |timestamp| {
        let nowhere = ClusteringBound::Exclusive(vec![int(2)]);
        PartitionChange::DeleteRange {
            start: nowhere.clone(),
            end: nowhere,
            timestamp,
        }
    };
    clock.advance_seconds(7);
    let last = storage.clock().next_write_micros();
    write(&storage, &table, vec![int(1)], vec![delete(last)]);
    let left = killed(directory.path());
    clock.set_micros(START_MICROS - HOUR_MICROS);
    let storage = open_at(left.path(), &clock);
    assert!(write_now(&storage, &table, 1, 77) > last);
}

/// Uses the machine's clock, as a clock of the test would not go on while a start waits for it.
#[test]
fn after_a_kill_no_time_is_ahead_of_the_clock() {
    let directory = tempfile::tempdir().unwrap();
    let storage = Storage::open(directory.path(), StorageOptions::default()).unwrap();
    let table = simple_table();
    create(&storage, &table, true);
    for number in 0..3 {
        write_now(&storage, &table, 1, number);
        let left = killed(directory.path());
        let reopened = Storage::open(left.path(), StorageOptions::default()).unwrap();
        assert_eq!(reopened.clock().ahead_micros(), 0);
        // A client of this machine dates its next write by the machine's clock, and must win over a
        // time that the server gave.
        assert!(write_now(&reopened, &table, 1, 7) <= SystemClock.now_micros() + 1_000);
    }
}

#[test]
fn a_step_while_it_runs_stalls_no_reader_of_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let (table, log) = logged_table(&storage);
    let mut from = storage.clock().now_micros();
    for c in 0..20 {
        if c == 5 {
            clock.set_micros(START_MICROS - HOUR_MICROS);
        }
        write_now(&storage, &table, c, c);
        clock.advance_micros(10_000);
        let to = storage.clock().now_micros();
        assert!(to > from, "time goes on");
        assert_eq!(window(&storage, &table, &log, from, to), [c]);
        from = to;
    }
    let lead = storage.statistics().clock_ahead_micros;
    assert!(
        (3_590_000_000..=HOUR_MICROS + 50_000).contains(&lead),
        "{lead}"
    );
    // The lead shrinks, and is gone in the end.
    clock.advance_micros(17 * HOUR_MICROS);
    assert_eq!(storage.statistics().clock_ahead_micros, 0);
}

#[test]
fn a_time_to_live_lasts_as_long_after_a_step() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let table = simple_table();
    create(&storage, &table, true);
    assert_eq!(storage.clock().now_micros(), START_MICROS);
    clock.set_micros(START_MICROS - HOUR_MICROS);
    let micros = storage.clock().next_write_micros();
    let mut change = insert(vec![int(1)], vec![set(V, int(1))], micros);
    if let storage::mutation::PartitionChange::Row { ttl_s, .. } = &mut change {
        *ttl_s = Some(60);
    }
    write(&storage, &table, vec![int(1)], vec![change]);
    clock.advance_seconds(59);
    assert_eq!(value(&storage, &table, 1), Some(int(1)));
    // The time to live takes a sixteenth longer at the most.
    clock.advance_seconds(6);
    assert_eq!(value(&storage, &table, 1), None);
}

#[test]
fn a_clients_timestamp_moves_no_time() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::new(START_MICROS);
    let storage = open_at(directory.path(), &clock);
    let (table, _) = logged_table(&storage);
    let far = START_MICROS + 1_000 * HOUR_MICROS;
    let change = insert(vec![int(1)], vec![set(V, int(1))], far);
    write(&storage, &table, vec![int(1)], vec![change]);
    assert_eq!(storage.clock().ahead_micros(), 0);
    block_on(storage.close()).unwrap();
    drop(storage);
    let storage = open_at(directory.path(), &clock);
    assert!(storage.clock().ahead_micros() < 1_000);
}
