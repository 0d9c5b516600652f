//! Tests of searches for words and of several searches, with indexes and rows in memory, by brute
//! force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use bytes::Bytes;
use cql::ast::ArithmeticOperation;
use futures::executor::block_on;
use index::{CandidateRule, SimilarityFunction};
use store_api::{ClientError, ColumnsPredicate, KeyValue, NearestRows};

use super::*;

const RULE: CandidateRule = CandidateRule {
    oversampling: 1.0,
    metric: SimilarityFunction::Euclidean,
    rescoring: None,
    is_exact: true,
};

/// A row: an element of a vector, and how often the word occurs in its text.
#[derive(Clone, Copy, Debug, PartialEq)]
struct MadeRow {
    x: f32,
    words: f32,
}

type MadeRows = BTreeMap<u8, MadeRow>;

/// Indexes that know these rows. The index of the name `v` is of vectors, any other of texts.
struct MadeIndexes {
    known: MadeRows,
    /// The name and the number of rows of each question.
    asked: Mutex<Vec<(String, usize)>>,
    /// The number of texts that were scored.
    scored: Mutex<usize>,
    is_short: bool,
}

impl MadeIndexes {
    fn of(known: &MadeRows) -> MadeIndexes {
        MadeIndexes {
            known: known.clone(),
            asked: Mutex::default(),
            scored: Mutex::default(),
            is_short: false,
        }
    }
}

/// The similarity of a row's vector to 0.
fn similarity(row: &MadeRow) -> Option<f32> {
    let x = f64::from(row.x);
    Some((1.0 / (1.0 + x * x)) as f32)
}

/// The score of a row's text.
fn word_score(row: &MadeRow) -> Option<f32> {
    (row.words > 0.0).then_some(row.words)
}

/// The rows with these scores, the best first; of equal ones that with the lower key.
fn best(rows: &MadeRows, score: fn(&MadeRow) -> Option<f32>) -> Vec<(u8, f32)> {
    let scored = rows
        .iter()
        .filter_map(|(key, row)| Some((*key, score(row)?)));
    let mut scored: Vec<(u8, f32)> = scored.collect();
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    scored
}

impl SearchedIndex for MadeIndexes {
    fn can_search_by(&self, _: &ColumnsPredicate) -> bool {
        true
    }

    async fn search(&self, question: &IndexQuestion<'_>) -> Result<NearestRows, ClientError> {
        let (_, index) = question.ordering.index();
        let asked = (index.to_owned(), question.wanted);
        self.asked.lock().unwrap().push(asked);
        let mut named = match question.ordering {
            IndexOrdering::Vector(_) => best(&self.known, similarity),
            IndexOrdering::Words(_) => best(&self.known, word_score),
        };
        if !question.predicates.is_empty() {
            named.retain(|(key, _)| word_score(&self.known[key]).is_some());
        }
        named.truncate(question.wanted);
        let key = |key: u8| vec![KeyValue::Cql(Bytes::copy_from_slice(&[key]))];
        Ok(NearestRows {
            keys: named.iter().map(|(id, _)| key(*id)).collect(),
            similarity_scores: named.iter().map(|(_, score)| *score).collect(),
            column_values: Vec::new(),
            is_short: self.is_short,
        })
    }

    async fn score_texts(
        &self,
        _: &WordOrdering<'_>,
        _: Vec<ColumnsPredicate>,
        texts: Vec<Option<Bytes>>,
    ) -> Result<Vec<Option<f32>>, ClientError> {
        *self.scored.lock().unwrap() += texts.len();
        let words = |text: Option<Bytes>| {
            let words = f32::from_be_bytes(text?[..].try_into().ok()?);
            word_score(&MadeRow { x: 0.0, words })
        };
        Ok(texts.into_iter().map(words).collect())
    }

    fn ranked_rows(&self, _: &IndexOrdering<'_>) {}
}

/// The rows of a table, and the answer that is made of them.
#[derive(Default)]
struct MadeTable {
    rows: MadeRows,
    left_out: BTreeSet<u8>,
    may_differ: bool,
    are_few: bool,
    /// The kinds of the searches: true for words.
    are_words: Vec<bool>,
    is_scanned: bool,
    answer: Vec<(u8, Vec<SearchHit>)>,
    reads: usize,
}

/// A row that was read: its key, vector and text.
struct MadeRead(u8, Bytes, Bytes);

impl MadeTable {
    fn read_row(&self, key: u8) -> Option<MadeRead> {
        let MadeRow { x, words } = self.rows.get(&key)?;
        let bytes = |value: &f32| Bytes::copy_from_slice(&value.to_be_bytes());
        Some(MadeRead(key, bytes(x), bytes(words)))
    }

    fn keys(&self) -> Vec<u8> {
        self.answer.iter().map(|(key, _)| *key).collect()
    }
}

impl SearchedRows for MadeTable {
    type Key = u8;
    type Row = MadeRead;
    type Error = String;

    const KEYS_AT_ONCE: usize = 8;

    fn key(&self, sent: &[KeyValue]) -> Option<u8> {
        match sent {
            [KeyValue::Cql(value)] => value.first().copied(),
            _ => None,
        }
    }

    fn begin(&mut self) {
        self.answer.clear();
        self.is_scanned = false;
    }

    fn open(&mut self, _: bool) -> Result<bool, String> {
        Ok(self.may_differ)
    }

    async fn read(&mut self, mut keys: Vec<u8>) -> Result<ReadRows<u8, MadeRead>, String> {
        // Fewer than were requested.
        let unread = keys.split_off(keys.len().min(5));
        self.reads += keys.len();
        Ok(ReadRows {
            rows: keys.into_iter().map(|key| self.read_row(key)).collect(),
            unread,
        })
    }

    fn is_match(&self, row: &MadeRead) -> bool {
        !self.left_out.contains(&row.0)
    }

    fn value<'r>(&self, row: &'r MadeRead, of: ValueOf) -> Option<&'r Bytes> {
        let is_words = match of {
            ValueOf::Search(at) => self.are_words[at],
            ValueOf::Condition(_) => true,
        };
        Some(if is_words { &row.2 } else { &row.1 })
    }

    fn put(&mut self, row: MadeRead, hits: &[SearchHit]) -> Result<(), String> {
        self.answer.push((row.0, hits.to_vec()));
        Ok(())
    }

    fn are_few(&self, _: bool) -> bool {
        self.are_few
    }

    async fn rank_all(
        &mut self,
        _: &VectorOrdering<'_>,
        _: std::ops::Range<usize>,
    ) -> Result<(), String> {
        Err("only searches for vectors alone are ranked by the rows themselves".to_owned())
    }

    async fn scan(&mut self) -> Result<Option<Vec<(u8, MadeRead)>>, String> {
        if std::mem::replace(&mut self.is_scanned, true) {
            return Ok(None);
        }
        let keys = self.rows.keys().filter(|key| !self.left_out.contains(*key));
        let rows = keys.filter_map(|key| Some((*key, self.read_row(*key)?)));
        Ok(Some(rows.collect()))
    }

    async fn permit(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn put_values(
        &mut self,
        found: &NearestRows,
        hits: &[SearchHit],
        span: std::ops::Range<usize>,
    ) -> Result<bool, String> {
        let each = self.are_words.len();
        let keys = found.keys.iter().zip(hits.chunks(each));
        for (sent, hits) in keys.take(span.end).skip(span.start) {
            let key = self.key(sent).unwrap();
            self.answer.push((key, hits.to_vec()));
        }
        Ok(true)
    }

    fn warn(&mut self, _: SearchWarning) {}

    fn search_failed(&self, error: ClientError) -> String {
        error.to_string()
    }
}

fn vectors<'a>() -> IndexOrdering<'a> {
    IndexOrdering::Vector(VectorOrdering {
        keyspace: "ks",
        index: "v",
        vector: Bytes::copy_from_slice(&0.0_f32.to_be_bytes()),
        candidates: &RULE,
        exact: false,
    })
}

fn words<'a>() -> WordOrdering<'a> {
    WordOrdering {
        keyspace: "ks",
        index: "t",
        query: "w".to_owned(),
        local_key: &[],
    }
}

fn search(searches: Vec<IndexOrdering<'_>>, ranking: SearchRanking, limit: usize) -> RowSearch<'_> {
    RowSearch {
        candidates: (ranking != SearchRanking::Single).then_some(20),
        searches,
        ranking,
        predicates: Vec::new(),
        words: Vec::new(),
        conditions: 0,
        limit,
        cursor: SearchCursor::default(),
        freshness: SearchFreshness::default(),
        returned: None,
        ranks_rows: RanksRows::Always,
    }
}

fn both() -> Vec<IndexOrdering<'static>> {
    vec![vectors(), IndexOrdering::Words(words())]
}

fn by_ranks(weights: [f64; 2]) -> SearchRanking {
    SearchRanking::Reciprocal {
        constant: 60,
        weights: vec![(0, weights[0]), (1, weights[1])],
    }
}

/// `ANN_SCORE + 0.25 * BM25_SCORE`.
fn by_scores() -> SearchRanking {
    let number = |value: f64| Box::new(ScoreExpression::Number(value));
    let score = |search: usize| Box::new(ScoreExpression::Score(search));
    let weighted =
        ScoreExpression::Operation(ArithmeticOperation::Multiply, number(0.25), score(1));
    SearchRanking::Expression(ScoreExpression::Operation(
        ArithmeticOperation::Add,
        score(0),
        Box::new(weighted),
    ))
}

/// Rows of made numbers, of which no two are equal.
fn made_rows(seed: u32) -> MadeRows {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let rows = (0..60_u8).map(|key| {
        let has_words = next() % 3 == 0;
        let words = (next() % 1_000) as f32 / 100.0 + f32::from(key) / 10_000.0;
        let row = MadeRow {
            x: (next() % 1_000) as f32 / 100.0 + f32::from(key) / 10_000.0,
            words: if has_words { words + 0.01 } else { 0.0 },
        };
        (key, row)
    });
    rows.collect()
}

fn table(rows: &MadeRows, search: &RowSearch<'_>) -> MadeTable {
    let kinds = search.searches.iter();
    MadeTable {
        rows: rows.clone(),
        are_words: kinds
            .map(|ordering| matches!(ordering, IndexOrdering::Words(_)))
            .collect(),
        ..MadeTable::default()
    }
}

fn carry_out(search: &RowSearch<'_>, indexes: &MadeIndexes, table: &mut MadeTable) {
    block_on(run(search, indexes, table)).unwrap();
}

/// The first rows by RRF over those that are there, by brute force.
fn expected_by_ranks(there: &MadeRows, weights: [f64; 2], limit: usize) -> Vec<u8> {
    let mut sums: BTreeMap<u8, (f64, [usize; 2])> = BTreeMap::new();
    for (search, score) in [similarity as fn(&MadeRow) -> Option<f32>, word_score]
        .into_iter()
        .enumerate()
    {
        for (at, (key, _)) in best(there, score).into_iter().take(20).enumerate() {
            let sum = sums.entry(key).or_insert((0.0, [usize::MAX; 2]));
            sum.0 += weights[search] / (61.0 + at as f64);
            sum.1[search] = at;
        }
    }
    let mut sums: Vec<(u8, (f64, [usize; 2]))> = sums.into_iter().collect();
    sums.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    sums.into_iter().take(limit).map(|(key, _)| key).collect()
}

#[test]
fn ranks_are_fused_as_by_brute_force() {
    for seed in 0..20 {
        let rows = made_rows(seed);
        for weights in [[1.0, 1.0], [0.7, 0.3], [0.0, 5.0]] {
            let search = search(both(), by_ranks(weights), 10);
            for are_few in [false, true] {
                let (indexes, mut table) = (MadeIndexes::of(&rows), table(&rows, &search));
                table.are_few = are_few;
                carry_out(&search, &indexes, &mut table);
                assert_eq!(
                    table.keys(),
                    expected_by_ranks(&rows, weights, 10),
                    "{seed}"
                );
                let asked = indexes.asked.lock().unwrap().len();
                assert_eq!(asked, if are_few { 0 } else { 2 });
            }
        }
    }
}

#[test]
fn an_answer_of_the_indexes_alone_is_that_of_the_rows() {
    for seed in 0..20 {
        let rows = made_rows(seed);
        for ranking in [by_ranks([0.7, 0.3]), SearchRanking::Single] {
            let of_rows = search(both(), ranking, 10);
            let of_indexes = RowSearch {
                returned: Some(Vec::new()),
                ..of_rows.clone()
            };
            let answer = |search: &RowSearch<'_>| {
                let mut table = table(&rows, search);
                carry_out(search, &MadeIndexes::of(&rows), &mut table);
                (table.answer, table.reads)
            };
            let (answer_of_rows, reads) = answer(&of_rows);
            assert!(reads > 0);
            assert_eq!(answer(&of_indexes), (answer_of_rows, 0), "{seed}");
        }
    }
}

#[test]
fn hits_have_scores_and_ranks_of_the_searches_that_named_the_row() {
    let rows = made_rows(3);
    let search = search(both(), by_ranks([1.0, 1.0]), 20);
    let mut table = table(&rows, &search);
    carry_out(&search, &MadeIndexes::of(&rows), &mut table);
    let scores = [similarity as fn(&MadeRow) -> Option<f32>, word_score];
    for (key, hits) in &table.answer {
        for (hit, score) in hits.iter().zip(scores) {
            let named = best(&rows, score);
            let at = named.iter().take(20).position(|(named, _)| named == key);
            assert_eq!(hit.rank, at.map(|at| at as u32 + 1));
            assert_eq!(hit.score, at.map(|at| named[at].1));
        }
    }
}

#[test]
fn deleted_rows_leave_no_gap_in_the_ranks() {
    let known = made_rows(5);
    let deleted: Vec<u8> = best(&known, similarity)[..3]
        .iter()
        .map(|(key, _)| *key)
        .collect();
    let mut rows = known.clone();
    rows.retain(|key, _| !deleted.contains(key));
    let search = search(both(), by_ranks([1.0, 1.0]), 5);
    let mut table = table(&rows, &search);
    carry_out(&search, &MadeIndexes::of(&known), &mut table);
    assert!(table.keys().iter().all(|key| !deleted.contains(key)));
    let ranks: BTreeSet<u32> = table
        .answer
        .iter()
        .filter_map(|(_, hits)| hits[0].rank)
        .collect();
    let first = best(&rows, similarity)[0].0;
    assert_eq!(table.keys().contains(&first), ranks.contains(&1));
}

#[test]
fn an_answer_is_never_short_where_more_rows_match() {
    let rows = made_rows(8);
    let mut search = search(both(), by_ranks([1.0, 1.0]), 10);
    // WHERE leaves out all but a few rows, of which the indexes know nothing.
    search.conditions = 1;
    let wanted: Vec<u8> = rows.keys().copied().filter(|key| key % 5 == 0).collect();
    let mut table = table(&rows, &search);
    table.left_out = rows.keys().copied().filter(|key| key % 5 != 0).collect();
    let indexes = MadeIndexes::of(&rows);
    carry_out(&search, &indexes, &mut table);
    let mut there = rows.clone();
    there.retain(|key, _| wanted.contains(key));
    assert_eq!(table.keys(), expected_by_ranks(&there, [1.0, 1.0], 10));
    assert!(indexes.asked.lock().unwrap().len() > 2);
}

#[test]
fn an_expression_is_of_true_scores() {
    for seed in 0..20 {
        let rows = made_rows(seed);
        let search = search(both(), by_scores(), 15);
        let (indexes, mut table) = (MadeIndexes::of(&rows), table(&rows, &search));
        carry_out(&search, &indexes, &mut table);
        let candidates: BTreeSet<u8> = [best(&rows, similarity), best(&rows, word_score)]
            .iter()
            .flat_map(|named| named.iter().take(20).map(|(key, _)| *key))
            .collect();
        let value = |key: u8| {
            let row = &rows[&key];
            let words = word_score(row).unwrap_or(0.0);
            f64::from(similarity(row).unwrap()) + 0.25 * f64::from(words)
        };
        let mut expected: Vec<u8> = candidates.into_iter().collect();
        expected.sort_by(|a, b| value(*b).total_cmp(&value(*a)));
        assert_eq!(table.keys(), expected[..15], "{seed}");
        for (key, hits) in &table.answer {
            let row = &rows[key];
            assert_eq!(hits[0].score, similarity(row));
            assert_eq!(hits[1].score, Some(word_score(row).unwrap_or(0.0)));
            assert!(word_score(row).is_some() || hits[1].rank.is_none());
        }
    }
}

#[test]
fn changed_rows_come_by_the_values_that_were_read() {
    let known = made_rows(11);
    let mut rows = known.clone();
    for (key, row) in &mut rows {
        // Each becomes another one, and some texts lose the word.
        row.x = f32::from(*key) * 37.0 % 61.0;
        row.words = if key % 4 == 0 { 0.0 } else { row.words };
    }
    let mut search = search(both(), by_ranks([1.0, 1.0]), 60);
    search.candidates = Some(60);
    let mut table = table(&rows, &search);
    table.may_differ = true;
    carry_out(&search, &MadeIndexes::of(&known), &mut table);
    for (key, hits) in &table.answer {
        assert_eq!(hits[0].score, similarity(&rows[key]));
        assert_eq!(hits[1].score, word_score(&rows[key]));
    }
    let first = table
        .answer
        .iter()
        .find(|(_, hits)| hits[0].rank == Some(1));
    assert_eq!(first.unwrap().0, best(&rows, similarity)[0].0);
}

#[test]
fn a_search_for_words_is_one_like_others() {
    let known = made_rows(13);
    let mut rows = known.clone();
    for row in rows.values_mut() {
        row.words = if row.words > 5.0 { 0.0 } else { row.words };
    }
    for (may_differ, are_few, there) in [
        (false, false, &known),
        (true, false, &rows),
        (false, true, &rows),
    ] {
        let search = search(
            vec![IndexOrdering::Words(words())],
            SearchRanking::Single,
            4,
        );
        let mut table = table(&rows, &search);
        (table.may_differ, table.are_few) = (may_differ, are_few);
        carry_out(&search, &MadeIndexes::of(&known), &mut table);
        let expected = best(there, word_score);
        let expected: Vec<u8> = expected[..4].iter().map(|(key, _)| *key).collect();
        assert_eq!(table.keys(), expected);
        let ranks: Vec<_> = table.answer.iter().map(|(_, hits)| hits[0].rank).collect();
        assert_eq!(ranks, [Some(1), Some(2), Some(3), Some(4)]);
    }
}

#[test]
fn words_in_where_are_checked_where_rows_may_have_changed() {
    let known = made_rows(17);
    let mut rows = known.clone();
    for (key, row) in &mut rows {
        row.words = if key % 2 == 0 { 0.0 } else { row.words };
    }
    for (may_differ, are_few) in [(false, false), (true, false), (false, true)] {
        let mut search = search(vec![vectors()], SearchRanking::Single, 5);
        search.predicates = vec![SearchPredicate {
            predicate: ColumnsPredicate::Words {
                column: "body".to_owned(),
                index: "t".to_owned(),
                query: "w".to_owned(),
            },
            is_named: true,
        }];
        search.words = vec![WordCondition {
            words: words(),
            predicate: 0,
        }];
        search.conditions = 1;
        let (indexes, mut table) = (MadeIndexes::of(&known), table(&rows, &search));
        (table.may_differ, table.are_few) = (may_differ, are_few);
        carry_out(&search, &indexes, &mut table);
        let mut there = if may_differ || are_few {
            rows.clone()
        } else {
            known.clone()
        };
        there.retain(|_, row| word_score(row).is_some());
        let expected = best(&there, similarity);
        let expected: Vec<u8> = expected[..5].iter().map(|(key, _)| *key).collect();
        assert_eq!(table.keys(), expected, "{may_differ} {are_few}");
        let scored = *indexes.scored.lock().unwrap();
        assert_eq!(scored > 0, may_differ || are_few);
    }
}

#[test]
fn a_search_of_the_selection_names_no_rows_of_the_answer() {
    let rows = made_rows(19);
    let mut search = search(both(), SearchRanking::Single, 5);
    search.candidates = Some(20);
    let mut table = table(&rows, &search);
    carry_out(&search, &MadeIndexes::of(&rows), &mut table);
    let expected = best(&rows, similarity);
    let expected: Vec<u8> = expected[..5].iter().map(|(key, _)| *key).collect();
    assert_eq!(table.keys(), expected);
}

#[test]
fn an_index_without_room_is_made_up_for_by_all_rows() {
    let rows = made_rows(23);
    let mut known = rows.clone();
    known.retain(|key, _| *key > 20);
    let search = search(both(), by_ranks([1.0, 1.0]), 10);
    let mut table = table(&rows, &search);
    let indexes = MadeIndexes {
        is_short: true,
        ..MadeIndexes::of(&known)
    };
    carry_out(&search, &indexes, &mut table);
    assert_eq!(table.keys(), expected_by_ranks(&rows, [1.0, 1.0], 10));
}
