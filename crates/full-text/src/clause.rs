//! The tree of a query, and its evaluation on one document.

use crate::document::AnalysedText;
use crate::fuzzy::FuzzyWord;
use crate::phrase::phrase_frequency;
use crate::statistics::QueryStatistics;

/// A part of a query in the terms of an index. Boosts of groups are multiplied into those of their
/// members.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryClause {
    /// Matches no document: a query without words, or with stop words only.
    Nothing,
    /// Matches documents that have the term.
    Term {
        /// The term as the index has it.
        term: String,
        /// A factor of the score.
        boost: f32,
    },
    /// Matches documents that have the terms in their order.
    Phrase {
        /// The terms with their offsets from the first one: a stop word leaves a gap.
        terms: Vec<(u32, String)>,
        /// How far the terms may be from their places (see `phrase_frequency`).
        slop: u32,
        /// A factor of the score.
        boost: f32,
    },
    /// Matches documents with a term that begins so. Its boost is its score.
    Prefix {
        /// The beginning, in lower case where the analyzer folds case.
        prefix: String,
        /// The score.
        boost: f32,
    },
    /// Matches documents with a term that is like this one. Its boost is its score.
    Fuzzy {
        /// The word, in lower case where the analyzer folds case.
        term: String,
        /// How many edits a term may be away, of which an exchange of neighbours is one.
        distance: u8,
        /// The score.
        boost: f32,
    },
    /// Matches documents that match all of `must` and none of `must_not`; and, if `must` is empty,
    /// at least one of `should`. The score is the sum of those of `must` and of what matches of
    /// `should`. One that has neither of these two matches nothing.
    Boolean {
        /// Clauses that are required.
        must: Vec<QueryClause>,
        /// Clauses of which one is required, or none if `must` has some.
        should: Vec<QueryClause>,
        /// Clauses that exclude a document.
        must_not: Vec<QueryClause>,
    },
}

impl QueryClause {
    /// Whether a document matches.
    pub fn matches(&self, document: &AnalysedText) -> bool {
        match self {
            QueryClause::Nothing => false,
            QueryClause::Term { term, .. } => document.positions_of(term).is_some(),
            QueryClause::Phrase { terms, slop, .. } => frequency(document, terms, *slop) > 0,
            QueryClause::Prefix { prefix, .. } => document.has_prefix(prefix),
            QueryClause::Fuzzy { term, distance, .. } => has_like(document, term, *distance),
            QueryClause::Boolean {
                must,
                should,
                must_not,
            } => {
                let matches = |clause: &QueryClause| clause.matches(document);
                let required = match must.is_empty() {
                    true => should.iter().any(matches),
                    false => must.iter().all(matches),
                };
                required && !must_not.iter().any(matches)
            }
        }
    }

    /// The score of a document, or nothing if it does not match.
    pub fn score(&self, document: &AnalysedText, statistics: &QueryStatistics) -> Option<f32> {
        match self {
            QueryClause::Nothing => None,
            QueryClause::Term { term, boost } => {
                let (frequency, _) = document.positions_of(term)?;
                let idf = statistics.idf(term);
                Some(statistics.term_score(idf, *boost, frequency, document.length()))
            }
            QueryClause::Phrase { terms, slop, boost } => {
                let frequency = frequency(document, terms, *slop);
                let idf = terms.iter().map(|(_, term)| statistics.idf(term)).sum();
                let score = statistics.term_score(idf, *boost, frequency, document.length());
                (frequency > 0).then_some(score)
            }
            QueryClause::Prefix { prefix, boost } => document.has_prefix(prefix).then_some(*boost),
            QueryClause::Fuzzy {
                term,
                distance,
                boost,
            } => has_like(document, term, *distance).then_some(*boost),
            QueryClause::Boolean {
                must,
                should,
                must_not,
            } => {
                if must_not.iter().any(|clause| clause.matches(document)) {
                    return None;
                }
                let scores = must.iter().map(|clause| clause.score(document, statistics));
                let required: Vec<f32> = scores.collect::<Option<_>>()?;
                let scores = should.iter();
                let scores = scores.filter_map(|clause| clause.score(document, statistics));
                let optional: Vec<f32> = scores.collect();
                let matches = !required.is_empty() || !optional.is_empty();
                matches.then(|| required.iter().sum::<f32>() + optional.iter().sum::<f32>())
            }
        }
    }

    /// Calls `take` with each term, phrase, prefix and fuzzy word that adds to scores, in the order
    /// of the query: those that exclude documents are left out.
    pub(crate) fn for_each_scored<'a>(&'a self, take: &mut impl FnMut(&'a QueryClause)) {
        match self {
            QueryClause::Nothing => {}
            QueryClause::Boolean { must, should, .. } => {
                for clause in must.iter().chain(should) {
                    clause.for_each_scored(take);
                }
            }
            QueryClause::Term { .. }
            | QueryClause::Phrase { .. }
            | QueryClause::Prefix { .. }
            | QueryClause::Fuzzy { .. } => take(self),
        }
    }
}

/// How often a document has a phrase.
fn frequency(document: &AnalysedText, terms: &[(u32, String)], slop: u32) -> u32 {
    let parts = terms.iter().map(|(offset, term)| {
        let (_, positions) = document.positions_of(term)?;
        Some((*offset, positions))
    });
    let parts: Option<Vec<(u32, &[u32])>> = parts.collect();
    parts.map_or(0, |parts| phrase_frequency(&parts, slop))
}

/// Whether a document has a term within a distance of a word.
fn has_like(document: &AnalysedText, word: &str, distance: u8) -> bool {
    let mut word = FuzzyWord::new(word, distance);
    document.terms().any(|(term, ..)| word.accepts(term))
}
