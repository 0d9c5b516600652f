//! The structure of an index on vectors: a graph of them, by their ids.
//!
//! A search finds a row by its vector in the graph, or by its [fresh](super::fresh) one. It shows
//! no row whose key was removed, nor one that has expired. What it drops is made up for.
//!
//! Only this module names the engine, the crate `ann`.

mod faults;
mod files;
mod options;
pub(super) mod recall;
mod sampled;

use std::borrow::Cow;
use std::collections::HashMap;

use ann::{
    AccessPath, Calibration, Explanation, IdFilter, IndexError, IndexableVector, Neighbour,
    SearchOptions,
};
use filter_columns::IdSet;
use index::{SimilarityFunction, VectorOptions, score};
use store_api::types::{IndexRecall, SearchPlan};

use super::change::RefusalReason;
use super::fresh::{LoadedChanges, NewestChanges};
use super::plan::ExecutedPlan;
use super::ranked_rows::RankedRows;
use super::request::{IndexSearch, StructureError};
use super::selection::RowSelection;
use super::structure_memory::{StructureDebt, StructureMemory};
use super::surrounding_rows::SurroundingRows;
use crate::items::ChangeKind;
use crate::keys::KeyTable;
use crate::metrics::{IndexMetrics, SAMPLED_KS};
use crate::observed::first_not_finite;
use crate::options::IndexesOptions;
pub(super) use files::{check_files, file_memory};
use options::engine_options;
pub(crate) use sampled::VectorSpace;

/// The part of the graph's vectors that may be hidden before a search looks only at the others: one
/// in this many. A search that looks at all of them and drops the hidden ones is faster while they
/// are few.
const HIDDEN_SHARE: usize = 8;

/// The number of times that a search looks again if rows that it found were changed meanwhile. Then
/// it blocks writers.
const LOOKS_AGAIN: usize = 2;

/// A vector in the form of its index.
pub(super) type PreparedVector = IndexableVector;

/// A prepared value, which is a vector where the structure is one of vectors.
pub(crate) trait AsVector {
    /// The vector.
    fn as_vector(&self) -> Option<&PreparedVector>;
}

/// A graph of vectors.
pub(crate) struct VectorIndex {
    ann: ann::NeighbourIndex,
    similarity: SimilarityFunction,
}

/// The fresh vectors as one query sees them.
struct FreshDistances {
    /// The ids with fresh changes, which the graph may have in an older state.
    hidden: IdSet,
    /// The distances of the fresh vectors.
    vectors: Vec<Neighbour>,
    /// The number of the block that comes next.
    end: u64,
}

/// Checks that a vector can be looked for in an index of these options.
///
/// # Errors
/// If it has another length or an element that is not finite, or is too long for the metric.
pub(super) fn check_query(vector: &[f32], options: &VectorOptions) -> Result<(), StructureError> {
    let (expected, actual) = (options.dimensions, vector.len());
    if actual != expected {
        return Err(StructureError::Query(format!(
            "Wrong embedding dimension: expected {expected}, got {actual}"
        )));
    }
    if let Some(position) = first_not_finite(vector) {
        return Err(StructureError::Query(format!(
            "vector[{position}] is not a finite 32-bit number"
        )));
    }
    let checked = options.similarity.check_length(vector.iter().copied());
    checked.map_err(|error| StructureError::Query(error.to_string()))
}

impl VectorIndex {
    /// Makes an empty index.
    pub(crate) fn new(
        options: &VectorOptions,
        indexes: &IndexesOptions,
    ) -> Result<VectorIndex, StructureError> {
        let engine = engine_options(options, indexes.vectors);
        let ann = ann::NeighbourIndex::new_in(engine, &indexes.directory);
        Ok(VectorIndex {
            ann: ann.map_err(|error| StructureError::Internal(error.to_string()))?,
            similarity: options.effective_metric(),
        })
    }

    /// Does about a millisecond of the work that changes have left to do in the graph. Returns
    /// whether there is more; see [`ann::NeighbourIndex::maintain`].
    pub(crate) fn tend(&self) -> bool {
        self.ann.maintain()
    }

    /// The ids whose vectors the graph has.
    pub(crate) fn ids(&self) -> IdSet {
        self.ann.ids()
    }

    /// The bytes held for the graph and its vectors.
    pub(crate) fn memory(&self) -> StructureMemory {
        let memory = self.ann.memory();
        StructureMemory {
            pinned: vec![
                ("graph", memory.graph),
                ("codes", memory.codes),
                ("ids", memory.ids),
                ("vectors", memory.vectors_pinned),
                ("workspaces", memory.workspaces),
            ],
            mapped: memory.vectors_mapped,
        }
    }

    /// The work that changes have left in the graph.
    pub(crate) fn debt(&self) -> StructureDebt {
        let debt = self.ann.maintenance_debt();
        StructureDebt {
            dead: debt.dead,
            pending: debt.pending,
        }
    }

    /// The width of walks for `k` rows that samples of the data were found to need.
    fn calibration(&self, k: usize) -> Calibration {
        self.ann.calibration(k)
    }

    /// The recall that samples of the data have shown; `None` before there are any.
    pub(crate) fn recall(&self) -> Option<IndexRecall> {
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

    /// Shows the recall that samples have shown, and the widths of walks.
    pub(crate) fn show_recall(&self, metrics: &IndexMetrics) {
        for (series, k) in metrics.recall.iter().zip(SAMPLED_KS) {
            let calibration = self.calibration(k);
            // A recall that is not known yet is no recall of zero.
            series
                .estimate
                .set(calibration.recall.map_or(f64::NAN, f64::from));
            series.width.set(calibration.width.into());
        }
    }

    /// Finds the nearest rows. There are fewer than requested only if the index has no more.
    pub(crate) fn search<'a, V: AsVector>(
        &self,
        rows: &SurroundingRows<'a, V>,
        query: &[f32],
        search: &IndexSearch<'a>,
    ) -> Result<RankedRows<'a>, StructureError> {
        if search.filter.is_some() {
            return self.search_selected(rows, query, search);
        }
        let IndexSearch { limit, now_s, .. } = *search;
        // Before the graph is searched: a change that is no longer fresh after this is in the graph
        // by then. In the other order it could be in neither.
        let FreshDistances {
            hidden,
            vectors,
            end,
        } = self.measure(rows.fresh.now().newest(), query)?;
        let held = self.ann.len();
        if HIDDEN_SHARE * hidden.len() <= held {
            // As many more as are hidden among the nearest, on average.
            let more = (limit.min(held) * hidden.len()).div_ceil(held.max(1));
            let ask = limit.saturating_add(more).min(held);
            let (mut found, mut plan) = self.nearest(query, search, ask, None)?;
            let reach = match ask < held {
                true => found.last().map(|farthest| farthest.distance),
                false => None,
            };
            found.retain(|neighbour| !hidden.contains(neighbour.id));
            let keys = rows.keys.read();
            let (nearest, dropped) = merge(found, &vectors, limit, &keys, now_s);
            // Rows that were dropped may have displaced others, farther away.
            let is_whole = reach.is_none_or(|reach| {
                let enough = nearest.len() == limit;
                enough && nearest.last().is_none_or(|last| last.distance <= reach)
            });
            let is_whole = is_whole || (dropped == 0 && hidden.is_empty());
            if is_whole && !rows.are_newer(ids(&nearest), end, search) {
                plan.fresh = vectors.len();
                let answer = self.answer(rows, &nearest, &keys, search)?;
                return Ok(answer.found_by(plan));
            }
        }
        self.search_selected(rows, query, search)
    }

    /// Finds the nearest rows that satisfy a filter, by looking at only these rows. Few rows are
    /// found by their ids first; many rows the engine checks one by one. Rows may be changed
    /// meanwhile: it looks again if one was that it had found, as the values that a filter is
    /// checked against belong to the row's newest vector.
    fn search_selected<'a, V: AsVector>(
        &self,
        rows: &SurroundingRows<'a, V>,
        query: &[f32],
        search: &IndexSearch<'a>,
    ) -> Result<RankedRows<'a>, StructureError> {
        let IndexSearch {
            limit,
            now_s,
            filter,
            ..
        } = *search;
        let mut looks_again = LOOKS_AGAIN;
        loop {
            // Writers wait during the last look, so that the loop ends.
            let is_open = looks_again > 0;
            let selection = RowSelection::new(rows.keys, filter, now_s, is_open);
            if !is_open {
                selection.hold();
            }
            let FreshDistances {
                hidden,
                mut vectors,
                end,
            } = self.measure(rows.fresh.now().newest(), query)?;
            let (mut found, mut plan) = match selection.few() {
                Some(mut ids) => {
                    let admitted = ids.len();
                    hidden.iter().for_each(|id| {
                        ids.remove(id);
                    });
                    selection.let_writers_in();
                    let few = IdFilter::Ids(&ids);
                    let (found, plan) = self.nearest(query, search, limit, Some(few))?;
                    let admitted = Some(admitted);
                    (found, ExecutedPlan { admitted, ..plan })
                }
                None => {
                    let admits = |id| !hidden.contains(id) && selection.admits(id);
                    let admitted = IdFilter::Predicate(&admits);
                    self.nearest(query, search, limit, Some(admitted))?
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
                let (nearest, _) = merge(found, &vectors, limit, keys, now_s);
                if is_open && rows.are_newer(ids(&nearest), end, search) {
                    return Ok(None);
                }
                plan.fresh = vectors.len();
                self.answer(rows, &nearest, keys, search).map(Some)
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
        query: &[f32],
        search: &IndexSearch<'_>,
        k: usize,
        filter: Option<IdFilter<'_>>,
    ) -> Result<(Vec<Neighbour>, ExecutedPlan), StructureError> {
        let options = self.engine_search(search, k, filter);
        let (found, explanation) = self.ann.explain(query, &options)?;
        Ok((found, plan(search, &explanation)))
    }

    /// The search in the engine's terms. The engine has the width that the schema sets as the least
    /// one ([`engine_options`]), so none is given here.
    fn engine_search<'f>(
        &self,
        search: &IndexSearch<'_>,
        k: usize,
        filter: Option<IdFilter<'f>>,
    ) -> SearchOptions<'f> {
        SearchOptions {
            exact: search.exact,
            filter,
            ..SearchOptions::new(k.min(self.ann.len()))
        }
    }

    /// Measures the fresh vectors.
    ///
    /// # Errors
    /// If the query is no vector of the index.
    fn measure<V: AsVector>(
        &self,
        newest: NewestChanges<'_, V>,
        query: &[f32],
    ) -> Result<FreshDistances, IndexError> {
        let NewestChanges {
            ids: hidden,
            values,
            end,
        } = newest;
        if hidden.is_empty() {
            return Ok(FreshDistances {
                hidden,
                vectors: Vec::new(),
                end,
            });
        }
        let vectors = || {
            let values = values.iter();
            values.filter_map(|(id, value)| Some((*id, value.as_vector()?)))
        };
        let distances = self
            .ann
            .measure(query, vectors().map(|(_, vector)| vector))?;
        let vectors = vectors().zip(distances);
        let vectors = vectors.map(|((id, _), distance)| Neighbour { id, distance });
        Ok(FreshDistances {
            vectors: vectors.collect(),
            hidden,
            end,
        })
    }

    /// Makes an answer of rows that have keys.
    fn answer<'a, V: AsVector>(
        &self,
        rows: &SurroundingRows<'a, V>,
        nearest: &[Neighbour],
        keys: &KeyTable,
        search: &IndexSearch<'a>,
    ) -> Result<RankedRows<'a>, StructureError> {
        let dimensions = self.ann.options().dimensions;
        let scored = nearest.iter().map(|neighbour| {
            let scored = score::score(self.similarity, dimensions, neighbour.distance);
            let scored = scored.map(|scored| (neighbour.id, scored));
            scored.map_err(|error| StructureError::Internal(error.to_string()))
        });
        // The fresh vectors are looked at before the graph, which takes them in meanwhile.
        let fresh = search.returns_indexed().then(|| rows.fresh.now());
        let fresh = fresh.as_ref().map(LoadedChanges::by_id).unwrap_or_default();
        let vector = |id| self.serialised_vector(id, &fresh);
        rows.answer(scored, keys, search, vector)
    }

    /// The vector of an id as CQL serialises it, at the precision of the index; `None` if it has
    /// none any more. `fresh` are the changes that the graph may not have yet.
    fn serialised_vector<V: AsVector>(
        &self,
        id: u32,
        fresh: &HashMap<u32, Option<&V>>,
    ) -> Option<Cow<'static, [u8]>> {
        let vector = self.vector_now(id, fresh)?;
        let bytes = vector.iter().flat_map(|element| element.to_be_bytes());
        Some(Cow::Owned(bytes.collect()))
    }

    /// The vector of an id at the precision of the index; `None` if it has none any more. `fresh`
    /// are the changes that the graph may not have yet.
    fn vector_now<V: AsVector>(
        &self,
        id: u32,
        fresh: &HashMap<u32, Option<&V>>,
    ) -> Option<Vec<f32>> {
        match fresh.get(&id) {
            Some(changed) => {
                let prepared = changed.and_then(V::as_vector);
                prepared.map(|prepared| self.ann.vector_of(prepared))
            }
            None => self.ann.vector(id),
        }
    }

    /// Brings a vector into the form of the index.
    pub(crate) fn prepare(&self, vector: &[f32]) -> Result<PreparedVector, RefusalReason> {
        Ok(self.ann.prepare(vector)?)
    }

    /// Makes a change in the graph. After a refusal the graph does not hold the id, unless that was
    /// to be removed.
    pub(crate) fn change(
        &self,
        id: u32,
        operation: ChangeKind,
        vector: Option<&PreparedVector>,
    ) -> Result<(), RefusalReason> {
        match (operation, vector) {
            (ChangeKind::Insert, Some(vector)) => self.ann.insert_prepared(id, vector)?,
            (ChangeKind::Replace, Some(vector)) => {
                let replaced = self.ann.replace_prepared(id, vector);
                replaced.inspect_err(|_| {
                    // With its old vector the row would be found in the wrong place. If the graph
                    // does not hold the id, there is nothing to remove.
                    let _ = self.ann.remove(id);
                })?;
            }
            (ChangeKind::Remove, _) | (_, None) => self.ann.remove(id)?,
        }
        Ok(())
    }
}

/// The plan of a search of the graph that went so.
fn plan(search: &IndexSearch<'_>, explanation: &Explanation) -> ExecutedPlan {
    let walked = explanation.way == AccessPath::Walk;
    ExecutedPlan {
        kind: match (search.filter.is_some(), walked) {
            _ if search.exact => SearchPlan::Exact,
            (false, true) => SearchPlan::Walk,
            (false, false) => SearchPlan::Scan,
            (true, true) => SearchPlan::FilteredWalk,
            (true, false) => SearchPlan::FilteredScan,
        },
        admitted: None,
        fresh: 0,
        walk_given_up: explanation.walk_given_up,
    }
}

fn ids(rows: &[Neighbour]) -> impl Iterator<Item = u32> {
    rows.iter().map(|row| row.id)
}

/// A share of rows, to the fourth decimal.
fn rounded(share: f32) -> f64 {
    (f64::from(share) * 1e4).round() / 1e4
}

/// Merges vectors of the graph with fresh ones, nearest first, `limit` at most. Returns the rows,
/// and the number of vectors of the graph whose row was removed.
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

#[cfg(test)]
mod tests;
