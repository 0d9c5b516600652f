//! A model test: reads are issued, executed and delivered at arbitrary moments, and the items are
//! compared with the table.
//!
//! The table changes under the reads. A read takes its number when it is issued, sees the table as
//! it is when it is executed (a partition read page by page), and is taken in when it is delivered.
//! Whatever the interleaving, the items equal the table once every change has been followed by a
//! read that was issued after it and everything has been delivered. For a while the index may have
//! no room; what it refuses then is read again until all of it is in. Now and then the rows are
//! saved, and after a crash only what was saved is left.

mod restarts;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;

use super::{
    InFlightRead, IndexedRows, ReadSequencer, RowObservation, RowState, StructureChange,
    TimestampedValue,
};
use crate::keys::tests::text_schema;
use crate::keys::{KeySchema, KeyTable, PartitionKey, PrimaryKey};
use crate::observed::IndexableValue;

const PARTITIONS: u8 = 3;
const ROWS: u8 = 4;

#[derive(Clone, Debug)]
enum Step {
    /// Gives a row this vector.
    Write(u8, u8, u8),
    Delete(u8, u8),
    DeletePartition(u8),
    /// Issues the read of the whole table.
    Scan,
    /// Issues the read for the oldest unanswered hint.
    Reread,
    /// Executes the next part of one of the reads issued.
    Execute(usize),
    /// Delivers one of the reads executed.
    Deliver(usize),
    /// Sets whether the index has room.
    Room(bool),
    /// Issues reads for the rows without room.
    Retry,
    /// Begins to save the rows, or ends that.
    Save,
    CopyVectors(bool),
    CopyRows,
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..PARTITIONS, 0..ROWS, any::<u8>()).prop_map(|(p, c, v)| Step::Write(p, c, v)),
        3 => (0..PARTITIONS, 0..ROWS).prop_map(|(p, c)| Step::Delete(p, c)),
        1 => (0..PARTITIONS).prop_map(Step::DeletePartition),
        1 => Just(Step::Scan),
        5 => Just(Step::Reread),
        8 => any::<usize>().prop_map(Step::Execute),
        6 => any::<usize>().prop_map(Step::Deliver),
        1 => any::<bool>().prop_map(Step::Room),
        2 => Just(Step::Retry),
        2 => Just(Step::Save),
        2 => any::<bool>().prop_map(Step::CopyVectors),
        2 => Just(Step::CopyRows),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 0..400)
}

#[derive(Clone, Copy, Debug)]
enum Hint {
    Row(u8, u8),
    Partition(u8),
}

/// A read: the rows that it still has to look at, and what it found.
struct Read {
    /// The number of its hint in the log, if the read is for one.
    hint: Option<usize>,
    issue: Arc<InFlightRead>,
    todo: VecDeque<(u8, u8)>,
    found: Vec<((u8, u8), Option<u8>)>,
    /// Whether missing rows count as found absent. They do not for a scan.
    absences: bool,
    whole_partition: Option<u8>,
}

struct World {
    schema: KeySchema,
    sequencer: Arc<ReadSequencer>,
    table: BTreeMap<(u8, u8), u8>,
    /// Every hint that the log has had.
    log: Vec<Hint>,
    /// The hints that are still to be answered, with their number if they come from the log.
    hints: VecDeque<(Option<usize>, Hint)>,
    issued: Vec<Read>,
    executed: Vec<Read>,
    items: IndexedRows,
    keys: KeyTable,
    room: bool,
    /// The vectors of the index by id.
    index: BTreeMap<u32, Vec<f32>>,
    save: Option<restarts::SaveInProgress>,
    snapshot: Option<restarts::FinishedSnapshot>,
}

impl World {
    fn new() -> World {
        let schema = text_schema(1, 1);
        World {
            sequencer: Arc::default(),
            table: BTreeMap::new(),
            log: Vec::new(),
            hints: VecDeque::new(),
            issued: Vec::new(),
            executed: Vec::new(),
            keys: IndexedRows::key_table(&schema),
            items: IndexedRows::new(schema.clone()),
            room: true,
            index: BTreeMap::new(),
            save: None,
            snapshot: None,
            schema,
        }
    }

    fn key(&self, p: u8, c: u8) -> PrimaryKey {
        self.schema.encode([[p].as_slice(), [c].as_slice()])
    }

    fn partition(&self, p: u8) -> PartitionKey {
        self.schema.encode_partition([[p].as_slice()])
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Write(p, c, vector) => {
                self.table.insert((p, c), vector);
                self.tell(Hint::Row(p, c));
            }
            Step::Delete(p, c) => {
                self.table.remove(&(p, c));
                self.tell(Hint::Row(p, c));
            }
            Step::DeletePartition(p) => {
                self.table.retain(|(other, _), _| *other != p);
                self.tell(Hint::Partition(p));
            }
            Step::Scan => {
                let all = (0..PARTITIONS).flat_map(|p| (0..ROWS).map(move |c| (p, c)));
                self.issue(None, all.collect(), false, None);
            }
            Step::Reread => match self.hints.pop_front() {
                Some((number, Hint::Row(p, c))) => {
                    self.issue(number, [(p, c)].into(), true, None);
                }
                Some((number, Hint::Partition(p))) => {
                    let all = (0..ROWS).map(|c| (p, c)).collect();
                    self.issue(number, all, false, Some(p));
                }
                None => {}
            },
            Step::Execute(at) => {
                if self.issued.is_empty() {
                    return;
                }
                let at = at % self.issued.len();
                let read = &mut self.issued[at];
                for key in read.todo.drain(..read.todo.len().min(2)) {
                    read.found.push((key, self.table.get(&key).copied()));
                }
                if read.todo.is_empty() {
                    let read = self.issued.swap_remove(at);
                    self.executed.push(read);
                }
            }
            Step::Deliver(at) => {
                if !self.executed.is_empty() {
                    let read = self.executed.swap_remove(at % self.executed.len());
                    self.deliver(read);
                    self.items.forget(self.sequencer.oldest_in_flight());
                }
            }
            Step::Room(room) => self.room = room,
            Step::Retry => {
                let waiting: Vec<PrimaryKey> = self.items.some_waiting(usize::MAX).collect();
                let rows = self.rows_of(&waiting);
                self.hints
                    .extend(rows.map(|(p, c)| (None, Hint::Row(p, c))));
            }
            Step::Save if self.save.is_none() => self.begin_save(),
            Step::Save => self.end_save(),
            Step::CopyVectors(odd) => self.copy_vectors(odd),
            Step::CopyRows => self.copy_rows(),
            Step::Crash => self.crash(),
        }
    }

    /// Adds a hint to the log.
    fn tell(&mut self, hint: Hint) {
        self.hints.push_back((Some(self.log.len()), hint));
        self.log.push(hint);
    }

    /// The rows with these keys.
    fn rows_of(&self, keys: &[PrimaryKey]) -> impl Iterator<Item = (u8, u8)> + use<> {
        let all = (0..PARTITIONS).flat_map(|p| (0..ROWS).map(move |c| (p, c)));
        let rows = all.filter(|(p, c)| keys.contains(&self.key(*p, *c)));
        rows.collect::<Vec<_>>().into_iter()
    }

    fn issue(
        &mut self,
        hint: Option<usize>,
        todo: VecDeque<(u8, u8)>,
        absences: bool,
        whole_partition: Option<u8>,
    ) {
        self.issued.push(Read {
            hint,
            issue: self.sequencer.issue(),
            todo,
            found: Vec::new(),
            absences,
            whole_partition,
        });
    }

    fn deliver(&mut self, read: Read) {
        let sequence = read.issue.sequence();
        let mut changes = Vec::new();
        for ((p, c), vector) in read.found {
            let state = match vector {
                Some(vector) => RowState::Present(TimestampedValue {
                    filters: Vec::new(),
                    filters_change_s: None,
                    value: IndexableValue::Vector(vec![f32::from(vector)]),
                    written_us: 0,
                    expires_s: None,
                }),
                None if read.absences => RowState::Absent,
                None => continue,
            };
            let key = self.key(p, c);
            changes.extend(self.items.observe(
                &mut self.keys,
                sequence,
                RowObservation { key, state },
            ));
        }
        if let Some(p) = read.whole_partition {
            let partition = self.partition(p);
            for some in self.keys.partition(partition.as_bytes()).chunks(2) {
                self.items
                    .end_rows(&mut self.keys, sequence, some, &mut changes);
            }
            self.items.end_partition(sequence, partition);
        }
        for change in changes {
            let id = change.id();
            match change {
                StructureChange::Insert { .. } | StructureChange::Replace { .. } if !self.room => {
                    self.index.remove(&id);
                    self.items.without_room(&mut self.keys, id);
                    self.items.reuse([id]);
                }
                StructureChange::Insert { value, .. } => {
                    let IndexableValue::Vector(vector) = value else {
                        panic!("a vector");
                    };
                    assert!(
                        self.index.insert(id, vector).is_none(),
                        "id {id} was in use"
                    );
                }
                StructureChange::Replace { value, .. } => {
                    let IndexableValue::Vector(vector) = value else {
                        panic!("a vector");
                    };
                    assert!(self.index.insert(id, vector).is_some(), "id {id} was free");
                }
                StructureChange::Remove { .. } => {
                    assert!(self.index.remove(&id).is_some(), "id {id} was free");
                    self.items.reuse([id]);
                }
            }
        }
    }

    /// Answers every hint that is left and reads every row that waits, as there is room now.
    /// Executes and delivers all reads, in an order that `shuffle` picks.
    fn settle(&mut self, shuffle: &[usize]) {
        self.room = true;
        self.answer_hints(shuffle);
        if self.items.waiting() > 0 {
            self.step(Step::Retry);
            self.answer_hints(shuffle);
        }
    }

    fn answer_hints(&mut self, shuffle: &[usize]) {
        let mut picks = shuffle.iter().copied().cycle();
        while !self.hints.is_empty() {
            self.step(Step::Reread);
        }
        while !self.issued.is_empty() || !self.executed.is_empty() {
            let pick = picks.next().unwrap_or(0);
            self.step(Step::Execute(pick));
            self.step(Step::Deliver(pick / 7));
        }
    }

    /// The rows of the index by key.
    fn indexed(&self) -> BTreeMap<(u8, u8), u8> {
        let mut rows = BTreeMap::new();
        for p in 0..PARTITIONS {
            for c in 0..ROWS {
                if let Some(id) = self.keys.id(self.key(p, c).as_bytes()) {
                    rows.insert((p, c), self.index[&id][0] as u8);
                }
            }
        }
        assert_eq!(rows.len(), self.index.len(), "ids without a key");
        rows
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn the_items_end_up_equal_to_the_table(
        steps in steps(),
        shuffle in proptest::collection::vec(any::<usize>(), 1..30),
    ) {
        let mut world = World::new();
        for step in steps {
            let crashed = matches!(step, Step::Crash);
            world.step(step);
            if crashed {
                // Later writes would hide an error.
                world.settle(&shuffle);
                prop_assert_eq!(world.indexed(), world.table.clone());
                prop_assert_eq!(world.unread(), 0);
            }
        }
        world.settle(&shuffle);
        prop_assert_eq!(world.indexed(), world.table.clone());
        prop_assert_eq!(world.items.waiting(), 0);
        prop_assert_eq!(world.unread(), 0);
        prop_assert_eq!(world.items.absences.row(world.key(0, 0).as_bytes()), 0);
    }
}
