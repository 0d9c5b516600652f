//! Makes the sets of ids that filters admit.

use ann::IdSet;

use crate::data::random::Random;

/// The stream of the numbers that put ids in the order of a column.
const COLUMN_STREAM: u64 = 4_801;

/// The relation of a filter to the query that it comes with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Correlation {
    None,
    /// The nearest of all are admitted.
    Near,
    /// The farthest of all are admitted.
    Far,
}

impl Correlation {
    pub const ALL: [Correlation; 3] = [Correlation::None, Correlation::Near, Correlation::Far];

    pub fn name(self) -> &'static str {
        match self {
            Correlation::None => "independent",
            Correlation::Near => "the nearest",
            Correlation::Far => "the farthest",
        }
    }
}

/// A column whose values have nothing to do with the vectors.
pub struct Column {
    /// All ids, by ascending value.
    ids: Vec<u32>,
}

impl Column {
    /// Two columns of this many rows that have nothing to do with each other.
    pub fn all(rows: usize) -> [Column; 2] {
        [0, 1].map(|column| {
            let mut ids: Vec<u32> = (0..rows as u32).collect();
            Random::of_row(COLUMN_STREAM, column).shuffle(&mut ids);
            Column { ids }
        })
    }

    /// The values by ascending id: 0 for the first, and each value once.
    pub fn values(&self) -> impl Iterator<Item = u32> {
        let mut values = vec![0; self.ids.len()];
        for (value, &id) in (0..).zip(&self.ids) {
            values[id as usize] = value;
        }
        values.into_iter()
    }

    /// The `count` ids with the least values.
    pub fn admitted(&self, count: usize) -> IdSet {
        set(self.ids[..count].iter().copied())
    }
}

/// The ids that are among the `count` least of both columns.
pub fn of_columns([first, second]: &[Column; 2], count: usize) -> IdSet {
    let first = first.admitted(count);
    let second = second.ids[..count].iter().copied();
    set(second.filter(|id| first.contains(*id)))
}

/// The nearest or the farthest `count` of all ids, which are `ranked` by distance.
pub fn of_ranks(ranked: &[u32], correlation: Correlation, count: usize) -> IdSet {
    let from = match correlation {
        Correlation::Far => ranked.len() - count,
        _ => 0,
    };
    set(ranked[from..][..count].iter().copied())
}

fn set(ids: impl Iterator<Item = u32>) -> IdSet {
    let mut set = IdSet::default();
    ids.for_each(|id| {
        set.insert(id);
    });
    set
}
