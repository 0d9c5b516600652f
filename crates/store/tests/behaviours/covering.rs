//! Tests of searches by CQL that the index answers alone, without a look at the rows.

use node::Node;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::{Consistency, Statement};
use scylla::value::Row;

use crate::common::{self, Way, World};

/// A database whose node asks the index service in the process.
struct Serve {
    world: World,
    _node: Node,
    session: Session,
}

impl Serve {
    async fn start() -> Serve {
        let world = World::start(Way::InProcess).await;
        let (storage, local) = (world.storage.clone(), world.local.clone());
        let node = common::start_node_with(storage, common::loopback(), local).await;
        let session = SessionBuilder::new()
            .known_node_addr(node.addresses()[0])
            .auto_await_schema_agreement(false)
            .build()
            .await
            .expect("a session");
        let serve = Serve {
            world,
            _node: node,
            session,
        };
        for statement in [
            "CREATE TABLE ks.t (p int, c text, v vector<float, 2>, n int, s text static, d decimal, \
             l list<int>, other int, PRIMARY KEY (p, c))",
            "CREATE CUSTOM INDEX i ON ks.t (v, n, s, d, l) USING 'vector_index' \
             WITH OPTIONS = {'similarity_function': 'euclidean'}",
        ] {
            serve.world.cql(statement).await;
        }
        serve.world.wait_serving("i").await;
        serve
    }

    /// The rows of a query at a consistency, and how many rows were looked up for it.
    async fn ask(&self, query: &str, consistency: Consistency) -> (Vec<Row>, u64) {
        let mut statement = Statement::new(query);
        statement.set_consistency(consistency);
        // What the index service reads is over, as it has taken up all writes.
        let settle = self
            .session
            .query_unpaged("SELECT p FROM ks.t ORDER BY v ANN OF [0, 0] LIMIT 1", ());
        settle.await.expect("an answer");
        let looked_up = || self.world.storage.statistics().rows_looked_up;
        let before = looked_up();
        let answer = self.session.query_unpaged(statement, ()).await;
        let answer = answer.unwrap_or_else(|error| panic!("{query}: {error}"));
        let rows = answer.into_rows_result().expect("rows");
        let rows = rows.rows::<Row>().expect("rows").collect::<Result<_, _>>();
        (rows.expect("rows"), looked_up() - before)
    }

    /// Checks that a query is answered the same with a look at the rows and without.
    async fn check(&self, query: &str) -> Vec<Row> {
        let (rows, looked_up) = self.ask(query, Consistency::LocalQuorum).await;
        assert!(looked_up >= rows.len() as u64, "{query}: {looked_up}");
        for consistency in [Consistency::One, Consistency::LocalOne] {
            let (covered, looked_up) = self.ask(query, consistency).await;
            assert_eq!(looked_up, 0, "{query}");
            assert_eq!(covered, rows, "{query}");
        }
        rows
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_the_index_keeps_are_answered_without_rows() {
    let serve = Serve::start().await;
    for p in 0..6 {
        serve
            .world
            .cql(&format!(
                "INSERT INTO ks.t (p, c, v, n, s, d, other) \
                 VALUES ({p}, 'c{p}', [{p}, 1], {}, 's{p}', {p}.50, {p})",
                p % 2
            ))
            .await;
    }
    serve
        .world
        .cql("UPDATE ks.t SET n = null WHERE p = 3 AND c = 'c3'")
        .await;
    serve.world.cql("DELETE s FROM ks.t WHERE p = 4").await;
    serve
        .world
        .cql("DELETE FROM ks.t WHERE p = 5 AND c = 'c5'")
        .await;
    let order = "ORDER BY v ANN OF [0, 0] LIMIT 9";
    let all = serve
        .check(&format!("SELECT p, c, n, s, d FROM ks.t {order}"))
        .await;
    assert_eq!(all.len(), 5);
    for query in [
        format!("SELECT c, p FROM ks.t {order}"),
        format!("SELECT d AS x, token(p), n FROM ks.t {order}"),
        format!("SELECT p, n FROM ks.t WHERE n = 0 {order}"),
        format!("SELECT p, s FROM ks.t WHERE d >= 1.5 AND s IN ('s1', 's2', 's4') {order}"),
        format!("SELECT p FROM ks.t WHERE p IN (1, 2, 3) {order}"),
        "SELECT p, s FROM ks.t ORDER BY v ANN OF [3.2, 1] LIMIT 2".to_owned(),
    ] {
        serve.check(&query).await;
    }
    // The rows have more than the index.
    for columns in [
        "p, other",
        "p, v",
        "p, l",
        "p, writetime(n)",
        "p, ttl(n)",
        "*",
    ] {
        let query = format!("SELECT {columns} FROM ks.t {order}");
        let (rows, looked_up) = serve.ask(&query, Consistency::One).await;
        assert_eq!((rows.len(), looked_up), (5, 5), "{query}");
    }
    let filtered = format!("SELECT p FROM ks.t WHERE other = 1 {order} ALLOW FILTERING");
    let (rows, looked_up) = serve.ask(&filtered, Consistency::One).await;
    assert_eq!(rows.len(), 1);
    assert!(looked_up > 0);
    serve.world.store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_of_each_search_is_counted() {
    let serve = Serve::start().await;
    serve
        .world
        .cql("INSERT INTO ks.t (p, c, v, n) VALUES (1, 'c', [1, 1], 7)")
        .await;
    let order = "ORDER BY v ANN OF [0, 0] LIMIT 9";
    for query in [
        format!("SELECT p FROM ks.t {order}"),
        format!("SELECT p FROM ks.t WHERE n = 7 {order}"),
        // Rows that the query names are ranked, without the index.
        format!("SELECT p FROM ks.t WHERE p = 1 AND c = 'c' {order}"),
        format!("SELECT p FROM ks.t {order} WITH ann_options = {{'exact': true}}"),
    ] {
        let rows = common::rows(&serve.session, &query).await;
        assert_eq!(rows.len(), 1, "{query}");
    }
    let metrics = serve.world.get("/metrics").await;
    for plan in ["scan", "filtered_scan", "ranked_rows", "exact"] {
        let line = format!(r#"searches_total{{index_name="i",keyspace="ks",plan="{plan}"}} 1"#);
        assert!(metrics.contains(&line), "{line} not in\n{metrics}");
    }
    serve.world.store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_without_rows_know_every_acknowledged_write() {
    let serve = Serve::start().await;
    let query = "SELECT p, n FROM ks.t ORDER BY v ANN OF [0, 0] LIMIT 1";
    for round in 0..40 {
        for statement in [
            format!("INSERT INTO ks.t (p, c, v, n) VALUES (1, 'c', [{round}, 1], {round})"),
            format!("UPDATE ks.t SET n = {} WHERE p = 1 AND c = 'c'", -round),
            "DELETE n FROM ks.t WHERE p = 1 AND c = 'c'".to_owned(),
            "DELETE FROM ks.t WHERE p = 1".to_owned(),
        ] {
            serve.world.cql(&statement).await;
            let (covered, looked_up) = serve.ask(query, Consistency::One).await;
            let (rows, _) = serve.ask(query, Consistency::LocalQuorum).await;
            assert_eq!((covered, looked_up), (rows, 0), "{statement}");
        }
    }
    serve.world.store.shutdown().await;
}

/// Each value expires at a time of its own. From then on it neither satisfies a filter nor is it
/// answered.
#[tokio::test(flavor = "multi_thread")]
async fn answers_without_rows_have_no_expired_values() {
    let serve = Serve::start().await;
    let order = "ORDER BY v ANN OF [0, 0] LIMIT 9";
    for p in 0..3 {
        for statement in [
            format!("INSERT INTO ks.t (p, c, v) VALUES ({p}, 'c', [{p}, 1])"),
            format!("UPDATE ks.t USING TTL 1 SET n = 7 WHERE p = {p} AND c = 'c'"),
        ] {
            serve.world.cql(&statement).await;
        }
        common::eventually("the value has expired", async || {
            let query = format!("SELECT n FROM ks.t WHERE p = {p} AND c = 'c'");
            let rows = serve.world.rows(&query).await;
            rows[0].columns[0].is_none()
        })
        .await;
        let (rows, _) = serve
            .ask(
                &format!("SELECT p FROM ks.t WHERE n = 7 {order}"),
                Consistency::One,
            )
            .await;
        assert!(rows.is_empty(), "{rows:?}");
        let query = format!("SELECT p, n FROM ks.t {order}");
        let (rows, _) = serve.ask(&query, Consistency::One).await;
        assert_eq!(rows.len(), p + 1);
        assert!(rows.iter().all(|row| row.columns[1].is_none()), "{rows:?}");
    }
    serve.world.store.shutdown().await;
}
