//! Tests that deleted partitions and ranges leave the disk: first their rows, then, after
//! `gc_grace_seconds`, the deletion itself. The rows never come back.
//!
//! A late write with an older timestamp shows whether the deletion is forgotten, as it hides the
//! write until then.

use std::path::Path;
use std::sync::Arc;

use schema::Table;
use storage::Storage;
use storage::mutation::PartitionChange;
use storage::read::ClusteringBound;
use value::CqlType;

use crate::support::*;

const GC_GRACE_S: i64 = 100;
const ROWS: i32 = 300;

fn table() -> Table {
    TableBuilder::new("ks", "t")
        .partition("p", CqlType::Int)
        .clustering("c", CqlType::Int, false)
        .regular("v", CqlType::Text)
        .gc_grace(GC_GRACE_S as u32)
        .build()
}

struct World {
    clock: Arc<ManualClock>,
    storage: Storage,
    table: Table,
}

impl World {
    fn filled(directory: &Path) -> World {
        let clock = ManualClock::new(START_MICROS);
        let world = World {
            storage: open_at(directory, &clock),
            clock,
            table: table(),
        };
        create(&world.storage, &world.table, true);
        for p in 0..2 {
            let rows = (0..ROWS).map(|c| insert(vec![int(c)], vec![], 5)).collect();
            write(&world.storage, &world.table, vec![int(p)], rows);
        }
        world
    }

    fn wait_until_swept(&self) {
        eventually("it is swept", || {
            self.storage.statistics().sweeps_waiting == 0
        });
    }

    fn compact_after(&self, seconds: i64) {
        self.clock.advance_seconds(seconds);
        self.storage.compact(self.table.id).unwrap();
    }

    fn live(&self, p: i32) -> Vec<i32> {
        read_partition(&self.storage, &self.table, vec![int(p)])
            .iter()
            .filter_map(|row| shown(row).1)
            .collect()
    }

    /// Writes a row late and returns whether it is seen. The row is deleted again.
    fn takes_late_write(&self, p: i32, c: i32) -> bool {
        write(
            &self.storage,
            &self.table,
            vec![int(p)],
            vec![insert(vec![int(c)], vec![], 6)],
        );
        let seen = self.live(p).contains(&c);
        let delete = PartitionChange::DeleteRow {
            clustering: vec![int(c)],
            timestamp: 6,
        };
        write(&self.storage, &self.table, vec![int(p)], vec![delete]);
        seen
    }
}

fn range(low: i32, high: i32) -> PartitionChange {
    PartitionChange::DeleteRange {
        start: ClusteringBound::Inclusive(vec![int(low)]),
        end: ClusteringBound::Exclusive(vec![int(high)]),
        timestamp: 10,
    }
}

#[test]
fn a_deleted_partition() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::filled(directory.path());
    let all: Vec<i32> = (0..ROWS).collect();
    let before = world
        .storage
        .read(request(&world.table, whole_ring()))
        .unwrap();
    let delete = PartitionChange::DeletePartition { timestamp: 10 };
    write(&world.storage, &world.table, vec![int(0)], vec![delete]);
    assert_eq!(world.live(0), [0; 0]);
    world.wait_until_swept();
    assert_eq!(
        before.count(),
        2 * ROWS as usize,
        "a read that began before sees all"
    );
    world.compact_after(GC_GRACE_S - 1);
    assert!(!world.takes_late_write(0, 7));
    world.compact_after(1);
    assert!(world.takes_late_write(0, 7), "the deletion is forgotten");
    assert_eq!(world.live(0), [0; 0], "and nothing came back");
    assert_eq!(world.live(1), all);
}

#[test]
fn deleted_ranges() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::filled(directory.path());
    write(
        &world.storage,
        &world.table,
        vec![int(0)],
        vec![range(10, 200)],
    );
    write(
        &world.storage,
        &world.table,
        vec![int(0)],
        vec![range(150, 250)],
    );
    let left: Vec<i32> = (0..10).chain(250..ROWS).collect();
    assert_eq!(world.live(0), left);
    world.wait_until_swept();
    world.compact_after(GC_GRACE_S - 1);
    assert!(!world.takes_late_write(0, 20));
    world.compact_after(1);
    assert!(world.takes_late_write(0, 20));
    assert_eq!(world.live(0), left);
}

#[test]
fn an_unfinished_sweep_goes_on_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::filled(directory.path());
    // There are many, so that their sweeps take a while.
    for p in 100..140 {
        let rows = (0..ROWS).map(|c| insert(vec![int(c)], vec![], 5)).collect();
        write(&world.storage, &world.table, vec![int(p)], rows);
    }
    let all = (100..140).map(|p| storage::mutation::PartitionMutation {
        table: world.table.id,
        partition_key: vec![int(p)],
        changes: vec![PartitionChange::DeletePartition { timestamp: 10 }],
    });
    let all = storage::mutation::AtomicWrite {
        mutations: all.collect(),
        condition: None,
    };
    block_on(world.storage.write(all)).unwrap();
    block_on(world.storage.close()).unwrap();
    let World {
        clock,
        table,
        storage,
    } = world;
    drop(storage);
    let world = World {
        storage: open_at(directory.path(), &clock),
        clock,
        table,
    };
    assert!(
        world.storage.statistics().sweeps_waiting > 0,
        "it stopped in the midst"
    );
    world.wait_until_swept();
    world.compact_after(GC_GRACE_S);
    for p in 100..140 {
        assert_eq!(world.live(p), [0; 0]);
        assert!(world.takes_late_write(p, 7));
    }
}
