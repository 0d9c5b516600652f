//! Drops cells, markers and deletions that died long enough ago.
//!
//! A record holds nothing that its own tombstones cover, so dropping a tombstone brings nothing
//! back. A tombstone is retained only for late writes with an older timestamp.

use super::{CellView, ContentView, DeletionTime, RowRecord, StoredColumn};

impl CellView<'_> {
    /// Whether the cell was dead at that second.
    pub(super) fn died_by(&self, second: i64) -> bool {
        match &self.content {
            ContentView::Value { lifetime, .. } => super::is_expired(lifetime, second),
            ContentView::Tombstone { local_s } => *local_s <= second,
        }
    }
}

fn forget_deletion(deletion: &mut Option<DeletionTime>, before_s: i64) -> bool {
    let forgotten = deletion.is_some_and(|deletion| deletion.local_s <= before_s);
    if forgotten {
        *deletion = None;
    }
    forgotten
}

impl RowRecord {
    /// Drops everything that was dead at that second. Returns whether there was anything.
    pub(crate) fn forget(&mut self, before_s: i64) -> bool {
        let mut changed = self.forget_cells(before_s);
        changed |= forget_deletion(&mut self.deletion, before_s);
        if let Some(marker) = self.marker
            && super::is_expired(&marker.lifetime, before_s)
        {
            self.marker = None;
            changed = true;
        }
        changed
    }

    /// Does [`RowRecord::forget`] for the head of a partition, whose deletion has to stay until it
    /// is swept.
    pub(crate) fn forget_of_head(&mut self, before_s: i64) -> bool {
        let mut changed = self.forget_cells(before_s);
        if self.swept && forget_deletion(&mut self.deletion, before_s) {
            self.swept = false;
            changed = true;
        }
        changed
    }

    fn forget_cells(&mut self, before_s: i64) -> bool {
        let mut changed = false;
        self.cells.retain_mut(|(_, column)| match column {
            StoredColumn::Simple(cell) => {
                let dead = cell.view().died_by(before_s);
                changed |= dead;
                !dead
            }
            StoredColumn::Elements { deletion, cells } => {
                let count = cells.len();
                cells.retain(|(_, cell)| !cell.view().died_by(before_s));
                changed |= cells.len() < count;
                changed |= forget_deletion(deletion, before_s);
                deletion.is_some() || !cells.is_empty()
            }
            StoredColumn::Packed { deletion, packed } => {
                changed |= packed.forget(before_s);
                changed |= forget_deletion(deletion, before_s);
                deletion.is_some() || packed.len() > 0
            }
        });
        changed
    }
}
