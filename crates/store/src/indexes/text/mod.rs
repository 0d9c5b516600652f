//! The structure of an index on texts: their words, by the ids of the rows.
//!
//! A search sees the texts of all segments, and in place of those that have changed since the
//! [fresh](super::fresh) ones, with the same statistics for all. It shows no row whose key was
//! removed, nor one that has expired, and makes up for what it drops.
//!
//! Only this module names the engine's index, [`full_text::TextIndex`]. It keeps words, not texts:
//! no answer has the values of the indexed column, unless the key has them.

mod faults;
mod files;
mod upkeep;

use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicUsize, Ordering};

use filter_columns::IdSet;
use full_text::{
    AdmittedIds, AnalysedText, FreshTexts, QueryStatistics, ScoredText, TextIndex, TextQuery,
    TextView,
};
use index::FullTextOptions;
use index::score::DistanceAndScore;
use store_api::types::SearchPlan;

use super::change::RefusalReason;
use super::fresh::{LoadedChanges, NewestChanges};
use super::plan::ExecutedPlan;
use super::ranked_rows::RankedRows;
use super::request::{IndexSearch, StructureError};
use super::selection::RowSelection;
use super::structure_memory::StructureMemory;
use super::surrounding_rows::SurroundingRows;
use crate::filter::SearchFilter;
use crate::items::ChangeKind;
use crate::keys::{KeyTable, RowPlace};
pub(super) use files::{check_files, file_memory};

/// The bytes of texts after which those that wait are counted again. To count takes a look at all
/// segments.
const UNCOUNTED_BYTES_MAX: usize = 1 << 20;

/// The number of times that a search looks again if rows that it found were changed meanwhile. Then
/// it blocks writers.
const LOOKS_AGAIN: usize = 2;

/// A prepared value, which is a text where the structure is one of texts.
pub(crate) trait AsText {
    /// The words of the text.
    fn as_text(&self) -> Option<&AnalysedText>;
}

/// The words of texts.
pub(crate) struct TextStructure {
    index: TextIndex,
    /// The bytes of texts that no segment has yet, when they were last counted.
    counted_bytes: AtomicUsize,
    /// The bytes of texts that have come since.
    uncounted_bytes: AtomicUsize,
}

/// The rows that one look of a search has found.
struct LookedUp {
    /// The rows with their scores, best first, or in the order of their places.
    found: Vec<ScoredText>,
    /// The number of rows that the filter admitted, if they were found before.
    admitted: Option<usize>,
    /// The number of fresh texts that were looked at one by one.
    fresh: usize,
    /// The number of the block of fresh changes that comes next.
    end: u64,
}

impl TextStructure {
    /// Makes an empty index.
    pub(crate) fn new(options: FullTextOptions) -> TextStructure {
        TextStructure::of(TextIndex::new(options))
    }

    fn of(index: TextIndex) -> TextStructure {
        TextStructure {
            counted_bytes: AtomicUsize::new(index.memory().documents),
            uncounted_bytes: AtomicUsize::new(0),
            index,
        }
    }

    /// The words of a text, in the form of the index.
    pub(crate) fn prepare(&self, text: &str) -> AnalysedText {
        AnalysedText::of(text, self.index.options())
    }

    /// Makes a change. After a refusal the index does not hold the id, unless that was to be
    /// removed.
    pub(crate) fn change(
        &self,
        id: u32,
        operation: ChangeKind,
        text: Option<&AnalysedText>,
    ) -> Result<(), RefusalReason> {
        let changed = match (operation, text) {
            (ChangeKind::Insert | ChangeKind::Replace, Some(text)) => {
                // With its old words the row would be found by what it says no more.
                let set = self.index.set(id, text);
                set.inspect_err(|_| self.index.remove(id))
            }
            (ChangeKind::Remove, _) | (_, None) => {
                self.index.remove(id);
                Ok(())
            }
        };
        let bytes = text.map_or(0, AnalysedText::memory_bytes);
        let before = self.uncounted_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes >= UNCOUNTED_BYTES_MAX {
            self.count_waiting();
        }
        Ok(changed?)
    }

    /// Does a piece of the work that changes have left to do: writes a segment, or merges some.
    /// Returns whether there is more.
    pub(crate) fn tend(&self, pace: &(dyn Fn() -> bool + Sync)) -> bool {
        let is_more = self.index.maintain(pace);
        self.count_waiting();
        is_more
    }

    /// About the bytes of texts that no segment has yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        let uncounted = self.uncounted_bytes.load(Ordering::Relaxed);
        self.counted_bytes.load(Ordering::Relaxed) + uncounted
    }

    fn count_waiting(&self) {
        self.uncounted_bytes.store(0, Ordering::Relaxed);
        let waiting = self.index.memory().documents;
        self.counted_bytes.store(waiting, Ordering::Relaxed);
    }

    /// The ids whose texts the index has.
    pub(crate) fn ids(&self) -> IdSet {
        self.index.ids()
    }

    /// The bytes of all segments.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.index.size_bytes()
    }

    /// The number of segments.
    pub(crate) fn segment_count(&self) -> usize {
        self.index.segment_count()
    }

    /// The bytes held for words.
    pub(crate) fn memory(&self) -> StructureMemory {
        let memory = self.index.memory();
        StructureMemory {
            pinned: vec![
                ("text", memory.segments + memory.documents),
                ("ids", memory.tables),
            ],
            mapped: memory.mapped,
        }
    }

    /// Finds the rows whose texts match a query best. There are fewer than requested only if no
    /// more match.
    pub(crate) fn search<'a, V: AsText>(
        &self,
        rows: &SurroundingRows<'a, V>,
        query: &TextQuery,
        search: &IndexSearch<'a>,
    ) -> Result<RankedRows<'a>, StructureError> {
        // Before the keys are locked, as they are locked for this, too.
        let tenant = search.tenant.map(|of| tenant_ids(rows, of));
        self.look(rows, search, |view, _, admitted| {
            let statistics = view.statistics(query, tenant.as_ref())?;
            Ok(view.best(query, &statistics, search.limit, admitted)?)
        })
    }

    /// Finds a page of all rows whose texts match a query, in the order of their places.
    pub(crate) fn page<'a, V: AsText>(
        &self,
        rows: &SurroundingRows<'a, V>,
        query: &TextQuery,
        after: Option<&RowPlace>,
        search: &IndexSearch<'a>,
    ) -> Result<RankedRows<'a>, StructureError> {
        self.look(rows, search, |view, selection, admitted| {
            let ids = view.matching(query, admitted, None, usize::MAX)?;
            let mut first = BinaryHeap::new();
            for id in ids {
                let place = selection.with_key(id, |key| RowPlace::of(rows.schema, key));
                let is_later = |place: &RowPlace| after.is_none_or(|after| place > after);
                first.extend(place.filter(is_later).map(|place| (place, id)));
                if first.len() > search.limit {
                    first.pop();
                }
            }
            let page = first.into_sorted_vec().into_iter();
            let page = page.map(|(_, id)| ScoredText { id, score: 0.0 });
            Ok(page.collect())
        })
    }

    /// The statistics by which a query is scored now: of all rows, or of those of a tenant.
    pub(crate) fn statistics<V: AsText>(
        &self,
        rows: &SurroundingRows<'_, V>,
        query: &TextQuery,
        tenant: Option<&SearchFilter>,
    ) -> Result<QueryStatistics, StructureError> {
        let tenant = tenant.map(|of| tenant_ids(rows, of));
        let fresh = rows.fresh.now();
        let (view, _) = self.view(&fresh);
        Ok(view.statistics(query, tenant.as_ref())?)
    }

    /// The ids of all rows whose texts match a query.
    pub(crate) fn matching_ids<V: AsText>(
        &self,
        rows: &SurroundingRows<'_, V>,
        query: &TextQuery,
    ) -> Result<IdSet, StructureError> {
        let fresh = rows.fresh.now();
        let (view, _) = self.view(&fresh);
        Ok(view.matching_ids(query)?)
    }

    /// All texts as they are now, and the number of the block of fresh changes that comes next.
    /// `fresh` was loaded before: a change that is no longer fresh after this is in the index by
    /// then. In the other order it could be in neither.
    fn view<'f, V: AsText>(&'f self, fresh: &'f LoadedChanges<V>) -> (TextView<'f>, u64) {
        let NewestChanges { ids, values, end } = fresh.newest();
        let texts = values.into_iter();
        let texts = texts.filter_map(|(id, value)| Some((id, value.as_text()?)));
        let view = self.index.view(FreshTexts {
            hidden: ids,
            texts: texts.collect(),
        });
        (view, end)
    }

    /// Finds rows by `find` until none of them was changed meanwhile: the values that a filter is
    /// checked against belong to the row's newest text. During the last look nothing changes, so
    /// that all that were found are in the answer.
    fn look<'a, V: AsText>(
        &self,
        rows: &SurroundingRows<'a, V>,
        search: &IndexSearch<'a>,
        find: impl TextFinder,
    ) -> Result<RankedRows<'a>, StructureError> {
        let IndexSearch { now_s, filter, .. } = *search;
        let mut looks_again = LOOKS_AGAIN;
        // Nearly all rows of a search without a filter are shown, so it asks for none at first.
        let mut admits_all = filter.is_none();
        loop {
            // Writers wait during the last look, so that the loop ends.
            let is_open = looks_again > 0;
            let selection = RowSelection::new(rows.keys, filter, now_s, is_open);
            if !is_open {
                selection.hold();
            }
            let looked = self.look_once(rows, &selection, admits_all, &find)?;
            let LookedUp {
                mut found,
                admitted,
                fresh,
                end,
            } = looked;
            let proposed = found.len();
            // The filter holds for the very values that are answered.
            let answer = selection.at_once(|keys, admits| {
                found.retain(|row| admits(row.id));
                if found.len() < proposed && is_open {
                    return Ok(None);
                }
                if is_open && rows.are_newer(found.iter().map(|row| row.id), end, search) {
                    return Ok(None);
                }
                answer(rows, &found, keys, search).map(Some)
            })?;
            if let Some(answer) = answer {
                let kind = match filter {
                    Some(_) => SearchPlan::FilteredScan,
                    None => SearchPlan::Scan,
                };
                return Ok(answer.found_by(ExecutedPlan {
                    kind,
                    admitted,
                    fresh,
                    walk_given_up: false,
                }));
            }
            looks_again -= 1;
            admits_all = false;
        }
    }

    /// Finds rows once. Few rows that a filter admits are found by their ids first; of many each
    /// that matches is checked.
    fn look_once<V: AsText>(
        &self,
        rows: &SurroundingRows<'_, V>,
        selection: &RowSelection<'_>,
        admits_all: bool,
        find: &impl TextFinder,
    ) -> Result<LookedUp, StructureError> {
        let fresh = rows.fresh.now();
        let (view, end) = self.view(&fresh);
        let few = selection.few();
        let found = match &few {
            _ if admits_all => find(&view, selection, AdmittedIds::All)?,
            Some(ids) => {
                selection.let_writers_in();
                find(&view, selection, AdmittedIds::Ids(ids))?
            }
            None => {
                let admits = |id| selection.admits(id);
                find(&view, selection, AdmittedIds::Predicate(&admits))?
            }
        };
        Ok(LookedUp {
            found,
            admitted: few.as_ref().map(IdSet::len),
            fresh: view.fresh_count(),
            end,
        })
    }
}

/// Finds rows in a view of the texts, among those that are admitted.
trait TextFinder:
    Fn(&TextView<'_>, &RowSelection<'_>, AdmittedIds<'_>) -> Result<Vec<ScoredText>, StructureError>
{
}

impl<F> TextFinder for F where
    F: Fn(
        &TextView<'_>,
        &RowSelection<'_>,
        AdmittedIds<'_>,
    ) -> Result<Vec<ScoredText>, StructureError>
{
}

/// Makes an answer of rows that have keys.
fn answer<'a, V>(
    rows: &SurroundingRows<'a, V>,
    found: &[ScoredText],
    keys: &KeyTable,
    search: &IndexSearch<'a>,
) -> Result<RankedRows<'a>, StructureError> {
    let scored = found.iter().map(|row| {
        let scored = DistanceAndScore {
            distance: -row.score,
            similarity: row.score,
            measured: -row.score,
        };
        Ok((row.id, scored))
    });
    rows.answer(scored, keys, search, |_| None)
}

/// The ids of a tenant's rows. Those that have expired count until the index is told so, as they do
/// without a tenant.
fn tenant_ids<V>(rows: &SurroundingRows<'_, V>, tenant: &SearchFilter) -> IdSet {
    RowSelection::new(rows.keys, Some(tenant), 0, true).all()
}

#[cfg(test)]
mod tests;
