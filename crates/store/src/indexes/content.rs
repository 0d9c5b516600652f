//! The content of an index: the structure of its values, and all around it that no structure has to
//! know. Searches read it, and the changes of rows go to it.

mod map;
mod recall;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};

use arc_swap::ArcSwap;
use bytes::Bytes;
use filter_columns::IdSet;
use full_text::{QueryStatistics, TextQuery};
use store_api::types::IndexRecall;
use tokio::sync::Notify;

use super::change::{RefusalReason, RefusedChange};
use super::files::{FilesFault, FilesProgress, FilesState};
use super::fresh::{ChangeBlocks, PublishedChanges};
use super::ranked_rows::RankedRows;
use super::request::{IndexSearch, StructureError};
use super::selection::SharedKeys;
use super::structure::{PreparedValue, Structure};
use super::structure_memory::{StructureDebt, StructureMemory};
use super::surrounding_rows::SurroundingRows;
use crate::filter::SearchFilter;
use crate::identity::StructureOptions;
use crate::items::{ChangeKind, IndexedRows};
use crate::keys::{KeySchema, KeyTable};
use crate::metrics::IndexMetrics;
use crate::observed::IndexableValue;
use crate::options::IndexesOptions;
pub(crate) use map::SampledRows;

/// The bytes of changes that may wait for maintenance before it begins without a pause of changes.
const UNTENDED_BYTES_SOON: usize = 4 << 20;

/// The bytes of changes that may wait for maintenance before no more changes are taken in. A scan
/// brings them faster than one thread in the background may take them.
const UNTENDED_BYTES_MAX: usize = 32 << 20;

/// The structure of an index, the keys of its rows, and the changes that the structure does not
/// have yet.
pub(crate) struct IndexContent {
    structure: Structure,
    fresh: PublishedChanges<PreparedValue>,
    schema: KeySchema,
    keys: SharedKeys,
    /// The epoch of searches. Each search holds the value from its beginning; see [`RetiredIds`].
    epoch: ArcSwap<()>,
    /// The number of rows at which `grown` is notified.
    tell_at: AtomicUsize,
    grown: Notify,
    /// Notified after damaged files were met.
    damage_met: Notify,
}

/// The values of an id's filter columns, in their order; `None` for null.
pub(crate) type NewFilters = (u32, Vec<Option<Bytes>>);

impl IndexContent {
    /// Makes the content of an index without rows.
    ///
    /// # Errors
    /// If an option is out of its range.
    pub(crate) fn new(
        options: &StructureOptions,
        schema: KeySchema,
        indexes: &IndexesOptions,
    ) -> Result<IndexContent, StructureError> {
        let structure = Structure::new(options, indexes)?;
        let keys = IndexedRows::key_table(&schema);
        Ok(IndexContent::reopened(structure, schema, keys))
    }

    /// Makes the content of an index from the parts of a snapshot.
    pub(crate) fn reopened(
        structure: Structure,
        schema: KeySchema,
        keys: KeyTable,
    ) -> IndexContent {
        IndexContent {
            structure,
            fresh: PublishedChanges::default(),
            keys: SharedKeys::new(keys),
            schema,
            epoch: ArcSwap::from_pointee(()),
            tell_at: AtomicUsize::new(usize::MAX),
            grown: Notify::new(),
            damage_met: Notify::new(),
        }
    }

    /// Writes the structure into a directory while it is searched and changed, for as long as
    /// `keep_going` returns true.
    ///
    /// # Errors
    /// If a file can't be written, values are damaged, or the work was stopped.
    pub(crate) fn save(
        &self,
        directory: &Path,
        keep_going: impl FnMut(FilesProgress) -> bool,
    ) -> Result<(), FilesFault> {
        let saved = self.structure.save(directory, keep_going);
        self.look_for_damage();
        saved
    }

    /// Verifies the files of an index from a snapshot, for as long as `keep_going` returns true.
    pub(crate) fn verify(&self, keep_going: impl FnMut(&FilesState) -> bool) -> FilesState {
        let state = self.structure.verify(keep_going);
        self.look_for_damage();
        state
    }

    /// Does a piece of the work that changes have left to do in the structure; see
    /// [`Structure::tend`]. Returns whether there is more.
    pub(crate) fn tend(&self, pace: &(dyn Fn() -> bool + Sync)) -> bool {
        let is_more = self.structure.tend(pace);
        self.look_for_damage();
        is_more
    }

    /// Whether so many changes wait for that work that it should begin now.
    pub(crate) fn should_be_tended_soon(&self) -> bool {
        self.structure.untended_bytes() >= UNTENDED_BYTES_SOON
    }

    /// Whether so many changes wait for that work that no more may come.
    pub(crate) fn is_full_of_changes(&self) -> bool {
        self.structure.untended_bytes() >= UNTENDED_BYTES_MAX
    }

    /// The recall that samples of the data have shown; `None` before there are any.
    pub(crate) fn recall(&self) -> Option<IndexRecall> {
        self.structure.recall()
    }

    /// Shows in metrics how well the structure finds rows.
    pub(crate) fn show_recall(&self, metrics: &IndexMetrics) {
        self.structure.show_recall(metrics);
    }

    /// Waits until damaged files have been met by a search, a change, a save or the verification.
    /// Returns the text of the error, which names the file. Only one task may wait.
    pub(crate) async fn damaged(&self) -> String {
        loop {
            self.damage_met.notified().await;
            if let FilesState::Damaged(error) = self.structure.files_state() {
                return error;
            }
        }
    }

    /// Checks for damage. It is called after values were read, as damage shows only when they are
    /// read.
    fn look_for_damage(&self) {
        if let FilesState::Damaged(_) = self.structure.files_state() {
            self.damage_met.notify_one();
        }
    }

    /// The number of rows that a search may find.
    pub(crate) fn len(&self) -> usize {
        self.keys().len()
    }

    /// Waits until there are at least so many rows. Only one task may wait.
    pub(crate) async fn grown_to(&self, rows: usize) {
        // Before the rows are counted, so that growth after that notifies.
        self.tell_at.store(rows, Ordering::Release);
        while self.len() < rows {
            self.grown.notified().await;
        }
    }

    /// The work that changes have left in the structure.
    pub(crate) fn debt(&self) -> StructureDebt {
        self.structure.debt()
    }

    /// The bytes held by the structure.
    pub(crate) fn memory(&self) -> StructureMemory {
        self.structure.memory()
    }

    /// The bytes of a full-text index's segments, and their number; `None` for an index of another
    /// class.
    pub(crate) fn text_segments(&self) -> Option<(u64, usize)> {
        let texts = self.structure.as_text()?;
        Some((texts.size_bytes(), texts.segment_count()))
    }

    /// The number of changes that searches see and the structure does not have yet.
    pub(crate) fn fresh_changes(&self) -> usize {
        self.fresh.len()
    }

    /// The bytes held for fresh changes.
    pub(crate) fn fresh_bytes(&self) -> usize {
        self.fresh.memory_bytes()
    }

    /// The keys, for reading. Searches wait while they are written.
    pub(crate) fn keys(&self) -> RwLockReadGuard<'_, KeyTable> {
        self.keys.read()
    }

    /// The keys, for the one task that changes the rows.
    pub(crate) fn keys_mut(&self) -> RwLockWriteGuard<'_, KeyTable> {
        self.keys.write()
    }

    /// Finds the best rows. There are fewer than requested only if the index has no more.
    ///
    /// # Errors
    /// If the query is none of this index, the answer would be too large, or the index is at fault.
    pub(crate) fn search<'a>(
        &'a self,
        search: &IndexSearch<'a>,
    ) -> Result<RankedRows<'a>, StructureError> {
        // Held from before the first id is seen until its key has been looked up.
        let _epoch = self.hold_ids();
        let found = self.structure.search(&self.rows(), search);
        self.noting_damage(found)
    }

    /// The rows around the structure.
    fn rows(&self) -> SurroundingRows<'_, PreparedValue> {
        SurroundingRows {
            keys: &self.keys,
            fresh: &self.fresh,
            schema: &self.schema,
        }
    }

    /// Checks for damage, if a search failed.
    fn noting_damage<T>(&self, found: Result<T, StructureError>) -> Result<T, StructureError> {
        if matches!(found, Err(StructureError::Internal(_))) {
            self.look_for_damage();
        }
        found
    }

    /// The ids of all rows. Some of them may have been removed, and have no vector by the time that
    /// it is looked at.
    fn known_ids(&self) -> IdSet {
        let mut ids = self.structure.ids();
        for id in self.fresh.now().newest().ids.iter() {
            ids.insert(id);
        }
        ids
    }

    /// Keeps the ids of rows from being given to others, for as long as the result is held.
    pub(crate) fn hold_ids(&self) -> Arc<()> {
        self.epoch.load_full()
    }

    /// The ids of the rows whose texts match a query. Some may have expired.
    ///
    /// # Errors
    /// If the index is none on texts, or at fault.
    pub(crate) fn matching_ids(&self, query: &TextQuery) -> Result<IdSet, StructureError> {
        let text = self.structure.as_text().ok_or_else(not_on_texts)?;
        let found = text.matching_ids(&self.rows(), query);
        self.noting_damage(found)
    }

    /// The statistics by which texts are scored for a query: of all rows, or of those of a tenant.
    ///
    /// # Errors
    /// If the index is none on texts, or at fault.
    pub(crate) fn text_statistics(
        &self,
        query: &TextQuery,
        tenant: Option<&SearchFilter>,
    ) -> Result<QueryStatistics, StructureError> {
        let _epoch = self.hold_ids();
        let text = self.structure.as_text().ok_or_else(not_on_texts)?;
        let found = text.statistics(&self.rows(), query, tenant);
        self.noting_damage(found)
    }

    /// Brings a value into the form of the structure.
    ///
    /// # Errors
    /// If the value is none of this index.
    pub(crate) fn prepare(&self, value: &IndexableValue) -> Result<PreparedValue, RefusalReason> {
        self.structure.prepare(value)
    }

    /// Publishes the changes that are fresh now, and with them the values of filter columns of
    /// their rows: a search that holds the keys sees both or neither. Only one task may do so.
    pub(crate) fn publish(&self, blocks: ChangeBlocks<PreparedValue>, filters: &[NewFilters]) {
        let rows = if filters.is_empty() {
            self.fresh.publish(blocks);
            self.len()
        } else {
            let mut keys = self.keys_mut();
            for (id, values) in filters {
                keys.set_filters(*id, values);
            }
            self.fresh.publish(blocks);
            keys.len()
        };
        if rows >= self.tell_at.load(Ordering::Acquire) {
            self.grown.notify_one();
        }
    }

    /// Makes a change in the structure. After a refusal the structure does not hold the id, unless
    /// that was to be removed.
    ///
    /// # Errors
    /// If there is no room, the value is none of this index, or the structure is at fault.
    pub(crate) fn change(
        &self,
        id: u32,
        operation: ChangeKind,
        value: Option<&PreparedValue>,
    ) -> Result<(), RefusedChange> {
        let changed = self.structure.change(id, operation, value);
        self.look_for_damage();
        changed.map_err(|error| RefusedChange {
            id,
            operation,
            error,
        })
    }
}

fn not_on_texts() -> StructureError {
    StructureError::Query("the index is not on texts".to_owned())
}

#[cfg(test)]
impl IndexContent {
    /// The structure.
    pub(crate) fn structure(&self) -> &Structure {
        &self.structure
    }
}

/// Ids that were removed, but may still be in use by a search.
///
/// A search gets ids from the structure and looks up their keys a moment later. If an id went to
/// another row in between, the answer would give that row the score of the removed one. So a
/// removed id waits for the end of every search that began before its removal; all of these hold
/// the epoch that ended then.
#[derive(Debug, Default)]
pub(crate) struct RetiredIds {
    waiting: VecDeque<(Arc<()>, Vec<u32>)>,
}

impl RetiredIds {
    /// Adds ids that the index has just removed.
    pub(crate) fn retire(&mut self, index: &IndexContent, ids: Vec<u32>) {
        if !ids.is_empty() {
            self.waiting
                .push_back((index.epoch.swap(Arc::new(())), ids));
        }
    }

    /// Takes out the ids that no search uses any more.
    pub(crate) fn free(&mut self) -> Vec<u32> {
        let mut free = Vec::new();
        while let Some((epoch, _)) = self.waiting.front()
            && Arc::strong_count(epoch) == 1
        {
            free.extend(
                self.waiting
                    .pop_front()
                    .into_iter()
                    .flat_map(|(_, ids)| ids),
            );
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexes::tests::{identity, in_memory};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_removed_id_waits_for_the_searches_of_its_time() {
        let identity = identity("idx");
        let index = IndexContent::new(&identity.options, identity.keys.clone(), &in_memory());
        let index = index.unwrap();
        let mut retired = RetiredIds::default();
        let search = index.epoch.load_full();
        retired.retire(&index, vec![1, 2]);
        let later_search = index.epoch.load_full();
        retired.retire(&index, vec![3]);
        assert_eq!(retired.free(), [0u32; 0]);
        drop(later_search);
        // The ids that were removed later wait for earlier searches too.
        assert_eq!(retired.free(), [0u32; 0]);
        drop(search);
        assert_eq!(retired.free(), [1, 2, 3]);
    }
}
