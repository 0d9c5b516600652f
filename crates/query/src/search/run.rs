//! The loop of a single search.

use std::collections::VecDeque;
use std::time::Instant;

use bytes::Bytes;
use store_api::SearchCounts;

use super::asker::{FoundRows, IndexAsker, asks_for_rows, note_short, note_too_few, sent_keys};
use super::definition::{IndexOrdering, RanksRows, RowSearch, SearchHit, SearchWarning};
use super::hybrid::HybridRun;
use super::indexes::SearchedIndex;
use super::order::{AnswerOrder, NamedKey, RereadRows, ScoredRow};
use super::refill::AnswerRefill;
use super::rows::{ReadRows, SearchedRows, ValueOf};
use super::scan::name_all;
use crate::TopScored;

/// Carries out a search, and counts it: `rows` gets the rows of the answer in their order, and the
/// warnings with it.
///
/// # Errors
/// Failures of the index, and those of `rows`.
pub async fn run<I: SearchedIndex, R: SearchedRows>(
    search: &RowSearch<'_>,
    index: &I,
    rows: &mut R,
) -> Result<(), R::Error> {
    let (kind, began) = (search.kind(), Instant::now());
    let answered = carry_out(search, index, rows).await;
    SearchCounts::of_process().answered(kind, began.elapsed(), answered.is_err());
    answered
}

async fn carry_out<I: SearchedIndex, R: SearchedRows>(
    search: &RowSearch<'_>,
    index: &I,
    rows: &mut R,
) -> Result<(), R::Error> {
    let asker = IndexAsker::of(search, index);
    match search.single() {
        Some(ordering) => {
            let run = SearchRun {
                search,
                ordering,
                asker,
                rows,
            };
            run.answer().await
        }
        None => HybridRun::of(search, asker, rows).answer().await,
    }
}

/// One search under way.
struct SearchRun<'r, I, R> {
    search: &'r RowSearch<'r>,
    ordering: &'r IndexOrdering<'r>,
    asker: IndexAsker<'r, I>,
    rows: &'r mut R,
}

/// The rows that the index has named.
struct NamedRows<K> {
    keys: VecDeque<NamedKey<K>>,
    is_stale: bool,
    /// Whether rows may be missing that have had no room in the index.
    is_short: bool,
}

impl<I: SearchedIndex, R: SearchedRows> SearchRun<'_, I, R> {
    async fn answer(mut self) -> Result<(), R::Error> {
        if self.rows.are_few(self.asker.is_whole()) {
            traces::note(|| "The access path leads to few rows, so they are all ranked".to_owned());
            return self.rank_all().await;
        }
        if self.answer_by_values().await? {
            return Ok(());
        }
        let count = self.search.span().end;
        let mut wanted = RowSearch::wanted(self.ordering, count);
        let (mut is_refilled, mut has_few) = (false, false);
        let is_short = loop {
            self.rows.begin();
            let named = self.name(wanted).await?;
            if named.is_stale {
                self.rows.warn(SearchWarning::Stale);
            }
            if named.is_short && self.search.ranks(RanksRows::Always) {
                note_short();
                return self.rank_all().await;
            }
            let (of_index, is_short) = (named.keys.len(), named.is_short);
            let alive = self.read(named.keys).await?;
            match AnswerRefill::after(count, wanted, of_index, alive) {
                AnswerRefill::Whole => break is_short,
                AnswerRefill::Short if self.search.ranks(RanksRows::ForConditions) => {
                    note_too_few();
                    return self.rank_all().await;
                }
                AnswerRefill::Short => {
                    self.rows.warn(SearchWarning::FewRows);
                    has_few = true;
                    break is_short;
                }
                AnswerRefill::Ask(more) => {
                    traces::note(|| {
                        format!("Too few rows match: refilling with {more} candidates")
                    });
                    wanted = more;
                    if !std::mem::replace(&mut is_refilled, true) {
                        self.search.count_refilled();
                    }
                }
            }
        };
        if is_short {
            self.rows.warn(SearchWarning::NoRoom);
        }
        if is_short || has_few {
            self.search.count_short();
        }
        Ok(())
    }

    /// Ranks all rows of the access path.
    async fn rank_all(&mut self) -> Result<(), R::Error> {
        let search = self.search;
        self.rows.begin();
        if let (Some(ordering), true) = (search.single_vector(), search.words.is_empty()) {
            self.asker.ranked_rows();
            return self.rows.rank_all(ordering, search.span()).await;
        }
        let named = name_all(&self.asker, self.rows, search.span().end).await?;
        self.rows.begin();
        let named = named.into_iter().next().unwrap_or_default();
        self.read(named.into()).await?;
        Ok(())
    }

    /// Answers by what the index keeps of the rows. Returns false if rows have to be read.
    async fn answer_by_values(&mut self) -> Result<bool, R::Error> {
        let search = self.search;
        let Some(returned) = search.returned.as_ref().filter(|_| self.asker.is_whole()) else {
            return Ok(false);
        };
        // No row is read here that would show whether the client may read the table.
        self.rows.permit().await?;
        let wanted = RowSearch::wanted(self.ordering, search.span().end);
        let asked = self.asker.find_values(self.ordering, wanted, returned);
        let FoundRows {
            neighbours,
            is_stale,
            ..
        } = match asked.await {
            Ok(found) => found,
            Err(error) if asks_for_rows(&error) => return Ok(false),
            Err(error) => return Err(self.rows.search_failed(error)),
        };
        if neighbours.is_short && search.ranks(RanksRows::Always) {
            note_short();
            self.rank_all().await?;
            return Ok(true);
        }
        self.rows.begin();
        let scores = neighbours.similarity_scores.iter().enumerate();
        let hits: Vec<SearchHit> = scores
            .map(|(at, score)| SearchHit::at(at, *score))
            .collect();
        if !self.rows.put_values(&neighbours, &hits, search.span())? {
            return Ok(false);
        }
        traces::note(|| {
            let named = neighbours.keys.len();
            format!("The index named {named} rows with their values, so no rows are read")
        });
        if is_stale {
            self.rows.warn(SearchWarning::Stale);
        }
        if neighbours.is_short {
            self.rows.warn(SearchWarning::NoRoom);
            self.search.count_short();
        }
        Ok(true)
    }

    /// Has the index name the `wanted` best rows.
    async fn name(&mut self, wanted: usize) -> Result<NamedRows<R::Key>, R::Error> {
        let found = self.asker.find(self.ordering, wanted).await;
        let found = found.map_err(|error| self.rows.search_failed(error))?;
        self.asker.note(&found);
        let (is_stale, is_short) = (found.is_stale, found.neighbours.is_short);
        let keys = sent_keys(self.rows, &found.neighbours)?;
        if !(is_short && self.search.ranks(RanksRows::Always)) {
            traces::note(|| format!("The index named {} rows", keys.len()));
        }
        Ok(NamedRows {
            keys: keys.into(),
            is_stale,
            is_short,
        })
    }

    /// Reads the rows of these keys as far as they are needed, and puts those of the answer.
    /// Returns the number of rows for which no others are needed.
    async fn read(&mut self, mut named: VecDeque<NamedKey<R::Key>>) -> Result<usize, R::Error> {
        let span = self.search.span();
        // Before keys are taken out: rows beyond this score were not named at all.
        let reach = named.back().map(|last| last.score);
        let (mut order, checks_words) = self.order()?;
        let (mut read, mut deleted, mut left_out) = (0_usize, 0_usize, 0_usize);
        while !named.is_empty() && order.missing(span.end) > 0 {
            let next = self.next(&named, order.missing(span.end), deleted + left_out);
            let next = named.drain(..next).map(|one| (one.key, one.score));
            let (keys, mut by_index): (Vec<R::Key>, Vec<f32>) = next.unzip();
            let ReadRows { rows, unread } = self.rows.read(keys).await?;
            let of_unread = by_index.split_off(rows.len().min(by_index.len()));
            for (key, score) in unread.into_iter().zip(of_unread).rev() {
                named.push_front(NamedKey { key, score });
            }
            let matching = match checks_words {
                true => {
                    let texts = self.texts(&rows);
                    self.matching(rows.len(), texts).await?
                }
                false => Vec::new(),
            };
            let scores = match &order {
                AnswerOrder::Named(_) => Vec::new(),
                AnswerOrder::Rescored { .. } | AnswerOrder::Reread(_) => {
                    let values = values(self.rows, &rows, ValueOf::Search(0));
                    self.scores(values).await?
                }
            };
            for (at, (row, by_index)) in rows.into_iter().zip(by_index).enumerate() {
                if order.missing(span.end) == 0 {
                    break;
                }
                read += 1;
                let satisfies_words = matching.get(at).copied().unwrap_or(true);
                match row {
                    None => deleted += 1,
                    Some(row) if !satisfies_words || !self.rows.is_match(&row) => left_out += 1,
                    Some(row) => {
                        let score = scores.get(at).copied().flatten();
                        self.take(&mut order, row, by_index, score)?;
                    }
                }
            }
        }
        traces::note(|| {
            format!(
                "Read {read} rows by their keys, of which {deleted} are gone; checked the others for all of WHERE"
            )
        });
        let (alive, rows) = match order {
            // These were put as they came.
            AnswerOrder::Named(taken) => return Ok(taken),
            AnswerOrder::Rescored { best, taken } => (taken.min(span.end), best),
            AnswerOrder::Reread(rows) => (rows.within(reach), rows.into_best()),
        };
        for (at, ScoredRow { row, score }) in rows.into_best().enumerate().skip(span.start) {
            self.rows.put(row, &[SearchHit::at(at, score)])?;
        }
        Ok(alive)
    }

    /// The order in which the rows that are read next become those of the answer, and whether these
    /// are checked for words.
    fn order(&mut self) -> Result<(AnswerOrder<R::Row>, bool), R::Error> {
        let (rescores, is_exact) = match self.ordering {
            IndexOrdering::Vector(vector) => (
                vector.candidates.rescoring.is_some(),
                vector.candidates.is_exact,
            ),
            IndexOrdering::Words(_) => (false, true),
        };
        let has_changed = self.rows.open(rescores)?;
        let count = self.search.span().end;
        let order = if rescores {
            AnswerOrder::Rescored {
                best: TopScored::new(count),
                taken: 0,
            }
        } else if has_changed && is_exact {
            // To compare the values takes longer than to read rows. Scores of quantized vectors
            // differ from those of the stored ones in any case.
            AnswerOrder::Reread(RereadRows::new(count))
        } else {
            AnswerOrder::Named(0)
        };
        Ok((order, self.asker.checks_words(has_changed)))
    }

    /// The number of keys to read the rows of, so that the missing ones become known. If many rows
    /// are deleted or left out, more are read at a time, as that would take many rounds otherwise.
    fn next(&self, named: &VecDeque<NamedKey<R::Key>>, missing: usize, lost: usize) -> usize {
        let (mut alive, mut unread, mut lost) = (0, 0, lost);
        for (at, one) in named.iter().enumerate() {
            let at_least = if unread == 0 { 0 } else { lost };
            let are_enough = alive + unread >= missing && unread >= at_least;
            if are_enough || unread == R::KEYS_AT_ONCE {
                return at;
            }
            match self.rows.known(&one.key) {
                Some(true) => alive += 1,
                Some(false) => lost += 1,
                None => unread += 1,
            }
        }
        named.len()
    }

    /// The texts of rows that each condition on words looks at.
    fn texts(&self, rows: &[Option<R::Row>]) -> Vec<Vec<Option<Bytes>>> {
        let conditions = 0..self.search.words.len();
        let texts = conditions.map(|at| values(self.rows, rows, ValueOf::Condition(at)));
        texts.collect()
    }

    async fn matching(
        &mut self,
        count: usize,
        texts: Vec<Vec<Option<Bytes>>>,
    ) -> Result<Vec<bool>, R::Error> {
        let matching = self.asker.matching(count, texts).await;
        matching.map_err(|error| self.rows.search_failed(error))
    }

    /// The scores of values by the search; `None` for a row that is none of it any more.
    async fn scores(&mut self, values: Vec<Option<Bytes>>) -> Result<Vec<Option<f32>>, R::Error> {
        match self.ordering {
            IndexOrdering::Vector(vector) => {
                let metric = vector.candidates.metric;
                let score = |value: Option<Bytes>| Some(metric.score(&vector.vector, &value?));
                Ok(values.into_iter().map(score).collect())
            }
            IndexOrdering::Words(words) => {
                let scores = self.asker.score_texts(words, values).await;
                scores.map_err(|error| self.rows.search_failed(error))
            }
        }
    }

    /// Takes a row that is wanted. It is put at once if its place is certain.
    fn take(
        &mut self,
        order: &mut AnswerOrder<R::Row>,
        row: R::Row,
        by_index: f32,
        score: Option<f32>,
    ) -> Result<(), R::Error> {
        match order {
            AnswerOrder::Named(taken) => {
                *taken += 1;
                if *taken > self.search.span().start {
                    self.rows.put(row, &[SearchHit::at(*taken - 1, by_index)])?;
                }
            }
            AnswerOrder::Rescored { best, taken } => {
                if let Some(score) = score {
                    best.push(score, ScoredRow { row, score });
                    *taken += 1;
                }
            }
            AnswerOrder::Reread(rows) => {
                if let Some(score) = score {
                    rows.take(row, score, by_index);
                }
            }
        }
        Ok(())
    }
}

/// The values of rows that a search or a condition looks at.
fn values<R: SearchedRows>(rows: &R, read: &[Option<R::Row>], of: ValueOf) -> Vec<Option<Bytes>> {
    let values = read.iter();
    let values = values.map(|row| rows.value(row.as_ref()?, of).cloned());
    values.collect()
}
