//! Tests that a row that is written again and again is read in as few steps as one that was written
//! once, and that a window that slides costs each of its deletions the same.
//!
//! The engine counts the versions and deleted keys that reads of the process have passed, so this
//! file has one test that looks at the count.

mod support;

use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use lsm_tree::{InternalKey, InternalValue, Memtable, ValueType};
use proptest::collection::vec;
use proptest::prelude::*;
use storage::mutation::PartitionChange;
use storage::read::{ClusteringBound, PartitionSelection, ReadRequest};
use storage::{Durability, Storage, StorageOptions};
use support::*;

const WRITES: i32 = 3_000;

fn open_buffered(directory: &Path) -> Storage {
    let options = StorageOptions {
        durability: Durability::Buffered {
            sync_interval: Duration::from_secs(60),
        },
        ..options()
    };
    Storage::open(directory, options).unwrap()
}

/// The versions that some work passes.
fn passed(storage: &Storage, work: impl FnOnce()) -> u64 {
    let before = storage.statistics().versions_passed;
    work();
    storage.statistics().versions_passed - before
}

fn wait_until_swept(storage: &Storage) {
    eventually("it is swept", || storage.statistics().sweeps_waiting == 0);
}

#[test]
fn overwritten_versions_and_emptied_ranges_are_not_walked() {
    let directory = tempfile::tempdir().unwrap();
    let storage = open_buffered(directory.path());
    let table = simple_table();
    create(&storage, &table, true);
    let row = |p: i32, c: i32| {
        let value = vec![set(V, text("v"))];
        write(
            &storage,
            &table,
            vec![int(p)],
            vec![insert(vec![int(c)], value, i64::from(c) + 1)],
        );
    };
    for time in 0..WRITES {
        let value = vec![set(V, text("again"))];
        let change = insert(vec![int(7)], value, i64::from(time));
        write(&storage, &table, vec![int(0)], vec![change]);
    }
    row(0, 8);
    for reversed in [false, true] {
        let passed = passed(&storage, || {
            let request = ReadRequest {
                reversed,
                ..request(&table, PartitionSelection::One(vec![int(0)]))
            };
            assert_eq!(read(&storage, request).len(), 2);
        });
        assert!(passed <= 20, "a partition is read over {passed} versions");
    }
    let of_ring = passed(&storage, || assert_eq!(read_all(&storage, &table).len(), 2));
    assert!(of_ring <= 20, "the ring is read over {of_ring} versions");

    // A window of ten rows, of which each deletion takes the oldest.
    let mut late = 0;
    for c in 0..WRITES {
        row(1, c);
        let deletion = PartitionChange::DeleteRange {
            start: ClusteringBound::Unbounded,
            end: ClusteringBound::Exclusive(vec![int(c - 10)]),
            timestamp: i64::from(c) + 1,
        };
        let passed = passed(&storage, || {
            write(&storage, &table, vec![int(1)], vec![deletion]);
            wait_until_swept(&storage);
        });
        if c >= WRITES - 100 {
            late += passed;
        }
    }
    assert!(
        late <= 100 * 40,
        "{late} versions for the last 100 deletions"
    );
    // A row that is written where all were deleted is seen, and deleted by the next deletion.
    let late_row = insert(
        vec![int(5)],
        vec![set(V, text("late"))],
        i64::from(WRITES) + 1,
    );
    write(&storage, &table, vec![int(1)], vec![late_row]);
    let rows = || read_partition(&storage, &table, vec![int(1)]).len();
    let window = rows();
    let deletion = PartitionChange::DeleteRange {
        start: ClusteringBound::Unbounded,
        end: ClusteringBound::Exclusive(vec![int(100)]),
        timestamp: i64::from(WRITES) + 2,
    };
    write(&storage, &table, vec![int(1)], vec![deletion]);
    wait_until_swept(&storage);
    assert_eq!(rows(), window - 1);
}

/// A version of a key: the key, its sequence number, and whether it is deleted.
type Version = (u8, u64, bool);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn ranges_of_memtables_give_the_newest_versions_from_both_ends(
        versions in vec((0..6_u8, any::<bool>()), 0..60),
        low in prop_oneof![Just(None), (0..7_u8).prop_map(Some)],
        high in prop_oneof![Just(None), (0..7_u8).prop_map(Some)],
        seqno in 0..70_u64,
        ends in vec(any::<bool>(), 0..20),
    ) {
        let memtable = Memtable::new(0);
        let versions = versions.into_iter().zip(0..);
        let versions: Vec<Version> =
            versions.map(|((key, is_deleted), seqno)| (key, seqno, is_deleted)).collect();
        for (key, seqno, is_deleted) in &versions {
            let kind = if *is_deleted { ValueType::Tombstone } else { ValueType::Value };
            memtable.insert(InternalValue::from_components([*key], *b"", *seqno, kind));
        }
        let is_within = |key: u8| low.is_none_or(|low| low <= key) && high.is_none_or(|high| key < high);
        let mut expected: Vec<(u8, u64)> = Vec::new();
        for key in (0..6).filter(|key| is_within(*key)) {
            let mut visible = versions.iter().rev();
            let newest = visible.find(|(of, at, _)| *of == key && *at < seqno);
            expected.extend(newest.map(|(key, at, _)| (*key, *at)));
        }
        let low = low.map_or(Bound::Unbounded, |low| {
            Bound::Included(InternalKey::new([low], u64::MAX, ValueType::Tombstone))
        });
        let high = high.map_or(Bound::Unbounded, |high| {
            Bound::Excluded(InternalKey::new([high], u64::MAX, ValueType::Value))
        });
        let mut range = memtable.newest_versions((low, high), seqno);
        let mut expected = std::collections::VecDeque::from(expected);
        for is_front in ends {
            let (found, wanted) = match is_front {
                true => (range.next(), expected.pop_front()),
                false => (range.next_back(), expected.pop_back()),
            };
            let found = found.map(|found| (found.key.user_key[0], found.key.seqno));
            prop_assert_eq!(found, wanted);
        }
        let rest: Vec<(u8, u64)> =
            range.map(|found| (found.key.user_key[0], found.key.seqno)).collect();
        prop_assert_eq!(rest, Vec::from(expected));
    }
}
