//! The loop of several searches, whose answers make one order.
//!
//! 1. All indexes are searched at once, each for as many candidates.
//! 2. The rows of all keys that they name are read once. A row that is deleted or left out by WHERE
//!    takes part no more.
//! 3. Each search ranks the rows that it named and that are there. Scores that must be true are
//!    measured by what was read: where vectors are rescored, where something was written since, and
//!    for an expression.
//! 4. Rows come by their ranks or by the expression. Of equal rows that one comes first which the
//!    first search ranks better, then the second, and so on. No two rows have all ranks in common.
//!    Where the indexes keep all that an order by ranks needs, they make the answer, without 2
//!    and 3.
//! 5. If rows are missing, the searches that may know more are requested for more. Where they can't
//!    name enough, all rows of the access path are scored, and take part as if indexes had named
//!    them.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use futures::future::join_all;
use store_api::NearestRows;

use super::asker::{FoundRows, IndexAsker, asks_for_rows, note_short, note_too_few, sent_keys};
use super::definition::{
    IndexOrdering, RanksRows, RowSearch, SearchHit, SearchRanking, SearchWarning,
};
use super::indexes::SearchedIndex;
use super::order::NamedKey;
use super::refill::AnswerRefill;
use super::rows::{ReadRows, SearchedRows, ValueOf};
use super::scan::name_all;

/// Several searches under way.
pub(super) struct HybridRun<'r, I, R> {
    search: &'r RowSearch<'r>,
    asker: IndexAsker<'r, I>,
    rows: &'r mut R,
}

/// The place of a row in the answer of an index.
#[derive(Clone, Copy)]
struct NamedPlace {
    position: usize,
    score: f32,
}

/// A row that searches have named.
struct HybridCandidate<K> {
    key: K,
    /// The place in the answer of each search; `None` for one that did not name the row.
    places: Vec<Option<NamedPlace>>,
}

/// A row that is there.
struct HybridRow<T> {
    row: T,
    places: Vec<Option<NamedPlace>>,
    hits: Vec<SearchHit>,
}

/// The rows that the indexes have named.
struct HybridNames<K> {
    lists: Vec<Vec<NamedKey<K>>>,
    is_short: bool,
}

/// The next step after the rows that were named have been read.
enum HybridRefill {
    Whole,
    Short,
    Ask(Vec<usize>),
}

impl<'r, I: SearchedIndex, R: SearchedRows> HybridRun<'r, I, R> {
    pub(super) fn of(
        search: &'r RowSearch<'r>,
        asker: IndexAsker<'r, I>,
        rows: &'r mut R,
    ) -> HybridRun<'r, I, R> {
        HybridRun {
            search,
            asker,
            rows,
        }
    }

    pub(super) async fn answer(mut self) -> Result<(), R::Error> {
        if self.rows.are_few(self.asker.is_whole()) {
            traces::note(|| "The access path leads to few rows, so they are all ranked".to_owned());
            return self.rank_all().await;
        }
        if self.answer_by_values().await? {
            return Ok(());
        }
        let orderings = self.search.searches.iter();
        let mut wanted: Vec<usize> = orderings
            .map(|ordering| RowSearch::wanted(ordering, self.candidates()))
            .collect();
        let (mut is_refilled, mut has_few) = (false, false);
        loop {
            self.rows.begin();
            let HybridNames { lists, is_short } = self.name(&wanted).await?;
            if is_short && self.search.ranks(RanksRows::Always) {
                note_short();
                return self.rank_all().await;
            }
            let named: Vec<usize> = lists.iter().map(Vec::len).collect();
            let found = self.read(lists).await?;
            match self.refill(&wanted, &named, &found) {
                HybridRefill::Ask(more) => {
                    traces::note(|| {
                        format!("Too few rows match: refilling with {more:?} candidates")
                    });
                    wanted = more;
                    if !std::mem::replace(&mut is_refilled, true) {
                        self.search.count_refilled();
                    }
                    continue;
                }
                HybridRefill::Short if self.search.ranks(RanksRows::ForConditions) => {
                    note_too_few();
                    return self.rank_all().await;
                }
                HybridRefill::Short => {
                    self.rows.warn(SearchWarning::FewRows);
                    has_few = true;
                }
                HybridRefill::Whole => {}
            }
            if is_short {
                self.rows.warn(SearchWarning::NoRoom);
            }
            if is_short || has_few {
                self.search.count_short();
            }
            return self.put(found);
        }
    }

    /// The number of rows that each search takes part with.
    fn candidates(&self) -> usize {
        let count = self.search.span().end;
        self.search.candidates.map_or(count, |of| of.max(count))
    }

    /// Answers by all rows of the access path.
    async fn rank_all(&mut self) -> Result<(), R::Error> {
        self.rows.begin();
        let count = self.candidates();
        let lists = name_all(&self.asker, self.rows, count).await?;
        self.rows.begin();
        let found = self.read(lists).await?;
        self.put(found)
    }

    /// Answers by the places that the indexes give to rows, and by what they keep of them. Returns
    /// false if rows have to be read.
    async fn answer_by_values(&mut self) -> Result<bool, R::Error> {
        let search = self.search;
        let Some(returned) = search.returned.as_ref().filter(|_| self.asker.is_whole()) else {
            return Ok(false);
        };
        // No row is read here that would show whether the client may read the table.
        self.rows.permit().await?;
        let asked: Vec<_> = {
            let (asker, candidates) = (&self.asker, self.candidates());
            let orderings = search.searches.iter();
            let asked = orderings.map(|ordering| {
                asker.find_values(ordering, RowSearch::wanted(ordering, candidates), returned)
            });
            join_all(asked.collect::<Vec<_>>()).await
        };
        let (mut lists, mut is_stale) = (Vec::with_capacity(asked.len()), false);
        for found in asked {
            match found {
                Ok(found) => {
                    is_stale |= found.is_stale;
                    lists.push(found.neighbours);
                }
                Err(error) if asks_for_rows(&error) => return Ok(false),
                Err(error) => return Err(self.rows.search_failed(error)),
            }
        }
        let is_short = lists.iter().any(|list| list.is_short);
        if is_short && search.ranks(RanksRows::Always) {
            note_short();
            self.rank_all().await?;
            return Ok(true);
        }
        self.rows.begin();
        let (answer, hits) = self.ordered_values(&lists)?;
        if !self.rows.put_values(&answer, &hits, search.span())? {
            return Ok(false);
        }
        traces::note(|| {
            let counts: Vec<usize> = lists.iter().map(|list| list.keys.len()).collect();
            format!("The indexes named {counts:?} rows with their values, so no rows are read")
        });
        if is_stale {
            self.rows.warn(SearchWarning::Stale);
        }
        if is_short {
            self.rows.warn(SearchWarning::NoRoom);
            search.count_short();
        }
        Ok(true)
    }

    /// The rows that the indexes have named, in the order of the answer, and the hits of each in
    /// turn.
    fn ordered_values(
        &self,
        lists: &[NearestRows],
    ) -> Result<(NearestRows, Vec<SearchHit>), R::Error> {
        let named = lists.iter().map(|list| sent_keys(self.rows, list));
        let candidates = united(named.collect::<Result<Vec<_>, _>>()?).into_iter();
        // The row is the place where a list has it.
        let mut rows: Vec<HybridRow<(usize, usize)>> = candidates
            .filter_map(|candidate| {
                let places = candidate.places.iter().enumerate();
                let mut places = places.filter_map(|(at, place)| Some((at, place.as_ref()?)));
                let (list, place) = places.next()?;
                Some(HybridRow {
                    row: (list, place.position),
                    hits: Vec::new(),
                    places: candidate.places.clone(),
                })
            })
            .collect();
        for at in 0..lists.len() {
            give(&mut rows, at, |place, _| place.map(|place| place.score));
        }
        self.rank(&mut rows);
        let mut answer = NearestRows::default();
        let columns = lists.first().map_or(0, |list| list.column_values.len());
        answer.column_values.resize_with(columns, Vec::new);
        let mut hits = Vec::new();
        let ordered = self.ordered(rows).into_iter();
        for one in ordered.take(self.search.span().end) {
            let (list, position) = one.row;
            let Some((list, key)) = lists
                .get(list)
                .and_then(|list| Some((list, list.keys.get(position)?)))
            else {
                continue;
            };
            answer.keys.push(key.clone());
            for (to, from) in answer.column_values.iter_mut().zip(&list.column_values) {
                to.extend(from.get(position).cloned());
            }
            hits.extend(one.hits);
        }
        Ok((answer, hits))
    }

    /// Has all indexes name their best rows, at the same time.
    async fn name(&mut self, wanted: &[usize]) -> Result<HybridNames<R::Key>, R::Error> {
        let search = self.search;
        let found = {
            let asker = &self.asker;
            let questions = search.searches.iter().zip(wanted);
            let asked: Vec<_> = questions
                .map(|(ordering, wanted)| asker.find(ordering, *wanted))
                .collect();
            join_all(asked).await
        };
        let mut names = HybridNames {
            lists: Vec::with_capacity(found.len()),
            is_short: false,
        };
        let mut is_stale = false;
        for found in found {
            let found: FoundRows = found.map_err(|error| self.rows.search_failed(error))?;
            self.asker.note(&found);
            is_stale |= found.is_stale;
            names.is_short |= found.neighbours.is_short;
            names.lists.push(sent_keys(self.rows, &found.neighbours)?);
        }
        if is_stale {
            self.rows.warn(SearchWarning::Stale);
        }
        traces::note(|| {
            let counts: Vec<usize> = names.lists.iter().map(Vec::len).collect();
            format!("The indexes named {counts:?} rows")
        });
        Ok(names)
    }

    /// Reads the rows that were named. Returns those that are there, in the order of the answer.
    async fn read(
        &mut self,
        lists: Vec<Vec<NamedKey<R::Key>>>,
    ) -> Result<Vec<HybridRow<R::Row>>, R::Error> {
        let has_changed = self.rows.open(true)?;
        let checks_words = self.asker.checks_words(has_changed);
        let mut candidates: VecDeque<HybridCandidate<R::Key>> = united(lists).into();
        let named = candidates.len();
        let mut found: Vec<HybridRow<R::Row>> = Vec::with_capacity(named);
        while !candidates.is_empty() {
            let count = candidates.len().min(R::KEYS_AT_ONCE);
            let keys = candidates.iter().take(count).map(|one| one.key.clone());
            let ReadRows { rows, .. } = self.rows.read(keys.collect()).await?;
            if rows.is_empty() {
                break;
            }
            // The other keys stay where they are.
            let count = rows.len().min(count);
            let read = rows.into_iter().zip(candidates.drain(..count));
            let mut there: Vec<HybridRow<R::Row>> = Vec::with_capacity(count);
            for (row, candidate) in read {
                if let Some(row) = row.filter(|row| self.rows.is_match(row)) {
                    there.push(HybridRow {
                        row,
                        hits: Vec::new(),
                        places: candidate.places,
                    });
                }
            }
            if checks_words {
                there = self.matching(there).await?;
            }
            self.score(&mut there, has_changed).await?;
            found.append(&mut there);
        }
        traces::note(|| {
            let there = found.len();
            format!("Read {named} rows by their keys, of which {there} are there and satisfy WHERE")
        });
        self.rank(&mut found);
        Ok(self.ordered(found))
    }

    /// Those of the rows that satisfy the conditions on words.
    async fn matching(
        &mut self,
        there: Vec<HybridRow<R::Row>>,
    ) -> Result<Vec<HybridRow<R::Row>>, R::Error> {
        let conditions = 0..self.search.words.len();
        let texts = conditions.map(|at| self.values(&there, ValueOf::Condition(at)));
        let texts = texts.collect();
        let matching = self.asker.matching(there.len(), texts).await;
        let matching = matching.map_err(|error| self.rows.search_failed(error))?;
        let there = there.into_iter().zip(matching);
        let there = there.filter_map(|(row, is_match)| is_match.then_some(row));
        Ok(there.collect())
    }

    fn values(&self, there: &[HybridRow<R::Row>], of: ValueOf) -> Vec<Option<Bytes>> {
        let values = there.iter();
        let values = values.map(|one| self.rows.value(&one.row, of).cloned());
        values.collect()
    }

    /// Gives each row the scores of all searches: as the index has it, or the true one where that
    /// is needed.
    async fn score(
        &mut self,
        there: &mut [HybridRow<R::Row>],
        has_changed: bool,
    ) -> Result<(), R::Error> {
        let search = self.search;
        let is_expression = matches!(search.ranking, SearchRanking::Expression(_));
        for (at, ordering) in search.searches.iter().enumerate() {
            let scores_all = is_expression && search.ranking.depends_on(at);
            let of = ValueOf::Search(at);
            let mut values = match self.rows.reads_value(of) {
                true => self.values(there, of),
                false => {
                    give(there, at, |place, _| place.map(|place| place.score));
                    continue;
                }
            };
            match ordering {
                IndexOrdering::Vector(vector) => {
                    let rule = vector.candidates;
                    let measures =
                        scores_all || rule.rescoring.is_some() || has_changed && rule.is_exact;
                    give(there, at, |place, row| {
                        let value = values.get(row)?.as_ref()?;
                        match (place, measures) {
                            (None, _) if !scores_all => None,
                            (_, true) => Some(rule.metric.score(&vector.vector, value)),
                            (place, false) => place.map(|place| place.score),
                        }
                    });
                }
                IndexOrdering::Words(words) => {
                    let is_named = |row: usize| there.get(row)?.places.get(at)?.as_ref();
                    let is_measured = |row: usize| match is_named(row) {
                        Some(_) => has_changed,
                        None => scores_all,
                    };
                    let has_text: Vec<bool> = values.iter().map(Option::is_some).collect();
                    let measured: Vec<bool> = (0..values.len()).map(is_measured).collect();
                    for (value, is_measured) in values.iter_mut().zip(&measured) {
                        *value = value.take().filter(|_| *is_measured);
                    }
                    let scores = self.asker.score_texts(words, values).await;
                    let scores = scores.map_err(|error| self.rows.search_failed(error))?;
                    give(there, at, |place, row| match measured.get(row) {
                        Some(true) => scores.get(row).copied().flatten(),
                        _ => place
                            .filter(|_| has_text.get(row) == Some(&true))
                            .map(|place| place.score),
                    });
                }
            }
        }
        Ok(())
    }

    /// Gives the rows their ranks in all searches: the first has the rank 1.
    fn rank<T>(&self, found: &mut [HybridRow<T>]) {
        let candidates = self.candidates();
        let is_expression = matches!(self.search.ranking, SearchRanking::Expression(_));
        for (at, ordering) in self.search.searches.iter().enumerate() {
            let mut ranked: Vec<(f32, usize, usize)> = found
                .iter()
                .enumerate()
                .filter_map(|(row, one)| {
                    let place = one.places.get(at).copied().flatten()?;
                    Some((one.hits.get(at)?.score?, place.position, row))
                })
                .collect();
            ranked.sort_by(|a, b| by_score(a.0.into(), b.0.into()).then(a.1.cmp(&b.1)));
            let oversamples = matches!(
                ordering,
                IndexOrdering::Vector(vector) if vector.candidates.rescoring.is_some()
            );
            for (rank, (_, _, row)) in ranked.into_iter().enumerate() {
                let hit = &mut found[row].hits[at];
                // More were requested than take part, as those which do are chosen here.
                match oversamples && rank >= candidates {
                    true if is_expression => {}
                    true => *hit = SearchHit::default(),
                    false => hit.rank = u32::try_from(rank + 1).ok(),
                }
            }
        }
    }

    /// The rows in the order of the answer. Those that only searches name on which the order does
    /// not depend are left out.
    fn ordered<T>(&self, found: Vec<HybridRow<T>>) -> Vec<HybridRow<T>> {
        let ranking = &self.search.ranking;
        let searches = 0..self.search.searches.len();
        let of_order: Vec<usize> = searches.filter(|at| ranking.depends_on(*at)).collect();
        let found = found.into_iter();
        let named = found.filter(|one| of_order.iter().any(|at| one.hits[*at].rank.is_some()));
        let mut scored: Vec<(f64, HybridRow<T>)> =
            named.map(|one| (value(ranking, &one.hits), one)).collect();
        scored.sort_by(|(a, one), (b, other)| {
            let ranks = |row: &HybridRow<T>| {
                let hits = row.hits.iter();
                hits.map(|hit| hit.rank.unwrap_or(u32::MAX))
                    .collect::<Vec<u32>>()
            };
            by_score(*a, *b).then_with(|| ranks(one).cmp(&ranks(other)))
        });
        let is_expression = matches!(ranking, SearchRanking::Expression(_));
        let finished = scored.into_iter().map(|(_, mut one)| {
            if is_expression {
                self.fill(&mut one.hits);
            }
            one
        });
        finished.collect()
    }

    /// Gives the scores of words that an expression has counted as 0 that value.
    fn fill(&self, hits: &mut [SearchHit]) {
        let searches = self.search.searches.iter().zip(hits).enumerate();
        for (at, (ordering, hit)) in searches {
            let is_counted = self.search.ranking.depends_on(at);
            if is_counted && matches!(ordering, IndexOrdering::Words(_)) {
                hit.score = hit.score.or(Some(0.0));
            }
        }
    }

    /// Decides whether searches are requested for more, as rows are missing.
    fn refill(
        &self,
        wanted: &[usize],
        named: &[usize],
        found: &[HybridRow<R::Row>],
    ) -> HybridRefill {
        let count = self.search.span().end;
        // Where WHERE leaves out rows that the indexes name, the ranks of the others depend on
        // those that take their places.
        let goal = match self.asker.is_whole() {
            true => count,
            false => self.candidates(),
        };
        if found.len() >= count && goal == count {
            return HybridRefill::Whole;
        }
        let (mut more, mut is_short, mut asks) = (wanted.to_vec(), false, false);
        for (at, wanted) in more.iter_mut().enumerate() {
            if !self.search.ranking.depends_on(at) {
                continue;
            }
            let hits = found.iter().filter_map(|one| one.hits.get(at)?.rank);
            match AnswerRefill::after(goal, *wanted, named[at], hits.count()) {
                AnswerRefill::Whole => {}
                AnswerRefill::Short => is_short = true,
                AnswerRefill::Ask(next) => {
                    asks = true;
                    *wanted = next;
                }
            }
        }
        match (asks, is_short && found.len() < count) {
            (true, _) => HybridRefill::Ask(more),
            (false, true) => HybridRefill::Short,
            (false, false) => HybridRefill::Whole,
        }
    }

    fn put(&mut self, found: Vec<HybridRow<R::Row>>) -> Result<(), R::Error> {
        let span = self.search.span();
        for HybridRow { row, hits, .. } in found.into_iter().take(span.end).skip(span.start) {
            self.rows.put(row, &hits)?;
        }
        Ok(())
    }
}

/// The rows that several searches have named, each once, those of better places first.
fn united<K: Clone + Eq + std::hash::Hash>(
    lists: Vec<Vec<NamedKey<K>>>,
) -> Vec<HybridCandidate<K>> {
    let searches = lists.len();
    let mut candidates: Vec<HybridCandidate<K>> = Vec::new();
    let mut known: HashMap<K, usize> = HashMap::new();
    for (at, list) in lists.into_iter().enumerate() {
        for (position, NamedKey { key, score }) in list.into_iter().enumerate() {
            let candidate = *known.entry(key).or_insert_with_key(|key| {
                candidates.push(HybridCandidate {
                    key: key.clone(),
                    places: vec![None; searches],
                });
                candidates.len() - 1
            });
            let place = &mut candidates[candidate].places[at];
            // An index that is changing may name a row twice.
            place.get_or_insert(NamedPlace { position, score });
        }
    }
    candidates
}

/// Gives each row the score that `score` finds for its place in a search and its number.
fn give<T>(
    there: &mut [HybridRow<T>],
    search: usize,
    score: impl Fn(Option<NamedPlace>, usize) -> Option<f32>,
) {
    for (row, one) in there.iter_mut().enumerate() {
        let place = one.places.get(search).copied().flatten();
        one.hits.push(SearchHit {
            score: score(place, row),
            rank: None,
        });
    }
}

/// The value by which a row with these hits comes, the largest first.
fn value(ranking: &SearchRanking, hits: &[SearchHit]) -> f64 {
    let hit = |search: usize| hits.get(search).copied().unwrap_or_default();
    match ranking {
        SearchRanking::Single => hit(0)
            .rank
            .map_or(f64::NEG_INFINITY, |rank| -f64::from(rank)),
        SearchRanking::Reciprocal { constant, weights } => {
            let parts = weights.iter().filter_map(|(search, weight)| {
                let rank = hit(*search).rank?;
                Some(weight / (f64::from(*constant) + f64::from(rank)))
            });
            parts.sum()
        }
        SearchRanking::Expression(expression) => {
            expression.value(&|search| hit(search).score.map_or(0.0, f64::from))
        }
    }
}

/// The larger of two values first, and what is no number last.
fn by_score(a: f64, b: f64) -> Ordering {
    a.is_nan().cmp(&b.is_nan()).then_with(|| b.total_cmp(&a))
}
