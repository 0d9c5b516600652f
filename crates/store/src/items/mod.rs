//! What the index should hold: observations of rows go in, changes to the index come out.
//!
//! # Which observation wins
//!
//! An [`Observation`] says what a read found under a key: a vector, or none. Reads run beside each
//! other (a scan in many ranges, the re-reads that the log asks for) and what they find arrives
//! in any order, more than once, and late. Each read takes a number from a [`Sequencer`] *before*
//! it is issued, and **of all observations of a key the one with the highest number stands**,
//! whatever arrives first.
//!
//! Why the index then ends up equal to the table, whatever timestamps the clients gave their
//! writes: Take the last change `W` of a row. Its log row, or the expiry of its TTL, or the marker
//! that the table was truncated, is noticed after `W` took effect, and then either the index is
//! built anew or a read `H` of that row is issued. Every read with a number above that of `H` was
//! issued after `H`, so it sees `W` too. Every read with a lower number loses against `H`. So the
//! observation that stands tells of `W`, and no later change exists. A row whose last change came
//! before the log was followed is seen by the scan, which starts after that. Nothing here looks at
//! write timestamps: the database has resolved them when a row is read, so past, future and equal
//! ones, conditions and duplicates need no case of their own. The write time is kept with an item
//! but is no judge: that it falls is rare and may be right (a purged tombstone lets an older write
//! in). Where replicas disagree, a read may find an old state; the reader that follows the log at
//! a distance of its safety interval reads the row again when they agree. Write times that fall
//! are counted, so that an operator sees such replicas.
//!
//! # What absence costs
//!
//! "Absent" must stand against observations with lower numbers that are still on their way. So
//! absent keys, and partitions that were read as a whole, are remembered with their number until
//! no read below it is in flight.
//!
//! # Rows without room
//!
//! A row that the index has no room for is absent to searches, but the table has it. Its key is kept
//! until a later observation of it stands, and is named to be read again until then.
//!
//! # After a restart
//!
//! [`saved`] says what of this goes into a snapshot, and why no absence has to.

mod absence;
mod expiry;
mod saved;
mod sequence;
mod waiting;

#[cfg(test)]
mod model_tests;

use std::hash::{BuildHasher, RandomState};

use xxhash_rust::xxh3::Xxh3;

use crate::keys::{KeySchema, KeyTable, PartitionKey, PrimaryKey};
use absence::Absences;
use expiry::Expiries;
pub use saved::{Restored, SavedRow, SavedRows, Unread};
pub use sequence::{Issue, Sequencer};
use waiting::Waiting;

/// What a read found under a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// The row's primary key.
    pub key: PrimaryKey,
    /// Its vector, if it has one.
    pub state: RowState,
}

/// Whether a row has something to index.
#[derive(Clone, Debug, PartialEq)]
pub enum RowState {
    /// The row has a vector that can be indexed.
    Present(Cell),
    /// There is no such row, or it has no vector, or none that can be indexed.
    Absent,
}

/// A vector cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// As many finite elements as the index has dimensions.
    pub vector: Vec<f32>,
    /// The cell's write timestamp, microseconds since the epoch.
    pub written_us: i64,
    /// When the cell expires, seconds since the epoch.
    pub expires_s: Option<u32>,
}

/// A change to the index.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A vector under an id that the index doesn't hold.
    Insert {
        /// The id.
        id: u32,
        /// Its vector.
        vector: Vec<f32>,
    },
    /// Another vector under an id that the index holds.
    Replace {
        /// The id.
        id: u32,
        /// Its new vector.
        vector: Vec<f32>,
    },
    /// An id that the index is to forget. It isn't given out again before
    /// [`Items::reuse`] returns it.
    Remove {
        /// The id.
        id: u32,
    },
}

/// What a change does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// [`Change::Insert`].
    Insert,
    /// [`Change::Replace`].
    Replace,
    /// [`Change::Remove`].
    Remove,
}

impl Change {
    /// What it does.
    pub fn operation(&self) -> Operation {
        match self {
            Change::Insert { .. } => Operation::Insert,
            Change::Replace { .. } => Operation::Replace,
            Change::Remove { .. } => Operation::Remove,
        }
    }

    /// The id that changes.
    pub fn id(&self) -> u32 {
        match self {
            Change::Insert { id, .. } | Change::Replace { id, .. } | Change::Remove { id } => *id,
        }
    }
}

/// What is known of the row under an id.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// The number of the observation that stands.
    pub sequence: u64,
    /// A hash of the vector, so that a row read again changes nothing. Equal write times
    /// wouldn't do: of two writes with the same timestamp the greater value wins.
    pub vector_hash: u64,
    /// The cell's write timestamp, microseconds since the epoch.
    pub written_us: i64,
    /// When the cell expires, seconds since the epoch; 0: never.
    pub expires_s: u32,
}

/// How the vectors of an index are hashed, so that one that is read again is known: with a secret, so
/// that nobody makes two vectors with one hash.
#[derive(Clone, Debug)]
pub struct Hashing {
    seed: u64,
}

/// Elements of a vector.
const HASHED_AT_A_TIME: usize = 256;

impl Hashing {
    /// As vectors were hashed before, by that [seed](Hashing::seed).
    pub fn of_seed(seed: u64) -> Hashing {
        Hashing { seed }
    }

    /// The secret, for a snapshot.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The hash of a vector.
    pub fn of(&self, vector: &[f32]) -> u64 {
        let mut state = Xxh3::with_seed(self.seed);
        // Not one by one, which takes many times as long.
        let mut bytes = [0_u8; 4 * HASHED_AT_A_TIME];
        for elements in vector.chunks(HASHED_AT_A_TIME) {
            let words = bytes.as_chunks_mut::<4>().0.iter_mut();
            words
                .zip(elements)
                .for_each(|(word, element)| *word = element.to_le_bytes());
            state.update(&bytes[..4 * elements.len()]);
        }
        state.digest()
    }
}

impl Default for Hashing {
    fn default() -> Hashing {
        Hashing::of_seed(RandomState::new().hash_one(0))
    }
}

/// The rows of an index. The keys themselves are in a [`KeyTable`] that searches read too.
#[derive(Debug)]
pub struct Items {
    schema: KeySchema,
    known: Vec<Known>,
    /// Ids that were used and may be used again.
    free: Vec<u32>,
    absences: Absences,
    expiries: Expiries,
    waiting: Waiting,
    /// Rows that a snapshot knew to be unread.
    unread: Waiting,
    /// Rows whose write time fell.
    regressions: u64,
    hashing: Hashing,
    /// Counts what a snapshot would have to tell.
    revision: u64,
    /// Ids that have changed since a snapshot was begun.
    touched: Option<ann::IdSet>,
}

impl Items {
    /// No rows.
    pub fn new(schema: KeySchema) -> Items {
        Items {
            schema,
            known: Vec::new(),
            free: Vec::new(),
            absences: Absences::default(),
            expiries: Expiries::default(),
            waiting: Waiting::default(),
            unread: Waiting::default(),
            regressions: 0,
            hashing: Hashing::default(),
            revision: 0,
            touched: None,
        }
    }

    /// The table for the keys of these rows.
    pub fn key_table(schema: &KeySchema) -> KeyTable {
        KeyTable::new(schema.has_clustering().then_some(schema.partition.len()))
    }

    /// Takes in an observation of the read numbered `sequence`; the change that the index needs,
    /// if any.
    pub fn observe(
        &mut self,
        keys: &mut KeyTable,
        sequence: u64,
        observation: Observation,
    ) -> Option<Change> {
        let Observation { key, state } = observation;
        let id = keys.id(key.as_bytes());
        let partition = self.schema.partition_of(key.as_bytes());
        let stands = match id {
            Some(id) => self.known[id as usize].sequence,
            None => self.absences.row(key.as_bytes()),
        }
        .max(self.absences.partition(partition));
        // Whatever stands was read since.
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
                Some(Change::Remove { id })
            }
            (None, RowState::Present(cell)) => {
                let id = self.free.pop().or_else(|| {
                    let id = u32::try_from(self.known.len()).ok()?;
                    self.known.push(Known::default());
                    (id != u32::MAX).then_some(id)
                })?;
                self.absences.forget_row(key.as_bytes());
                self.touch(id);
                keys.insert(id, key);
                self.note(id, sequence, &cell);
                Some(Change::Insert {
                    id,
                    vector: cell.vector,
                })
            }
            (Some(id), RowState::Present(cell)) => {
                let before = self.known[id as usize];
                self.regressions += u64::from(cell.written_us < before.written_us);
                self.note(id, sequence, &cell);
                if self.known[id as usize].vector_hash == before.vector_hash {
                    return None;
                }
                self.touch(id);
                Some(Change::Replace {
                    id,
                    vector: cell.vector,
                })
            }
        }
    }

    /// Takes in that the read numbered `sequence` has seen the whole of a partition, for some of the rows that the index holds
    /// of it: those that the read didn't find aren't there. [`Items::end_partition`] comes after the last of them.
    pub fn end_rows(
        &mut self,
        keys: &mut KeyTable,
        sequence: u64,
        ids: &[u32],
        changes: &mut Vec<Change>,
    ) {
        for &id in ids {
            if self.known[id as usize].sequence < sequence {
                self.touch(id);
                keys.remove(id);
                changes.push(Change::Remove { id });
            }
        }
    }

    /// The same for all rows of the partition that an older read may yet bring.
    pub fn end_partition(&mut self, sequence: u64, partition: PartitionKey) {
        self.absences.remember_partition(partition, sequence);
    }

    /// The index couldn't take a vector in, and no longer holds that id: the row counts as absent
    /// until it is read again. The id comes back by [`Items::reuse`].
    pub fn lost(&mut self, keys: &mut KeyTable, id: u32) {
        if let Some(key) = keys.remove(id) {
            self.touch(id);
            self.absences
                .remember_row(key, self.known[id as usize].sequence);
        }
    }

    /// The same for want of room: the row waits for it.
    pub fn without_room(&mut self, keys: &mut KeyTable, id: u32) {
        if let Some(key) = keys.key(id) {
            self.waiting.insert(PrimaryKey::from_encoded(key));
        }
        self.lost(keys, id);
    }

    /// What is known of the row of a key, if the index holds it.
    pub fn known(&self, keys: &KeyTable, key: &PrimaryKey) -> Option<Known> {
        let id = keys.id(key.as_bytes())?;
        self.known.get(id as usize).copied()
    }

    /// How vectors are hashed.
    pub fn hashing(&self) -> &Hashing {
        &self.hashing
    }

    /// How many rows wait for room.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Some of the rows that wait for room; each is to be read again.
    pub fn some_waiting(&self, limit: usize) -> impl Iterator<Item = PrimaryKey> {
        self.waiting.some(limit)
    }

    /// Ids of [`Change::Remove`] or [`Items::lost`] that no search can come upon any more.
    pub fn reuse(&mut self, ids: impl IntoIterator<Item = u32>) {
        self.free.extend(ids);
    }

    /// Forgets the absences that no read in flight can contradict. `oldest_in_flight`: see
    /// [`Sequencer::oldest_in_flight`].
    pub fn forget(&mut self, oldest_in_flight: u64) {
        self.absences.forget(oldest_in_flight);
    }

    /// Up to `limit` rows whose time has come; each is to be read again.
    pub fn expired(&mut self, keys: &KeyTable, now_s: u32, limit: usize) -> Vec<PrimaryKey> {
        let mut due = Vec::new();
        while due.len() < limit {
            let Some((id, expires_s)) = self.expiries.pop(now_s) else {
                break;
            };
            // The row may have been written anew since, or the id may be another row's.
            if self.known[id as usize].expires_s == expires_s
                && let Some(key) = keys.key(id)
            {
                due.push(PrimaryKey::from_encoded(key));
            }
        }
        due
    }

    /// When the next row expires, seconds since the epoch; a row that was written anew may still be named by its old time.
    pub fn next_expiry_s(&self) -> Option<u32> {
        self.expiries.next_s()
    }

    /// How many rows were read with an older vector than before, since this was asked last.
    pub fn take_regressions(&mut self) -> u64 {
        std::mem::take(&mut self.regressions)
    }

    /// Bytes of memory held, without the keys.
    pub fn memory_bytes(&self) -> usize {
        self.known.capacity() * size_of::<Known>()
            + self.free.capacity() * size_of::<u32>()
            + self.absences.memory_bytes()
            + self.expiries.memory_bytes()
            + self.waiting.memory_bytes()
            + self.unread.memory_bytes()
            + self.touched.as_ref().map_or(0, ann::IdSet::memory_bytes)
    }

    /// Takes in that an id gets, loses or changes its vector.
    fn touch(&mut self, id: u32) {
        self.revision += 1;
        if let Some(touched) = &mut self.touched {
            touched.insert(id);
        }
    }

    fn note(&mut self, id: u32, sequence: u64, cell: &Cell) {
        let known = &mut self.known[id as usize];
        let mut expires_s = cell.expires_s.unwrap_or(0);
        // A TTL is told in whole seconds, so the same moment may look like two. The later one stands: the row may
        // have been read for the earlier one already, and found still there.
        if expires_s != 0
            && cell.written_us == known.written_us
            && expires_s.checked_add(1) == Some(known.expires_s)
        {
            expires_s = known.expires_s;
        }
        let is_new = expires_s != 0 && expires_s != known.expires_s;
        if (known.written_us, known.expires_s) != (cell.written_us, expires_s) {
            self.revision += 1;
        }
        *known = Known {
            sequence,
            vector_hash: self.hashing.of(&cell.vector),
            written_us: cell.written_us,
            expires_s,
        };
        if is_new {
            self.expiries.push(id, expires_s);
            if self.expiries.are_stale(self.known.len()) {
                let expiring = (0..)
                    .zip(&self.known)
                    .filter(|(_, known)| known.expires_s != 0);
                self.expiries
                    .replace(expiring.map(|(id, known)| (id, known.expires_s)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
