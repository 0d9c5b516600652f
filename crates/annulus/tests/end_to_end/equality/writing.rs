//! Writers that contend for a few keys, with timestamps of every kind.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clock::{Clock, SystemClock};
use futures::{StreamExt, stream};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scylla::client::session::Session;
use test_support::eventually;
use tokio::sync::{Mutex, RwLock};

use super::outcome::{Done, Effect};
use super::scenario::{PARTITIONS, ROWS, Scenario, Truncate, vector};
use super::statements::{Statements, Values};

const HOUR_MICROS: i64 = 3_600_000_000;

const BYSTANDERS_IN_FLIGHT: usize = 64;

/// The number of timestamps of each kind. It is small, so that many are equal.
const TIMESTAMPS: i64 = 40;

/// The state that the writers of a scenario share.
pub struct Writing {
    pub scenario: Scenario,
    pub session: Arc<Session>,
    pub statements: Statements,
    /// The time at which the test began, in microseconds since the epoch.
    pub start_micros: i64,
    pub stop: AtomicBool,
    /// The number of writes that are done.
    pub count: AtomicU64,
    /// Held shared during a write, and exclusively when no write may be in progress.
    pub gate: RwLock<()>,
    pub done: Mutex<Vec<Done>>,
}

impl Writing {
    /// Makes random writes until `stop` is set.
    pub async fn write_until_stopped(self: Arc<Self>, seed: u64) {
        let mut numbers = StdRng::seed_from_u64(seed);
        while !self.stop.load(Ordering::Relaxed) {
            let _passing = self.gate.read().await;
            let done = self.write_one(&mut numbers).await;
            self.done.lock().await.push(done);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn timestamp(&self, numbers: &mut StdRng) -> i64 {
        let offset = numbers.random_range(0..TIMESTAMPS);
        match numbers.random_range(0..4) {
            0 => self.start_micros - HOUR_MICROS + offset,
            1 => self.start_micros + HOUR_MICROS + offset,
            2 => self.start_micros,
            _ => micros_now(),
        }
    }

    async fn write_one(&self, numbers: &mut StdRng) -> Done {
        let (p, c) = (
            numbers.random_range(0..PARTITIONS),
            numbers.random_range(0..ROWS),
        );
        let (timestamp, number) = (self.timestamp(numbers), numbers.random_range(0..4_000));
        let key = self.scenario.key(p, c);
        let statements = &self.statements;
        let kind = numbers.random_range(0..100);
        let (statement, values, effect) =
            match (kind, &statements.delete_range, &statements.delete_partition) {
                (0..3, _, Some(delete)) => (
                    delete,
                    Values::Range(timestamp, vec![p]),
                    Effect::Delete {
                        from: vec![p, i32::MIN],
                        to: vec![p, i32::MAX],
                    },
                ),
                (3..8, Some(delete), _) => {
                    let last = numbers.random_range(c..ROWS);
                    (
                        delete,
                        Values::Range(timestamp, vec![p, c, last]),
                        Effect::Delete {
                            from: vec![p, c],
                            to: vec![p, last],
                        },
                    )
                }
                (8..45, ..) => (
                    &statements.insert,
                    Values::Insert(vector(number), key.clone(), timestamp),
                    Effect::Set { key, number },
                ),
                (45..58, ..) => (
                    &statements.insert_ttl,
                    Values::Insert(vector(number), key.clone(), timestamp),
                    Effect::Unset { key },
                ),
                (58..65, ..) => (
                    &statements.set_null,
                    Values::Range(timestamp, key.clone()),
                    Effect::Unset { key },
                ),
                (65..70, ..) => (
                    &statements.delete_column,
                    Values::Range(timestamp, key.clone()),
                    Effect::Unset { key },
                ),
                (70..80, ..) => (
                    &statements.delete_row,
                    Values::Range(timestamp, key.clone()),
                    Effect::Delete {
                        from: key.clone(),
                        to: key,
                    },
                ),
                _ => (
                    &statements.update,
                    Values::Update(timestamp, vector(number), key.clone()),
                    Effect::Set { key, number },
                ),
            };
        values.execute(&self.session, statement).await;
        Done { timestamp, effect }
    }

    /// Writes rows that the writers leave alone, with a timestamp of two hours ago.
    pub async fn write_bystanders(&self, numbers: Range<i32>) {
        let _passing = self.gate.read().await;
        let timestamp = self.start_micros - 2 * HOUR_MICROS;
        let done: Vec<Done> = stream::iter(numbers)
            .map(|number| async move {
                let key = self.scenario.bystander(number);
                let values = Values::Insert(vector(number), key.clone(), timestamp);
                values.execute(&self.session, &self.statements.insert).await;
                let effect = Effect::Set { key, number };
                Done { timestamp, effect }
            })
            .buffer_unordered(BYSTANDERS_IN_FLIGHT)
            .collect()
            .await;
        self.done.lock().await.extend(done);
    }

    pub async fn truncate(&self) {
        let statement = format!("TRUNCATE {}.t", self.scenario.keyspace);
        let truncate = async || {
            self.session
                .query_unpaged(statement.as_str(), ())
                .await
                .expect(&statement);
        };
        match self.scenario.truncate {
            Truncate::Never => {}
            Truncate::AmongWrites => truncate().await,
            Truncate::BetweenWrites => {
                let _alone = self.gate.write().await;
                truncate().await;
                self.done.lock().await.clear();
            }
        }
    }

    /// Waits until this many more writes are done.
    pub async fn wait_for_writes(&self, more: u64) {
        let until = self.count.load(Ordering::Relaxed) + more;
        let is_so = async || self.count.load(Ordering::Relaxed) >= until;
        eventually(&format!("{more} more writes"), is_so).await;
    }
}

/// The present in microseconds since the epoch.
pub fn micros_now() -> i64 {
    SystemClock.now_micros()
}
