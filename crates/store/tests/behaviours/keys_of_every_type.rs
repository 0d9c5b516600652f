//! Tests keys of every type. A row's key comes back as the API writes its type, and the row is
//! found, removed and repaired by it.

use serde_json::{Value, json};
use store_api::types::AnnRequest;

use crate::common::{self, Way, World, both_ways, eventually};

/// The types, each with a value as CQL writes it and as the API writes it.
fn values() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("ascii", "'abc'", json!("abc")),
        ("bigint", "-9223372036854775808", json!(i64::MIN)),
        ("blob", "0x00ff", json!("0x00ff")),
        ("boolean", "true", json!(true)),
        ("date", "'2024-02-29'", json!("2024-02-29")),
        ("decimal", "-12.340", json!("-12.340")),
        ("double", "0.1", json!(0.1)),
        ("float", "0.1", json!(0.1)),
        ("inet", "'::1'", json!("::1")),
        ("int", "-7", json!(-7)),
        ("smallint", "-8", json!(-8)),
        ("text", "'zażółć''s'", json!("zażółć's")),
        ("time", "'13:04:05.000000006'", json!("13:04:05.000000006")),
        (
            "timestamp",
            "'2023-11-14T22:13:20.123Z'",
            json!("2023-11-14T22:13:20.123Z"),
        ),
        (
            "timeuuid",
            "50554d6e-29bb-11e5-b345-feff819cdc9f",
            json!("50554d6e-29bb-11e5-b345-feff819cdc9f"),
        ),
        ("tinyint", "-128", json!(-128)),
        (
            "uuid",
            "01234567-89ab-4def-8123-456789abcdef",
            json!("01234567-89ab-4def-8123-456789abcdef"),
        ),
        (
            "varint",
            "18446744073709551616",
            json!("18446744073709551616"),
        ),
    ]
}

/// Checks that a row that is scanned, deleted and written anew has the expected key each time. The
/// key columns are `k` and, for keys of two columns, `c`.
async fn check(world: &World, typ: &str, literal: &str, key: Vec<Value>) {
    let columns = key.len();
    let table = format!("{typ}_{columns}");
    let primary_key = ["k", "(k), c"][columns - 1];
    world
        .cql(&format!(
            "CREATE TABLE ks.{table} (k {typ}, c {typ}, v vector<float, 2>, PRIMARY KEY ({primary_key}))"
        ))
        .await;
    let insert = format!("INSERT INTO ks.{table} (k, c, v) VALUES ({literal}, {literal}, [1, 2])");
    world.cql(&insert).await;
    let index = format!("{table}_i");
    world.create_index(&index, &table).await;
    world.wait_serving(&index).await;
    let keys = async || {
        let names = &["k", "c"][..columns];
        let found = world
            .client
            .ann("ks", &index, &AnnRequest::new(vec![1.0, 2.0], 9), names)
            .await;
        common::keys(found.unwrap())
    };
    let expected = vec![key];
    assert_eq!(keys().await, expected, "{table}");
    // The key from the log leads to the same row.
    let condition = match columns {
        1 => format!("k = {literal}"),
        _ => format!("k = {literal} AND c = {literal}"),
    };
    world
        .cql(&format!("DELETE FROM ks.{table} WHERE {condition}"))
        .await;
    eventually(&format!("{table} is empty"), async || {
        keys().await.is_empty()
    })
    .await;
    world.cql(&insert).await;
    eventually(&format!("{table} has its row"), async || {
        keys().await == expected
    })
    .await;
}

async fn keys_of_every_type_come_back(way: Way) {
    let world = World::start_with(way, |options| options.repair.small_table_rows = 0).await;
    let values = values();
    let checks = values.iter().map(async |(typ, literal, expected)| {
        check(&world, typ, literal, vec![expected.clone()]).await;
        check(
            &world,
            typ,
            literal,
            vec![expected.clone(), expected.clone()],
        )
        .await;
    });
    futures::future::join_all(checks).await;
    // A repair computes the token of each key, and finds the rows of the index where the table has
    // them.
    for (typ, ..) in &values {
        for columns in [1, 2] {
            let index = format!("{typ}_{columns}_i");
            world.assert_repair_finds_nothing(&index, true).await;
        }
    }
    world.store.shutdown().await;
}

both_ways!(keys_of_every_type_come_back,);
