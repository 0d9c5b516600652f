//! Connects, makes a keyspace and a table, writes and reads, by text and prepared.

use std::time::Duration;

use cdrs_tokio::query_values;
use cdrs_tokio::types::ByName;
use cdrs_tokio::types::rows::Row;

use crate::session::{connect, node, rows};

const ROWS: i32 = 10;

/// How often a statement is tried, and the pause between.
const ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(100);

pub async fn run(address: &str, keyspace: &str) {
    let client = connect(node(address), None).await;
    // The driver asks another node each time, and one of several may not know of the last change of
    // the schema yet.
    let run = async |text: String| {
        for _ in 1..ATTEMPTS {
            match client.query(text.as_str()).await {
                Ok(answer) => return answer,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        client.query(text.as_str()).await.expect(&text)
    };
    run(format!(
        "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    ))
    .await;
    run(format!(
        "CREATE TABLE IF NOT EXISTS {keyspace}.t (k int, c text, n int, PRIMARY KEY (k, c))"
    ))
    .await;
    run(format!(
        "INSERT INTO {keyspace}.t (k, c, n) VALUES (1, 'text', 10)"
    ))
    .await;
    let insert = client
        .prepare(format!(
            "INSERT INTO {keyspace}.t (k, c, n) VALUES (?, ?, ?)"
        ))
        .await
        .expect("an INSERT prepared");
    for k in 2..=ROWS {
        client
            .exec_with_values(&insert, query_values!(k, "prepared", 10 * k))
            .await
            .expect("an INSERT");
    }
    let select = client
        .prepare(format!("SELECT n FROM {keyspace}.t WHERE k = ? AND c = ?"))
        .await
        .expect("a SELECT prepared");
    let found = client
        .exec_with_values(&select, query_values!(7, "prepared"))
        .await
        .expect("a SELECT");
    assert_eq!(numbers(&rows(found)), [70]);
    let found = run(format!("SELECT n FROM {keyspace}.t")).await;
    let mut numbers = numbers(&rows(found));
    numbers.sort_unstable();
    let expected: Vec<i32> = (1..=ROWS).map(|k| 10 * k).collect();
    assert_eq!(numbers, expected);
    println!("ok");
}

fn numbers(rows: &[Row]) -> Vec<i32> {
    rows.iter()
        .map(|row| row.r_by_name("n").expect("a number"))
        .collect()
}
