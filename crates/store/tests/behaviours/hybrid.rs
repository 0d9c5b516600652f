//! Tests that several searches in one order give what a plain computation over all rows gives,
//! after random writes. BM25 scores are those of the index, and vectors are measured here.

use std::collections::BTreeMap;

use node::Node;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use store_api::types::Bm25Request;

use crate::common::{self, Way, World, euclidean_score};

/// The number of keys. The searches of a statement name all rows, as they are fewer than the
/// candidates.
const KEYS: i32 = 40;
const ROUNDS: usize = 12;
const WRITES: usize = 25;
const QUESTIONS: usize = 10;

/// The words of texts.
const VOCABULARY: [&str; 3] = ["ant", "bee", "cat"];

const QUERIES: [&str; 6] = [
    "ant",
    "bee",
    "ant cat",
    "bee AND cat",
    "+cat ant",
    "bee NOT ant",
];

/// The constant of reciprocal ranks, where the statement has no other.
const RANK_CONSTANT: f64 = 60.0;

/// A row of the table: its key, its vector and its group.
type HybridStoredRow = (i32, Option<Vec<f32>>, Option<i32>);

#[derive(Clone, Debug)]
enum HybridWrite {
    Insert {
        key: i32,
        vector: [f32; 2],
        counts: [u8; 3],
        group: i32,
    },
    Vector {
        key: i32,
        vector: [f32; 2],
    },
    Text {
        key: i32,
        counts: [u8; 3],
    },
    Group {
        key: i32,
        group: i32,
    },
    NoVector {
        key: i32,
    },
    NoText {
        key: i32,
    },
    Delete {
        key: i32,
    },
}

/// A statement with a search for vectors and one for words.
#[derive(Clone, Debug)]
struct HybridQuestion {
    vector: [f32; 2],
    words: &'static str,
    /// The groups of WHERE; empty for all rows.
    groups: Vec<i32>,
    /// The words of WHERE.
    condition: Option<&'static str>,
    weights: [f64; 2],
    limit: usize,
}

fn vector() -> impl Strategy<Value = [f32; 2]> {
    prop::array::uniform2((-400..400i16).prop_map(|quarters| f32::from(quarters) / 4.0))
}

fn write() -> impl Strategy<Value = HybridWrite> {
    let key = || 0..KEYS;
    let counts = || prop::array::uniform3(0..4u8);
    let group = || 0..4i32;
    prop_oneof![
        8 => (key(), vector(), counts(), group()).prop_map(|(key, vector, counts, group)| {
            HybridWrite::Insert { key, vector, counts, group }
        }),
        3 => (key(), vector()).prop_map(|(key, vector)| HybridWrite::Vector { key, vector }),
        3 => (key(), counts()).prop_map(|(key, counts)| HybridWrite::Text { key, counts }),
        2 => (key(), group()).prop_map(|(key, group)| HybridWrite::Group { key, group }),
        1 => key().prop_map(|key| HybridWrite::NoVector { key }),
        1 => key().prop_map(|key| HybridWrite::NoText { key }),
        3 => key().prop_map(|key| HybridWrite::Delete { key }),
    ]
}

fn question() -> impl Strategy<Value = HybridQuestion> {
    let queries = || prop::sample::select(QUERIES.to_vec());
    let weights = vec![[1.0, 1.0], [0.7, 0.3], [0.25, 2.0]];
    (
        vector(),
        queries(),
        prop_oneof![Just(Vec::new()), prop::collection::vec(0..4i32, 1..3)],
        prop::option::of(queries()),
        prop::sample::select(weights),
        1..KEYS as usize,
    )
        .prop_map(
            |(vector, words, groups, condition, weights, limit)| HybridQuestion {
                vector,
                words,
                groups,
                condition,
                weights,
                limit,
            },
        )
}

/// A text with each word of the vocabulary so many times. Texts of two keys differ in their
/// lengths, so that few have equal scores.
fn text(key: i32, counts: [u8; 3]) -> String {
    let mut words = vec!["zoo"; 2 * key as usize + 1];
    for (word, count) in VOCABULARY.into_iter().zip(counts) {
        words.extend(std::iter::repeat_n(word, count.into()));
    }
    words.join(" ")
}

impl HybridWrite {
    fn statement(&self) -> String {
        match self {
            HybridWrite::Insert {
                key,
                vector,
                counts,
                group,
            } => {
                let text = text(*key, *counts);
                format!(
                    "INSERT INTO ks.t (k, v, body, g) VALUES ({key}, {vector:?}, '{text}', {group})"
                )
            }
            HybridWrite::Vector { key, vector } => {
                format!("UPDATE ks.t SET v = {vector:?} WHERE k = {key}")
            }
            HybridWrite::Text { key, counts } => {
                let text = text(*key, *counts);
                format!("UPDATE ks.t SET body = '{text}' WHERE k = {key}")
            }
            HybridWrite::Group { key, group } => {
                format!("UPDATE ks.t SET g = {group} WHERE k = {key}")
            }
            HybridWrite::NoVector { key } => format!("DELETE v FROM ks.t WHERE k = {key}"),
            HybridWrite::NoText { key } => format!("DELETE body FROM ks.t WHERE k = {key}"),
            HybridWrite::Delete { key } => format!("DELETE FROM ks.t WHERE k = {key}"),
        }
    }
}

impl HybridQuestion {
    fn statement(&self) -> String {
        let mut conditions = Vec::new();
        if !self.groups.is_empty() {
            let groups: Vec<String> = self.groups.iter().map(i32::to_string).collect();
            conditions.push(format!("g IN ({})", groups.join(", ")));
        }
        if let Some(words) = self.condition {
            conditions.push(format!("BM25(body, '{words}') > 0"));
        }
        let condition = match conditions.is_empty() {
            true => String::new(),
            false => format!("WHERE {} ", conditions.join(" AND ")),
        };
        let HybridQuestion {
            vector,
            words,
            weights,
            limit,
            ..
        } = self;
        format!(
            "SELECT k FROM ks.t {condition}ORDER BY RRF(ANN(v, {vector:?}), BM25(body, '{words}')) \
             LIMIT {limit} WITH hybrid_options = {{'candidates': 100, 'weights': {weights:?}}}"
        )
    }

    /// The keys of the answer. `scores` has the BM25 scores of the rows that match its words, and
    /// `admitted` those of the words in WHERE. `None` if equal scores leave a rank open.
    fn expected(
        &self,
        rows: &[HybridStoredRow],
        scores: &BTreeMap<i32, f32>,
        admitted: Option<&BTreeMap<i32, f32>>,
    ) -> Option<Vec<i32>> {
        let admits = |(key, _, group): &&HybridStoredRow| {
            let is_of_group =
                self.groups.is_empty() || group.is_some_and(|group| self.groups.contains(&group));
            is_of_group && admitted.is_none_or(|matching| matching.contains_key(key))
        };
        let rows: Vec<&HybridStoredRow> = rows.iter().filter(admits).collect();
        let near = rows.iter().filter_map(|(key, vector, _)| {
            Some((*key, euclidean_score(vector.as_ref()?, &self.vector)))
        });
        let matching = rows.iter();
        let matching = matching.filter_map(|(key, ..)| Some((*key, *scores.get(key)?)));
        let lists = [ranked(near.collect())?, ranked(matching.collect())?];
        let mut sums: BTreeMap<i32, (f64, [usize; 2])> = BTreeMap::new();
        for (search, (keys, weight)) in lists.iter().zip(self.weights).enumerate() {
            for (at, key) in keys.iter().enumerate() {
                let (sum, ranks) = sums.entry(*key).or_insert((0.0, [usize::MAX; 2]));
                ranks[search] = at + 1;
                *sum += weight / (RANK_CONSTANT + ranks[search] as f64);
            }
        }
        let mut sums: Vec<(i32, (f64, [usize; 2]))> = sums.into_iter().collect();
        sums.sort_by(|(_, a), (_, b)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Some(sums.into_iter().take(self.limit).map(|one| one.0).collect())
    }
}

/// The keys by their scores, the best first. `None` if two scores are equal.
fn ranked(mut scored: Vec<(i32, f32)>) -> Option<Vec<i32>> {
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    let has_ties = scored.windows(2).any(|two| two[0].1 == two[1].1);
    (!has_ties).then(|| scored.into_iter().map(|(key, _)| key).collect())
}

/// Writes and questions of all rounds, the same in each run.
fn rounds() -> Vec<(Vec<HybridWrite>, Vec<HybridQuestion>)> {
    let round = (
        prop::collection::vec(write(), WRITES),
        prop::collection::vec(question(), QUESTIONS),
    );
    let mut runner = TestRunner::deterministic();
    let tree = prop::collection::vec(round, ROUNDS).new_tree(&mut runner);
    tree.unwrap().current()
}

/// A session with a node that searches by the index service in the process.
async fn session_with_searches(world: &World) -> (Node, Session) {
    let (storage, local) = (world.storage.clone(), world.local.clone());
    let node = common::start_node_with(storage, common::loopback(), local).await;
    let session = SessionBuilder::new()
        .known_node_addr(node.addresses()[0])
        .auto_await_schema_agreement(false)
        .build()
        .await
        .expect("a session");
    (node, session)
}

/// The BM25 scores that the index gives for a query, by key.
async fn word_scores(world: &World, query: &str) -> BTreeMap<i32, f32> {
    let request = Bm25Request::new(query, 1_000);
    let found = world.client.words("ks", "w", &request, &["k"]).await;
    let found = found.expect("an answer");
    let scores = found.similarity_scores.clone();
    let keys = common::keys(found).into_iter();
    let keys = keys.map(|key| key[0].as_i64().expect("an int") as i32);
    keys.zip(scores).collect()
}

async fn stored_rows(world: &World) -> Vec<HybridStoredRow> {
    let rows = world
        .session
        .query_unpaged("SELECT k, v, g FROM ks.t", ())
        .await;
    let rows = rows.expect("rows").into_rows_result().expect("rows");
    let rows = rows.rows::<HybridStoredRow>().expect("typed rows");
    rows.collect::<Result<_, _>>().expect("typed rows")
}

async fn answered(session: &Session, statement: &str) -> Vec<i32> {
    let rows = session.query_unpaged(statement, ()).await;
    let rows = rows.unwrap_or_else(|error| panic!("{statement}: {error}"));
    let rows = rows.into_rows_result().expect("rows");
    let keys = rows.rows::<(i32,)>().expect("typed rows");
    keys.map(|row| row.expect("a row").0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_by_ranks_equal_a_computation_over_all_rows_after_random_writes() {
    let world = World::start(Way::InProcess).await;
    for statement in [
        "CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>, body text, g int)",
        "CREATE CUSTOM INDEX i ON ks.t (v, g) USING 'vector_index' \
         WITH OPTIONS = {'similarity_function': 'euclidean'}",
        "CREATE CUSTOM INDEX w ON ks.t (body, g) USING 'fulltext_index'",
    ] {
        world.cql(statement).await;
    }
    world.wait_serving("i").await;
    world.wait_serving("w").await;
    let (_node, session) = session_with_searches(&world).await;
    let mut compared = 0;
    for (writes, questions) in rounds() {
        for write in writes {
            world.cql(&write.statement()).await;
        }
        let rows = stored_rows(&world).await;
        for question in questions {
            let scores = word_scores(&world, question.words).await;
            let admitted = match question.condition {
                Some(words) => Some(word_scores(&world, words).await),
                None => None,
            };
            let statement = question.statement();
            let found = answered(&session, &statement).await;
            if let Some(expected) = question.expected(&rows, &scores, admitted.as_ref()) {
                assert_eq!(found, expected, "{statement}");
                compared += 1;
            }
        }
    }
    assert!(2 * compared > ROUNDS * QUESTIONS, "{compared}");
    world.store.shutdown().await;
}
