//! A write is searchable soon, whatever timestamp its client gave it.

mod common;

use std::time::{Duration, Instant};

use common::{Way, World};

/// What a write may take at the median until it is searchable.
const MEDIAN_MAX: Duration = Duration::from_millis(100);

async fn a_write_is_searchable_within_100_ms_at_the_median(way: Way) {
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
                .ann("ks", "i", &[key as f32, 1.0], 1, &["k"])
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

both_ways!(a_write_is_searchable_within_100_ms_at_the_median,);
