//! Tests looks for what is dead step by step.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use schema::Table;

use crate::StorageOptions;
use crate::clock::{Clock, ManualClock};
use crate::commit::Committer;
use crate::commit::fixtures::{self, START_S, int, row, try_write, write};
use crate::handle::manual_committer;

/// Rows that fill the tables in memory.
const ROWS: i64 = 3_000;
/// The time that each step of a look takes.
const STEP_MICROS: i64 = 1_000;

/// A clock on which each look at the steady time takes as long as `tick_micros` says.
#[derive(Debug)]
struct Ticking {
    hand: Arc<ManualClock>,
    passed_micros: AtomicI64,
    tick_micros: AtomicI64,
}

impl Clock for Ticking {
    fn now_micros(&self) -> i64 {
        self.hand.now_micros()
    }

    fn steady_micros(&self) -> i64 {
        let tick_micros = self.tick_micros.load(Ordering::Relaxed);
        self.passed_micros.fetch_add(tick_micros, Ordering::Relaxed)
    }
}

impl Ticking {
    fn tick(&self, micros: i64) {
        self.tick_micros.store(micros, Ordering::Relaxed);
    }

    /// Lets time pass on the steady clock.
    fn pass(&self, micros: i64) {
        self.passed_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Sets the clock forward by seconds, in which no time passes.
    fn set_forward(&self, seconds: i64) {
        self.hand
            .set_micros(self.hand.now_micros() + seconds * 1_000_000);
    }
}

struct World {
    table: Table,
    /// Bytes that the rows take, which are all that there is room for.
    used: u64,
    clock: Arc<Ticking>,
    committer: Committer,
}

impl World {
    /// A table in memory that its rows fill.
    fn full(directory: &Path) -> World {
        let mut table = fixtures::table(None);
        table.row_ttl = None;
        table.gc_grace_s = 0;
        let in_memory = ("in_memory".to_owned(), "true".to_owned());
        table.options.extend([in_memory]);
        let hand = ManualClock::new(START_S * 1_000_000);
        let rows = (0..ROWS).map(|p| row(&table, p, int(0), "x")).collect();
        fixtures::make(directory, fixtures::options(), &hand, &table, rows);

        let clock = Arc::new(Ticking {
            hand,
            passed_micros: AtomicI64::new(0),
            tick_micros: AtomicI64::new(0),
        });
        let open = |resident_bytes| {
            let options = StorageOptions {
                resident_bytes,
                ..fixtures::options()
            };
            let clock = Arc::clone(&clock) as Arc<dyn Clock>;
            manual_committer(directory, &options, clock).expect("it opens")
        };
        let committer = open(64 << 20);
        let used = committer.shared.engine.resident_bytes();
        drop(committer);
        World {
            table,
            used,
            committer: open(used),
            clock,
        }
    }

    fn entries(&self) -> usize {
        let engine = &self.committer.shared.engine;
        let space = self.committer.shared.schema().resident_spaces()[0];
        let all = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        let entries = engine.scan_at(&engine.snapshot().expect("a snapshot"), space, all);
        entries.expect("a scan").count()
    }

    /// Deletes rows, which leaves as many tombstones.
    fn delete(&mut self, keys: impl Iterator<Item = i64>) {
        for p in keys {
            let mut deletion = row(&self.table, p, int(0), "");
            deletion.mutations[0].changes = vec![crate::mutation::PartitionChange::DeleteRow {
                clustering: Vec::new(),
                timestamp: 2,
            }];
            write(&mut self.committer, deletion);
        }
    }

    /// Writes a row that takes half of the room, which one step of a look does not make.
    fn write_large(&mut self) -> bool {
        let text = "x".repeat(self.used as usize / 2);
        let row = row(&self.table, ROWS, int(0), &text);
        try_write(&mut self.committer, row).is_ok()
    }

    /// Does all steps of the look under way. Returns how many they were.
    fn finish_scan(&mut self) -> usize {
        std::iter::from_fn(|| self.committer.step_dead_entry_scan().then_some(())).count()
    }
}

#[test]
fn a_dead_entry_scan_is_made_of_steps_with_writes_between_them() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::full(directory.path());
    world.delete(0..ROWS);
    let before = world.entries();
    assert!(!world.write_large());
    let step = before - world.entries();
    assert!((1..=1_024).contains(&step), "{step}");
    // Writes that need room are refused until the look has ended, and take no step.
    let after = world.entries();
    assert!(!world.write_large());
    assert_eq!(world.entries(), after);
    assert_eq!(world.finish_scan(), 2);
    assert_eq!(world.entries(), 0);
    assert!(world.write_large());
}

#[test]
fn a_dead_entry_scan_takes_no_more_than_a_tenth_of_the_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::full(directory.path());
    world.clock.tick(STEP_MICROS);
    let began = world.clock.passed_micros.load(Ordering::Relaxed);
    assert!(!world.write_large());
    assert_eq!(world.finish_scan(), 2, "nothing is dead");
    world.clock.tick(0);
    let passed = world.clock.passed_micros.load(Ordering::Relaxed) - began;
    assert!(passed >= 3 * STEP_MICROS, "{passed}");

    // What dies meanwhile is not looked for before nine times as long as the three steps took.
    world.delete(0..ROWS);
    world.clock.set_forward(100);
    world.clock.pass(3 * STEP_MICROS * 9 - STEP_MICROS - 1);
    assert!(!world.write_large());
    assert_eq!(world.finish_scan(), 0);
    world.clock.pass(1);
    assert!(!world.write_large());
    assert_eq!(world.finish_scan(), 2);
    assert!(world.write_large());
    // No look finds more within the second.
    world.clock.pass(i64::MAX / 2);
    world.delete(ROWS..=ROWS);
    assert!(!world.committer.begin_dead_entry_scan().unwrap());
}
