//! Searching an index as it is at a moment.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use ann::IdSet;

use crate::TextIndexError;
use crate::document::AnalysedText;
use crate::query::TextQuery;
use crate::segment::{Admission, SegmentScores, SegmentSearch};
use crate::state::{PlacedDocuments, TextState};
use crate::statistics::QueryStatistics;

/// A filter of ids is the way of the search itself if it has fewer than one id for so many
/// documents. Else the documents that match are compared with it.
const DOCUMENTS_PER_ID: usize = 8;

/// The part of the worst score so far that a rounded score of a segment must reach: rounding of
/// lengths changes scores by less than the rest.
const ROUNDING_FLOOR: f32 = 0.85;

/// Documents that an index does not have yet, and that a search finds in place of those of the same
/// ids.
#[derive(Clone, Debug, Default)]
pub struct FreshTexts<'a> {
    /// The ids that have changed, also those that have no document any more.
    pub hidden: IdSet,
    /// The new documents, each of another id.
    pub texts: Vec<(u32, &'a AnalysedText)>,
}

/// The ids that a search may find.
#[derive(Clone, Copy)]
pub enum AdmittedIds<'a> {
    /// All.
    All,
    /// Those of a set.
    Ids(&'a IdSet),
    /// Those for which a function returns true.
    Predicate(&'a dyn Fn(u32) -> bool),
}

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoredText {
    /// Its id.
    pub id: u32,
    /// Its score, the higher the better.
    pub score: f32,
}

/// All documents of an index at a moment, with fresh ones in place of those of the same ids.
/// Changes of the index meanwhile have no effect on it.
pub struct TextView<'a> {
    state: TextState,
    fresh: FreshTexts<'a>,
}

impl AdmittedIds<'_> {
    fn admits(&self, id: u32) -> bool {
        match self {
            AdmittedIds::All => true,
            AdmittedIds::Ids(ids) => ids.contains(id),
            AdmittedIds::Predicate(admits) => admits(id),
        }
    }

    fn are_all(&self) -> bool {
        matches!(self, AdmittedIds::All)
    }
}

impl<'a> TextView<'a> {
    /// A view of a state.
    pub(crate) fn new(mut state: TextState, fresh: FreshTexts<'a>) -> TextView<'a> {
        for id in fresh.hidden.iter() {
            if let Some(place) = state.places.get(id) {
                state.kill(place);
            }
        }
        TextView { state, fresh }
    }

    /// The number of documents.
    pub fn len(&self) -> usize {
        let live = self.state.live().map(|live| live.count as usize);
        live.sum::<usize>() + self.fresh.texts.len()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of fresh documents.
    pub fn fresh_count(&self) -> usize {
        self.fresh.texts.len()
    }

    /// The statistics that a query's scores depend on: of all documents, or of those `within` a set
    /// of ids.
    ///
    /// # Errors
    /// If a file of the index is damaged.
    pub fn statistics(
        &self,
        query: &TextQuery,
        within: Option<&IdSet>,
    ) -> Result<QueryStatistics, TextIndexError> {
        let mut statistics = match within {
            None => self.statistics_of_all(query)?,
            Some(ids) => self.statistics_within(query, ids)?,
        };
        let counts = |id: u32| within.is_none_or(|ids| ids.contains(id));
        for (_, text) in self.fresh.texts.iter().filter(|(id, _)| counts(*id)) {
            statistics.documents += 1;
            statistics.tokens += u64::from(text.length());
            for (term, frequency) in &mut statistics.frequencies {
                *frequency += u64::from(text.positions_of(term).is_some());
            }
        }
        Ok(statistics)
    }

    fn statistics_of_all(&self, query: &TextQuery) -> Result<QueryStatistics, TextIndexError> {
        let mut frequencies = HashMap::new();
        for term in query.terms() {
            frequencies.insert(term.to_owned(), self.state.frequency(term)?);
        }
        Ok(QueryStatistics {
            documents: self.state.live().map(|live| u64::from(live.count)).sum(),
            tokens: self.state.live().map(|live| live.tokens).sum(),
            frequencies,
        })
    }

    fn statistics_within(
        &self,
        query: &TextQuery,
        ids: &IdSet,
    ) -> Result<QueryStatistics, TextIndexError> {
        let placed = self.state.documents_of(ids);
        let mut statistics = QueryStatistics::default();
        let terms = query.terms();
        let mut frequencies = vec![0; terms.len()];
        for (part, documents) in self.state.segments.iter().zip(&placed.segments) {
            statistics.documents += documents.len() as u64;
            let lengths = documents
                .iter()
                .map(|document| part.segment.length(*document));
            statistics.tokens += lengths.map(u64::from).sum::<u64>();
            for (term, frequency) in terms.iter().zip(&mut frequencies) {
                *frequency += part.segment.frequency_among(term, documents)?;
            }
        }
        for (part, documents) in self.state.waiting.iter().zip(&placed.waiting) {
            let texts = part.documents.read();
            for document in documents {
                let Some((_, text)) = texts.get(*document) else {
                    continue;
                };
                statistics.documents += 1;
                statistics.tokens += u64::from(text.length());
                for (term, frequency) in terms.iter().zip(&mut frequencies) {
                    *frequency += u64::from(text.positions_of(term).is_some());
                }
            }
        }
        let terms = terms.into_iter().map(str::to_owned);
        statistics.frequencies = terms.zip(frequencies).collect();
        Ok(statistics)
    }

    /// Finds the best documents, by the query's scores with the given statistics: the best one
    /// first, and of equal ones that of the lower id.
    ///
    /// # Errors
    /// If a file of the index is damaged.
    pub fn best(
        &self,
        query: &TextQuery,
        statistics: &QueryStatistics,
        limit: usize,
        admitted: AdmittedIds<'_>,
    ) -> Result<Vec<ScoredText>, TextIndexError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut best = BestTexts::new(limit);
        for (id, text) in self.admitted_fresh(admitted) {
            if let Some(score) = query.score(text, statistics) {
                best.push(id, score);
            }
        }
        for part in &self.state.waiting {
            for (id, text) in part.candidates(query.clause()) {
                if admitted.admits(id)
                    && let Some(score) = query.score(&text, statistics)
                {
                    best.push(id, score);
                }
            }
        }
        let few = self.few(admitted);
        let scores = SegmentScores {
            statistics,
            rounded_tokens: self.rounded_tokens(statistics),
        };
        let admits = |id: u32| admitted.admits(id);
        let admission: Admission<'_> = match admitted.are_all() {
            true => None,
            false => Some(&admits),
        };
        for (at, part) in self.state.segments.iter().enumerate() {
            let search = SegmentSearch {
                segment: &part.segment,
                live: &part.live,
                clause: query.clause(),
            };
            let found = match &few {
                Some(placed) => search.among(statistics, &placed.segments[at])?,
                None => search.best(&scores, limit, best.floor(), admission)?,
            };
            for (document, score) in found {
                best.push(part.segment.id(document), score);
            }
        }
        Ok(best.into_sorted())
    }

    /// Finds the ids of documents that match, ascending: the first `limit` of those after `after`.
    ///
    /// # Errors
    /// If a file of the index is damaged.
    pub fn matching(
        &self,
        query: &TextQuery,
        admitted: AdmittedIds<'_>,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<u32>, TextIndexError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        // The lowest ids so far, the highest of them first.
        let mut lowest = BinaryHeap::new();
        self.for_each_match(query, admitted, after, &mut |id| {
            if lowest.len() < limit {
                lowest.push(id);
            } else if let Some(mut highest) = lowest.peek_mut()
                && id < *highest
            {
                *highest = id;
            }
        })?;
        Ok(lowest.into_sorted_vec())
    }

    /// Finds the ids of all documents that match.
    ///
    /// # Errors
    /// If a file of the index is damaged.
    pub fn matching_ids(&self, query: &TextQuery) -> Result<IdSet, TextIndexError> {
        let mut ids = Vec::new();
        self.for_each_match(query, AdmittedIds::All, None, &mut |id| ids.push(id))?;
        Ok(ids.into_iter().collect())
    }

    /// Calls `take` with the id of each document that matches, in no order.
    fn for_each_match(
        &self,
        query: &TextQuery,
        admitted: AdmittedIds<'_>,
        after: Option<u32>,
        take: &mut dyn FnMut(u32),
    ) -> Result<(), TextIndexError> {
        let admits = |id: u32| after.is_none_or(|after| id > after) && admitted.admits(id);
        for (id, text) in self.admitted_fresh(AdmittedIds::Predicate(&admits)) {
            if query.matches(text) {
                take(id);
            }
        }
        for part in &self.state.waiting {
            for (id, text) in part.candidates(query.clause()) {
                if admits(id) && query.matches(&text) {
                    take(id);
                }
            }
        }
        let few = self.few(admitted);
        let admission: Admission<'_> = match admitted.are_all() && after.is_none() {
            true => None,
            false => Some(&admits),
        };
        for (at, part) in self.state.segments.iter().enumerate() {
            let segment = &part.segment;
            let search = SegmentSearch {
                segment,
                live: &part.live,
                clause: query.clause(),
            };
            match &few {
                None => search.matching(admission, &mut |document| take(segment.id(document)))?,
                Some(placed) => {
                    let none = QueryStatistics::default();
                    let found = search.among(&none, &placed.segments[at])?;
                    let ids = found.into_iter().map(|(document, _)| segment.id(document));
                    ids.filter(|id| admits(*id)).for_each(&mut *take);
                }
            }
        }
        Ok(())
    }

    fn admitted_fresh(
        &self,
        admitted: AdmittedIds<'_>,
    ) -> impl Iterator<Item = (u32, &'a AnalysedText)> {
        let texts = self.fresh.texts.iter().copied();
        texts.filter(move |(id, _)| admitted.admits(*id))
    }

    /// The documents that are admitted, if they are so few that a search goes through them.
    fn few(&self, admitted: AdmittedIds<'_>) -> Option<PlacedDocuments> {
        let AdmittedIds::Ids(ids) = admitted else {
            return None;
        };
        let is_few = ids.len().saturating_mul(DOCUMENTS_PER_ID) < self.len();
        is_few.then(|| self.state.documents_of(ids))
    }

    /// The tokens of statistics, with lengths rounded as in all of the index.
    fn rounded_tokens(&self, statistics: &QueryStatistics) -> u64 {
        let (tokens, rounded) = self.state.live().fold((0, 0), |(tokens, rounded), live| {
            (tokens + live.tokens, rounded + live.rounded)
        });
        match tokens {
            0 => statistics.tokens,
            tokens => (statistics.tokens as f64 * rounded as f64 / tokens as f64) as u64,
        }
    }
}

/// The best documents of those that have come so far.
struct BestTexts {
    /// The worst one first.
    heap: BinaryHeap<RankedText>,
    limit: usize,
}

#[derive(PartialEq)]
struct RankedText(ScoredText);

/// The greater one is the worse one.
impl Ord for RankedText {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.0.score.total_cmp(&self.0.score);
        by_score.then(self.0.id.cmp(&other.0.id))
    }
}

impl PartialOrd for RankedText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for RankedText {}

impl BestTexts {
    fn new(limit: usize) -> BestTexts {
        BestTexts {
            heap: BinaryHeap::new(),
            limit,
        }
    }

    fn push(&mut self, id: u32, score: f32) {
        let ranked = RankedText(ScoredText { id, score });
        if self.heap.len() < self.limit {
            self.heap.push(ranked);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && ranked < *worst
        {
            *worst = ranked;
        }
    }

    /// The rounded score that a segment's document must be above.
    fn floor(&self) -> f32 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.limit && worst.0.score > 0.0 => {
                worst.0.score * ROUNDING_FLOOR
            }
            _ => f32::MIN,
        }
    }

    fn into_sorted(self) -> Vec<ScoredText> {
        let sorted = self.heap.into_sorted_vec();
        sorted.into_iter().map(|ranked| ranked.0).collect()
    }
}
