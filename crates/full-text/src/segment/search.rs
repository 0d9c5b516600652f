//! Searching a segment.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tantivy::Term;
use tantivy::query::{Bm25StatisticsProvider, EnableScoring};
use tantivy::schema::Field;

use super::exact::ExactScores;
use super::{TextSegment, clause_query};
use crate::TextIndexError;
use crate::clause::QueryClause;
use crate::live_documents::LiveDocuments;
use crate::statistics::QueryStatistics;

/// Whether a search may find an id; `None` for all.
pub(crate) type Admission<'a> = Option<&'a dyn Fn(u32) -> bool>;

/// How much the average length may differ from that of a segment's documents for its search to
/// leave out blocks by the bounds that the segment has. These are right for its own average.
const AVERAGE_MOST: f64 = 1.33;

/// The statistics that scores come from, as tantivy requests them.
pub(crate) struct SegmentScores<'a> {
    pub statistics: &'a QueryStatistics,
    /// The statistics' number of tokens, with lengths rounded as segments round them: what this
    /// takes from a document's length, it takes from the average, too.
    pub rounded_tokens: u64,
}

impl SegmentScores<'_> {
    fn documents(&self) -> u64 {
        // Frequencies may be estimates, and tantivy expects none above the number of documents.
        let most = self.statistics.frequencies.values().max().copied();
        self.statistics.documents.max(most.unwrap_or(0)).max(1)
    }

    fn average(&self) -> f64 {
        self.rounded_tokens.max(1) as f64 / self.documents() as f64
    }
}

impl Bm25StatisticsProvider for SegmentScores<'_> {
    fn total_num_tokens(&self, _: Field) -> tantivy::Result<u64> {
        Ok(self.rounded_tokens.max(1))
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.documents())
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let term = std::str::from_utf8(term.serialized_value_bytes());
        let frequency = term
            .ok()
            .and_then(|term| self.statistics.frequencies.get(term));
        Ok(frequency.copied().unwrap_or(0))
    }
}

/// A search of a segment's live documents.
pub(crate) struct SegmentSearch<'a> {
    pub segment: &'a TextSegment,
    pub live: &'a LiveDocuments,
    pub clause: &'a QueryClause,
}

impl SegmentSearch<'_> {
    /// Finds the best documents, about `limit` of them, whose rounded scores are above a floor.
    /// Their scores are exact, and they ascend by their numbers.
    ///
    /// By rounded scores, a few more are chosen than are wanted, as exact ones may order them in
    /// another way.
    pub fn best(
        &self,
        scores: &SegmentScores<'_>,
        limit: usize,
        floor: f32,
        admission: Admission<'_>,
    ) -> Result<Vec<(u32, f32)>, TextIndexError> {
        self.segment.guarded(|| {
            let searcher = self.segment.searcher();
            let scoring = EnableScoring::enabled_from_statistics_provider(scores, searcher);
            let weight = clause_query::query(self.clause).weight(scoring)?;
            let wanted = limit.saturating_add((limit / 8).max(16));
            let mut found = BestDocuments::new(wanted, floor);
            let mut take = |document: u32, score: f32| {
                if self.is_found(document, admission) {
                    found.push(document, score);
                }
                found.floor()
            };
            let reader = self.segment.reader();
            if self.has_bounds_for(scores) {
                weight.for_each_pruning(floor, reader, &mut take)?;
            } else {
                let mut floor = floor;
                weight.for_each(reader, &mut |document, score| {
                    if score > floor {
                        floor = take(document, score);
                    }
                })?;
            }
            self.exact(scores.statistics, &found.into_documents())
        })
    }

    /// Finds those of some documents, which ascend and are live, that match, with exact scores.
    pub fn among(
        &self,
        statistics: &QueryStatistics,
        documents: &[u32],
    ) -> Result<Vec<(u32, f32)>, TextIndexError> {
        self.segment.guarded(|| self.exact(statistics, documents))
    }

    /// Calls `take` with each document that matches, ascending.
    pub fn matching(
        &self,
        admission: Admission<'_>,
        take: &mut dyn FnMut(u32),
    ) -> Result<(), TextIndexError> {
        self.segment.guarded(|| {
            let scoring = EnableScoring::disabled_from_searcher(self.segment.searcher());
            let weight = clause_query::query(self.clause).weight(scoring)?;
            weight.for_each_no_score(self.segment.reader(), &mut |documents| {
                let found = documents.iter().copied();
                let found = found.filter(|document| self.is_found(*document, admission));
                found.for_each(&mut *take);
            })
        })
    }

    fn exact(
        &self,
        statistics: &QueryStatistics,
        documents: &[u32],
    ) -> tantivy::Result<Vec<(u32, f32)>> {
        let scores = ExactScores {
            segment: self.segment,
            statistics,
        };
        scores.of(self.clause, documents)
    }

    fn is_found(&self, document: u32, admission: Admission<'_>) -> bool {
        document < self.segment.documents()
            && self.live.is_live(document)
            && admission.is_none_or(|admits| admits(self.segment.id(document)))
    }

    /// Whether the bounds that the segment has of its blocks' scores hold for these statistics.
    fn has_bounds_for(&self, scores: &SegmentScores<'_>) -> bool {
        let own = self.live.rounded as f64 / f64::from(self.live.count.max(1));
        let ratio = own.max(1e-9) / scores.average();
        (1.0 / AVERAGE_MOST..=AVERAGE_MOST).contains(&ratio)
    }
}

/// The best documents of those that have come so far.
struct BestDocuments {
    /// The worst one first.
    heap: BinaryHeap<RankedDocument>,
    wanted: usize,
    floor: f32,
}

#[derive(Clone, Copy, PartialEq)]
struct RankedDocument {
    score: f32,
    document: u32,
}

/// The greater one is the worse one.
impl Ord for RankedDocument {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_score = other.score.total_cmp(&self.score);
        by_score.then(self.document.cmp(&other.document))
    }
}

impl PartialOrd for RankedDocument {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for RankedDocument {}

impl BestDocuments {
    fn new(wanted: usize, floor: f32) -> BestDocuments {
        BestDocuments {
            heap: BinaryHeap::new(),
            wanted,
            floor,
        }
    }

    fn push(&mut self, document: u32, score: f32) {
        let ranked = RankedDocument { score, document };
        if self.heap.len() < self.wanted {
            self.heap.push(ranked);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && ranked < *worst
        {
            *worst = ranked;
        }
    }

    /// The score that the next one must be above.
    fn floor(&self) -> f32 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() == self.wanted => worst.score.max(self.floor),
            _ => self.floor,
        }
    }

    /// The documents, ascending.
    fn into_documents(self) -> Vec<u32> {
        let mut documents: Vec<u32> = self.heap.into_iter().map(|best| best.document).collect();
        documents.sort_unstable();
        documents
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_documents_are_kept_and_earlier_ones_of_equal_score() {
        let mut best = BestDocuments::new(3, -1.0);
        for (document, score) in [(5, 1.0), (9, 4.0), (2, 2.0), (1, 2.0), (7, 2.0)] {
            best.push(document, score);
        }
        assert_eq!(best.floor(), 2.0);
        assert_eq!(best.into_documents(), [1, 2, 9]);
        assert_eq!(BestDocuments::new(3, -1.0).floor(), -1.0);
    }
}
