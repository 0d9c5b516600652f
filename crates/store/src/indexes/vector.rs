//! One vector index with the keys of its rows. Searches read it, and the changes of rows go to it.
//!
//! A search finds a row by its vector in the graph, or by its [fresh](super::fresh) one. It shows
//! no row whose key is gone, nor one that has expired. What it drops is made up for.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};

use ann::{Calibration, Filter, Neighbour, Prepared, SearchOptions, VectorsState};
use arc_swap::ArcSwap;
use bytes::Bytes;
use index::Metric;
use index::VectorOptions;
use index::score;
use store_api::types::IndexRecall;
use tokio::sync::Notify;

use super::fresh::{Blocks, Fresh, FreshNow, Measured};
use super::plan::Plan;
use super::ranked_rows::RankedRows;
use super::returned::{ReturnedColumn, ReturnedValues, Source, TooManyBytes};
use super::selection::{Selection, SharedKeys};
use crate::filter::RowFilter;
use crate::identity::Place;
use crate::index_options::engine_options;
use crate::items::{Items, Operation};
use crate::keys::{KeySchema, KeyTable, Values};
use crate::metrics::SAMPLED_KS;
use crate::options::IndexesOptions;

/// The part of the graph's vectors that may be hidden before a search looks only at the others: one
/// in this many. A search that looks at all of them and drops the hidden ones is faster while they
/// are few.
const HIDDEN_SHARE: usize = 8;

/// The number of times that a search looks again if rows that it found were changed meanwhile. Then
/// it lets nobody write.
const LOOKS_AGAIN: usize = 2;

/// A vector index and the keys of its rows.
pub struct VectorIndex {
    ann: ann::Index,
    fresh: Fresh,
    similarity: Metric,
    schema: KeySchema,
    keys: SharedKeys,
    /// The epoch of searches. Each search holds the value from its beginning; see [`Retired`].
    epoch: ArcSwap<()>,
    /// The number of rows at which `grown` is notified.
    tell_at: AtomicUsize,
    grown: Notify,
    /// Notified after damaged vectors were met.
    damage_met: Notify,
}

/// A search of an index.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// The vector to look for.
    pub query: &'a [f32],
    /// The most rows of the answer.
    pub limit: usize,
    /// The present, in seconds since the epoch. Rows that have expired by then are not found.
    pub now_s: u32,
    /// The filter that rows must satisfy.
    pub filter: Option<&'a RowFilter>,
    /// The columns whose values are wanted beside the keys; `None` if the answer shall not speak of
    /// any.
    pub returned: Option<&'a [ReturnedColumn]>,
    /// Whether the answer must be the true nearest rows, for sure.
    pub exact: bool,
    /// The key columns with their names in the answer; `None` for those that the index was made
    /// with.
    pub keys: Option<&'a KeySchema>,
}

/// The values of an id's filter columns, in their order; `None` for null.
pub type NewFilters = (u32, Vec<Option<Bytes>>);

impl Search<'_> {
    /// Whether the answer says something of the values of filter columns.
    fn uses_filters(&self) -> bool {
        let returned = self.returned.unwrap_or_default();
        self.filter.is_some_and(RowFilter::has_filter_columns)
            || returned
                .iter()
                .any(|column| matches!(column.source, Source::Kept(Place::Filter(_))))
    }
}

#[cfg(test)]
impl<'a> Search<'a> {
    /// A search for the `limit` nearest of all rows, of which none has expired.
    pub fn new(query: &'a [f32], limit: usize) -> Search<'a> {
        Search {
            query,
            limit,
            now_s: 0,
            filter: None,
            returned: None,
            exact: false,
            keys: None,
        }
    }
}

/// The reason why a search failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum VectorError {
    /// The query isn't a vector that the index could hold.
    #[error("{0}")]
    Query(ann::Error),
    /// The answer would be too large.
    #[error(transparent)]
    TooManyBytes(#[from] TooManyBytes),
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
            fresh: Fresh::default(),
            similarity: options.effective_metric(),
            keys: SharedKeys::new(Items::key_table(&schema)),
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
            fresh: Fresh::default(),
            similarity: options.effective_metric(),
            keys: SharedKeys::new(keys),
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

    /// Does about a millisecond of the work that changes have left to do in the graph. Returns
    /// whether there is more; see [`ann::Index::tend`].
    pub fn tend(&self) -> bool {
        let is_more = self.ann.tend();
        self.look_for_damage();
        is_more
    }

    /// The width of walks for `k` rows that samples of the data were found to need.
    pub fn calibration(&self, k: usize) -> Calibration {
        self.ann.calibration(k)
    }

    /// The recall that samples of the data have shown; `None` before there are any.
    pub fn recall(&self) -> Option<IndexRecall> {
        let [ten, hundred] = SAMPLED_KS.map(|k| self.calibration(k));
        let recall = IndexRecall {
            estimate_at_10: ten.recall.map(rounded),
            width_at_10: ten.width.into(),
            estimate_at_100: hundred.recall.map(rounded),
            width_at_100: hundred.width.into(),
            bounded: ten.is_bounded || hundred.is_bounded,
        };
        let is_default = (recall.width_at_10, recall.width_at_100) == (1.0, 1.0);
        let is_known = ten.recall.or(hundred.recall).is_some() || !is_default;
        is_known.then_some(recall)
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
        self.keys().len()
    }

    /// Waits until there are at least so many rows. Only one task may wait.
    pub async fn grown_to(&self, rows: usize) {
        self.tell_at.store(rows, Ordering::Release);
        while self.len() < rows {
            self.grown.notified().await;
        }
    }

    /// The bytes held for the graph and its vectors, by component.
    pub fn memory(&self) -> ann::Memory {
        self.ann.memory()
    }

    /// The number of changes that searches see and the graph does not have yet.
    pub fn fresh_changes(&self) -> usize {
        self.fresh.len()
    }

    /// The bytes held for fresh changes.
    pub fn fresh_bytes(&self) -> usize {
        self.fresh.memory_bytes()
    }

    /// The keys, for reading. Searches wait while they are written.
    pub fn keys(&self) -> RwLockReadGuard<'_, KeyTable> {
        self.keys.read()
    }

    /// The keys, for the one task that changes the rows.
    pub fn keys_mut(&self) -> RwLockWriteGuard<'_, KeyTable> {
        self.keys.write()
    }

    /// Finds the nearest rows. There are fewer than asked for only if the index has no more.
    pub fn search<'a>(&'a self, search: &Search<'a>) -> Result<RankedRows<'a>, VectorError> {
        let _epoch = self.epoch.load_full();
        if search.filter.is_some() {
            return self.search_selected(search);
        }
        let Search {
            query,
            limit,
            now_s,
            ..
        } = *search;
        let fresh = self.fresh.now().measure(&self.ann, query);
        let Measured {
            hidden,
            vectors,
            end,
        } = fresh.map_err(|error| self.fault(error))?;
        let held = self.ann.len();
        if HIDDEN_SHARE * hidden.len() <= held {
            // As many more as are hidden among the nearest, on average.
            let more = (limit.min(held) * hidden.len()).div_ceil(held.max(1));
            let ask = limit.saturating_add(more).min(held);
            let (mut found, mut plan) = self.nearest(search, ask, None)?;
            let reach = match ask < held {
                true => found.last().map(|farthest| farthest.distance),
                false => None,
            };
            found.retain(|neighbour| !hidden.contains(neighbour.id));
            let keys = self.keys();
            let (rows, dropped) = merge(found, &vectors, limit, &keys, now_s);
            // Rows that were dropped may stand for others, farther away.
            let is_whole = reach.is_none_or(|reach| {
                let enough = rows.len() == limit;
                enough && rows.last().is_none_or(|last| last.distance <= reach)
            });
            let is_whole = is_whole || (dropped == 0 && hidden.is_empty());
            if is_whole && !self.are_newer(&rows, end, search) {
                plan.fresh = vectors.len();
                let answer = self.answer(&rows, &keys, search)?;
                return Ok(answer.found_by(plan));
            }
        }
        self.search_selected(search)
    }

    /// Finds the nearest rows that satisfy a filter, by looking at these rows alone. Few rows are
    /// found by their ids first; of many rows the engine asks one by one. Rows may be changed
    /// meanwhile: it looks again if one was that it had found, as the values that a filter is
    /// checked against belong to the row's newest vector.
    fn search_selected<'a>(&'a self, search: &Search<'a>) -> Result<RankedRows<'a>, VectorError> {
        let Search {
            query,
            limit,
            now_s,
            filter,
            ..
        } = *search;
        let mut looks_again = LOOKS_AGAIN;
        loop {
            let is_open = looks_again > 0;
            let selection = Selection::new(&self.keys, filter, now_s, is_open);
            if !is_open {
                selection.hold();
            }
            let fresh = self.fresh.now().measure(&self.ann, query);
            let Measured {
                hidden,
                mut vectors,
                end,
            } = fresh.map_err(|error| self.fault(error))?;
            let (mut found, mut plan) = match selection.few() {
                Some(mut ids) => {
                    let admitted = ids.len();
                    hidden.iter().for_each(|id| {
                        ids.remove(id);
                    });
                    selection.let_writers_in();
                    let few = Filter::Ids(&ids);
                    let (found, plan) = self.nearest(search, limit, Some(few))?;
                    let admitted = Some(admitted);
                    (found, Plan { admitted, ..plan })
                }
                None => {
                    let admits = |id| !hidden.contains(id) && selection.admits(id);
                    let admitted = Filter::Predicate(&admits);
                    self.nearest(search, limit, Some(admitted))?
                }
            };
            let proposed = found.len();
            // The filter holds for the very values that are answered.
            let answer = selection.at_once(|keys, admits| {
                found.retain(|neighbour| admits(neighbour.id));
                if found.len() < proposed && is_open {
                    return Ok(None);
                }
                vectors.retain(|neighbour| admits(neighbour.id));
                let (rows, _) = merge(found, &vectors, limit, keys, now_s);
                if is_open && self.are_newer(&rows, end, search) {
                    return Ok(None);
                }
                plan.fresh = vectors.len();
                self.answer(&rows, keys, search).map(Some)
            })?;
            if let Some(answer) = answer {
                return Ok(answer.found_by(plan));
            }
            looks_again -= 1;
        }
    }

    /// Finds the `k` nearest vectors of the graph for a search. `filter` admits those that it may
    /// find, whether or not the user restricts it.
    fn nearest(
        &self,
        search: &Search<'_>,
        k: usize,
        filter: Option<Filter<'_>>,
    ) -> Result<(Vec<Neighbour>, Plan), VectorError> {
        let options = self.engine_search(search, k, filter);
        let found = self.ann.explain(search.query, &options);
        let (found, explanation) = found.map_err(|error| self.fault(error))?;
        let is_filtered = search.filter.is_some();
        Ok((found, Plan::of(is_filtered, search.exact, &explanation)))
    }

    /// The search in the engine's terms. The engine has the width that the schema sets as the least
    /// one ([`engine_options`]), so none is given here.
    fn engine_search<'f>(
        &self,
        search: &Search<'_>,
        k: usize,
        filter: Option<Filter<'f>>,
    ) -> SearchOptions<'f> {
        SearchOptions {
            exact: search.exact,
            filter,
            ..SearchOptions::new(k.min(self.ann.len()))
        }
    }

    /// Whether the values of filter columns of one of these rows may be newer than its vector was.
    /// The keys are locked meanwhile.
    fn are_newer(&self, rows: &[Neighbour], end: u64, search: &Search<'_>) -> bool {
        search.uses_filters() && self.fresh.may_have_changed(rows, end)
    }

    fn fault(&self, error: ann::Error) -> VectorError {
        match error {
            ann::Error::Dimensions { .. } | ann::Error::NotFinite { .. } => {
                VectorError::Query(error)
            }
            _ => {
                self.look_for_damage();
                VectorError::Internal(error.to_string())
            }
        }
    }

    /// Makes an answer of rows that have keys.
    fn answer<'a>(
        &'a self,
        nearest: &[Neighbour],
        keys: &KeyTable,
        search: &Search<'a>,
    ) -> Result<RankedRows<'a>, VectorError> {
        let returned = search.returned;
        let schema = search.keys.unwrap_or(&self.schema);
        let mut rows = RankedRows::with_capacity(schema, nearest.len()).returning(returned);
        let dimensions = self.ann.options().dimensions;
        let columns = returned.unwrap_or_default();
        let returns_vectors = columns
            .iter()
            .any(|column| column.source == Source::Vectors);
        let uses_filters = search.uses_filters();
        // The fresh vectors are looked at before the graph, which takes them in meanwhile.
        let fresh = returns_vectors.then(|| self.fresh.now());
        let fresh = fresh.as_ref().map(FreshNow::by_id).unwrap_or_default();
        for neighbour in nearest {
            let scored = score::score(self.similarity, dimensions, neighbour.distance);
            let scored = scored.map_err(|error| VectorError::Internal(error.to_string()))?;
            let Some(key) = keys.shown(neighbour.id) else {
                continue;
            };
            rows.push(key, scored);
            if uses_filters && keys.is_in_doubt(neighbour.id, search.now_s) {
                rows.put_in_doubt();
            }
            for values in rows.returned() {
                let value = match values.column().source {
                    Source::Kept(Place::Key(at)) => Values::of(key).nth(at).map(Cow::Borrowed),
                    Source::Kept(Place::Filter(at)) => keys.filters().value(at, neighbour.id),
                    Source::Vectors => self.serialised_vector(neighbour.id, &fresh),
                };
                values.push(value);
            }
            ReturnedValues::check(rows.returned())?;
        }
        Ok(rows)
    }

    /// The vector of an id as CQL serialises it, at the precision of the index; `None` if it has
    /// none any more. `fresh` are the changes that the graph may not have yet.
    fn serialised_vector(
        &self,
        id: u32,
        fresh: &HashMap<u32, Option<&Prepared>>,
    ) -> Option<Cow<'static, [u8]>> {
        let vector = match fresh.get(&id) {
            Some(changed) => changed.map(|prepared| self.ann.vector_of(prepared)),
            None => self.ann.vector(id),
        }?;
        let bytes = vector.iter().flat_map(|element| element.to_be_bytes());
        Some(Cow::Owned(bytes.collect()))
    }

    /// Brings a vector into the form of the index.
    pub fn prepare(&self, vector: &[f32]) -> Result<Prepared, ann::Error> {
        self.ann.prepare(vector)
    }

    /// Publishes the changes that are fresh now, and with them the values of filter columns of
    /// their rows: a search that holds the keys sees both or neither. One task alone may do so.
    pub fn publish(&self, blocks: Blocks, filters: &[NewFilters]) {
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

    /// Makes a change in the graph. After a refusal the graph does not hold the id, unless that was
    /// to be removed.
    pub fn change(
        &self,
        id: u32,
        operation: Operation,
        vector: Option<&Prepared>,
    ) -> Result<(), Refused> {
        let changed = match (operation, vector) {
            (Operation::Insert, Some(vector)) => self.ann.insert_prepared(id, vector),
            (Operation::Replace, Some(vector)) => {
                self.ann.replace_prepared(id, vector).inspect_err(|_| {
                    // With its old vector the row would be found in the wrong place. If the graph
                    // does not hold the id, there is nothing to remove.
                    let _ = self.ann.remove(id);
                })
            }
            (Operation::Remove, _) | (_, None) => self.ann.remove(id),
        };
        self.look_for_damage();
        changed.map_err(|error| Refused {
            id,
            operation,
            error,
        })
    }
}

/// A share of rows, to the fourth decimal.
fn rounded(share: f32) -> f64 {
    (f64::from(share) * 1e4).round() / 1e4
}

/// Merges vectors of the graph with fresh ones, nearest first, `limit` at most. Returns the rows,
/// and the number of vectors of the graph whose row is gone.
fn merge(
    mut found: Vec<Neighbour>,
    fresh: &[Neighbour],
    limit: usize,
    keys: &KeyTable,
    now_s: u32,
) -> (Vec<Neighbour>, usize) {
    let proposed = found.len();
    found.retain(|neighbour| keys.found(neighbour.id, now_s).is_some());
    let dropped = proposed - found.len();
    if !fresh.is_empty() {
        let shown = fresh.iter().copied();
        found.extend(shown.filter(|neighbour| keys.found(neighbour.id, now_s).is_some()));
        let order = |a: &Neighbour, b: &Neighbour| {
            let by_distance = a.distance.total_cmp(&b.distance);
            by_distance.then(a.id.cmp(&b.id))
        };
        if found.len() > limit {
            found.select_nth_unstable_by(limit, order);
            found.truncate(limit);
        }
        found.sort_unstable_by(order);
    }
    found.truncate(limit);
    (found, dropped)
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
    use store_api::types::SearchPlan;

    use super::*;
    use crate::identity::IndexIdentity;
    use crate::indexes::tests::{identity, in_memory, insert};
    use crate::indexes::{Block, FreshChange};

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

    #[test]
    fn rows_on_their_way_out_are_made_up_for() {
        let identity = identity("idx");
        let index = index(&identity);
        for id in 0..4u32 {
            insert(&index, id, &[id as f32, 0.0]);
        }
        // The nearest two rows have lost their keys, but not their vectors yet.
        for id in 2..4u32 {
            let key = identity.keys.encode([id.to_string().as_bytes()]);
            index.keys_mut().insert(id, key);
        }
        let found = index.search(&Search::new(&[0.0, 0.0], 1)).unwrap();
        let found = serde_json::to_value(&found).unwrap();
        assert_eq!(found["distances"], serde_json::json!([4.0]));
        assert_eq!(found["primary_keys"]["p0"], serde_json::json!(["2"]));
        let all = index.search(&Search::new(&[0.0, 0.0], 10)).unwrap();
        let all = serde_json::to_value(&all).unwrap();
        assert_eq!(all["distances"], serde_json::json!([4.0, 9.0]));
    }

    /// An index of that search width with the vectors, whose rows are named by their positions.
    fn of_width(width: Option<usize>, vectors: &[Vec<f32>]) -> VectorIndex {
        let mut identity = identity("idx");
        identity.options.dimensions = 24;
        identity.options.search_beam_width = width;
        let index = index(&identity);
        for (id, vector) in (0..).zip(vectors) {
            insert(&index, id, vector);
            let key = identity.keys.encode([id.to_string().as_bytes()]);
            index.keys_mut().insert(id, key);
        }
        index
    }

    #[test]
    fn the_width_of_the_schema_is_no_cap() {
        let mut state = 1u64;
        let mut element = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as f32
        };
        let mut vector = || (0..24).map(|_| element()).collect::<Vec<f32>>();
        let vectors: Vec<Vec<f32>> = (0..3000).map(|_| vector()).collect();
        let indexes = [None, Some(1)].map(|width| of_width(width, &vectors));
        for _ in 0..50 {
            let query = vector();
            let [usual, narrow] = indexes.each_ref().map(|index| {
                let found = index.search(&Search::new(&query, 1)).unwrap();
                serde_json::to_value(&found).unwrap()["primary_keys"].clone()
            });
            assert_eq!(usual, narrow);
        }
    }

    #[test]
    fn the_engine_is_asked_for_what_the_search_wants() {
        let index = of_width(Some(300), &[vec![1.0; 24], vec![2.0; 24]]);
        // The engine has the width, below which no search is narrower.
        assert_eq!(index.ann.options().search_beam_width, 300);
        let query = [0.0; 24];
        let search = Search::new(&query, 1);
        let asked = index.engine_search(&search, 9, None);
        assert_eq!((asked.k, asked.beam, asked.rescored), (2, None, None));
        assert!(!asked.exact);
        let plan = index.search(&search).unwrap().plan().unwrap().kind;
        assert_eq!(plan, SearchPlan::Scan);
        let exact = Search {
            exact: true,
            ..search
        };
        assert!(index.engine_search(&exact, 1, None).exact);
        let plan = index.search(&exact).unwrap().plan().unwrap().kind;
        assert_eq!(plan, SearchPlan::Exact);
    }

    #[test]
    fn an_empty_index_answers_nothing() {
        let identity = identity("idx");
        let index = index(&identity);
        let found = index.search(&Search::new(&[0.0, 0.0], 10)).unwrap();
        let found = serde_json::to_value(&found).unwrap();
        assert_eq!(found["primary_keys"], serde_json::json!({"p0": []}));
    }

    #[test]
    fn a_row_whose_new_vector_is_refused_is_not_found_where_it_was() {
        let identity = identity("idx");
        let index = index(&identity);
        insert(&index, 7, &[1.0, 0.0]);
        let other = ann::Index::new(ann::Options::new(3)).unwrap();
        let vector = other.prepare(&[1.0, 0.0, 0.0]).unwrap();
        let refused = index.change(8, Operation::Replace, Some(&vector));
        let refused = refused.unwrap_err();
        assert_eq!((refused.id, refused.operation), (8, Operation::Replace));
        assert!(!refused.for_want_of_room());
        assert_eq!(index.ann.len(), 1);
    }

    fn block(index: &VectorIndex, changes: &[(u32, Option<[f32; 2]>)]) -> Arc<Block> {
        let fresh = |(id, vector): &(u32, Option<[f32; 2]>)| FreshChange {
            id: *id,
            vector: vector.map(|vector| index.prepare(&vector).unwrap()),
        };
        Arc::new(Block::new(changes.iter().map(fresh).collect()))
    }

    fn publish(index: &VectorIndex, blocks: Vec<Arc<Block>>) {
        index.publish(Blocks { first: 0, blocks }, &[]);
    }

    /// The rows nearest to the origin, by their names and distances.
    fn found(index: &VectorIndex, limit: usize, now_s: u32) -> Vec<(String, f32)> {
        let search = Search {
            now_s,
            ..Search::new(&[0.0, 0.0], limit)
        };
        let found = index.search(&search).unwrap();
        let rows = store_api::binary::Rows::read(found.binary()).unwrap();
        let keys = rows.columns[0].values.iter();
        let keys = keys.map(|key| String::from_utf8(key.to_vec()).unwrap());
        keys.zip(rows.distances).collect()
    }

    fn with_rows(rows: u32) -> VectorIndex {
        let identity = identity("idx");
        let index = index(&identity);
        for id in 0..rows {
            insert(&index, id, &[id as f32, 0.0]);
        }
        for id in 0..rows + 10 {
            let key = identity.keys.encode([id.to_string().as_bytes()]);
            index.keys_mut().insert(id, key);
        }
        index
    }

    fn rows(rows: &[(&str, f32)]) -> Vec<(String, f32)> {
        let owned = |(name, distance): &(&str, f32)| ((*name).to_owned(), *distance);
        rows.iter().map(owned).collect()
    }

    #[test]
    fn fresh_changes_stand_before_what_the_graph_has() {
        for held in [0, 3, 2000] {
            let index = with_rows(held);
            let new = held + 1;
            let first = block(&index, &[(0, Some([0.5, 0.0])), (new, Some([9.0, 0.0]))]);
            let second = block(&index, &[(new, Some([0.0, 0.25])), (1, None), (2, None)]);
            publish(&index, vec![first.clone()]);
            let expected = rows(&[("0", 0.25)]);
            assert_eq!(found(&index, 1, 0), expected, "{held}");
            publish(&index, vec![first, second]);
            let new = new.to_string();
            let expected = rows(&[(&new, 0.0625), ("0", 0.25), ("3", 9.0), ("4", 16.0)]);
            let expected = &expected[..expected.len().min(held as usize)];
            let expected = match held {
                0 | 3 => &rows(&[(&new, 0.0625), ("0", 0.25)])[..],
                _ => expected,
            };
            assert_eq!(found(&index, 4, 0), expected, "{held}");
            publish(&index, Vec::new());
            let distances = found(&index, 3, 0);
            assert_eq!(distances.len(), 3.min(held as usize), "{held}");
        }
    }

    #[test]
    fn an_answer_is_whole_however_many_of_the_nearest_are_hidden() {
        let index = with_rows(3000);
        // The nearest are far away now, or gone.
        let far = |id: u32| (id, (id.is_multiple_of(2)).then_some([1e6, 0.0]));
        let changes: Vec<_> = (0..100).map(far).collect();
        publish(&index, vec![block(&index, &changes)]);
        let names: Vec<String> = (100..150).map(|id: u32| id.to_string()).collect();
        let nearest = found(&index, 50, 0).into_iter().map(|(name, _)| name);
        assert_eq!(nearest.collect::<Vec<_>>(), names);
        assert_eq!(found(&index, 5000, 0).len(), 3000 - 50);
    }

    #[test]
    fn a_row_that_has_expired_is_not_found() {
        let index = with_rows(700);
        for id in 0..650 {
            index.keys_mut().set_expiry(id, 1000);
        }
        publish(&index, vec![block(&index, &[(1, Some([0.5, 0.0]))])]);
        assert_eq!(found(&index, 2, 999), rows(&[("0", 0.0), ("1", 0.25)]));
        let expected = rows(&[("650", 422_500.0), ("651", 423_801.0)]);
        assert_eq!(found(&index, 2, 1000), expected);
        assert_eq!(found(&index, 1000, 1000).len(), 50);
    }
}
