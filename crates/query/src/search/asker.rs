//! The questions of a search to its indexes, and what they answer.

use bytes::Bytes;
use store_api::{ClientError, NearestRows};

use super::definition::{IndexOrdering, RowSearch, SearchFreshness, SearchPredicate, WordOrdering};
use super::indexes::{IndexQuestion, SearchedIndex};
use super::order::NamedKey;
use super::rows::SearchedRows;

/// The most texts that are scored at a time, and the bytes after which no more are added.
const TEXTS_AT_ONCE: usize = 1_024;
const TEXT_BYTES_AT_ONCE: usize = 4 << 20;

/// The questions of one search.
pub(super) struct IndexAsker<'r, I> {
    pub(super) search: &'r RowSearch<'r>,
    index: &'r I,
    /// The conditions that the indexes can search by.
    predicates: Vec<&'r SearchPredicate>,
    /// Whether the indexes are taken to keep columns that they do not name.
    keeps_unnamed: bool,
    /// The writes that are waited for.
    freshness: SearchFreshness,
}

/// The answer of an index.
pub(super) struct FoundRows {
    pub(super) neighbours: NearestRows,
    /// Whether the newest writes may be missing.
    pub(super) is_stale: bool,
    /// Whether the index refused conditions on columns that it does not name.
    refuses_unnamed: bool,
}

impl<'r, I: SearchedIndex> IndexAsker<'r, I> {
    pub(super) fn of(search: &'r RowSearch<'r>, index: &'r I) -> IndexAsker<'r, I> {
        let predicates = search.predicates.iter();
        let predicates = predicates.filter(|one| index.can_search_by(&one.predicate));
        IndexAsker {
            search,
            index,
            predicates: predicates.collect(),
            keeps_unnamed: true,
            freshness: search.freshness,
        }
    }

    /// Whether the indexes can search by all of WHERE.
    pub(super) fn is_whole(&self) -> bool {
        self.predicates.len() == self.search.conditions
    }

    /// Whether the rows that indexes name have to be checked for words: one of them may have
    /// changed since, or an index can't search by words.
    pub(super) fn checks_words(&self, has_changed: bool) -> bool {
        let is_unknown = |at: usize| {
            let predicate = self.search.predicates.get(at);
            predicate.is_none_or(|one| !self.index.can_search_by(&one.predicate))
        };
        let mut words = self.search.words.iter();
        words.any(|condition| has_changed || is_unknown(condition.predicate))
    }

    /// Searches one index. Some refuse conditions on columns that they do not name: the service may
    /// not have noticed the column's own index yet, or be building the index again with it. The
    /// rows are checked in any case.
    pub(super) async fn find(
        &self,
        ordering: &'r IndexOrdering<'r>,
        wanted: usize,
    ) -> Result<FoundRows, ClientError> {
        let mut freshness = self.freshness;
        let question = self.question(ordering, wanted, self.keeps_unnamed);
        let asked = self.ask(question, &mut freshness).await;
        let mut predicates = self.predicates.iter();
        if !matches!(asked, Err(ClientError::Status { .. }))
            || !self.keeps_unnamed
            || predicates.all(|one| one.is_named)
        {
            return asked;
        }
        let question = self.question(ordering, wanted, false);
        let found = self.ask(question, &mut freshness).await?;
        Ok(FoundRows {
            refuses_unnamed: true,
            ..found
        })
    }

    /// Searches one index for the values of columns, by which the answer is made.
    pub(super) async fn find_values(
        &self,
        ordering: &'r IndexOrdering<'r>,
        wanted: usize,
        returned: &'r [String],
    ) -> Result<FoundRows, ClientError> {
        let question = IndexQuestion {
            returned: Some(returned),
            ..self.question(ordering, wanted, self.keeps_unnamed)
        };
        // The rows that are read in place of the answer wait for the writes by themselves.
        let mut freshness = self.freshness;
        self.ask(question, &mut freshness).await
    }

    /// Takes notice of an answer, before the next question.
    pub(super) fn note(&mut self, found: &FoundRows) {
        if found.is_stale {
            // A search waits once; its refills do not wait again.
            self.freshness.newest_us = None;
        }
        self.keeps_unnamed &= !found.refuses_unnamed;
    }

    /// Searches the index if it knows the newest write in time, or else, where the answer may be
    /// stale, by the writes that it knows.
    async fn ask(
        &self,
        mut question: IndexQuestion<'r>,
        freshness: &mut SearchFreshness,
    ) -> Result<FoundRows, ClientError> {
        let newest_us = freshness.newest_us;
        question.newest = newest_us.map(|newest_us| (newest_us, freshness.wait));
        let asked = self.index.search(&question).await;
        let is_stale = newest_us.is_some() && matches!(asked, Err(ClientError::Behind { .. }));
        if !is_stale {
            return Ok(FoundRows {
                neighbours: asked?,
                is_stale,
                refuses_unnamed: false,
            });
        }
        freshness.newest_us = None;
        if !freshness.may_be_stale {
            return Err(asked.err().unwrap_or(ClientError::Aborted));
        }
        question.newest = None;
        Ok(FoundRows {
            neighbours: self.index.search(&question).await?,
            is_stale,
            refuses_unnamed: false,
        })
    }

    fn question(
        &self,
        ordering: &'r IndexOrdering<'r>,
        wanted: usize,
        keeps_unnamed: bool,
    ) -> IndexQuestion<'r> {
        let predicates = self.predicates.iter();
        let predicates = predicates.filter(|one| one.is_named || keeps_unnamed);
        IndexQuestion {
            ordering,
            wanted,
            limit: self.search.limit,
            predicates: predicates.map(|one| one.predicate.clone()).collect(),
            returned: None,
            newest: None,
        }
    }

    /// The scores of texts, some at a time; `None` for one that does not match, or is null.
    pub(super) async fn score_texts(
        &self,
        words: &WordOrdering<'_>,
        texts: Vec<Option<Bytes>>,
    ) -> Result<Vec<Option<f32>>, ClientError> {
        let mut scores = Vec::with_capacity(texts.len());
        let mut texts = texts.into_iter().peekable();
        while texts.peek().is_some() {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while batch.len() < TEXTS_AT_ONCE
                && bytes < TEXT_BYTES_AT_ONCE
                && let Some(text) = texts.next()
            {
                bytes += text.as_ref().map_or(0, Bytes::len);
                batch.push(text);
            }
            if batch.iter().all(Option::is_none) {
                scores.extend(batch.iter().map(|_| None));
                continue;
            }
            let (count, tenant) = (batch.len(), self.search.tenant(words));
            let scored = self.index.score_texts(words, tenant, batch).await?;
            if scored.len() != count {
                return Err(ClientError::InvalidJson);
            }
            scores.extend(scored);
        }
        Ok(scores)
    }

    /// Whether each of several rows satisfies the conditions on words; `texts` has the texts of the
    /// rows for each condition.
    pub(super) async fn matching(
        &self,
        rows: usize,
        texts: Vec<Vec<Option<Bytes>>>,
    ) -> Result<Vec<bool>, ClientError> {
        let mut are_matches = vec![true; rows];
        for (condition, texts) in self.search.words.iter().zip(texts) {
            let scores = self.score_texts(&condition.words, texts).await?;
            for (is_match, score) in are_matches.iter_mut().zip(scores) {
                *is_match &= score.is_some();
            }
        }
        Ok(are_matches)
    }

    /// Notes that all rows are ranked in place of the searches.
    pub(super) fn ranked_rows(&self) {
        for ordering in &self.search.searches {
            self.index.ranked_rows(ordering);
        }
    }
}

/// The keys that an index has sent, with the scores of their rows.
pub(super) fn sent_keys<R: SearchedRows>(
    rows: &R,
    found: &NearestRows,
) -> Result<Vec<NamedKey<R::Key>>, R::Error> {
    let named = found.keys.iter().zip(&found.similarity_scores);
    let keys = named.map(|(sent, &score)| match rows.key(sent) {
        Some(key) => Ok(NamedKey { key, score }),
        None => Err(rows.search_failed(ClientError::InvalidJson)),
    });
    keys.collect()
}

/// Whether an index has no answer by values, so that rows have to be read: they may be too many
/// bytes for one answer, or the service has not all of them.
pub(super) fn asks_for_rows(error: &ClientError) -> bool {
    matches!(
        error,
        ClientError::Status { .. } | ClientError::InvalidJson | ClientError::InvalidBinary
    )
}

/// Traces why the rows are read in place of the index.
pub(super) fn note_short() {
    traces::note(|| "The index has had no room for some rows, so all are ranked".to_owned());
}

/// Traces why the rows are read in place of the index.
pub(super) fn note_too_few() {
    traces::note(|| "The index can't name enough rows that match, so all are ranked".to_owned());
}
