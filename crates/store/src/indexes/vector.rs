//! One vector index with the keys of its rows. Searches read it, and the changes of rows go to it.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use ann::{Neighbour, SearchOptions, VectorsState};
use arc_swap::ArcSwap;
use index::Metric;
use index::VectorOptions;
use index::score;
use tokio::sync::Notify;

use super::ranked_rows::RankedRows;
use crate::compute::{Compute, Stopped};
use crate::index_options::engine_options;
use crate::items::{Change, Items, Operation};
use crate::keys::{KeySchema, KeyTable};
use crate::observed::Observed;
use crate::options::IndexesOptions;

/// The smallest number of changes for which another thread pays.
const CHANGES_A_THREAD_MIN: usize = 8;

/// The number of searches that one request may take. A search that met rows on their way out is
/// repeated with a higher limit.
const SEARCHES_MAX: usize = 3;

/// A vector index and the keys of its rows.
pub struct VectorIndex {
    ann: ann::Index,
    /// The beam width of searches, if the schema sets one.
    beam: Option<usize>,
    similarity: Metric,
    schema: KeySchema,
    keys: RwLock<KeyTable>,
    /// The epoch of searches. Each search holds the value from its beginning; see [`Retired`].
    epoch: ArcSwap<()>,
    /// The number of rows at which `grown` is notified.
    tell_at: AtomicUsize,
    grown: Notify,
    /// Notified after damaged vectors were met.
    damage_met: Notify,
}

/// The reason why a search failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum VectorError {
    /// The query isn't a vector that the index could hold.
    #[error("{0}")]
    Query(ann::Error),
    /// The index or its content is at fault.
    #[error("{0}")]
    Internal(String),
}

/// A change that the index refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The id of the refused change. The index doesn't hold it now.
    pub id: u32,
    /// The operation that was refused.
    pub operation: Operation,
    /// The reason of the refusal.
    pub error: ann::Error,
}

impl Refused {
    /// Whether there was no room, so that the change may be made later.
    pub fn for_want_of_room(&self) -> bool {
        matches!(self.error, ann::Error::Full | ann::Error::NoRoom(_))
    }
}

impl VectorIndex {
    /// Makes an empty index.
    pub fn new(
        options: &VectorOptions,
        schema: KeySchema,
        indexes: &IndexesOptions,
    ) -> Result<VectorIndex, ann::Error> {
        Ok(VectorIndex {
            ann: ann::Index::new_in(engine_options(options, indexes.vectors), &indexes.directory)?,
            beam: options.search_beam_width,
            similarity: options.effective_metric(),
            keys: RwLock::new(Items::key_table(&schema)),
            schema,
            epoch: ArcSwap::from_pointee(()),
            tell_at: AtomicUsize::new(usize::MAX),
            grown: Notify::new(),
            damage_met: Notify::new(),
        })
    }

    /// Makes an index from the parts of a snapshot.
    pub fn reopened(
        options: &VectorOptions,
        schema: KeySchema,
        ann: ann::Index,
        keys: KeyTable,
    ) -> VectorIndex {
        VectorIndex {
            ann,
            beam: options.search_beam_width,
            similarity: options.effective_metric(),
            keys: RwLock::new(keys),
            schema,
            epoch: ArcSwap::from_pointee(()),
            tell_at: AtomicUsize::new(usize::MAX),
            grown: Notify::new(),
            damage_met: Notify::new(),
        }
    }

    /// Writes the vectors into a directory while they are searched and changed, for as long as
    /// `keep_going` returns true; see [`ann::Index::save_while`].
    pub fn save(
        &self,
        directory: &Path,
        keep_going: impl FnMut(ann::SaveProgress) -> bool,
    ) -> Result<ann::Saved, ann::SnapshotError> {
        let saved = self.ann.save_while(directory, keep_going);
        self.look_for_damage();
        saved
    }

    /// Verifies the vectors of an index from a snapshot, for as long as `keep_going` returns true.
    pub fn verify(&self, mut keep_going: impl FnMut(&VectorsState) -> bool) -> VectorsState {
        let state = self
            .ann
            .verify_vectors(|| keep_going(&self.ann.vectors_state()));
        self.look_for_damage();
        state
    }

    /// Waits until damaged vectors have been met by a search, a change, a save or the verification.
    /// Returns the error, which names the file. Only one task may wait.
    pub async fn damaged(&self) -> Arc<ann::SnapshotError> {
        loop {
            self.damage_met.notified().await;
            if let VectorsState::Damaged(error) = self.ann.vectors_state() {
                return error;
            }
        }
    }

    /// Checks for damage. It is called after vectors were read, as damage shows only when they are
    /// read.
    fn look_for_damage(&self) {
        if let VectorsState::Damaged(_) = self.ann.vectors_state() {
            self.damage_met.notify_one();
        }
    }

    /// The number of rows that a search may find.
    pub fn len(&self) -> usize {
        self.ann.len()
    }

    /// Waits until there are at least so many rows. Only one task may wait.
    pub async fn grown_to(&self, rows: usize) {
        self.tell_at.store(rows, Ordering::Release);
        while self.len() < rows {
            self.grown.notified().await;
        }
    }

    /// The bytes held for vectors, by component.
    pub fn memory(&self) -> ann::Memory {
        self.ann.memory()
    }

    /// The keys, for reading. Searches wait while they are written.
    pub fn keys(&self) -> RwLockReadGuard<'_, KeyTable> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The keys, for the one task that changes the rows.
    pub fn keys_mut(&self) -> RwLockWriteGuard<'_, KeyTable> {
        self.keys.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the nearest rows, `limit` at most.
    pub fn search(&self, vector: &[f32], limit: usize) -> Result<RankedRows<'_>, VectorError> {
        let _epoch = self.epoch.load_full();
        let mut searches = 0;
        let mut ask = limit.min(self.ann.len());
        loop {
            let search = SearchOptions {
                beam: self.beam,
                ..SearchOptions::new(ask)
            };
            let found = self.ann.search_with(vector, &search);
            let found = found.map_err(|error| match error {
                ann::Error::Dimensions { .. } | ann::Error::NotFinite { .. } => {
                    VectorError::Query(error)
                }
                _ => {
                    self.look_for_damage();
                    VectorError::Internal(error.to_string())
                }
            })?;
            searches += 1;
            let (rows, gone) = self.answer(&found, limit)?;
            // A row loses its key just before its vector, so a search may find it without a key.
            // The next search asks for as many rows more.
            if gone == 0 || searches == SEARCHES_MAX || ask >= self.ann.len() {
                return Ok(rows);
            }
            ask += gone;
        }
    }

    /// Makes an answer of the neighbours that were found, and counts those whose row is gone
    /// meanwhile.
    fn answer(
        &self,
        found: &[Neighbour],
        limit: usize,
    ) -> Result<(RankedRows<'_>, usize), VectorError> {
        let mut rows = RankedRows::with_capacity(&self.schema, found.len().min(limit));
        let mut gone = 0;
        let keys = self.keys();
        for neighbour in found {
            if rows.len() == limit {
                break;
            }
            let Some(key) = keys.shown(neighbour.id) else {
                gone += 1;
                continue;
            };
            let scored = score::score(
                self.similarity,
                self.ann.options().dimensions,
                neighbour.distance,
            )
            .map_err(|error| VectorError::Internal(error.to_string()))?;
            rows.push(key, scored);
        }
        Ok((rows, gone))
    }

    /// Makes changes and returns those that the index refused. The changes of one id keep their
    /// order. Other ids are changed at the same time, on as many threads as pay.
    pub async fn apply(
        self: &Arc<VectorIndex>,
        compute: &Compute,
        changes: Vec<Change>,
    ) -> Result<Vec<Refused>, Stopped> {
        let pieces = compute
            .threads()
            .min(changes.len().div_ceil(CHANGES_A_THREAD_MIN))
            .max(1);
        let mut by_piece: Vec<Vec<Change>> = (0..pieces).map(|_| Vec::new()).collect();
        for change in changes {
            by_piece[change.id() as usize % pieces].push(change);
        }
        let done = by_piece.into_iter().map(|piece| {
            let index = self.clone();
            compute.build(move || {
                let refused: Vec<Refused> = piece
                    .into_iter()
                    .filter_map(|change| index.apply_one(change).err())
                    .collect();
                index.look_for_damage();
                refused
            })
        });
        let refused = futures::future::try_join_all(done).await?;
        if self.len() >= self.tell_at.load(Ordering::Acquire) {
            self.grown.notify_one();
        }
        Ok(refused.into_iter().flatten().collect())
    }

    fn apply_one(&self, change: Change) -> Result<(), Refused> {
        let (id, operation) = (change.id(), change.operation());
        match change {
            Change::Insert { id, value } => {
                let Observed::Vector(vector) = value;
                self.ann.insert(id, &vector)
            }
            Change::Replace { id, value } => {
                let Observed::Vector(vector) = value;
                self.ann.replace(id, &vector).inspect_err(|_| {
                    // With its old vector the row would be found in the wrong place. If the index
                    // does not hold the id, there is nothing to remove.
                    let _ = self.ann.remove(id);
                })
            }
            Change::Remove { id } => self.ann.remove(id),
        }
        .map_err(|error| Refused {
            id,
            operation,
            error,
        })
    }
}

/// Ids that were removed, but may still be in use by a search.
///
/// A search gets ids from the graph and looks up their keys a moment later. If an id went to
/// another row in between, the answer would give that row the distance of the removed one. So a
/// removed id waits for the end of every search that began before its removal; all of these hold
/// the epoch that ended then.
#[derive(Debug, Default)]
pub struct Retired {
    waiting: VecDeque<(Arc<()>, Vec<u32>)>,
}

impl Retired {
    /// Adds ids that the index has just removed.
    pub fn retire(&mut self, index: &VectorIndex, ids: Vec<u32>) {
        if !ids.is_empty() {
            self.waiting
                .push_back((index.epoch.swap(Arc::new(())), ids));
        }
    }

    /// Takes out the ids that no search uses any more.
    pub fn free(&mut self) -> Vec<u32> {
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
    use crate::compute::INLINE_WITHIN;
    use crate::identity::IndexIdentity;
    use crate::indexes::tests::{identity, in_memory};

    fn index(identity: &IndexIdentity) -> VectorIndex {
        VectorIndex::new(&identity.options, identity.keys.clone(), &in_memory()).unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_removed_id_waits_for_the_searches_of_its_time() {
        let identity = identity("idx");
        let index = Arc::new(index(&identity));
        let mut retired = Retired::default();
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

    #[tokio::test(flavor = "multi_thread")]
    async fn rows_on_their_way_out_are_made_up_for() {
        let identity = identity("idx");
        let index = Arc::new(index(&identity));
        let compute = Compute::new(turns::Turns::of_threads(1), INLINE_WITHIN);
        let inserts = (0..4u32).map(|id| Change::Insert {
            id,
            value: Observed::Vector(vec![id as f32, 0.0]),
        });
        index.apply(&compute, inserts.collect()).await.unwrap();
        // The nearest two rows have lost their keys, but not their vectors yet.
        for id in 2..4u32 {
            let key = identity.keys.encode([id.to_string().as_bytes()]);
            index.keys_mut().insert(id, key);
        }
        let found = index.search(&[0.0, 0.0], 1).unwrap();
        let found = serde_json::to_value(&found).unwrap();
        assert_eq!(found["distances"], serde_json::json!([4.0]));
        assert_eq!(found["primary_keys"]["p0"], serde_json::json!(["2"]));
        let all = index.search(&[0.0, 0.0], 10).unwrap();
        let all = serde_json::to_value(&all).unwrap();
        assert_eq!(all["distances"], serde_json::json!([4.0, 9.0]));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_width_that_was_asked_for_is_that_of_a_search() {
        let mut identity = identity("idx");
        identity.options.dimensions = 24;
        let wide = Arc::new(index(&identity));
        identity.options.search_beam_width = Some(1);
        let narrow = Arc::new(index(&identity));
        // A build on one thread makes the same index each time.
        let compute = Compute::new(turns::Turns::of_threads(1), INLINE_WITHIN);
        let mut state = 1u64;
        let mut element = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as f32
        };
        let vectors: Vec<Vec<f32>> = (0..3000)
            .map(|_| (0..24).map(|_| element()).collect())
            .collect();
        for index in [&wide, &narrow] {
            let inserts = (0..).zip(vectors.iter().cloned());
            let inserts = inserts
                .map(|(id, vector)| (id, Observed::Vector(vector)))
                .map(|(id, value)| Change::Insert { id, value });
            index.apply(&compute, inserts.collect()).await.unwrap();
            for id in 0..3000u32 {
                let key = identity.keys.encode([id.to_string().as_bytes()]);
                index.keys_mut().insert(id, key);
            }
        }
        let mut missed = 0;
        for _ in 0..50 {
            let query: Vec<f32> = (0..24).map(|_| element()).collect();
            let nearest = |index: &VectorIndex| {
                let found = index.search(&query, 1).unwrap();
                serde_json::to_value(&found).unwrap()["primary_keys"].clone()
            };
            missed += usize::from(nearest(&wide) != nearest(&narrow));
        }
        assert!(missed > 10, "{missed} of 50");
    }

    #[test]
    fn an_empty_index_answers_nothing() {
        let identity = identity("idx");
        let index = index(&identity);
        let found = index.search(&[0.0, 0.0], 10).unwrap();
        assert_eq!(found.len(), 0);
        let found = serde_json::to_value(&found).unwrap();
        assert_eq!(found["primary_keys"], serde_json::json!({"p0": []}));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn changes_of_an_id_are_made_in_their_order() {
        let identity = identity("idx");
        let index = Arc::new(index(&identity));
        let compute = Compute::new(turns::Turns::of_threads(4), INLINE_WITHIN);
        let ids = 0..200u32;
        let mut changes = Vec::new();
        for round in 0..3u32 {
            for id in ids.clone() {
                let value = Observed::Vector(vec![(1000 * round + id) as f32, 0.0]);
                changes.push(match round {
                    0 => Change::Insert { id, value },
                    _ => Change::Replace { id, value },
                });
            }
        }
        changes.extend((0..100).map(|id| Change::Remove { id }));
        assert_eq!(index.apply(&compute, changes).await.unwrap(), []);
        let mut found = index.ann.search(&[2000.0, 0.0], 1000).unwrap();
        found.sort_by_key(|neighbour| neighbour.id);
        let found = found
            .into_iter()
            .map(|neighbour| (neighbour.id, neighbour.distance));
        let expected = (100..200).map(|id| (id, (id * id) as f32));
        assert!(found.eq(expected));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_row_whose_new_vector_is_refused_is_not_found_where_it_was() {
        let identity = identity("idx");
        let index = Arc::new(index(&identity));
        let compute = Compute::new(turns::Turns::of_threads(1), INLINE_WITHIN);
        let (id, value) = (7, Observed::Vector(vec![1.0, 0.0]));
        let insert = Change::Insert { id, value };
        assert_eq!(index.apply(&compute, vec![insert]).await.unwrap(), []);
        let value = Observed::Vector(vec![1.0, 0.0, 0.0]);
        let replace = Change::Replace { id, value };
        let refused = index.apply(&compute, vec![replace]).await.unwrap();
        assert_eq!(
            (refused[0].id, refused[0].operation),
            (7, Operation::Replace)
        );
        assert!(!refused[0].for_want_of_room());
        assert_eq!(index.len(), 0);
    }
}
