//! The rows that the table has to hold: every write that was sent, its fate, and the rules of CQL.

use std::collections::{BTreeMap, BTreeSet};

/// The key of a row: partition and clustering key.
pub type Key = (i32, i32);

/// The values of a row, as far as they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shown {
    pub vector: Option<[i8; 2]>,
    /// The values of the columns `n`, `d` and `u`.
    pub numbers: [Option<i32>; 3],
}

/// The effect of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Cells of a row; one that is `Some(None)` is deleted.
    Row {
        key: Key,
        vector: Option<Option<[i8; 2]>>,
        numbers: [Option<Option<i32>>; 3],
        marker: bool,
        ttl_s: Option<u32>,
    },
    DeleteRow(Key),
    DeletePartition(i32),
    /// Deletes from the first to the last clustering key, both included.
    DeleteRange(i32, i32, i32),
}

impl Effect {
    /// Whether rows are deleted.
    pub fn deletes_rows(&self) -> bool {
        !matches!(self, Effect::Row { .. })
    }
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
        let mut rows = BTreeMap::new();
        for key in keys_of(&applied) {
            if let Some(shown) = Cells::of(&applied, key).shown(now_s)? {
                rows.insert(key, shown);
            }
        }
        Some(rows)
    }

    /// The numbers of the writes whose fate is not known yet.
    pub fn open(&self) -> BTreeSet<usize> {
        let sent = self.sent.iter().enumerate();
        let open = sent.filter(|(_, sent)| sent.fate == Fate::Unknown);
        open.map(|(at, _)| at).collect()
    }

    /// The contents that a reader may have seen of each row between two seconds, both included;
    /// None for no row. `open` are the writes whose fate was not known when it began.
    pub fn seen(
        &self,
        open: &BTreeSet<usize>,
        from_s: i64,
        to_s: i64,
    ) -> BTreeMap<Key, BTreeSet<Option<Shown>>> {
        let (mut sure, mut unsure): (Vec<&Sent>, Vec<&Sent>) = (Vec::new(), Vec::new());
        for (at, sent) in self.sent.iter().enumerate() {
            match sent.fate {
                Fate::Refused => {}
                Fate::Acknowledged if !open.contains(&at) => sure.push(sent),
                Fate::Acknowledged | Fate::Unknown => unsure.push(sent),
            }
        }
        let keys = keys_of(&sure).into_iter().chain(keys_of(&unsure));
        let contents = |key| {
            let of_key = |sent: &&&Sent| sent.effect.is_about(key);
            let sure: Vec<&Sent> = sure.iter().filter(of_key).copied().collect();
            let unsure: Vec<&Sent> = unsure.iter().filter(of_key).copied().collect();
            let mut seen = BTreeSet::new();
            for done in 0..1_u32 << unsure.len() {
                let done = (0..).zip(&unsure).filter(|(at, _)| done >> at & 1 == 1);
                let done = done.map(|(_, sent)| *sent);
                let applied: Vec<&Sent> = sure.iter().copied().chain(done).collect();
                Cells::of(&applied, key).add_seen(from_s, to_s, &mut seen);
            }
            (key, seen)
        };
        keys.map(contents).collect()
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

impl Effect {
    /// Whether the effect may change the row of a key.
    fn is_about(&self, key: Key) -> bool {
        match self {
            Effect::Row { key: of, .. } | Effect::DeleteRow(of) => *of == key,
            Effect::DeletePartition(of) => *of == key.0,
            Effect::DeleteRange(of, first, last) => {
                *of == key.0 && (*first..=*last).contains(&key.1)
            }
        }
    }
}

/// The keys of the rows that some writes may have made.
fn keys_of(applied: &[&Sent]) -> BTreeSet<Key> {
    let keys = applied.iter().filter_map(|sent| match sent.effect {
        Effect::Row { key, .. } => Some(key),
        _ => None,
    });
    keys.collect()
}

/// The cells of a row that are not deleted. Some may have expired.
#[derive(Default)]
struct Cells {
    vector: Option<Cell<[i8; 2]>>,
    numbers: [Option<Cell<i32>>; 3],
    marker: Option<Cell<()>>,
}

impl Cells {
    fn of(applied: &[&Sent], key: Key) -> Cells {
        let mut deleted = i64::MIN;
        let mut cells = Cells::default();
        for sent in applied.iter().filter(|sent| sent.effect.is_about(key)) {
            let timestamp = sent.timestamp;
            let Effect::Row {
                vector,
                numbers,
                marker,
                ttl_s,
                ..
            } = &sent.effect
            else {
                deleted = deleted.max(timestamp);
                continue;
            };
            let (from_s, to_s) = sent.within_s;
            let dies_s = ttl_s.map(|ttl_s| (from_s + i64::from(ttl_s), to_s + i64::from(ttl_s)));
            if let Some(vector) = vector {
                newest(&mut cells.vector, timestamp, *vector, dies_s);
            }
            for (cell, number) in cells.numbers.iter_mut().zip(numbers) {
                if let Some(number) = number {
                    newest(cell, timestamp, *number, dies_s);
                }
            }
            if *marker {
                newest(&mut cells.marker, timestamp, Some(()), dies_s);
            }
        }
        cells.vector = live(cells.vector, deleted);
        cells.numbers = cells.numbers.map(|cell| live(cell, deleted));
        cells.marker = live(cells.marker, deleted);
        cells
    }

    /// The row at that second. The outer None means that something may or may not have expired.
    fn shown(&self, now_s: i64) -> Option<Option<Shown>> {
        let mut seen = BTreeSet::new();
        self.add_seen(now_s, now_s, &mut seen);
        match seen.len() {
            1 => seen.pop_first(),
            _ => None,
        }
    }

    /// Adds the contents that may be seen of the row between two seconds, both included.
    fn add_seen(&self, from_s: i64, to_s: i64, seen: &mut BTreeSet<Option<Shown>>) {
        let markers = values(self.marker, from_s, to_s);
        let [n, d, u] = self.numbers.map(|cell| values(cell, from_s, to_s));
        for vector in values(self.vector, from_s, to_s) {
            for numbers in product(&n, &d, &u) {
                for marker in &markers {
                    let shown = Shown { vector, numbers };
                    let is_there =
                        marker.is_some() || vector.is_some() || numbers.iter().any(Option::is_some);
                    seen.insert(is_there.then_some(shown));
                }
            }
        }
    }
}

fn product(
    n: &[Option<i32>],
    d: &[Option<i32>],
    u: &[Option<i32>],
) -> impl Iterator<Item = [Option<i32>; 3]> {
    let pairs = n.iter().flat_map(move |n| d.iter().map(move |d| (*n, *d)));
    pairs.flat_map(move |(n, d)| u.iter().map(move |u| [n, d, *u]))
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

fn live<T: Copy>(cell: Option<Cell<T>>, deleted: i64) -> Option<Cell<T>> {
    cell.filter(|cell| cell.timestamp > deleted)
}

/// The values that may be seen of a cell between two seconds, both included. A second is left for
/// a reader that comes a moment later.
fn values<T: Copy>(cell: Option<Cell<T>>, from_s: i64, to_s: i64) -> Vec<Option<T>> {
    let Some(cell) = cell else {
        return vec![None];
    };
    match cell.dies_s {
        Some((_, dead_s)) if from_s > dead_s + 1 => vec![None],
        Some((dies_s, _)) if to_s >= dies_s - 1 => vec![None, cell.value],
        _ => vec![cell.value],
    }
}
