//! The scores of some documents of a segment, by their lengths as they are.
//!
//! Segments round lengths, so what a search finds is scored once more. It is also the way of a
//! search among few documents: each clause looks only at those that may still match.

use tantivy::postings::Postings;
use tantivy::query::EnableScoring;
use tantivy::schema::IndexRecordOption;
use tantivy::{DocSet, TERMINATED, Term};

use super::TextSegment;
use super::clause_query;
use super::loose_phrase::LoosePhrase;
use super::schema::TEXT;
use crate::clause::QueryClause;
use crate::statistics::QueryStatistics;

/// Documents with their scores, ascending.
type Scored = Vec<(u32, f32)>;

/// The scores of a segment's documents by the statistics of an index.
pub(crate) struct ExactScores<'a> {
    pub segment: &'a TextSegment,
    pub statistics: &'a QueryStatistics,
}

impl ExactScores<'_> {
    /// Finds those of `documents`, which ascend, that match a clause, and their scores.
    pub fn of(&self, clause: &QueryClause, documents: &[u32]) -> tantivy::Result<Scored> {
        match clause {
            QueryClause::Nothing => Ok(Vec::new()),
            QueryClause::Term { term, boost } => self.of_term(term, *boost, documents),
            QueryClause::Phrase { terms, slop, boost } => match terms.as_slice() {
                [(_, term)] => self.of_term(term, *boost, documents),
                terms => self.of_phrase(terms, *slop, *boost, documents),
            },
            QueryClause::Prefix { boost, .. } | QueryClause::Fuzzy { boost, .. } => {
                self.of_expanded(clause, *boost, documents)
            }
            QueryClause::Boolean {
                must,
                should,
                must_not,
            } => self.of_boolean(must, should, must_not, documents),
        }
    }

    fn of_term(&self, term: &str, boost: f32, documents: &[u32]) -> tantivy::Result<Scored> {
        let option = IndexRecordOption::WithFreqs;
        let term_of_field = Term::from_field_text(TEXT, term);
        let postings = self
            .segment
            .terms()?
            .read_postings(&term_of_field, option)?;
        let Some(mut postings) = postings else {
            return Ok(Vec::new());
        };
        let idf = self.statistics.idf(term);
        Ok(matching(documents, |document| {
            if reach(&mut postings, document) != document {
                return None;
            }
            let frequency = postings.term_freq();
            let length = self.segment.length(document);
            Some(self.statistics.term_score(idf, boost, frequency, length))
        }))
    }

    fn of_phrase(
        &self,
        terms: &[(u32, String)],
        slop: u32,
        boost: f32,
        documents: &[u32],
    ) -> tantivy::Result<Scored> {
        let index = self.segment.terms()?;
        let mut parts = Vec::new();
        for (offset, term) in terms {
            let option = IndexRecordOption::WithFreqsAndPositions;
            let term = Term::from_field_text(TEXT, term);
            let Some(postings) = index.read_postings(&term, option)? else {
                return Ok(Vec::new());
            };
            parts.push((*offset, postings));
        }
        let mut phrase = LoosePhrase::new(parts, slop);
        let idf: f32 = terms
            .iter()
            .map(|(_, term)| self.statistics.idf(term))
            .sum();
        Ok(matching(documents, |document| {
            let frequency = phrase.frequency_in(document);
            let length = self.segment.length(document);
            let score = self.statistics.term_score(idf, boost, frequency, length);
            (frequency > 0).then_some(score)
        }))
    }

    /// The documents of a clause that matches any of several terms of the dictionary.
    fn of_expanded(
        &self,
        clause: &QueryClause,
        boost: f32,
        documents: &[u32],
    ) -> tantivy::Result<Scored> {
        let scoring = EnableScoring::disabled_from_searcher(self.segment.searcher());
        let weight = clause_query::query(clause).weight(scoring)?;
        let mut found = weight.scorer(self.segment.reader(), 1.0)?;
        Ok(matching(documents, |document| {
            (reach(&mut found, document) == document).then_some(boost)
        }))
    }

    fn of_boolean(
        &self,
        must: &[QueryClause],
        should: &[QueryClause],
        must_not: &[QueryClause],
        documents: &[u32],
    ) -> tantivy::Result<Scored> {
        let mut required: Option<Scored> = None;
        for clause in must {
            required = Some(match required {
                None => self.of(clause, documents)?,
                Some(before) => {
                    let found = self.of(clause, &numbers(&before))?;
                    let mut before = before.into_iter();
                    // What was found is among those before.
                    let sums = found.into_iter().filter_map(|(document, score)| {
                        let (_, sum) = before.find(|(other, _)| *other == document)?;
                        Some((document, sum + score))
                    });
                    sums.collect()
                }
            });
        }
        let among = required.as_ref().map(|found| numbers(found));
        let mut optional = Scored::new();
        for clause in should {
            let found = self.of(clause, among.as_deref().unwrap_or(documents))?;
            optional = summed(optional, found);
        }
        let mut found = match required {
            None => optional,
            Some(mut required) => {
                let mut optional = optional.into_iter().peekable();
                for (document, sum) in &mut required {
                    if let Some((_, score)) = optional.next_if(|(other, _)| *other == *document) {
                        *sum += score;
                    }
                }
                required
            }
        };
        for clause in must_not {
            let excluded = numbers(&self.of(clause, &numbers(&found))?);
            found.retain(|(document, _)| excluded.binary_search(document).is_err());
        }
        Ok(found)
    }
}

/// The documents that have a score.
fn matching(documents: &[u32], mut score: impl FnMut(u32) -> Option<f32>) -> Scored {
    let scored = documents.iter();
    let scored = scored.filter_map(|document| Some((*document, score(*document)?)));
    scored.collect()
}

/// Moves to the first document from `target` on.
fn reach<D: DocSet>(documents: &mut D, target: u32) -> u32 {
    match documents.doc() {
        TERMINATED => TERMINATED,
        document if document >= target => document,
        _ => documents.seek(target),
    }
}

fn numbers(scored: &[(u32, f32)]) -> Vec<u32> {
    scored.iter().map(|(document, _)| *document).collect()
}

/// The documents of either list, with the sums of their scores.
fn summed(left: Scored, right: Scored) -> Scored {
    let mut sums = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let next = match (left.peek().copied(), right.peek().copied()) {
            (None, None) => return sums,
            (Some(one), None) => one,
            (None, Some(one)) => one,
            (Some(one), Some(other)) if one.0 == other.0 => (one.0, one.1 + other.1),
            (Some(one), Some(other)) if one.0 < other.0 => one,
            (Some(_), Some(other)) => other,
        };
        left.next_if(|(document, _)| *document == next.0);
        right.next_if(|(document, _)| *document == next.0);
        sums.push(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_either_list_are_summed() {
        let left = vec![(1, 1.0), (4, 2.0), (9, 3.0)];
        let right = vec![(2, 0.5), (4, 0.25)];
        let sums = summed(left.clone(), right);
        assert_eq!(sums, [(1, 1.0), (2, 0.5), (4, 2.25), (9, 3.0)]);
        assert_eq!(summed(Vec::new(), left.clone()), left);
    }
}
