use super::*;
use crate::keys::tests::text_schema;

pub(super) fn key(p: &str, c: &str) -> PrimaryKey {
    text_schema(1, 1).encode([p.as_bytes(), c.as_bytes()])
}

fn partition(p: &str) -> PartitionKey {
    text_schema(1, 1).encode_partition([p.as_bytes()])
}

pub(super) fn present(vector: &[f32], expires_s: Option<u32>) -> RowState {
    RowState::Present(TimestampedValue {
        filters: Vec::new(),
        filters_change_s: None,
        value: IndexableValue::Vector(vector.to_vec()),
        written_us: 1,
        expires_s,
    })
}

struct Table {
    items: IndexedRows,
    keys: KeyTable,
}

impl Table {
    fn new() -> Table {
        let schema = text_schema(1, 1);
        Table {
            keys: IndexedRows::key_table(&schema),
            items: IndexedRows::new(schema),
        }
    }

    fn observe(
        &mut self,
        sequence: u64,
        key: PrimaryKey,
        state: RowState,
    ) -> Option<StructureChange> {
        self.items
            .observe(&mut self.keys, sequence, RowObservation { key, state })
    }
}

#[test]
fn a_late_scan_does_not_bring_a_deleted_row_back() {
    let mut table = Table::new();
    assert_eq!(table.observe(2, key("p", "a"), RowState::Absent), None);
    assert_eq!(table.observe(1, key("p", "a"), present(&[1.0], None)), None);
    assert!(matches!(
        table.observe(3, key("p", "a"), present(&[1.0], None)),
        Some(StructureChange::Insert { id: 0, .. })
    ));
}

#[test]
fn the_same_vector_again_changes_nothing() {
    let mut table = Table::new();
    table.observe(1, key("p", "a"), present(&[1.0], None));
    assert_eq!(table.observe(2, key("p", "a"), present(&[1.0], None)), None);
    assert!(matches!(
        table.observe(3, key("p", "a"), present(&[2.0], None)),
        Some(StructureChange::Replace { id: 0, .. })
    ));
    assert_eq!(table.observe(2, key("p", "a"), present(&[1.0], None)), None);
}

#[test]
fn a_vector_is_hashed_as_its_bytes_are() {
    let vector: Vec<f32> = (0..600).map(|element| element as f32 / 7.0).collect();
    for length in [0, 1, 255, 256, 257, 512, 600] {
        let some = &vector[..length];
        let bytes: Vec<u8> = some.iter().flat_map(|x| x.to_le_bytes()).collect();
        let hash = xxhash_rust::xxh3::xxh3_64_with_seed(&bytes, 7);
        let value = IndexableValue::Vector(some.to_vec());
        assert_eq!(ValueHasher::of_seed(7).of_value(&value), hash, "{length}");
    }
}

#[test]
fn a_partition_read_removes_what_it_did_not_find() {
    let mut table = Table::new();
    table.observe(1, key("p", "a"), present(&[1.0], None));
    table.observe(1, key("p", "b"), present(&[1.0], None));
    table.observe(1, key("q", "a"), present(&[1.0], None));
    table.observe(9, key("p", "c"), present(&[1.0], None));
    table.observe(5, key("p", "b"), present(&[1.0], None));
    let mut changes = Vec::new();
    let ids = table.keys.partition(partition("p").as_bytes());
    table.items.end_rows(&mut table.keys, 5, &ids, &mut changes);
    table.items.end_partition(5, partition("p"));
    assert_eq!(changes, [StructureChange::Remove { id: 0 }]);
    // An earlier scan comes late with a row that the partition read didn't see.
    assert_eq!(table.observe(4, key("p", "d"), present(&[1.0], None)), None);
    assert!(
        table
            .observe(6, key("p", "d"), present(&[1.0], None))
            .is_some()
    );
    assert_eq!(table.keys.len(), 4);
}

#[test]
fn absences_are_forgotten_when_nothing_can_contradict_them() {
    let mut table = Table::new();
    table.observe(5, key("p", "a"), RowState::Absent);
    table.items.forget(5);
    assert_eq!(table.observe(4, key("p", "a"), present(&[1.0], None)), None);
    table.items.forget(6);
    assert!(
        table
            .observe(4, key("p", "a"), present(&[1.0], None))
            .is_some()
    );
}

#[test]
fn ids_wait_until_they_may_be_used_again() {
    let mut table = Table::new();
    table.observe(1, key("p", "a"), present(&[1.0], None));
    assert_eq!(
        table.observe(2, key("p", "a"), RowState::Absent),
        Some(StructureChange::Remove { id: 0 })
    );
    let again = |table: &mut Table, c: &str| {
        table
            .observe(3, key("p", c), present(&[1.0], None))
            .map(|change| change.id())
    };
    assert_eq!(again(&mut table, "b"), Some(1));
    table.items.reuse([0]);
    assert_eq!(again(&mut table, "c"), Some(0));
}

#[test]
fn an_expiry_names_the_row_once_and_only_if_it_still_stands() {
    let mut table = Table::new();
    table.observe(1, key("p", "a"), present(&[1.0], Some(100)));
    table.observe(1, key("p", "b"), present(&[1.0], Some(100)));
    table.observe(2, key("p", "b"), present(&[1.0], Some(200)));
    table.observe(1, key("p", "c"), present(&[1.0], None));
    let expired = |table: &mut Table, now_s| table.items.expired(&table.keys, now_s, 10);
    assert_eq!(expired(&mut table, 99), []);
    assert_eq!(expired(&mut table, 150), [key("p", "a")]);
    assert_eq!(expired(&mut table, 150), []);
    table.observe(3, key("p", "b"), RowState::Absent);
    assert_eq!(expired(&mut table, 250), []);
}

#[test]
fn write_times_that_fall_are_counted_and_stand() {
    let mut table = Table::new();
    let written = |written_us| {
        RowState::Present(TimestampedValue {
            filters: Vec::new(),
            filters_change_s: None,
            value: IndexableValue::Vector(vec![written_us as f32]),
            written_us,
            expires_s: None,
        })
    };
    table.observe(1, key("p", "a"), written(10));
    table.observe(2, key("p", "a"), written(11));
    assert_eq!(table.items.take_regressions(), 0);
    let change = table.observe(3, key("p", "a"), written(5));
    assert!(
        matches!(change, Some(StructureChange::Replace { value, .. }) if value == IndexableValue::Vector(vec![5.0]))
    );
    assert_eq!(table.items.take_regressions(), 1);
    assert_eq!(table.items.take_regressions(), 0);
}

#[test]
fn a_lost_row_leaves_no_key() {
    let mut table = Table::new();
    table.observe(1, key("p", "a"), present(&[1.0], None));
    table.items.lost(&mut table.keys, 0);
    assert_eq!(table.keys.len(), 0);
    assert_eq!(table.observe(1, key("p", "a"), present(&[1.0], None)), None);
    assert!(
        table
            .observe(2, key("p", "a"), present(&[1.0], None))
            .is_some()
    );
}

#[test]
fn rows_that_are_written_again_and_again_leave_few_expiries() {
    let mut table = Table::new();
    for write in 0..100_000 {
        let name = ["a", "b"][write as usize % 2];
        let state = present(&[1.0], Some(1_000_000 + write));
        table.observe(u64::from(write) + 1, key("p", name), state);
    }
    let bytes = table.items.expiries.memory_bytes();
    assert!(bytes < 100_000, "{bytes} bytes");
    assert!(table.items.expired(&table.keys, 1_099_997, 10).is_empty());
    let expired = |table: &mut Table, now_s| table.items.expired(&table.keys, now_s, 10);
    assert_eq!(expired(&mut table, 1_099_998), [key("p", "a")]);
    assert_eq!(expired(&mut table, 1_099_999), [key("p", "b")]);
}

#[test]
fn the_same_expiry_a_second_earlier_is_the_same() {
    let mut table = Table::new();
    let observe = |table: &mut Table, sequence, expires_s| {
        table.observe(sequence, key("p", "a"), present(&[1.0], Some(expires_s)));
        table.items.revision()
    };
    let first = observe(&mut table, 1, 101);
    assert_eq!(observe(&mut table, 2, 100), first);
    assert!(table.items.expired(&table.keys, 100, 10).is_empty());
    assert_eq!(table.items.expired(&table.keys, 101, 10).len(), 1);
    // The row was still there when it was read because of that. It is read once more.
    let later = observe(&mut table, 3, 102);
    assert!(later > first);
    assert_eq!(table.items.expired(&table.keys, 102, 10).len(), 1);
    // The row is written again, to live a second shorter.
    let anew = TimestampedValue {
        filters: Vec::new(),
        filters_change_s: None,
        value: IndexableValue::Vector(vec![1.0]),
        written_us: 2,
        expires_s: Some(101),
    };
    table.observe(4, key("p", "a"), RowState::Present(anew));
    assert_eq!(table.items.expired(&table.keys, 101, 10).len(), 1);
}
