//! The change log that a gateway writes for a table with a vector index, as the official CDC
//! library reads it.
//!
//! Each write is seen at least once, and the writes of a partition in their order. A log row names
//! only the key of the written row. Log rows around a write that can't share a batch with them come
//! twice.
//!
//! The library reads through the gateway. It uses `BYPASS CACHE` and tables of streams, which
//! Cassandra does not have. The log itself is a table of Cassandra. So its rows are also read from
//! a node directly, and the library has to understand them as the same rows.

mod delivered;
mod writes;

use std::sync::Arc;
use std::time::{Duration, Instant};

use delivered::check;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use test_support::eventually;
use writes::writes;

use super::target::{Target, cassandra_nodes, execute, select};
use crate::log::{self, Following};

const WRITERS: i32 = 4;
const WRITING: Duration = Duration::from_secs(8);
/// The time that the library stays behind writers, which is longer than a write takes.
const BEHIND: Duration = Duration::from_secs(5);

/// Creates the table, and waits until all gateways log it.
async fn create(session: &Session, keyspace: &str) {
    let table = "CREATE TABLE t (p int, c int, x text, n int, s set<int>, st int STATIC, v vector<float, 2>, \
         PRIMARY KEY (p, c))";
    execute(session, table).await;
    let index = "CREATE CUSTOM INDEX near ON t (v) USING 'vector_index'";
    execute(session, index).await;
    let seen =
        format!("SELECT index_name FROM system_schema.indexes WHERE keyspace_name = '{keyspace}'");
    eventually("all gateways log the table", async || {
        !select::<(String,)>(session, &seen).await.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a gateway before a Cassandra: make cluster-test"]
async fn every_kind_of_write_is_seen_in_its_place() {
    let keyspace = "rust_log";
    let scenario = async |session: Session| {
        let since = log::now();
        create(&session, keyspace).await;
        let writes = writes();
        for (write, _) in &writes {
            write.carry_out(&session).await;
        }
        let session = Arc::new(session);
        let delivered = log::delivered(&session, keyspace, "t", since).await;
        let due = writes.iter().map(|(_, lines)| lines);
        let due: Vec<Vec<String>> = due
            .map(|lines| lines.iter().map(ToString::to_string).collect())
            .collect();
        check(&delivered, &due);

        let nodes = SessionBuilder::new().known_nodes_addr(cassandra_nodes());
        let node = nodes.build().await.expect("the driver connects");
        let all = format!("SELECT * FROM {keyspace}.t_scylla_cdc_log");
        let directly = log::understood(execute(&node, &all).await);
        assert_eq!(log::in_order(directly), log::in_order(delivered));
    };
    Target::gateway().in_keyspace(keyspace, scenario).await;
}

/// Writes to a partition of its own until the time is over. Returns the rows that the log must
/// have.
async fn write(session: Arc<Session>, writer: i32) -> Vec<Vec<String>> {
    let prepare = async |text: &str| session.prepare(text).await.expect(text);
    let insert = prepare("INSERT INTO t (p, c, n) VALUES (?, ?, 1)").await;
    let update = prepare("UPDATE t SET n = 2 WHERE p = ? AND c = ?").await;
    let delete = prepare("DELETE FROM t WHERE p = ? AND c = ?").await;
    let conditional = prepare("INSERT INTO t (p, c, n) VALUES (?, ?, 1) IF NOT EXISTS").await;
    let forms = [
        (&insert, "insert"),
        (&update, "update"),
        (&delete, "delete-row"),
        (&conditional, "insert"),
    ];
    let began = Instant::now();
    let mut due = Vec::new();
    for (c, (statement, operation)) in (0..).zip(forms.into_iter().cycle()) {
        if began.elapsed() > WRITING {
            break;
        }
        let written = session.execute_unpaged(statement, (writer, c)).await;
        written.expect("it is written");
        due.push(vec![format!("{operation} c={c} p={writer}")]);
    }
    due
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a gateway before a Cassandra: make cluster-test"]
async fn nothing_is_missed_beside_concurrent_writers() {
    let keyspace = "rust_log_followed";
    let scenario = async |session: Session| {
        let since = log::now();
        create(&session, keyspace).await;
        let session = Arc::new(session);
        let following = Following::behind(BEHIND, &session, keyspace, "t", since).await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| tokio::spawn(write(Arc::clone(&session), writer)))
            .collect();
        let mut due = Vec::new();
        for writer in writers {
            due.extend(writer.await.expect("the writer ends"));
        }
        assert!(
            following.count() > 0,
            "the reader only came after the writers"
        );
        check(&following.finish().await, &due);
    };
    Target::gateway().in_keyspace(keyspace, scenario).await;
}
