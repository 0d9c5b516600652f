//! Tests of the limit of time for which a write waits until the committer begins it.

use std::time::Duration;

use cpu_scheduler::{CpuScheduler, SchedulerOptions, WorkClass};
use storage::{Storage, StorageError, StorageOptions};

use crate::support::*;

fn with_timer<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime starts")
        .block_on(future)
}

#[test]
fn a_write_that_does_not_begin_in_time_is_not_carried_out() {
    let directory = tempfile::tempdir().unwrap();
    let turns = CpuScheduler::new(SchedulerOptions {
        at_once_max: Some(1),
        ..SchedulerOptions::of_threads(1)
    });
    let options = StorageOptions {
        cpu_scheduler: turns.clone(),
        ..options()
    };
    let storage = Storage::open(directory.path(), options).unwrap();
    let table = simple_table();
    create(&storage, &table, true);
    let write = |c| {
        let row = insert(vec![int(c)], vec![set(V, text("x"))], 1);
        write_of(&table, vec![int(1)], vec![row])
    };

    // Without a turn the committer begins nothing.
    let held = turns.try_acquire(WorkClass::Query).unwrap();
    let late = with_timer(storage.write_within(Duration::ZERO, write(1), None));
    assert!(matches!(late, Err(StorageError::Late)), "{late:?}");
    drop(held);
    // The committer comes to this one behind the other.
    let in_time = with_timer(storage.write_within(Duration::from_secs(3600), write(2), None));
    assert!(in_time.is_ok(), "{in_time:?}");
    let unlimited = block_on(storage.write(write(3)));
    assert!(unlimited.is_ok(), "{unlimited:?}");
    assert_eq!(read_all(&storage, &table).len(), 2);
}
