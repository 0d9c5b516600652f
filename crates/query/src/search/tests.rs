//! Tests of the loop with an index and rows in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Mutex;

use bytes::Bytes;
use futures::executor::block_on;
use index::{CandidateRule, SimilarityFunction};
use store_api::{ClientError, ColumnsPredicate, KeyValue, NearestRows};
use value::predicate::{ComparisonOperator, Predicate};
use value::{CqlType, Value};

use super::*;

/// An index that names these keys with the first elements of their vectors, the nearest to 0 first.
#[derive(Default)]
struct FakeIndex {
    named: Vec<(u8, f32)>,
    /// The answers that come before.
    first: Mutex<VecDeque<ClientError>>,
    is_short: bool,
    /// The names of columns that no question can have.
    unknown: BTreeSet<&'static str>,
    /// The number of rows and the number of conditions of each question.
    asked: Mutex<Vec<(usize, usize)>>,
    /// The questions that waited for a write.
    waited: Mutex<usize>,
    ranked: Mutex<usize>,
}

impl SearchedIndex for FakeIndex {
    fn can_search_by(&self, predicate: &ColumnsPredicate) -> bool {
        let mut columns = predicate.columns().into_iter();
        columns.all(|column| !self.unknown.contains(column))
    }

    async fn search(&self, question: &IndexQuestion<'_>) -> Result<NearestRows, ClientError> {
        let asked = (question.wanted, question.predicates.len());
        self.asked.lock().unwrap().push(asked);
        *self.waited.lock().unwrap() += usize::from(question.newest.is_some());
        if let Some(error) = self.first.lock().unwrap().pop_front() {
            return Err(error);
        }
        let named = self.named.iter().take(question.wanted);
        let values = question.returned.unwrap_or_default().iter();
        let value = |(key, _): &(u8, f32)| Some(KeyValue::Cql(Bytes::copy_from_slice(&[*key])));
        Ok(NearestRows {
            keys: named.clone().map(|(key, _)| sent(*key)).collect(),
            similarity_scores: named.clone().map(|(_, x)| score(*x)).collect(),
            column_values: values.map(|_| named.clone().map(value).collect()).collect(),
            is_short: self.is_short,
        })
    }

    async fn score_texts(
        &self,
        _: &WordOrdering<'_>,
        _: Vec<ColumnsPredicate>,
        texts: Vec<Option<Bytes>>,
    ) -> Result<Vec<Option<f32>>, ClientError> {
        Ok(vec![None; texts.len()])
    }

    fn ranked_rows(&self, _: &IndexOrdering<'_>) {
        *self.ranked.lock().unwrap() += 1;
    }
}

impl FakeIndex {
    /// The number of rows and of conditions of each question.
    fn asked(&self) -> Vec<(usize, usize)> {
        self.asked.lock().unwrap().clone()
    }
}

fn sent(key: u8) -> Vec<KeyValue> {
    vec![KeyValue::Cql(Bytes::copy_from_slice(&[key]))]
}

fn score(x: f32) -> f32 {
    1.0 / (1.0 + x * x)
}

/// Rows by their keys, which are numbers.
#[derive(Default)]
struct FakeRows {
    /// The first elements of the vectors.
    table: BTreeMap<u8, f32>,
    /// The rows that WHERE leaves out.
    left_out: BTreeSet<u8>,
    /// Whether rows that were read are known later.
    remembers: bool,
    known: BTreeSet<u8>,
    may_differ: bool,
    are_few: bool,
    /// The number of rows that are read at a time; 0 for any.
    at_a_time: usize,
    /// The number of rows that there is memory for; 0 for any.
    room: usize,
    /// Whether values of an index may be the answer.
    takes_values: bool,
    answer: Vec<u8>,
    reads: Vec<usize>,
    warnings: Vec<SearchWarning>,
}

/// A row that was read.
struct FakeRow {
    key: u8,
    vector: Bytes,
}

impl FakeRows {
    fn of(rows: &[(u8, f32)]) -> FakeRows {
        FakeRows {
            table: rows.iter().copied().collect(),
            ..FakeRows::default()
        }
    }

    fn is_there(&self, key: u8) -> bool {
        self.table.contains_key(&key) && !self.left_out.contains(&key)
    }

    fn row(&self, key: u8) -> Option<FakeRow> {
        let x = self.table.get(&key)?;
        Some(FakeRow {
            key,
            vector: Bytes::copy_from_slice(&x.to_be_bytes()),
        })
    }

    fn put_key(&mut self, key: u8) -> Result<(), String> {
        if self.room > 0 && self.answer.len() == self.room {
            return Err("there is no memory".to_owned());
        }
        self.answer.push(key);
        Ok(())
    }
}

impl SearchedRows for FakeRows {
    type Key = u8;
    type Row = FakeRow;
    type Error = String;

    const KEYS_AT_ONCE: usize = 16;

    fn key(&self, sent: &[KeyValue]) -> Option<u8> {
        match sent {
            [KeyValue::Cql(value)] => value.first().copied(),
            _ => None,
        }
    }

    fn begin(&mut self) {
        self.answer.clear();
    }

    fn open(&mut self, _: bool) -> Result<bool, String> {
        Ok(self.may_differ)
    }

    fn known(&self, key: &u8) -> Option<bool> {
        let is_known = self.remembers && self.known.contains(key);
        is_known.then(|| self.is_there(*key))
    }

    async fn read(&mut self, mut keys: Vec<u8>) -> Result<ReadRows<u8, FakeRow>, String> {
        let left = match self.at_a_time {
            0 => Vec::new(),
            count => keys.split_off(count.min(keys.len())),
        };
        let unread = keys.iter().filter(|key| self.known(key).is_none()).count();
        self.reads.push(unread);
        self.known.extend(&keys);
        Ok(ReadRows {
            rows: keys.into_iter().map(|key| self.row(key)).collect(),
            unread: left,
        })
    }

    fn is_match(&self, row: &FakeRow) -> bool {
        self.is_there(row.key)
    }

    fn value<'r>(&self, row: &'r FakeRow, _: ValueOf) -> Option<&'r Bytes> {
        Some(&row.vector)
    }

    fn put(&mut self, row: FakeRow, hits: &[SearchHit]) -> Result<(), String> {
        // A single search has a hit, whose rank counts the rows that were passed over, too.
        assert_eq!(hits.len(), 1);
        self.put_key(row.key)
    }

    fn are_few(&self, _: bool) -> bool {
        self.are_few
    }

    async fn rank_all(
        &mut self,
        _: &VectorOrdering<'_>,
        span: std::ops::Range<usize>,
    ) -> Result<(), String> {
        let mut rows: Vec<(u8, f32)> = self.table.iter().map(|(key, x)| (*key, *x)).collect();
        rows.retain(|(key, _)| self.is_there(*key));
        rows.sort_by(|a, b| a.1.total_cmp(&b.1));
        for (key, _) in rows.into_iter().take(span.end).skip(span.start) {
            self.put_key(key)?;
        }
        Ok(())
    }

    async fn scan(&mut self) -> Result<Option<Vec<(u8, FakeRow)>>, String> {
        Ok(None)
    }

    async fn permit(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn put_values(
        &mut self,
        found: &NearestRows,
        _: &[SearchHit],
        span: std::ops::Range<usize>,
    ) -> Result<bool, String> {
        for sent in found.keys.iter().take(span.end).skip(span.start) {
            let key = self.key(sent).unwrap();
            self.put_key(key)?;
        }
        Ok(self.takes_values)
    }

    fn warn(&mut self, warning: SearchWarning) {
        self.warnings.push(warning);
    }

    fn search_failed(&self, error: ClientError) -> String {
        error.to_string()
    }
}

const PLAIN: CandidateRule = CandidateRule {
    oversampling: 1.0,
    metric: SimilarityFunction::Euclidean,
    rescoring: None,
    is_exact: true,
};

const RESCORED: CandidateRule = CandidateRule {
    oversampling: 2.0,
    metric: SimilarityFunction::Euclidean,
    rescoring: Some(SimilarityFunction::Euclidean),
    is_exact: false,
};

/// A search for the `limit` rows nearest to 0.
fn nearest(limit: usize, candidates: &CandidateRule) -> RowSearch<'_> {
    let ordering = VectorOrdering {
        keyspace: "ks",
        index: "i",
        vector: Bytes::copy_from_slice(&0.0_f32.to_be_bytes()),
        candidates,
        exact: false,
    };
    RowSearch {
        searches: vec![IndexOrdering::Vector(ordering)],
        ranking: SearchRanking::Single,
        candidates: None,
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

/// A condition on a column of this name.
fn condition(column: &str, is_named: bool) -> SearchPredicate {
    SearchPredicate {
        predicate: ColumnsPredicate::Column {
            column: column.to_owned(),
            predicate: Predicate::Compare {
                cql_type: CqlType::Int,
                comparison: ComparisonOperator::Eq,
                value: Value::Int(7).serialize(),
            },
        },
        is_named,
    }
}

/// Rows that are the farther away the greater their keys are.
fn rows(keys: std::ops::Range<u8>) -> Vec<(u8, f32)> {
    keys.map(|key| (key, f32::from(key))).collect()
}

fn index_of(named: &[(u8, f32)]) -> FakeIndex {
    FakeIndex {
        named: named.to_vec(),
        ..FakeIndex::default()
    }
}

fn carry_out(search: &RowSearch<'_>, index: &FakeIndex, rows: &mut FakeRows) -> Result<(), String> {
    block_on(run(search, index, rows))
}

fn refusal() -> ClientError {
    ClientError::Status {
        status: "400 Bad Request".to_owned(),
        message: "no".to_owned(),
    }
}

fn behind() -> ClientError {
    ClientError::Behind {
        message: "not yet".to_owned(),
        behind_us: None,
    }
}

#[test]
fn rows_come_in_the_order_of_the_neighbours() {
    let all = rows(0..9);
    let (index, mut table) = (index_of(&all), FakeRows::of(&all));
    carry_out(&nearest(3, &PLAIN), &index, &mut table).unwrap();
    assert_eq!(table.answer, [0, 1, 2]);
    assert_eq!((index.asked(), table.reads), (vec![(3, 0)], vec![3]));
    assert!(table.warnings.is_empty());
}

#[test]
fn rows_that_are_not_there_are_made_up_for() {
    for remembers in [false, true] {
        let all = rows(0..50);
        let index = index_of(&all);
        let mut table = FakeRows {
            remembers,
            ..FakeRows::of(&all[10..])
        };
        table.left_out = [11, 13].into();
        carry_out(&nearest(4, &PLAIN), &index, &mut table).unwrap();
        assert_eq!(table.answer, [10, 12, 14, 15]);
        // Four are deleted at first, so four more are requested for each of them.
        assert_eq!(index.asked(), [(4, 0), (20, 0)]);
        let read: usize = table.reads.iter().sum();
        // The four rows of the first round are read again, unless they are remembered.
        assert!(if remembers { read <= 20 } else { read <= 24 }, "{read}");
    }
}

#[test]
fn the_index_is_asked_until_it_has_named_all() {
    let all = rows(0..5);
    let (index, mut table) = (index_of(&all), FakeRows::of(&all[4..]));
    carry_out(&nearest(2, &PLAIN), &index, &mut table).unwrap();
    assert_eq!(table.answer, [4]);
    assert_eq!(index.asked(), [(2, 0), (10, 0)]);
}

#[test]
fn candidates_are_put_in_order_by_their_stored_vectors() {
    let named = [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0), (5, 5.0)];
    let index = index_of(&named);
    let mut table = FakeRows::of(&[(1, 4.0), (2, 2.0), (3, 1.0), (4, 9.0), (5, 0.0)]);
    carry_out(&nearest(2, &RESCORED), &index, &mut table).unwrap();
    assert_eq!(table.answer, [3, 2]);
    assert_eq!((index.asked(), table.reads), (vec![(4, 0)], vec![4]));
}

#[test]
fn a_row_with_another_vector_comes_where_that_one_belongs() {
    let named = [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)];
    for (may_differ, expected) in [(false, [1, 2]), (true, [2, 3])] {
        let index = index_of(&named);
        let mut table = FakeRows {
            may_differ,
            ..FakeRows::of(&[(1, 9.0), (2, 2.0), (3, 3.0), (4, 4.0)])
        };
        carry_out(&nearest(2, &PLAIN), &index, &mut table).unwrap();
        assert_eq!(table.answer, expected);
    }
}

#[test]
fn rows_that_are_not_read_with_those_before_them_are_read_later() {
    let all = rows(0..9);
    let (index, mut table) = (index_of(&all), FakeRows::of(&all));
    table.left_out = [1].into();
    table.at_a_time = 3;
    carry_out(&nearest(7, &PLAIN), &index, &mut table).unwrap();
    assert_eq!(table.answer, [0, 2, 3, 4, 5, 6, 7]);
    assert_eq!(table.reads[..3], [3, 3, 1]);
    // They keep their scores.
    let index = index_of(&[(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)]);
    for (may_differ, expected) in [(false, [1, 2]), (true, [2, 3])] {
        let mut table = FakeRows {
            may_differ,
            at_a_time: 1,
            ..FakeRows::of(&[(1, 9.0), (2, 2.0), (3, 3.0), (4, 4.0)])
        };
        carry_out(&nearest(2, &PLAIN), &index, &mut table).unwrap();
        assert_eq!(table.answer, expected);
    }
}

#[test]
fn an_answer_goes_on_from_a_cursor() {
    let all = rows(0..9);
    for candidates in [PLAIN, RESCORED] {
        let (index, mut table) = (index_of(&all), FakeRows::of(&all));
        table.left_out = [3].into();
        let search = RowSearch {
            cursor: SearchCursor { passed: 2 },
            ..nearest(2, &candidates)
        };
        carry_out(&search, &index, &mut table).unwrap();
        assert_eq!(table.answer, [2, 4]);
    }
}

#[test]
fn few_rows_are_ranked_without_an_index() {
    let all = rows(0..9);
    let (index, mut table) = (index_of(&[]), FakeRows::of(&all));
    table.are_few = true;
    carry_out(&nearest(3, &PLAIN), &index, &mut table).unwrap();
    assert_eq!(table.answer, [0, 1, 2]);
    assert!(index.asked().is_empty());
    assert_eq!(*index.ranked.lock().unwrap(), 1);
}

#[test]
fn an_index_that_lacks_rows_is_made_up_for_or_warned_of() {
    for (ranks_rows, expected, warnings) in [
        (RanksRows::Always, &[0, 1][..], &[] as &[SearchWarning]),
        (RanksRows::ForConditions, &[1, 2], &[SearchWarning::NoRoom]),
    ] {
        let all = rows(0..9);
        let mut table = FakeRows::of(&all);
        let index = FakeIndex {
            is_short: true,
            ..index_of(&all[1..])
        };
        let search = RowSearch {
            ranks_rows,
            ..nearest(2, &PLAIN)
        };
        carry_out(&search, &index, &mut table).unwrap();
        assert_eq!(
            (&table.answer[..], &table.warnings[..]),
            (expected, warnings)
        );
    }
}

#[test]
fn conditions_that_an_index_cannot_search_by_are_left_to_the_rows() {
    let all = rows(0..9);
    let (mut index, mut table) = (index_of(&all), FakeRows::of(&all));
    index.unknown.insert("b");
    table.left_out = [0].into();
    table.takes_values = true;
    let search = RowSearch {
        predicates: vec![condition("a", true), condition("b", true)],
        conditions: 2,
        returned: Some(Vec::new()),
        ..nearest(2, &PLAIN)
    };
    carry_out(&search, &index, &mut table).unwrap();
    assert_eq!(table.answer, [1, 2]);
    // An index that does not check all of WHERE does not answer by values.
    assert_eq!(index.asked(), [(2, 1), (6, 1)]);
}

#[test]
fn conditions_on_columns_that_an_index_does_not_name_are_left_out_on_refusal() {
    let all = rows(0..9);
    let (index, mut table) = (index_of(&all), FakeRows::of(&all));
    table.left_out = [0].into();
    index.first.lock().unwrap().push_back(refusal());
    let search = RowSearch {
        predicates: vec![condition("a", true), condition("b", false)],
        conditions: 2,
        ..nearest(1, &PLAIN)
    };
    carry_out(&search, &index, &mut table).unwrap();
    assert_eq!(table.answer, [1]);
    assert_eq!(index.asked(), [(1, 2), (1, 1), (5, 1)]);
    // Another refusal is that of the search.
    for error in [refusal(), refusal()] {
        index.first.lock().unwrap().push_back(error);
    }
    assert!(carry_out(&search, &index, &mut table).is_err());
}

#[test]
fn values_of_the_index_are_the_answer_where_they_can_be() {
    let all = rows(0..9);
    for (takes_values, refused, reads) in [(true, false, 0), (false, false, 1), (true, true, 1)] {
        let (index, mut table) = (index_of(&all), FakeRows::of(&all));
        table.takes_values = takes_values;
        if refused {
            index.first.lock().unwrap().push_back(refusal());
        }
        let search = RowSearch {
            returned: Some(vec!["name".to_owned()]),
            ..nearest(2, &PLAIN)
        };
        carry_out(&search, &index, &mut table).unwrap();
        assert_eq!(table.answer, [0, 1]);
        assert_eq!(table.reads.len(), reads);
        assert_eq!(index.asked().len(), 1 + reads);
    }
}

#[test]
fn an_index_that_is_behind_answers_what_it_knows_or_not_at_all() {
    let all = rows(0..9);
    for may_be_stale in [true, false] {
        let (index, mut table) = (index_of(&all), FakeRows::of(&all[1..]));
        index.first.lock().unwrap().push_back(behind());
        let search = RowSearch {
            freshness: SearchFreshness {
                newest_us: Some(1),
                may_be_stale,
                ..SearchFreshness::default()
            },
            ..nearest(1, &PLAIN)
        };
        let carried_out = carry_out(&search, &index, &mut table);
        assert_eq!(*index.waited.lock().unwrap(), 1);
        if may_be_stale {
            assert_eq!(carried_out, Ok(()));
            assert_eq!(table.answer, [1]);
            // It does not wait again for the rows in place of others.
            assert_eq!(table.warnings, [SearchWarning::Stale]);
            assert_eq!(index.asked().len(), 3);
        } else {
            assert_eq!(carried_out, Err(behind().to_string()));
        }
    }
}

#[test]
fn failures_end_a_search() {
    let all = rows(0..9);
    let (index, mut table) = (index_of(&all), FakeRows::of(&all));
    index
        .first
        .lock()
        .unwrap()
        .push_back(ClientError::Unavailable);
    let failed = carry_out(&nearest(1, &PLAIN), &index, &mut table);
    assert_eq!(failed, Err(ClientError::Unavailable.to_string()));
    assert!(table.reads.is_empty());
}

#[test]
fn a_search_ends_where_there_is_no_memory_for_its_rows() {
    let all = rows(0..200);
    let (index, mut table) = (index_of(&all), FakeRows::of(&all));
    table.room = 20;
    let failed = carry_out(&nearest(100, &PLAIN), &index, &mut table);
    assert_eq!(failed, Err("there is no memory".to_owned()));
    // No rows are read that there is no room for, but for those of one reading.
    assert_eq!(table.reads, [16, 16]);
}
