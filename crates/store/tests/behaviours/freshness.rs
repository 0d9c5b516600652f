//! Tests that a write is searchable soon, whatever timestamp its client gave it.

use std::time::{Duration, Instant};

use clock::{Clock, SystemClock};
use store::StoreOptions;
use store_api::types::{AnnRequest, Filter, Restriction};
use store_api::{ClientError, KeyValue};

use crate::common::{self, Way, World, both_ways};

/// The longest median time until a write is searchable. It is some milliseconds on a quiet machine.
const MEDIAN_MAX: Duration = Duration::from_secs(1);

async fn a_write_is_searchable_soon_whatever_its_timestamp(way: Way) {
    let world = World::start(way).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    let mut lags = Vec::new();
    for key in 0..60 {
        let using = match key % 3 {
            0 => "",
            1 => " USING TIMESTAMP 1000",
            _ => " USING TIMESTAMP 4102444800000000",
        };
        world
            .cql(&format!(
                "INSERT INTO ks.t (k, v) VALUES ({key}, [{key}, 1]){using}"
            ))
            .await;
        let acknowledged = Instant::now();
        common::eventually("the row is found", async || {
            let nearest = world
                .client
                .ann(
                    "ks",
                    "i",
                    &AnnRequest::new(vec![key as f32, 1.0], 1),
                    &["k"],
                )
                .await;
            common::keys(nearest.unwrap()) == [[key]]
        })
        .await;
        lags.push(acknowledged.elapsed());
    }
    lags.sort();
    let median = lags[lags.len() / 2];
    assert!(median < MEDIAN_MAX, "{lags:?}");
    world.store.shutdown().await;
}

/// A search in the process of the database waits until the writes acknowledged before it are in the
/// index.
#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_what_was_acknowledged_before_it_and_nothing_deleted() {
    let world = World::start(Way::InProcess).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    let nearest = async || {
        let found = world
            .client
            .ann("ks", "i", &AnnRequest::new(vec![0.0, 1.0], 1), &["k"])
            .await;
        common::keys(found.unwrap())
    };
    for key in (0..20).rev() {
        let insert = format!("INSERT INTO ks.t (k, v) VALUES ({key}, [{key}, 1])");
        world.cql(&insert).await;
        assert_eq!(nearest().await, [[key]]);
    }
    for key in 0..19 {
        world
            .cql(&format!("DELETE FROM ks.t WHERE k = {key}"))
            .await;
        assert_eq!(nearest().await, [[key + 1]]);
    }
    world.store.shutdown().await;
}

/// A search that names a time knows the writes up to then at once, also where no one knows the end
/// of the log.
async fn a_search_that_names_a_time_knows_the_writes_up_to_it(way: Way) {
    let patient = |options: &mut StoreOptions| {
        options.listeners[0].search_wait_max = Duration::from_secs(5);
    };
    let world = World::start_with(way, patient).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
    world.create_index("i", "t").await;
    world.wait_serving("i").await;
    let now_us = || SystemClock.now_micros();
    let nearest = async |time_us: i64| {
        let search = AnnRequest {
            min_time_us: Some(time_us),
            ..AnnRequest::new(vec![0.0, 1.0], 1)
        };
        world.client.ann("ks", "i", &search, &["k"]).await
    };
    for key in (0..20).rev() {
        let insert = format!("INSERT INTO ks.t (k, v) VALUES ({key}, [{key}, 1])");
        world.cql(&insert).await;
        let found = nearest(now_us()).await;
        assert_eq!(common::keys(found.unwrap()), [[key]]);
    }
    const HOUR_US: i64 = 3_600_000_000;
    let in_an_hour = nearest(now_us() + HOUR_US).await;
    match (way, in_an_hour) {
        // All writes that there are have been acknowledged.
        (Way::InProcess, found) => assert_eq!(common::keys(found.unwrap()), [[0]]),
        (Way::Cql, Err(ClientError::Behind { behind_us, .. })) => {
            let behind_us = behind_us.expect("it knows").cast_signed();
            assert!(
                (HOUR_US / 2..2 * HOUR_US).contains(&behind_us),
                "{behind_us}"
            );
        }
        (Way::Cql, found) => panic!("{found:?}"),
    }
    world.store.shutdown().await;
}

/// A value that has expired neither satisfies a filter nor is returned, from the moment on at which
/// the database says so.
#[tokio::test(flavor = "multi_thread")]
async fn an_expired_value_is_gone_from_answers_at_once() {
    let world = World::start(Way::InProcess).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>, n int)")
        .await;
    world
        .cql("CREATE CUSTOM INDEX i ON ks.t (v, n) USING 'vector_index'")
        .await;
    world.wait_serving("i").await;
    for key in 0..3 {
        for statement in [
            format!("INSERT INTO ks.t (k, v) VALUES ({key}, [1, 1])"),
            format!("UPDATE ks.t USING TTL 1 SET n = 7 WHERE k = {key}"),
        ] {
            world.cql(&statement).await;
        }
        common::eventually("the value has expired", async || {
            let query = format!("SELECT n FROM ks.t WHERE k = {key}");
            world.rows(&query).await[0].columns[0].is_none()
        })
        .await;
        let search = AnnRequest {
            filter: Some(Filter {
                restrictions: vec![Restriction::Eq {
                    lhs: "n".to_owned(),
                    rhs: 7.into(),
                }],
                allow_filtering: true,
                condition: None,
            }),
            ..AnnRequest::new(vec![1.0, 1.0], 9)
        };
        let found = world.client.ann("ks", "i", &search, &["k"]).await;
        assert_eq!(common::keys(found.unwrap()), [[0; 1]; 0]);
        let search = AnnRequest {
            return_columns: Some(vec!["n".to_owned()]),
            ..AnnRequest::new(vec![1.0, 1.0], 9)
        };
        let found = world.client.ann("ks", "i", &search, &["k"]).await.unwrap();
        let none: Vec<Option<KeyValue>> = vec![None; key + 1];
        assert_eq!(found.column_values, [none]);
    }
    world.store.shutdown().await;
}

both_ways!(
    a_write_is_searchable_soon_whatever_its_timestamp,
    a_search_that_names_a_time_knows_the_writes_up_to_it,
);
