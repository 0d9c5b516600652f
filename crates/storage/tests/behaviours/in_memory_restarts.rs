//! Tables that are held in memory are the same before and after a restart, whatever has been
//! forgotten meanwhile, and keep to their room.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use schema::Table;
use storage::clock::Clock;
use storage::mutation::PartitionChange;
use storage::read::{ClusteringBound, Row};
use storage::{Durability, Storage, StorageError, StorageOptions};

use crate::support::*;

const ROOM: u64 = 64 << 10;
/// Bytes that the nodes which one write changes may take beside what the write was measured by.
const NODES_BYTES: u64 = 8 << 10;

#[derive(Clone, Debug)]
enum Step {
    /// Rows of a partition from a clustering key on.
    Insert(i32, i32, i32),
    /// A row that expires.
    Expiring(i32, i32),
    DeleteRow(i32, i32),
    DeleteRange(i32, i32, i32),
    DeletePartition(i32),
    Advance(i64),
    /// Files are rewritten.
    Compact,
    GraceSeconds(u32),
    Restart,
}

/// A write and its age: how many seconds its timestamp is behind the clock.
fn step() -> impl Strategy<Value = (Step, i64)> {
    let (p, c) = (0..4_i32, 0..60_i32);
    let steps = prop_oneof![
        8 => (p.clone(), c.clone(), 1..40_i32).prop_map(|(p, c, rows)| Step::Insert(p, c, rows)),
        2 => (p.clone(), c.clone()).prop_map(|(p, c)| Step::Expiring(p, c)),
        2 => (p.clone(), c.clone()).prop_map(|(p, c)| Step::DeleteRow(p, c)),
        4 => (p.clone(), c, 1..20_i32).prop_map(|(p, c, rows)| Step::DeleteRange(p, c, rows)),
        1 => p.prop_map(Step::DeletePartition),
        3 => (1..30_i64).prop_map(Step::Advance),
        1 => Just(Step::Compact),
        1 => (0..20_u32).prop_map(Step::GraceSeconds),
        2 => Just(Step::Restart),
    ];
    (steps, prop_oneof![2 => Just(0), 1 => 0..60_i64])
}

fn open(directory: &Path, clock: &Arc<ManualClock>) -> Result<Storage, StorageError> {
    let options = StorageOptions {
        durability: Durability::Buffered {
            sync_interval: Duration::from_secs(60),
        },
        resident_bytes: ROOM,
        ..options()
    };
    let clock: Arc<dyn Clock> = clock.clone();
    Storage::open_with_clock(directory, options, clock)
}

struct World {
    directory: tempfile::TempDir,
    clock: Arc<ManualClock>,
    storage: Option<Storage>,
    table: Table,
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::new(START_MICROS);
        let storage = open(directory.path(), &clock).unwrap();
        let mut table = simple_table();
        table.gc_grace_s = 5;
        hold_in_memory(&mut table);
        create(&storage, &table, true);
        World {
            directory,
            clock,
            storage: Some(storage),
            table,
        }
    }

    fn storage(&self) -> &Storage {
        self.storage.as_ref().unwrap()
    }

    /// A write, which may find no room.
    fn try_write(&self, p: i32, changes: Vec<PartitionChange>) {
        if let Err(error) = try_write(self.storage(), &self.table, vec![int(p)], changes) {
            let text = error.to_string();
            assert!(text.contains("have no room left"), "{text}");
        }
    }

    fn do_step(&mut self, step: Step, age_s: i64) -> Result<(), TestCaseError> {
        let at = (self.clock.now_s() - age_s) * 1_000_000;
        let value = |c: i32| vec![set(V, text(&"x".repeat(20 * (c as usize % 5))))];
        match step {
            Step::Insert(p, c, rows) => {
                let rows = (c..c + rows).map(|c| insert(vec![int(c)], value(c), at));
                self.try_write(p, rows.collect());
            }
            Step::Expiring(p, c) => {
                let row = PartitionChange::Row {
                    clustering: vec![int(c)],
                    cells: value(c),
                    timestamp: at,
                    ttl_s: Some(7),
                    marker: true,
                };
                self.try_write(p, vec![row]);
            }
            Step::DeleteRow(p, c) => {
                let clustering = vec![int(c)];
                let timestamp = at;
                self.try_write(
                    p,
                    vec![PartitionChange::DeleteRow {
                        clustering,
                        timestamp,
                    }],
                );
            }
            Step::DeleteRange(p, c, rows) => {
                let range = PartitionChange::DeleteRange {
                    start: ClusteringBound::Inclusive(vec![int(c)]),
                    end: ClusteringBound::Exclusive(vec![int(c + rows)]),
                    timestamp: at,
                };
                self.try_write(p, vec![range]);
            }
            Step::DeletePartition(p) => {
                self.try_write(p, vec![PartitionChange::DeletePartition { timestamp: at }]);
            }
            Step::Advance(seconds) => self.clock.advance_seconds(seconds),
            Step::Compact => self.storage().compact(self.table.id).unwrap(),
            Step::GraceSeconds(seconds) => self.set_grace(seconds),
            Step::Restart => self.restart()?,
        }
        // While a batch is written, what it changes is held twice.
        eventually("the table keeps to its room", || {
            self.storage().statistics().resident_bytes <= ROOM / 8 * 9 + NODES_BYTES
        });
        Ok(())
    }

    fn set_grace(&mut self, seconds: u32) {
        let (keyspace, name) = (self.table.keyspace.clone(), self.table.name.clone());
        self.table.gc_grace_s = seconds;
        let table = self.table.clone();
        let changed = self.storage().change_catalog(move |catalog| {
            let keyspace = catalog.keyspaces.get_mut(&keyspace).unwrap();
            let tables = &mut Arc::make_mut(keyspace).tables;
            tables.insert(name, Arc::new(table));
            Ok::<_, ()>(())
        });
        block_on(changed).unwrap();
    }

    fn rows(&self) -> Vec<Row> {
        read_all(self.storage(), &self.table)
    }

    /// A server starts again whose tables were within their room, and reads what was read.
    fn restart(&mut self) -> Result<(), TestCaseError> {
        let before = self.rows();
        self.storage = None;
        self.storage = Some(open(self.directory.path(), &self.clock).unwrap());
        prop_assert_eq!(self.rows(), before);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn read_the_same_after_each_restart(steps in vec(step(), 1..60)) {
        let mut world = World::new();
        for (step, age_s) in steps {
            world.do_step(step, age_s)?;
        }
        world.restart()?;
    }
}

/// Deletes ranges until there is no room for more. Returns how many.
fn fill_with_deletions(world: &World) -> i32 {
    for c in 0..100_000 {
        let range = PartitionChange::DeleteRange {
            start: ClusteringBound::Inclusive(vec![int(2 * c)]),
            end: ClusteringBound::Exclusive(vec![int(2 * c + 1)]),
            timestamp: world.clock.now_s() * 1_000_000,
        };
        if let Err(error) = try_write(world.storage(), &world.table, vec![int(1)], vec![range]) {
            assert!(error.to_string().contains("have no room left"), "{error}");
            return c;
        }
    }
    panic!("range deletions take no room");
}

#[test]
fn range_deletions_take_room_and_a_table_full_of_them_starts_again() {
    let mut world = World::new();
    let ranges = fill_with_deletions(&world);
    assert!(ranges > 100, "{ranges}");
    world.restart().unwrap();
    // No row finds room meanwhile. The deletions go after a while, out of the files too.
    let row = || insert(vec![int(1)], vec![set(V, text("v"))], START_MICROS);
    assert!(try_write(world.storage(), &world.table, vec![int(2)], vec![row()]).is_err());
    world.clock.advance_seconds(20);
    write(world.storage(), &world.table, vec![int(2)], vec![row()]);
    let used = world.storage().statistics().resident_bytes;
    assert!(used < ROOM / 8, "{used}");
    world.restart().unwrap();
}

#[test]
fn a_row_written_behind_a_forgotten_deletion_stays_after_a_restart() {
    let mut world = World::new();
    let at = START_MICROS;
    let deletion = PartitionChange::DeletePartition { timestamp: at };
    world.try_write(1, vec![deletion]);
    eventually("it is swept", || {
        world.storage().statistics().sweeps_waiting == 0
    });
    world.clock.advance_seconds(100);
    // The table becomes full, so that the deletion is forgotten.
    let filler = || insert(vec![int(1)], vec![set(V, text(&"x".repeat(1_000)))], at);
    let is_full = (10..200)
        .any(|p| try_write(world.storage(), &world.table, vec![int(p)], vec![filler()]).is_err());
    assert!(is_full);
    for p in 10..200 {
        world.try_write(
            p,
            vec![PartitionChange::DeleteRow {
                clustering: vec![int(1)],
                timestamp: at + 1,
            }],
        );
    }
    let row = insert(vec![int(1)], vec![set(V, text("late"))], at - 1);
    world.try_write(1, vec![row]);
    assert_eq!(world.rows().len(), 1);
    // Nor does it go where the time to keep deletions becomes longer.
    world.set_grace(1_000_000);
    world.restart().unwrap();
    assert_eq!(world.rows().len(), 1);
}
