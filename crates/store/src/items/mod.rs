//! The rows of an index. Observations of rows go in, and changes to the index come out.
//!
//! # Which observation wins
//!
//! An [`RowObservation`] is the result of reading a key: a value, or none. Reads run concurrently
//! (a scan in many ranges, the re-reads of rows that the log names). Their results arrive in any
//! order, more than once, and late. Each read takes a number from a [`ReadSequencer`] *before* it
//! is issued, and **of all observations of a key the one with the highest number wins**, whatever
//! arrives first.
//!
//! This is why the index ends up equal to the table, whatever timestamps the clients gave their
//! writes. Take the last change `W` of a row. After `W` took effect, its log row, or the expiry of
//! its TTL, or the marker that the table was truncated, is noticed. Then either the index is built
//! again, or a read `H` of that row is issued. Every read with a number above that of `H` was
//! issued after `H`, so it sees `W` too. Every read with a lower number loses against `H`. So the
//! observation that wins reflects `W`, and no later change exists. The scan sees a row whose last
//! change came before the log was followed, as the scan starts after that.
//!
//! Nothing here compares write timestamps. The database has resolved them when a row is read, so
//! timestamps in the past or the future, equal ones, conditions and duplicates need no case of
//! their own. An item keeps its write time, but the time decides nothing: a write time that falls
//! is rare and may be right (a purged tombstone lets an older write in). Where replicas disagree, a
//! read may find an old state. The reader that follows the log at a distance of its safety interval
//! reads the row again when they agree. Write times that fall are counted, so that an operator sees
//! such replicas.
//!
//! # The cost of absence
//!
//! An absent row must win against observations with lower numbers that are still in transit. So
//! absent keys, and partitions that were read as a whole, are remembered with their number until no
//! read with a lower number is in flight.
//!
//! # Rows without room
//!
//! A row for which the index has no room is absent for searches, but the table has it. Its key is
//! remembered until a later observation of the row wins; until then it is named to be read again.
//!
//! # After a restart
//!
//! [`saved`] describes which of this goes into a snapshot, and why absences need not.

mod absence;
mod expiry;
mod saved;
mod sequence;
mod waiting;

#[cfg(test)]
mod model_tests;

use std::hash::{BuildHasher, RandomState};

use absence::KnownAbsences;
use bytes::Bytes;
use expiry::ExpiringIds;
use filter_columns::IdSet;
use xxhash_rust::xxh3::Xxh3;

use crate::keys::{KeySchema, KeyTable, PartitionKey, PrimaryKey};
use crate::observed::{IndexableValue, TimestampedValue};
pub(crate) use saved::{RestoredRows, SavedRow, SavedRows, UnreadRows};
pub(crate) use sequence::{InFlightRead, ReadSequencer};
use waiting::DeferredRows;

/// The result of reading a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RowObservation {
    /// The row's primary key.
    pub key: PrimaryKey,
    /// The content of the row.
    pub state: RowState,
}

/// The content of a row as far as the index goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RowState {
    /// The row has a value that can be indexed.
    Present(TimestampedValue),
    /// There is no such row, or it has no value, or none that can be indexed.
    Absent,
}

/// A change to the index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StructureChange {
    /// A value under an id that the index doesn't hold.
    Insert {
        /// The new id.
        id: u32,
        /// The value of the id.
        value: IndexableValue,
    },
    /// Another value under an id that the index holds.
    Replace {
        /// The changed id.
        id: u32,
        /// The new value of the id.
        value: IndexableValue,
        /// The new values of its filter columns, which are not in the table of keys yet, so that
        /// they come together with the value; empty if they stay as they are.
        filters: Vec<Option<Bytes>>,
    },
    /// An id that the index forgets. The id isn't given out again before it is passed to
    /// [`IndexedRows::reuse`].
    Remove {
        /// The removed id.
        id: u32,
    },
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// [`StructureChange::Insert`].
    Insert,
    /// [`StructureChange::Replace`].
    Replace,
    /// [`StructureChange::Remove`].
    Remove,
}

impl StructureChange {
    /// The kind of the change.
    pub(crate) fn operation(&self) -> ChangeKind {
        match self {
            StructureChange::Insert { .. } => ChangeKind::Insert,
            StructureChange::Replace { .. } => ChangeKind::Replace,
            StructureChange::Remove { .. } => ChangeKind::Remove,
        }
    }

    /// The id that the change is about.
    pub(crate) fn id(&self) -> u32 {
        match self {
            StructureChange::Insert { id, .. }
            | StructureChange::Replace { id, .. }
            | StructureChange::Remove { id } => *id,
        }
    }
}

/// The state of the row under an id.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownRow {
    /// The number of the observation that won.
    pub sequence: u64,
    /// A hash of the value and of the values of filter columns, so that a row that is read again
    /// unchanged changes nothing. A comparison of write times is not enough: of two writes with the
    /// same timestamp the greater value wins.
    pub value_hash: u64,
    /// The cell's write timestamp, microseconds since the epoch.
    pub written_us: i64,
    /// The time at which the cell expires, in seconds since the epoch; 0 for never.
    pub expires_s: u32,
    /// The time at which the row has to be read again, as the cell or a value of a filter column
    /// expires, in seconds since the epoch; 0 for never.
    pub changes_s: u32,
}

/// The hash function for the values of an index, by which a value that is read again is recognised.
/// It has a secret seed, so that no client can make two values with the same hash.
#[derive(Clone, Debug)]
pub struct ValueHasher {
    seed: u64,
}

impl ValueHasher {
    /// The hash function of an earlier process, by its [seed](ValueHasher::seed).
    pub fn of_seed(seed: u64) -> ValueHasher {
        ValueHasher { seed }
    }

    /// The secret seed, for a snapshot.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The hash of a cell with its values of filter columns.
    pub fn of(&self, cell: &TimestampedValue) -> u64 {
        let filters = cell.filters.iter().map(Option::as_deref);
        self.of_value(&cell.value) ^ self.of_filters(filters)
    }

    fn of_value(&self, value: &IndexableValue) -> u64 {
        let mut state = Xxh3::with_seed(self.seed);
        value.add_to_hash(&mut state);
        state.digest()
    }

    /// The hash of values of filter columns; 0 if there are no such columns.
    fn of_filters<V: AsRef<[u8]>>(&self, values: impl IntoIterator<Item = Option<V>>) -> u64 {
        let mut state = Xxh3::with_seed(self.seed);
        let mut columns = 0;
        for value in values {
            columns += 1;
            let value = value.as_ref().map(AsRef::as_ref);
            state.update(
                &value
                    .map_or(u64::MAX, |value| value.len() as u64)
                    .to_le_bytes(),
            );
            state.update(value.unwrap_or_default());
        }
        match columns {
            0 => 0,
            _ => state.digest(),
        }
    }

    /// The hash of the values of filter columns that an id has.
    fn of_kept_filters(&self, keys: &KeyTable, id: u32) -> u64 {
        let filters = keys.filters();
        let columns = 0..filters.types().len();
        self.of_filters(columns.map(|column| filters.value(column, id)))
    }
}

impl Default for ValueHasher {
    fn default() -> ValueHasher {
        ValueHasher::of_seed(RandomState::new().hash_one(0))
    }
}

/// The rows of an index. Their keys are in a [`KeyTable`], which searches read too.
#[derive(Debug)]
pub(crate) struct IndexedRows {
    schema: KeySchema,
    known: Vec<KnownRow>,
    /// The ids that were used and may be used again.
    free: Vec<u32>,
    absences: KnownAbsences,
    expiries: ExpiringIds,
    waiting: DeferredRows,
    /// Rows that had not been read when the snapshot was taken.
    unread: DeferredRows,
    /// The number of rows whose write time fell since it was last taken.
    regressions: u64,
    hashing: ValueHasher,
    /// Counts the changes that a snapshot would have to contain.
    revision: u64,
    /// The ids that have changed since a snapshot was begun.
    touched: Option<IdSet>,
}

impl IndexedRows {
    /// Makes a set without rows.
    pub(crate) fn new(schema: KeySchema) -> IndexedRows {
        IndexedRows {
            schema,
            known: Vec::new(),
            free: Vec::new(),
            absences: KnownAbsences::default(),
            expiries: ExpiringIds::default(),
            waiting: DeferredRows::default(),
            unread: DeferredRows::default(),
            regressions: 0,
            hashing: ValueHasher::default(),
            revision: 0,
            touched: None,
        }
    }

    /// Makes the table for the keys of these rows.
    pub(crate) fn key_table(schema: &KeySchema) -> KeyTable {
        KeyTable::new(schema.has_clustering().then_some(schema.partition.len()))
    }

    /// Takes in an observation of the read numbered `sequence`. Returns the change that the index
    /// needs, if any.
    pub(crate) fn observe(
        &mut self,
        keys: &mut KeyTable,
        sequence: u64,
        observation: RowObservation,
    ) -> Option<StructureChange> {
        let RowObservation { key, state } = observation;
        let id = keys.id(key.as_bytes());
        let partition = self.schema.partition_of(key.as_bytes());
        let stands = match id {
            Some(id) => self.known[id as usize].sequence,
            None => self.absences.row(key.as_bytes()),
        }
        .max(self.absences.partition(partition));
        // The observation that wins is newer than the snapshot.
        if self.unread.remove(&key) {
            self.revision += 1;
        }
        if sequence <= stands {
            return None;
        }
        self.waiting.remove(&key);
        match (id, state) {
            (None, RowState::Absent) => {
                self.absences.remember_row(key, sequence);
                None
            }
            (Some(id), RowState::Absent) => {
                self.touch(id);
                keys.remove(id);
                self.absences.remember_row(key, sequence);
                Some(StructureChange::Remove { id })
            }
            (None, RowState::Present(cell)) => {
                let id = self.free.pop().or_else(|| {
                    let id = u32::try_from(self.known.len()).ok()?;
                    self.known.push(KnownRow::default());
                    (id != u32::MAX).then_some(id)
                })?;
                self.absences.forget_row(key.as_bytes());
                self.touch(id);
                keys.insert(id, key);
                keys.set_filters(id, &cell.filters);
                self.note(keys, id, sequence, &cell);
                Some(StructureChange::Insert {
                    id,
                    value: cell.value,
                })
            }
            (Some(id), RowState::Present(cell)) => self.change(keys, id, &key, sequence, cell),
        }
    }

    /// Takes in a winning observation of a row that the index holds.
    fn change(
        &mut self,
        keys: &mut KeyTable,
        id: u32,
        key: &PrimaryKey,
        sequence: u64,
        cell: TimestampedValue,
    ) -> Option<StructureChange> {
        // The row may have been deleted and inserted in another form between two reads.
        if keys.keep_form(id, key) {
            self.touch(id);
        }
        let before = self.known[id as usize];
        self.regressions += u64::from(cell.written_us < before.written_us);
        let filters_before = self.hashing.of_kept_filters(keys, id);
        self.note(keys, id, sequence, &cell);
        let value_hash = self.known[id as usize].value_hash;
        if value_hash == before.value_hash {
            return None;
        }
        self.touch(id);
        let vector = self.hashing.of_value(&cell.value);
        // The graph knows nothing of filter columns.
        if vector == before.value_hash ^ filters_before {
            keys.set_filters(id, &cell.filters);
            return None;
        }
        let filters_stay = vector ^ value_hash == filters_before;
        Some(StructureChange::Replace {
            id,
            value: cell.value,
            filters: if filters_stay {
                Vec::new()
            } else {
                cell.filters
            },
        })
    }

    /// Notes that the read numbered `sequence` has seen the whole of a partition, for some of the
    /// rows that the index has of it. Rows that the read didn't find aren't there.
    /// [`IndexedRows::end_partition`] follows after the last call.
    pub(crate) fn end_rows(
        &mut self,
        keys: &mut KeyTable,
        sequence: u64,
        ids: &[u32],
        changes: &mut Vec<StructureChange>,
    ) {
        for &id in ids {
            if self.known[id as usize].sequence < sequence {
                self.touch(id);
                keys.remove(id);
                changes.push(StructureChange::Remove { id });
            }
        }
    }

    /// Notes for all other rows of the partition, which an older read may yet bring, that the read
    /// numbered `sequence` has seen the whole of it.
    pub(crate) fn end_partition(&mut self, sequence: u64, partition: PartitionKey) {
        self.absences.remember_partition(partition, sequence);
    }

    /// Notes that the index couldn't take in a vector and no longer holds its id. The row counts as
    /// absent until it is read again. The id comes back by [`IndexedRows::reuse`].
    pub(crate) fn lost(&mut self, keys: &mut KeyTable, id: u32) {
        if let Some(key) = keys.remove(id) {
            self.touch(id);
            self.absences
                .remember_row(key, self.known[id as usize].sequence);
        }
    }

    /// Notes that the index had no room for a vector and no longer holds its id. The row waits for
    /// room.
    pub(crate) fn without_room(&mut self, keys: &mut KeyTable, id: u32) {
        if let Some(key) = keys.key(id) {
            self.waiting.insert(PrimaryKey::from_encoded(key));
        }
        self.lost(keys, id);
    }

    /// The state of the row of a key, if the index holds it.
    pub(crate) fn known(&self, keys: &KeyTable, key: &PrimaryKey) -> Option<KnownRow> {
        let id = keys.id(key.as_bytes())?;
        self.known.get(id as usize).copied()
    }

    /// The hash function for vectors.
    pub(crate) fn hashing(&self) -> &ValueHasher {
        &self.hashing
    }

    /// The number of rows that wait for room.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Some of the rows that wait for room. Each of them has to be read again.
    pub(crate) fn some_waiting(&self, limit: usize) -> impl Iterator<Item = PrimaryKey> {
        self.waiting.some(limit)
    }

    /// Takes back ids of [`StructureChange::Remove`] or [`IndexedRows::lost`] that no search can
    /// meet any more.
    pub(crate) fn reuse(&mut self, ids: impl IntoIterator<Item = u32>) {
        self.free.extend(ids);
    }

    /// Forgets the absences that no read in flight can contradict. `oldest_in_flight` comes from
    /// [`ReadSequencer::oldest_in_flight`].
    pub(crate) fn forget(&mut self, oldest_in_flight: u64) {
        self.absences.forget(oldest_in_flight);
    }

    /// Takes out up to `limit` rows that have expired. Each of them has to be read again.
    pub(crate) fn expired(&mut self, keys: &KeyTable, now_s: u32, limit: usize) -> Vec<PrimaryKey> {
        let mut due = Vec::new();
        while due.len() < limit {
            let Some((id, expires_s)) = self.expiries.pop(now_s) else {
                break;
            };
            // The row may have been written again since, or the id may belong to another row.
            if self.known[id as usize].changes_s == expires_s
                && let Some(key) = keys.key(id)
            {
                due.push(PrimaryKey::from_encoded(key));
            }
        }
        due
    }

    /// The time at which the next row expires, in seconds since the epoch. It may be an old time of
    /// a row that was written again since.
    pub(crate) fn next_expiry_s(&self) -> Option<u32> {
        self.expiries.next_s()
    }

    /// The number of rows that were read with an older vector than before, since the last call.
    pub(crate) fn take_regressions(&mut self) -> u64 {
        std::mem::take(&mut self.regressions)
    }

    /// The bytes of memory held, without the keys.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.known.capacity() * size_of::<KnownRow>()
            + self.free.capacity() * size_of::<u32>()
            + self.absences.memory_bytes()
            + self.expiries.memory_bytes()
            + self.waiting.memory_bytes()
            + self.unread.memory_bytes()
            + self.touched.as_ref().map_or(0, IdSet::memory_bytes)
    }

    /// Notes that an id gets, loses or changes its vector.
    pub(crate) fn touch(&mut self, id: u32) {
        self.revision += 1;
        if let Some(touched) = &mut self.touched {
            touched.insert(id);
        }
    }

    fn note(&mut self, keys: &mut KeyTable, id: u32, sequence: u64, cell: &TimestampedValue) {
        let known = &mut self.known[id as usize];
        let mut expires_s = cell.expires_s.unwrap_or(0);
        // The database returns the TTL in whole seconds, so one moment may look like two. The later
        // one counts, as the row may have been read at the earlier one already and found still
        // there.
        if expires_s != 0
            && cell.written_us == known.written_us
            && expires_s.checked_add(1) == Some(known.expires_s)
        {
            expires_s = known.expires_s;
        }
        let changes_s = cell.filters_change_s.unwrap_or(expires_s);
        let is_new = changes_s != 0 && changes_s != known.changes_s;
        if (known.written_us, known.expires_s) != (cell.written_us, expires_s) || is_new {
            self.revision += 1;
        }
        *known = KnownRow {
            sequence,
            value_hash: self.hashing.of(cell),
            written_us: cell.written_us,
            expires_s,
            changes_s,
        };
        keys.set_expiry(id, expires_s);
        keys.set_filter_expiry(id, cell.filters_change_s.unwrap_or(0));
        if is_new {
            self.expiries.push(id, changes_s);
            if self.expiries.are_stale(self.known.len()) {
                let expiring = (0..)
                    .zip(&self.known)
                    .filter(|(_, known)| known.changes_s != 0);
                self.expiries
                    .replace(expiring.map(|(id, known)| (id, known.changes_s)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
