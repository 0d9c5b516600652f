//! Tests range deletions. In a partition with thousands of them a read or a write costs no more
//! than in one with a few. Every row is hidden by the newest deletion over it, in whatever order
//! ranges were deleted.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use schema::Table;
use storage::mutation::PartitionChange;
use storage::read::{ClusteringBound, PartitionSelection, ReadRequest};
use storage::{Durability, Storage, StorageOptions};

use crate::support::*;

const RANGES: i32 = 5_000;
/// The most range deletions that one operation may look at, however many there are.
const LOOKS_MAX: u64 = 8;

/// Opens the storage so that writes don't wait for the disk, as this test cuts no power.
fn open_buffered(directory: &Path) -> Storage {
    let options = StorageOptions {
        durability: Durability::Buffered {
            sync_interval: Duration::from_secs(60),
        },
        ..options()
    };
    Storage::open(directory, options).unwrap()
}

fn range(low: i32, high: i32, timestamp: i64) -> PartitionChange {
    PartitionChange::DeleteRange {
        start: ClusteringBound::Inclusive(vec![int(low)]),
        end: ClusteringBound::Exclusive(vec![int(high)]),
        timestamp,
    }
}

struct World {
    storage: Storage,
    table: Table,
}

impl World {
    fn new(directory: &Path) -> World {
        let world = World {
            storage: open_buffered(directory),
            table: simple_table(),
        };
        create(&world.storage, &world.table, true);
        world
    }

    fn write(&self, change: PartitionChange) {
        write(&self.storage, &self.table, vec![int(0)], vec![change]);
    }

    fn wait_until_swept(&self) {
        eventually("it is swept", || {
            self.storage.statistics().sweeps_waiting == 0
        });
    }

    /// The number of range deletions that the work looks at, its sweeps included.
    fn looks(&self, work: impl FnOnce()) -> u64 {
        let before = self.storage.statistics().range_deletions_read;
        work();
        self.wait_until_swept();
        self.storage.statistics().range_deletions_read - before
    }

    fn partition(&self) -> ReadRequest {
        request(&self.table, PartitionSelection::One(vec![int(0)]))
    }

    fn rows(&self, request: ReadRequest) -> Vec<i32> {
        let rows = read(&self.storage, request);
        rows.iter().filter_map(|row| shown(row).1).collect()
    }
}

#[test]
fn many_cost_as_much_as_few() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::new(directory.path());
    // The ranges lie apart, so that each is kept.
    for hundred in 0..RANGES / 100 {
        let looks = world.looks(|| {
            for n in 100 * hundred..100 * (hundred + 1) {
                world.write(range(10 * n, 10 * n + 5, 10));
            }
        });
        assert!(looks <= 100 * LOOKS_MAX, "behind {hundred}00: {looks}");
    }
    let row = |c: i32, timestamp| insert(vec![int(c)], vec![set(V, text("x"))], timestamp);
    let middle = 10 * (RANGES / 2);
    let write = world.looks(|| world.write(row(middle + 7, 5)));
    assert!(write <= LOOKS_MAX, "a write looked at {write}");
    // This row is newer than the range over it.
    world.write(row(middle + 2, 11));
    world.write(row(middle + 3, 9));

    let view = world.looks(|| {
        let view = world.storage.view(world.table.id).unwrap();
        let row = |c| view.row(vec![int(0)], &[int(c)]).unwrap();
        assert!(row(middle + 2).is_some());
        assert!(row(middle + 3).is_none());
    });
    assert!(view <= LOOKS_MAX, "a look-up looked at {view}");
    for reversed in [false, true] {
        let slice = |low, high| {
            let mut request = world.partition();
            let (low, high) = (vec![int(low)], vec![int(high)]);
            request.slices = vec![slice(
                ClusteringBound::Inclusive(low),
                ClusteringBound::Exclusive(high),
            )];
            request.reversed = reversed;
            world.rows(request)
        };
        let few = world.looks(|| {
            let mut expected = vec![middle + 2, middle + 7];
            if reversed {
                expected.reverse();
            }
            assert_eq!(slice(middle, middle + 10), expected);
        });
        assert!(few <= LOOKS_MAX, "a slice looked at {few}");
        // The two rows lie far from each other, and the ranges between them are skipped.
        let all = world.looks(|| assert_eq!(slice(0, 10 * RANGES).len(), 2));
        assert!(all <= 4 * LOOKS_MAX, "two rows looked at {all}");
    }
    let page = world.looks(|| {
        let mut request = request(&world.table, whole_ring());
        let first = world.storage.read(request.clone()).unwrap().next().unwrap();
        request.resume_after = Some(first.unwrap().position);
        assert_eq!(world.rows(request), [middle + 7]);
    });
    assert!(page <= 4 * LOOKS_MAX, "a page of a scan looked at {page}");
}

#[test]
fn go_when_a_newer_one_covers_them() {
    let directory = tempfile::tempdir().unwrap();
    let world = World::new(directory.path());
    for n in 0..1_000 {
        world.write(range(10 * n, 10 * n + 5, 10));
    }
    world.wait_until_swept();
    world.write(range(0, 10_000, 11));
    world.wait_until_swept();
    let looks = world.looks(|| world.write(range(0, 10_000, 12)));
    assert!(looks <= LOOKS_MAX, "one stands for a thousand, not {looks}");
    // A deletion that newer ones cover leaves nothing to be swept or looked at.
    for n in 0..1_000 {
        world.write(range(10 * n, 10 * n + 5, 10));
    }
    let looks = world.looks(|| world.write(range(0, 10_000, 13)));
    assert!(looks <= LOOKS_MAX, "covered ones left {looks}");
}

/// Rows of a small partition.
const ROWS: i32 = 40;

#[derive(Clone, Debug)]
enum Op {
    Row(i32, i64),
    Range(i32, i32, i64),
    Partition(i64),
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..ROWS, 1..40_i64).prop_map(|(row, timestamp)| Op::Row(row, timestamp)),
        12 => (0..ROWS, 1..ROWS, 1..40_i64)
            .prop_map(|(low, length, timestamp)| Op::Range(low, low + length, timestamp)),
        1 => (1..20_i64).prop_map(Op::Partition),
    ]
}

/// The times at which each row was last written and last deleted.
#[derive(Default)]
struct Model(BTreeMap<i32, (i64, i64)>);

impl Model {
    fn run(&mut self, op: &Op) -> PartitionChange {
        let mut delete = |low, high, at| {
            for row in low..high {
                let known = self.0.entry(row).or_default();
                known.1 = known.1.max(at);
            }
        };
        match *op {
            Op::Row(row, at) => {
                let known = self.0.entry(row).or_default();
                known.0 = known.0.max(at);
                insert(vec![int(row)], vec![], at)
            }
            Op::Range(low, high, at) => {
                delete(low, high, at);
                range(low, high, at)
            }
            Op::Partition(timestamp) => {
                delete(0, 2 * ROWS, timestamp);
                PartitionChange::DeletePartition { timestamp }
            }
        }
    }

    fn live(&self) -> Vec<i32> {
        let live = self
            .0
            .iter()
            .filter(|(_, (written, deleted))| written > deleted);
        live.map(|(row, _)| *row).collect()
    }
}

fn check(world: &World, partition: i32, model: &Model) -> Result<(), TestCaseError> {
    let live = model.live();
    let mut whole = request(&world.table, PartitionSelection::One(vec![int(partition)]));
    prop_assert_eq!(&world.rows(whole.clone()), &live);
    let mut points = whole.clone();
    points.slices = (0..ROWS).map(|row| point(vec![int(row)])).collect();
    prop_assert_eq!(&world.rows(points.clone()), &live);
    let mut reversed = live.clone();
    reversed.reverse();
    for request in [&mut whole, &mut points] {
        request.reversed = true;
        prop_assert_eq!(&world.rows(request.clone()), &reversed);
    }
    let ring = read_all(&world.storage, &world.table);
    let of_partition = ring.iter().map(shown).filter(|row| row.0 == partition);
    let ring: Vec<i32> = of_partition.filter_map(|row| row.1).collect();
    prop_assert_eq!(&ring, &live);
    Ok(())
}

#[test]
fn hide_rows_as_a_naive_model_says() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = World::new(directory.path());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(48));
    // A case is a list of batches. The writes of a batch arrive together. Each write is a list of
    // changes.
    let batches = vec(vec(vec(ops(), 1..6), 1..5), 1..8);
    let mut cases = Vec::new();
    for partition in 0..48 {
        let batches = batches.new_tree(&mut runner).unwrap().current();
        let mut model = Model::default();
        for batch in batches {
            let writes = batch.iter().map(|write| {
                let changes = write.iter().map(|op| model.run(op)).collect();
                write_of(&world.table, vec![int(partition)], changes)
            });
            let writes: Vec<_> = writes.map(|write| world.storage.write(write)).collect();
            block_on(futures::future::join_all(writes))
                .into_iter()
                .for_each(|outcome| drop(outcome.unwrap()));
            check(&world, partition, &model).unwrap();
        }
        cases.push(model);
    }
    world.wait_until_swept();
    block_on(world.storage.close()).unwrap();
    world = World {
        table: world.table,
        storage: open_buffered(directory.path()),
    };
    world.storage.compact(world.table.id).unwrap();
    for (partition, model) in cases.iter().enumerate() {
        check(&world, partition as i32, model).unwrap();
    }
}
