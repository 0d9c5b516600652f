//! The loop of a search.

use std::collections::VecDeque;

use index::SimilarityFunction;
use store_api::{ClientError, NearestRows};

use super::definition::{
    RanksRows, RowSearch, SearchFreshness, SearchPredicate, SearchWarning, VectorOrdering,
};
use super::indexes::{IndexQuestion, SearchedIndex};
use super::order::{AnswerOrder, NamedKey, RereadRows, merged};
use super::refill::AnswerRefill;
use super::rows::{ReadRows, SearchedRows};
use crate::TopScored;

/// Carries out a search: `rows` gets the rows of the answer in their order, and the warnings
/// with it.
///
/// # Errors
/// Failures of the index, and those of `rows`.
pub async fn run<I: SearchedIndex, R: SearchedRows>(
    search: &RowSearch<'_>,
    index: &I,
    rows: &mut R,
) -> Result<(), R::Error> {
    let predicates = search.predicates.iter();
    let predicates = predicates.filter(|one| index.can_search_by(&one.predicate));
    let predicates: Vec<&SearchPredicate> = predicates.collect();
    let run = SearchRun {
        search,
        index,
        rows,
        is_whole: predicates.len() == search.conditions,
        predicates,
        keeps_unnamed: true,
        freshness: search.freshness,
    };
    run.answer().await
}

/// One search under way.
struct SearchRun<'r, I, R> {
    search: &'r RowSearch<'r>,
    index: &'r I,
    rows: &'r mut R,
    /// The conditions that the index can search by.
    predicates: Vec<&'r SearchPredicate>,
    /// Whether they are all of WHERE.
    is_whole: bool,
    /// Whether the index is taken to keep columns that it does not name.
    keeps_unnamed: bool,
    /// The writes that are waited for.
    freshness: SearchFreshness,
}

/// The answer of an index.
struct FoundRows {
    neighbours: NearestRows,
    /// Whether the newest writes may be missing.
    is_stale: bool,
}

/// The rows that the indexes have named.
struct NamedRows<K> {
    keys: VecDeque<NamedKey<K>>,
    /// The most rows that one of them has named.
    count: usize,
    is_stale: bool,
    /// Whether rows may be missing that have had no room in an index.
    is_short: bool,
}

impl<'r, I: SearchedIndex, R: SearchedRows> SearchRun<'r, I, R> {
    async fn answer(mut self) -> Result<(), R::Error> {
        if self.search.single().is_some() && self.rows.are_few(self.is_whole) {
            traces::note(|| "The access path leads to few rows, so they are all ranked".to_owned());
            return self.rank_all().await;
        }
        if self.answer_by_values().await? {
            return Ok(());
        }
        let count = self.search.span().end;
        let mut wanted = self.search.wanted();
        let is_short = loop {
            self.rows.begin();
            let named = self.name(wanted).await?;
            if named.is_stale {
                self.rows.warn(SearchWarning::Stale);
            }
            if named.is_short && self.ranks_rows(RanksRows::Always) {
                note_short();
                return self.rank_all().await;
            }
            let (of_index, is_short) = (named.count, named.is_short);
            let alive = self.read(named.keys).await?;
            match AnswerRefill::after(count, wanted, of_index, alive) {
                AnswerRefill::Whole => break is_short,
                AnswerRefill::Short if self.ranks_rows(RanksRows::ForConditions) => {
                    let why = "The index can't name enough rows that match, so all are ranked";
                    traces::note(|| why.to_owned());
                    return self.rank_all().await;
                }
                AnswerRefill::Short => {
                    self.rows.warn(SearchWarning::FewRows);
                    break is_short;
                }
                AnswerRefill::Ask(more) => {
                    traces::note(|| {
                        format!("Too few rows match: refilling with {more} candidates")
                    });
                    wanted = more;
                }
            }
        };
        if is_short {
            self.rows.warn(SearchWarning::NoRoom);
        }
        Ok(())
    }

    /// Whether all rows are ranked in this case. Those of several orderings can't be.
    fn ranks_rows(&self, case: RanksRows) -> bool {
        let search = self.search;
        let is_so = match (search.ranks_rows, case) {
            (RanksRows::Always, _) => true,
            (RanksRows::ForConditions, RanksRows::ForConditions) => search.conditions > 0,
            (RanksRows::ForConditions, RanksRows::Always) => false,
        };
        is_so && search.single().is_some()
    }

    /// Ranks all rows of the access path.
    async fn rank_all(&mut self) -> Result<(), R::Error> {
        let search = self.search;
        let Some(ordering) = search.single() else {
            return Ok(());
        };
        self.rows.begin();
        self.index.ranked_rows(ordering);
        self.rows.rank_all(ordering, search.span()).await
    }

    /// Answers by what the index keeps of the rows. Returns false if rows have to be read.
    async fn answer_by_values(&mut self) -> Result<bool, R::Error> {
        let search = self.search;
        let (Some(ordering), Some(returned)) = (search.single(), &search.returned) else {
            return Ok(false);
        };
        if !self.is_whole {
            return Ok(false);
        }
        // No row is read here that would show whether the client may read the table.
        self.rows.permit().await?;
        let question = IndexQuestion {
            returned: Some(returned),
            ..self.question(ordering, search.wanted())
        };
        let asked = self.ask(question).await;
        // The rows that are read in place of the answer wait for the writes by themselves.
        self.freshness = search.freshness;
        let FoundRows {
            neighbours,
            is_stale,
        } = match asked {
            Ok(found) => found,
            // The values may be too many bytes for one answer, or the service has not all of them.
            Err(
                ClientError::Status { .. } | ClientError::InvalidJson | ClientError::InvalidBinary,
            ) => return Ok(false),
            Err(error) => return Err(self.rows.search_failed(error)),
        };
        if neighbours.is_short && self.ranks_rows(RanksRows::Always) {
            note_short();
            self.rank_all().await?;
            return Ok(true);
        }
        self.rows.begin();
        if !self.rows.put_values(&neighbours, search.span())? {
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
        }
        Ok(true)
    }

    /// Has the indexes name the `wanted` nearest rows.
    async fn name(&mut self, wanted: usize) -> Result<NamedRows<R::Key>, R::Error> {
        let search = self.search;
        let mut answers = Vec::with_capacity(search.orderings.len());
        let (mut is_stale, mut is_short) = (false, false);
        for ordering in &search.orderings {
            let found = self.find(ordering, wanted).await;
            let found = found.map_err(|error| self.rows.search_failed(error))?;
            is_stale |= found.is_stale;
            is_short |= found.neighbours.is_short;
            answers.push(self.keys(found.neighbours)?);
        }
        let count = answers.iter().map(Vec::len).max().unwrap_or(0);
        if !(is_short && self.ranks_rows(RanksRows::Always)) {
            traces::note(|| format!("The index named {count} rows"));
        }
        Ok(NamedRows {
            keys: merged(answers).into(),
            count,
            is_stale,
            is_short,
        })
    }

    /// Searches one index. Some refuse conditions on columns that they do not name: the service may
    /// not have noticed the column's own index yet, or be building the vector index again with it.
    /// The rows are checked in any case.
    async fn find(
        &mut self,
        ordering: &'r VectorOrdering<'r>,
        wanted: usize,
    ) -> Result<FoundRows, ClientError> {
        let question = self.question(ordering, wanted);
        let asked = self.ask(question).await;
        let mut predicates = self.predicates.iter();
        if matches!(asked, Err(ClientError::Status { .. }))
            && self.keeps_unnamed
            && predicates.any(|one| !one.is_named)
        {
            self.keeps_unnamed = false;
            let question = self.question(ordering, wanted);
            return self.ask(question).await;
        }
        asked
    }

    /// Searches the index if it knows the newest write in time, or else, where the answer may be
    /// stale, by the writes that it knows.
    async fn ask(&mut self, mut question: IndexQuestion<'r>) -> Result<FoundRows, ClientError> {
        let index = self.index;
        let SearchFreshness {
            newest_us,
            wait,
            may_be_stale,
        } = self.freshness;
        question.newest = newest_us.map(|newest_us| (newest_us, wait));
        let asked = index.search(&question).await;
        let is_stale = newest_us.is_some() && matches!(asked, Err(ClientError::Behind { .. }));
        if !is_stale {
            return Ok(FoundRows {
                neighbours: asked?,
                is_stale,
            });
        }
        // A search waits once; its refills do not wait again.
        self.freshness.newest_us = None;
        if !may_be_stale {
            return Err(asked.err().unwrap_or(ClientError::Aborted));
        }
        question.newest = None;
        Ok(FoundRows {
            neighbours: index.search(&question).await?,
            is_stale,
        })
    }

    fn question(&self, ordering: &'r VectorOrdering<'r>, wanted: usize) -> IndexQuestion<'r> {
        let predicates = self.predicates.iter();
        let predicates = predicates.filter(|one| one.is_named || self.keeps_unnamed);
        IndexQuestion {
            ordering,
            wanted,
            limit: self.search.limit,
            predicates: predicates.map(|one| one.predicate.clone()).collect(),
            returned: None,
            newest: None,
        }
    }

    fn keys(&self, found: NearestRows) -> Result<Vec<NamedKey<R::Key>>, R::Error> {
        let named = found.keys.iter().zip(found.similarity_scores);
        let keys = named.map(|(sent, score)| match self.rows.key(sent) {
            Some(key) => Ok(NamedKey { key, score }),
            None => Err(self.rows.search_failed(ClientError::InvalidJson)),
        });
        keys.collect()
    }

    /// Reads the rows of these keys as far as they are needed, and puts those of the answer.
    /// Returns the number of rows for which no others are needed.
    async fn read(&mut self, mut named: VecDeque<NamedKey<R::Key>>) -> Result<usize, R::Error> {
        let span = self.search.span();
        // Before keys are taken out: rows beyond this score were not named at all.
        let reach = named.back().map(|last| last.score);
        let mut order = self.order()?;
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
            for (row, by_index) in rows.into_iter().zip(by_index) {
                if order.missing(span.end) == 0 {
                    break;
                }
                read += 1;
                match row {
                    None => deleted += 1,
                    Some(row) if !self.rows.is_match(&row) => left_out += 1,
                    Some(row) => self.take(&mut order, row, by_index)?,
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
            AnswerOrder::Rescored { nearest, taken, .. } => (taken.min(span.end), nearest),
            AnswerOrder::Reread { rows, .. } => (rows.within(reach), rows.into_nearest()),
        };
        for row in rows.into_best().skip(span.start) {
            self.rows.put(row)?;
        }
        Ok(alive)
    }

    /// The order in which the rows that are read next become those of the answer.
    fn order(&mut self) -> Result<AnswerOrder<R::Row>, R::Error> {
        let has_changed = self.rows.open()?;
        let count = self.search.span().end;
        let Some(ordering) = self.search.single() else {
            return Ok(AnswerOrder::Named(0));
        };
        Ok(match ordering.candidates.rescoring {
            Some(metric) => AnswerOrder::Rescored {
                metric,
                nearest: TopScored::new(count),
                taken: 0,
            },
            // To compare the vectors takes longer than to read rows.
            None if has_changed => AnswerOrder::Reread {
                metric: ordering.candidates.metric,
                rows: RereadRows::new(count),
            },
            None => AnswerOrder::Named(0),
        })
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

    /// Takes a row that is wanted. It is put at once if its place is certain.
    fn take(
        &mut self,
        order: &mut AnswerOrder<R::Row>,
        row: R::Row,
        by_index: f32,
    ) -> Result<(), R::Error> {
        match order {
            AnswerOrder::Named(taken) => {
                *taken += 1;
                if *taken > self.search.span().start {
                    self.rows.put(row)?;
                }
            }
            AnswerOrder::Rescored {
                metric,
                nearest,
                taken,
            } => {
                if let Some(score) = self.score(&row, *metric) {
                    nearest.push(score, row);
                    *taken += 1;
                }
            }
            AnswerOrder::Reread { metric, rows } => {
                if let Some(score) = self.score(&row, *metric) {
                    rows.take(row, score, by_index);
                }
            }
        }
        Ok(())
    }

    /// The similarity of a row's vector to the one that is looked for; `None` for a row without
    /// one.
    fn score(&self, row: &R::Row, metric: SimilarityFunction) -> Option<f32> {
        let vector = &self.search.single()?.vector;
        Some(metric.score(vector, self.rows.vector(row)?))
    }
}

/// Traces why the rows are read in place of the index.
fn note_short() {
    traces::note(|| "The index has had no room for some rows, so all are ranked".to_owned());
}
