//! The newest acknowledged write to each table, so that a search can wait until the index knows it.

use std::collections::HashMap;

use parking_lot::Mutex;
use uuid::Uuid;

/// The times of the newest acknowledged writes. The time of a write is that of its log rows.
#[derive(Debug, Default)]
pub(crate) struct NewestWrites {
    /// Microseconds since the epoch, by the ids of the tables.
    by_table: Mutex<HashMap<Uuid, i64>>,
}

impl NewestWrites {
    /// Notes that a write to a table is acknowledged, whose last log row has this time.
    /// Microseconds since the epoch.
    pub(crate) fn note(&self, table: Uuid, micros: i64) {
        let mut by_table = self.by_table.lock();
        let newest = by_table.entry(table).or_insert(micros);
        *newest = micros.max(*newest);
    }

    /// The time of the newest write to a table; `None` if this gateway acknowledged none.
    /// Microseconds since the epoch.
    pub(crate) fn of(&self, table: Uuid) -> Option<i64> {
        self.by_table.lock().get(&table).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_write_of_each_table_is_kept() {
        let newest = NewestWrites::default();
        let [one, two] = [1, 2].map(Uuid::from_u128);
        newest.note(one, 5);
        newest.note(one, 3);
        newest.note(two, 9);
        let known = [one, two, Uuid::nil()].map(|table| newest.of(table));
        assert_eq!(known, [Some(5), Some(9), None]);
    }
}
