//! The content of an index, read through its HTTP API.

use std::collections::BTreeMap;

use store_api::types::{AnnRequest, IndexState};
use store_api::{ClientError, ClientOptions, KeyValue, StoreClient};
use test_support::until_ok;

use crate::server::Server;

/// A limit above the number of rows in any test.
const BEYOND_THE_COUNT: usize = 100_000;

/// The tolerance for a score, as a share of it: some steps of f32.
const TOLERANCE: f32 = 1e-5;

/// Rows by their primary key of `int` columns, with their similarity to the origin.
pub type Scores = BTreeMap<Vec<i32>, f32>;

/// An index with the similarity function `euclidean`, over a table whose keys are `int`s.
pub struct Index<'a> {
    client: StoreClient,
    keyspace: &'a str,
    name: &'a str,
    key_columns: &'a [&'a str],
    origin: Vec<f32>,
}

impl<'a> Index<'a> {
    pub fn new(
        server: &Server,
        keyspace: &'a str,
        name: &'a str,
        key_columns: &'a [&'a str],
        dimensions: usize,
    ) -> Index<'a> {
        let client = StoreClient::new(ClientOptions {
            base_uris: vec![format!("http://{}", server.http)],
            ..ClientOptions::default()
        })
        .expect("the address makes a URI");
        Index {
            client,
            keyspace,
            name,
            key_columns,
            origin: vec![0.0; dimensions],
        }
    }

    /// The similarity of a vector to the origin.
    pub fn score(vector: &[f32]) -> f32 {
        1.0 / (1.0 + vector.iter().map(|x| x * x).sum::<f32>())
    }

    /// Waits until the index answers.
    pub async fn wait_until_serving(&self) {
        until_ok(&format!("{} serves", self.name), async || {
            let status = self.client.index_status(self.keyspace, self.name).await;
            match status {
                Ok(status) if status.status == IndexState::Serving => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    }

    /// Reads everything that the index holds.
    ///
    /// # Panics
    /// If the index gives a key twice.
    pub async fn contents(&self) -> Result<Scores, ClientError> {
        let found = self
            .client
            .ann(
                self.keyspace,
                self.name,
                &AnnRequest::new(self.origin.clone(), BEYOND_THE_COUNT),
                self.key_columns,
            )
            .await?;
        let count = found.keys.len();
        let key = |values: Vec<KeyValue>| {
            let column = |value| match value {
                KeyValue::Cql(bytes) => i32::from_be_bytes(bytes[..].try_into().expect("an int")),
                KeyValue::Json(json) => panic!("{json}: our services answer in binary"),
            };
            values.into_iter().map(column).collect()
        };
        let scores: Scores = found
            .keys
            .into_iter()
            .map(key)
            .zip(found.similarity_scores)
            .collect();
        assert_eq!(scores.len(), count, "a key is there twice");
        Ok(scores)
    }

    /// Waits until the index gives every key of `expected` at its score and nothing else. `when`
    /// names the moment in the message.
    pub async fn assert_becomes(&self, expected: &Scores, when: &str) {
        let what = format!("{}.{} is the table, {when}", self.keyspace, self.name);
        until_ok(&what, async || match self.contents().await {
            Ok(found) if equal(&found, expected) => Ok(()),
            Ok(found) => Err(difference(&found, expected)),
            Err(error) => Err(format!("{error:?}")),
        })
        .await;
    }
}

fn near(a: f32, b: f32) -> bool {
    (a - b).abs() <= TOLERANCE * a.max(b)
}

fn equal(found: &Scores, expected: &Scores) -> bool {
    found.len() == expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|((key, score), (expected_key, expected))| {
                key == expected_key && near(*score, *expected)
            })
}

fn difference(found: &Scores, expected: &Scores) -> String {
    let mut lines = Vec::new();
    for (key, score) in expected {
        match found.get(key) {
            None => lines.push(format!("{key:?} is missing")),
            Some(other) if !near(*other, *score) => {
                lines.push(format!("{key:?} has {other} instead of {score}"));
            }
            Some(_) => {}
        }
    }
    for key in found.keys().filter(|key| !expected.contains_key(*key)) {
        lines.push(format!("{key:?} should not be there"));
    }
    let count = lines.len();
    lines.truncate(20);
    format!(
        "{count} of {} differ: {}",
        expected.len().max(found.len()),
        lines.join(", ")
    )
}
