//! Tests cdrs-tokio with its own defaults: connects, makes a keyspace and a table, writes and
//! reads, by text and prepared.
//!
//! usage: cdrs HOST:PORT KEYSPACE

use std::time::Duration;

use cdrs_tokio::cluster::session::{Session, SessionBuilder, TcpSessionBuilder};
use cdrs_tokio::cluster::{NodeTcpConfigBuilder, TcpConnectionManager};
use cdrs_tokio::load_balancing::RoundRobinLoadBalancingStrategy;
use cdrs_tokio::query_values;
use cdrs_tokio::transport::TransportTcp;
use cdrs_tokio::types::ByName;
use cdrs_tokio::types::rows::Row;

type Client = Session<
    TransportTcp,
    TcpConnectionManager,
    RoundRobinLoadBalancingStrategy<TransportTcp, TcpConnectionManager>,
>;

const ROWS: i32 = 10;

/// How often a statement is tried, and the pause between.
const ATTEMPTS: usize = 50;
const PAUSE: Duration = Duration::from_millis(100);

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(keyspace)) = (arguments.next(), arguments.next()) else {
        panic!("usage: cdrs HOST:PORT KEYSPACE");
    };
    let config = NodeTcpConfigBuilder::new()
        .with_contact_point(address.into())
        .build()
        .await
        .expect("the configuration");
    let client: Client = TcpSessionBuilder::new(RoundRobinLoadBalancingStrategy::new(), config)
        .build()
        .await
        .expect("a session");
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
    let rows = client
        .exec_with_values(&select, query_values!(7, "prepared"))
        .await
        .expect("a SELECT");
    let rows = rows.response_body().expect("a body").into_rows();
    assert_eq!(numbers(rows), [70]);
    let rows = run(format!("SELECT n FROM {keyspace}.t")).await;
    let rows = rows.response_body().expect("a body").into_rows();
    let mut numbers = numbers(rows);
    numbers.sort_unstable();
    let expected: Vec<i32> = (1..=ROWS).map(|k| 10 * k).collect();
    assert_eq!(numbers, expected);
    println!("ok");
}

fn numbers(rows: Option<Vec<Row>>) -> Vec<i32> {
    rows.expect("rows")
        .iter()
        .map(|row| row.r_by_name("n").expect("a number"))
        .collect()
}
