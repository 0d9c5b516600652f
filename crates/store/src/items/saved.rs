//! The part of the rows that a snapshot holds, and the way back from a snapshot.
//!
//! # The content
//!
//! For each id a snapshot holds its key, the write time and the expiry of its vector, and the
//! vector's hash, so that a row that is read again unchanged changes nothing. It also holds the
//! keys of rows that the table may have and the index does not: those that wait for room, and those
//! that an earlier snapshot named as unread.
//!
//! A snapshot holds no numbers of reads and no absences. These guard against reads in flight, and
//! no read outlives the process. All rows come back with number 0, which every read beats.
//!
//! # While rows change
//!
//! The vectors of a snapshot are copied while the index changes, and so are the rows, some at a
//! time. If an id changes meanwhile, its copied vector may be of before or after the change, or be
//! missing; the id may even belong to another row. So such ids are recorded, from before the first
//! copy until after the last one. They belong to no row of the snapshot: their copies are ignored,
//! and the rows that have these ids in the end are named to be read again. All other ids did not
//! change.

use bytes::Bytes;
use filter_columns::IdSet;
use value::CqlType;

use super::{IndexedRows, KnownRow, ValueHasher};
use crate::keys::{KeySchema, KeyTable, PrimaryKey};

/// The saved state of the row under an id, without its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedRow {
    /// The id of the row.
    pub id: u32,
    /// A hash of the row's vector, by the [seed](IndexedRows::hash_seed).
    pub value_hash: u64,
    /// The write time of the vector, in microseconds since the epoch.
    pub written_us: i64,
    /// The time at which the vector expires, in seconds since the epoch; 0 for never.
    pub expires_s: u32,
    /// The time at which the row has to be read again, in seconds since the epoch; 0 for never. It
    /// is before the expiry if a value of a filter column expires first.
    pub changes_s: u32,
}

/// The end of a snapshot's rows.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SavedRows {
    /// The ids that belong to no row of the snapshot, whatever was copied for them.
    pub touched: Vec<u32>,
    /// The rows to read when the snapshot is opened.
    pub unread: Vec<PrimaryKey>,
}

/// The rows to read after a snapshot was opened.
#[derive(Debug, Default)]
pub(crate) struct UnreadRows {
    /// Rows that the index lacks, though the table may have had them when the snapshot was taken.
    pub missing: Vec<PrimaryKey>,
    /// Rows that have expired since the snapshot.
    pub expired: Vec<PrimaryKey>,
}

impl IndexedRows {
    /// The seed of the hashes of vectors.
    pub(crate) fn hash_seed(&self) -> u64 {
        self.hashing.seed()
    }

    /// The revision of the rows. Two equal revisions mean equal content of a snapshot.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Records the ids that change from now on.
    pub(crate) fn begin_saving(&mut self) {
        self.touched = Some(IdSet::default());
    }

    /// Calls `put` with the rows of up to `limit` ids, beginning with `from`. Returns the id to go
    /// on from.
    pub(crate) fn saved_rows(
        &self,
        keys: &KeyTable,
        from: u32,
        limit: usize,
        mut put: impl FnMut(SavedRow, &[u8]),
    ) -> Option<u32> {
        let end = (from as usize).saturating_add(limit).min(self.known.len());
        for (id, known) in (from..).zip(&self.known[from as usize..end]) {
            if let Some(key) = keys.shown(id) {
                let row = SavedRow {
                    id,
                    value_hash: known.value_hash,
                    written_us: known.written_us,
                    expires_s: known.expires_s,
                    changes_s: known.changes_s,
                };
                put(row, key);
            }
        }
        (end < self.known.len()).then_some(end as u32)
    }

    /// Ends the recording of [`IndexedRows::begin_saving`]. Returns what the snapshot needs in
    /// addition to the rows handed out since.
    pub(crate) fn end_saving(&mut self, keys: &KeyTable) -> SavedRows {
        let touched: Vec<u32> = self.touched.take().unwrap_or_default().iter().collect();
        let now_theirs = touched.iter().filter_map(|id| keys.key(*id));
        let unread = now_theirs
            .map(PrimaryKey::from_encoded)
            .chain(self.waiting.iter().cloned())
            .chain(self.unread.iter().cloned())
            .collect();
        SavedRows { touched, unread }
    }

    /// Removes up to `limit` rows, beginning with the id `from`, that no read has found since the
    /// snapshot was opened. Returns the id to go on from. `sequence` is the number of a read that
    /// began before a scan of all rows, and that scan has ended.
    pub(crate) fn remove_unseen(
        &mut self,
        keys: &mut KeyTable,
        sequence: u64,
        from: u32,
        limit: usize,
        changes: &mut Vec<super::StructureChange>,
    ) -> Option<u32> {
        let end = (from as usize).saturating_add(limit).min(self.known.len());
        for id in from..end as u32 {
            if self.known[id as usize].sequence == 0
                && let Some(key) = keys.remove(id)
            {
                self.touch(id);
                self.absences.remember_row(key, sequence);
                changes.push(super::StructureChange::Remove { id });
            }
        }
        (end < self.known.len()).then_some(end as u32)
    }
}

/// Rows that are restored from a snapshot.
pub(crate) struct RestoredRows {
    items: IndexedRows,
    keys: KeyTable,
    unread: UnreadRows,
    now_s: u32,
}

impl RestoredRows {
    /// Begins without rows. Rows that have expired by `now_s`, in seconds since the epoch, will be
    /// unread.
    ///
    /// `filters` are the types of the filter columns.
    pub(crate) fn new(
        schema: &KeySchema,
        filters: Vec<CqlType>,
        hash_seed: u64,
        now_s: u32,
    ) -> RestoredRows {
        let mut keys = IndexedRows::key_table(schema);
        keys.keep_filters(filters);
        RestoredRows {
            items: IndexedRows {
                hashing: ValueHasher::of_seed(hash_seed),
                ..IndexedRows::new(schema.clone())
            },
            keys,
            unread: UnreadRows::default(),
            now_s,
        }
    }

    /// Adds a row whose vector the index holds. Returns false if its id or its key belongs to
    /// another row.
    pub(crate) fn put(&mut self, row: SavedRow, key: PrimaryKey) -> bool {
        let at = row.id as usize;
        if self.keys.key(row.id).is_some() || self.keys.id(key.as_bytes()).is_some() {
            return false;
        }
        if row.expires_s != 0 && row.expires_s <= self.now_s {
            self.items.unread.insert(key.clone());
            self.unread.expired.push(key);
            return true;
        }
        if self.items.known.len() <= at {
            self.items.known.resize(at + 1, KnownRow::default());
        }
        self.items.known[at] = KnownRow {
            sequence: 0,
            value_hash: row.value_hash,
            written_us: row.written_us,
            expires_s: row.expires_s,
            changes_s: row.changes_s,
        };
        if row.changes_s != 0 {
            self.items.expiries.push(row.id, row.changes_s);
        }
        self.keys.insert(row.id, key);
        self.keys.set_expiry(row.id, row.expires_s);
        self.note_filter_expiry(row.id);
        true
    }

    /// Puts the values of the filter columns of a row that was put before. Returns false if there
    /// are not as many as columns. `changes_s` is the time at which the row has to be read again.
    pub(crate) fn put_filters(
        &mut self,
        id: u32,
        changes_s: u32,
        values: &[Option<Bytes>],
    ) -> bool {
        if self.keys.key(id).is_none() {
            // The row has expired.
            return true;
        }
        if values.len() != self.keys.filters().types().len() {
            return false;
        }
        self.keys.set_filters(id, values);
        let known = &mut self.items.known[id as usize];
        if changes_s != known.changes_s {
            known.changes_s = changes_s;
            self.items.expiries.push(id, changes_s);
        }
        self.note_filter_expiry(id);
        true
    }

    /// A row that has to be read again before it expires has a value that expires then.
    fn note_filter_expiry(&mut self, id: u32) {
        let KnownRow {
            expires_s,
            changes_s,
            ..
        } = self.items.known[id as usize];
        let is_of_filter = changes_s != expires_s;
        let expires_s = if is_of_filter { changes_s } else { 0 };
        self.keys.set_filter_expiry(id, expires_s);
    }

    /// Adds a row that has to be read.
    pub(crate) fn put_unread(&mut self, key: PrimaryKey) {
        self.items.unread.insert(key.clone());
        self.unread.missing.push(key);
    }

    /// Whether a row has that id.
    pub(crate) fn has(&self, id: u32) -> bool {
        self.keys.key(id).is_some()
    }

    /// Returns the rows, their keys, and the rows that have to be read.
    pub(crate) fn finish(mut self) -> (IndexedRows, KeyTable, UnreadRows) {
        let ids = 0..self.items.known.len() as u32;
        let free = ids.filter(|id| self.keys.key(*id).is_none());
        self.items.free = free.collect();
        (self.items, self.keys, self.unread)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{RowObservation, RowState, StructureChange};
    use super::*;
    use crate::items::tests::{key, present};
    use crate::keys::tests::text_schema;

    struct RestartedTable {
        items: IndexedRows,
        keys: KeyTable,
    }

    impl RestartedTable {
        fn new() -> RestartedTable {
            let schema = text_schema(1, 1);
            RestartedTable {
                keys: IndexedRows::key_table(&schema),
                items: IndexedRows::new(schema),
            }
        }

        fn observe(&mut self, sequence: u64, p: &str, state: RowState) -> Option<StructureChange> {
            let observation = RowObservation {
                key: key(p, "c"),
                state,
            };
            self.items.observe(&mut self.keys, sequence, observation)
        }

        fn rows(&self) -> Vec<(SavedRow, PrimaryKey)> {
            let mut rows = Vec::new();
            let mut from = Some(0);
            while let Some(next) = from {
                from = self.items.saved_rows(&self.keys, next, 2, |row, key| {
                    rows.push((row, PrimaryKey::from_encoded(key)));
                });
            }
            rows
        }

        /// The rows after a restart, with the keys that have to be read.
        fn reopened(&self, saved: &SavedRows, now_s: u32) -> (RestartedTable, UnreadRows) {
            let schema = text_schema(1, 1);
            let mut restored =
                RestoredRows::new(&schema, Vec::new(), self.items.hash_seed(), now_s);
            for (row, key) in self.rows() {
                if !saved.touched.contains(&row.id) {
                    assert!(restored.put(row, key));
                }
            }
            saved
                .unread
                .iter()
                .for_each(|key| restored.put_unread(key.clone()));
            let (items, keys, unread) = restored.finish();
            (RestartedTable { items, keys }, unread)
        }
    }

    #[test]
    fn rows_are_the_same_after_a_restart() {
        let mut table = RestartedTable::new();
        for p in ["a", "b", "c"] {
            table.observe(5, p, present(&[1.0], None));
        }
        table.observe(6, "b", RowState::Absent);
        table.items.begin_saving();
        let saved = table.items.end_saving(&table.keys);
        assert_eq!(saved, SavedRows::default());
        let (mut after, unread) = table.reopened(&saved, 100);
        assert_eq!(after.rows(), table.rows());
        assert!(unread.missing.is_empty() && unread.expired.is_empty());
        assert_eq!(after.observe(1, "a", present(&[1.0], None)), None);
        let change = after.observe(1, "c", present(&[2.0], None));
        assert!(matches!(
            change,
            Some(StructureChange::Replace { id: 2, .. })
        ));
        let change = after.observe(1, "d", present(&[2.0], None));
        assert!(
            matches!(change, Some(StructureChange::Insert { id: 1, .. })),
            "{change:?}"
        );
    }

    #[test]
    fn rows_that_change_during_a_save_are_read_again() {
        let mut table = RestartedTable::new();
        for p in ["a", "b", "c", "d"] {
            table.observe(1, p, present(&[1.0], None));
        }
        let key_d = key("d", "c");
        let id_d = table.keys.id(key_d.as_bytes()).unwrap();
        table.items.begin_saving();
        table.observe(2, "a", RowState::Absent);
        table.observe(2, "b", present(&[2.0], None));
        table.observe(3, "c", present(&[1.0], Some(1000)));
        table.items.without_room(&mut table.keys, id_d);
        let saved = table.items.end_saving(&table.keys);
        assert_eq!(saved.touched, [0, 1, id_d]);
        assert_eq!(saved.unread, [key("b", "c"), key_d.clone()]);
        // A row that is unread stays so until it is read, however often it is saved.
        let (mut after, _) = table.reopened(&saved, 100);
        after.items.begin_saving();
        let saved = after.items.end_saving(&after.keys);
        assert!(saved.touched.is_empty());
        let (mut after, unread) = after.reopened(&saved, 1001);
        let sorted = |mut keys: Vec<PrimaryKey>| {
            keys.sort();
            keys
        };
        assert_eq!(sorted(unread.missing), [key("b", "c"), key_d]);
        assert_eq!(unread.expired, [key("c", "c")]);
        assert_eq!(after.rows(), []);
        let before = after.items.revision();
        after.observe(1, "b", RowState::Absent);
        assert!(after.items.revision() > before);
        let saved = after.items.end_saving(&after.keys);
        assert_eq!(sorted(saved.unread), [key("c", "c"), key("d", "c")]);
    }

    #[test]
    fn rows_that_a_scan_does_not_find_are_removed() {
        let mut table = RestartedTable::new();
        for p in ["a", "b", "c"] {
            table.observe(9, p, present(&[1.0], None));
        }
        let (mut after, _) = table.reopened(&SavedRows::default(), 0);
        after.observe(4, "b", present(&[1.0], None));
        let mut changes = Vec::new();
        let mut from = Some(0);
        while let Some(next) = from {
            let (items, keys) = (&mut after.items, &mut after.keys);
            from = items.remove_unseen(keys, 3, next, 2, &mut changes);
        }
        assert_eq!(
            changes,
            [
                StructureChange::Remove { id: 0 },
                StructureChange::Remove { id: 2 }
            ]
        );
        // A read from before the scan changes nothing, but one from after it does.
        assert_eq!(after.observe(2, "a", present(&[1.0], None)), None);
        assert!(after.observe(5, "c", present(&[1.0], None)).is_some());
    }

    #[test]
    fn a_second_row_of_an_id_or_a_key_is_refused() {
        let schema = text_schema(1, 1);
        let mut restored = RestoredRows::new(&schema, Vec::new(), 1, 0);
        let row = |id| SavedRow {
            id,
            value_hash: 0,
            written_us: 0,
            expires_s: 0,
            changes_s: 0,
        };
        assert!(restored.put(row(0), key("a", "c")));
        assert!(!restored.put(row(0), key("b", "c")));
        assert!(!restored.put(row(1), key("a", "c")));
        assert!(restored.has(0) && !restored.has(1));
    }
}
