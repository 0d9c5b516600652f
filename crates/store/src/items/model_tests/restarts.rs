//! Saves of the rows while they change, and crashes that leave only what was saved last.

use std::collections::BTreeMap;

use super::super::{RestoredRows, SavedRow, SavedRows, UnreadRows};
use super::{Hint, World};
use crate::keys::PrimaryKey;

/// A snapshot that is being taken.
#[derive(Default)]
pub(super) struct SaveInProgress {
    /// The number of hints that were all in the index when the save began.
    position: usize,
    hash_seed: u64,
    /// Whether the vectors of even and of odd ids have been copied.
    copied: [bool; 2],
    vectors: BTreeMap<u32, Vec<f32>>,
    rows: Vec<(SavedRow, PrimaryKey)>,
    /// The id to go on from.
    next: Option<u32>,
}

/// A finished snapshot.
pub(super) struct FinishedSnapshot {
    save: SaveInProgress,
    end: SavedRows,
}

impl World {
    /// The number of log hints that have all been read and taken in.
    fn position(&self) -> usize {
        let open = self.hints.iter().map(|(number, _)| *number);
        let reads = self.issued.iter().chain(&self.executed);
        let in_flight = reads.map(|read| read.hint);
        let first = open.chain(in_flight).flatten().min();
        first.unwrap_or(self.log.len())
    }

    /// Begins to save the rows.
    pub(super) fn begin_save(&mut self) {
        let position = self.position();
        self.items.begin_saving();
        self.save = Some(SaveInProgress {
            position,
            hash_seed: self.items.hash_seed(),
            next: Some(0),
            ..SaveInProgress::default()
        });
    }

    /// Copies the vectors of even or of odd ids.
    pub(super) fn copy_vectors(&mut self, odd: bool) {
        if let Some(save) = &mut self.save
            && !std::mem::replace(&mut save.copied[usize::from(odd)], true)
        {
            let some = self.index.iter().filter(|(id, _)| (**id % 2 == 1) == odd);
            save.vectors
                .extend(some.map(|(id, vector)| (*id, vector.clone())));
        }
    }

    /// Copies some rows.
    pub(super) fn copy_rows(&mut self) {
        if let Some(save) = &mut self.save
            && let Some(next) = save.next
        {
            save.next = self.items.saved_rows(&self.keys, next, 2, |row, key| {
                save.rows.push((row, PrimaryKey::from_encoded(key)));
            });
        }
    }

    /// Copies the rest.
    pub(super) fn end_save(&mut self) {
        self.copy_vectors(false);
        self.copy_vectors(true);
        while self.save.as_ref().is_some_and(|save| save.next.is_some()) {
            self.copy_rows();
        }
        if let Some(save) = self.save.take() {
            let end = self.items.end_saving(&self.keys);
            self.snapshot = Some(FinishedSnapshot { save, end });
        }
    }

    /// Drops all that was not saved, and the reads in progress. Then the log is read from the
    /// position on.
    pub(super) fn crash(&mut self) {
        let Some(FinishedSnapshot { save, end }) = &self.snapshot else {
            return;
        };
        self.save = None;
        self.issued.clear();
        self.executed.clear();
        self.sequencer = Default::default();
        let mut restored = RestoredRows::new(&self.schema, Vec::new(), save.hash_seed, 0);
        for (row, key) in &save.rows {
            if !end.touched.contains(&row.id) {
                assert!(save.vectors.contains_key(&row.id), "{row:?} has no vector");
                assert!(restored.put(*row, key.clone()), "{row:?} is there twice");
            }
        }
        for key in &end.unread {
            restored.put_unread(key.clone());
        }
        let vectors = save.vectors.iter().filter(|(id, _)| restored.has(**id));
        self.index = vectors.map(|(id, vector)| (*id, vector.clone())).collect();
        let position = save.position;
        let unread: UnreadRows;
        (self.items, self.keys, unread) = restored.finish();
        let log = self.log.iter().enumerate().skip(position);
        self.hints = log.map(|(number, hint)| (Some(number), *hint)).collect();
        let unread = self.rows_of(&[unread.missing, unread.expired].concat());
        self.hints
            .extend(unread.map(|(p, c)| (None, Hint::Row(p, c))));
    }

    /// The number of rows that a snapshot named as unread and that are still unread.
    pub(super) fn unread(&self) -> usize {
        self.items.unread.len()
    }
}
