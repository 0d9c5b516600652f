//! The rows that the table has to hold: every write that was sent, its fate, and the rules of CQL.

use std::collections::BTreeMap;

/// The key of a row: partition and clustering key.
pub type Key = (i32, i32);

/// The values of a row: vector and number, if they are there.
pub type Shown = (Option<[i8; 2]>, Option<i32>);

/// The effect of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Cells of a row; one that is `Some(None)` is deleted.
    Row {
        key: Key,
        vector: Option<Option<[i8; 2]>>,
        number: Option<i32>,
        marker: bool,
        ttl_s: Option<u32>,
    },
    DeleteRow(Key),
    DeletePartition(i32),
    /// Deletes from the first to the last clustering key, both included.
    DeleteRange(i32, i32, i32),
}

/// The fate of a write, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Acknowledged,
    /// It was answered with an error that says that it was not done.
    Refused,
    /// It was not answered.
    Unknown,
}

/// A write.
#[derive(Clone, Debug)]
pub struct Sent {
    pub effect: Effect,
    pub timestamp: i64,
    pub fate: Fate,
    /// The first and the last second in which it may have been carried out.
    pub within_s: (i64, i64),
}

#[derive(Clone, Copy)]
struct Cell<T> {
    timestamp: i64,
    value: Option<T>,
    /// The first and the last second at which the cell may die.
    dies_s: Option<(i64, i64)>,
}

/// All writes that were sent since the table was last emptied.
#[derive(Default)]
pub struct Model {
    pub sent: Vec<Sent>,
}

impl Model {
    pub fn truncate(&mut self) {
        self.sent.clear();
    }

    /// The rows at that second, if of the writes with an unknown fate those were done whose bit in
    /// `done` is set. None while something may or may not have expired.
    fn rows(&self, done: u32, now_s: i64) -> Option<BTreeMap<Key, Shown>> {
        let mut unknown = 0;
        let applied: Vec<&Sent> = self
            .sent
            .iter()
            .filter(|sent| match sent.fate {
                Fate::Acknowledged => true,
                Fate::Refused => false,
                Fate::Unknown => {
                    unknown += 1;
                    done & (1 << (unknown - 1)) != 0
                }
            })
            .collect();
        let mut keys: Vec<Key> = applied.iter().filter_map(|sent| row_of(sent)).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut rows = BTreeMap::new();
        for key in keys {
            if let Some(shown) = row(&applied, key, now_s)? {
                rows.insert(key, shown);
            }
        }
        Some(rows)
    }

    /// Whether the table can hold these rows at that second. None while something may or may not
    /// have expired. A fate that is known for sure afterwards is noted.
    pub fn explains(&mut self, actual: &BTreeMap<Key, Shown>, now_s: i64) -> Option<bool> {
        let unknown = self
            .sent
            .iter()
            .filter(|sent| sent.fate == Fate::Unknown)
            .count();
        assert!(unknown <= 14, "too many writes whose fate is unknown");
        let (mut all, mut any) = (u32::MAX, 0);
        let mut explains = false;
        for done in 0..1 << unknown {
            if self.rows(done, now_s)? == *actual {
                explains = true;
                all &= done;
                any |= done;
            }
        }
        if explains {
            let mut bit = 0;
            for sent in &mut self.sent {
                if sent.fate == Fate::Unknown {
                    if all & (1 << bit) != 0 {
                        sent.fate = Fate::Acknowledged;
                    } else if any & (1 << bit) == 0 {
                        sent.fate = Fate::Refused;
                    }
                    bit += 1;
                }
            }
        }
        Some(explains)
    }

    /// The rows that should be there, for a message.
    pub fn expected(&self, now_s: i64) -> Option<BTreeMap<Key, Shown>> {
        self.rows(u32::MAX, now_s)
    }
}

fn row_of(sent: &Sent) -> Option<Key> {
    match sent.effect {
        Effect::Row { key, .. } => Some(key),
        _ => None,
    }
}

/// The row of a key at that second. The outer None means that something may or may not have
/// expired.
fn row(applied: &[&Sent], key: Key, now_s: i64) -> Option<Option<Shown>> {
    let mut deleted = i64::MIN;
    let (mut shown_vector, mut shown_number, mut shown_marker) = (None, None, None);
    for sent in applied {
        let timestamp = sent.timestamp;
        match &sent.effect {
            Effect::DeleteRow(of) if *of == key => deleted = deleted.max(timestamp),
            Effect::DeletePartition(of) if *of == key.0 => deleted = deleted.max(timestamp),
            Effect::DeleteRange(of, first, last)
                if *of == key.0 && (*first..=*last).contains(&key.1) =>
            {
                deleted = deleted.max(timestamp);
            }
            Effect::Row {
                key: of,
                vector,
                number,
                marker,
                ttl_s,
            } if *of == key => {
                let (from_s, to_s) = sent.within_s;
                let dies_s =
                    ttl_s.map(|ttl_s| (from_s + i64::from(ttl_s), to_s + i64::from(ttl_s)));
                if let Some(vector) = vector {
                    newest(&mut shown_vector, timestamp, *vector, dies_s);
                }
                if let Some(number) = number {
                    newest(&mut shown_number, timestamp, Some(*number), dies_s);
                }
                if *marker {
                    newest(&mut shown_marker, timestamp, Some(()), dies_s);
                }
            }
            _ => {}
        }
    }
    let vector = live(shown_vector, deleted, now_s)?;
    let number = live(shown_number, deleted, now_s)?;
    let marker = live(shown_marker, deleted, now_s)?;
    let is_there = vector.is_some() || number.is_some() || marker.is_some();
    Some(is_there.then_some((vector, number)))
}

fn newest<T: Copy>(
    cell: &mut Option<Cell<T>>,
    timestamp: i64,
    value: Option<T>,
    dies_s: Option<(i64, i64)>,
) {
    if cell.is_none_or(|cell| cell.timestamp < timestamp) {
        *cell = Some(Cell {
            timestamp,
            value,
            dies_s,
        });
    }
}

fn live<T: Copy>(cell: Option<Cell<T>>, deleted: i64, now_s: i64) -> Option<Option<T>> {
    let Some(cell) = cell.filter(|cell| cell.timestamp > deleted) else {
        return Some(None);
    };
    match cell.dies_s {
        // A second is left for a reader that comes a moment later.
        Some((from_s, to_s)) if (from_s - 1..=to_s + 1).contains(&now_s) => None,
        Some((_, to_s)) if now_s > to_s => Some(None),
        _ => Some(cell.value),
    }
}
