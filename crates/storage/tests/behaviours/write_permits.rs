//! Tests that the committer prepares its batches in turns on the processor.

use cpu_scheduler::{CpuScheduler, SchedulerOptions, WorkClass};
use futures::future::{join_all, poll_immediate};
use storage::{Storage, StorageOptions};

use crate::support::*;

#[test]
fn writes_that_come_while_the_committer_waits_for_a_turn_share_a_batch() {
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
    let before = storage.statistics();

    let held = turns.try_acquire(WorkClass::Query).unwrap();
    let writes = (0..10).map(|n| {
        let change = insert(vec![int(n)], vec![set(V, text("x"))], 1);
        storage.write(write_of(&table, vec![int(1)], vec![change]))
    });
    let mut writes = Box::pin(join_all(writes));
    // All of them are handed over.
    assert!(block_on(poll_immediate(&mut writes)).is_none());
    eventually("a write waits", || {
        turns.counts(WorkClass::Write).waiting > 0
    });
    drop(held);
    let outcomes = block_on(writes);
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let after = storage.statistics();
    assert_eq!(after.writes - before.writes, 10);
    assert_eq!(after.batches - before.batches, 1);
    let counts = turns.counts(WorkClass::Write);
    assert_eq!((counts.running, counts.given), (0, 1));
}
