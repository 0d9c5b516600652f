//! Features that Cassandra has and `annulus serve` does not, through a gateway: traces, counters,
//! user types, IF of a value. Also the facts that the node knows about the driver.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use scylla::client::SelfIdentity;
use scylla::client::session::Session;
use scylla::frame::Compression;
use scylla::observability::tracing::TracingInfo;
use scylla::statement::Statement;
use scylla::statement::batch::{Batch, BatchType};
use scylla::value::{Counter, CqlValue, Row};
use test_support::until_ok;
use uuid::Uuid;

use super::target::{Target, cassandra_nodes, execute, rows, select};
use super::values::{come_back, text_value};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a gateway before a Cassandra: make cluster-test"]
async fn the_nodes_are_the_gateways() {
    let target = Target::gateway();
    let session = target.builder().build().await;
    let session = session.expect("the driver connects");
    let state = session.get_cluster_state();
    let known: HashSet<SocketAddr> = state
        .get_nodes_info()
        .iter()
        .map(|node| SocketAddr::new(node.address.ip(), node.address.port()))
        .collect();
    let nodes: HashSet<SocketAddr> = cassandra_nodes().into_iter().collect();
    assert_eq!(known.len(), nodes.len());
    assert!(known.contains(&target.address), "{known:?}");
    assert!(known.is_disjoint(&nodes), "{known:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a gateway before a Cassandra: make cluster-test"]
async fn compression_reaches_the_node() {
    for (compression, option) in [
        (None, None),
        (Some(Compression::Lz4), Some("lz4")),
        (Some(Compression::Snappy), Some("snappy")),
    ] {
        let name = format!("rust driver, {option:?}");
        let identity = SelfIdentity::new().with_application_name(name.clone());
        let builder = Target::gateway().builder().custom_identity(identity);
        let session = builder.compression(compression).build().await;
        let session = session.expect("the driver connects");
        let clients = "SELECT client_options FROM system_views.clients";
        let clients = select::<(HashMap<String, String>,)>(&session, clients).await;
        let ours: Vec<Option<&str>> = clients
            .iter()
            .filter(|(options,)| options.get("APPLICATION_NAME") == Some(&name))
            .map(|(options,)| options.get("COMPRESSION").map(String::as_str))
            .collect();
        assert!(!ours.is_empty(), "{clients:?}");
        assert!(ours.iter().all(|found| *found == option), "{ours:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a gateway before a Cassandra: make cluster-test"]
async fn traces_are_the_nodes() {
    let scenario = async |session: Session| {
        let create = "CREATE TABLE films (id int PRIMARY KEY, name text)";
        execute(&session, create).await;
        let nodes: HashSet<IpAddr> = cassandra_nodes().iter().map(SocketAddr::ip).collect();
        let insert = "INSERT INTO films (id, name) VALUES (?, 'name')";
        let mut insert = session.prepare(insert).await.expect("it is prepared");
        insert.set_tracing(true);
        let mut text = Statement::new("SELECT name FROM films WHERE id = 1");
        text.set_tracing(true);
        let mut batch = Batch::new(BatchType::Logged);
        batch.append_statement(insert.clone());
        batch.set_tracing(true);
        for answer in [
            session.execute_unpaged(&insert, (1,)).await,
            session.query_unpaged(text, ()).await,
            session.batch(&batch, ((2,),)).await,
        ] {
            let answer = answer.expect("an answer");
            let trace = whole_trace(&session, answer.tracing_id()).await;
            assert!(!trace.events.is_empty());
            let coordinator = trace.coordinator.expect("a coordinator");
            assert!(nodes.contains(&coordinator), "{coordinator}");
        }
        // A token-aware driver asks the gateway beside the only replica, so no other node takes
        // part.
        let select = "SELECT name FROM films WHERE id = ?";
        let mut select = session.prepare(select).await.expect("it is prepared");
        select.set_tracing(true);
        let answer = session.execute_unpaged(&select, (1,)).await;
        let id = answer.expect("an answer").tracing_id();
        let trace = whole_trace(&session, id).await;
        assert_eq!(trace.nodes(), Vec::from_iter(trace.coordinator));
    };
    Target::gateway().in_keyspace("rust_traces", scenario).await;
}

/// The trace of a request, once it has the duration of the request.
async fn whole_trace(session: &Session, id: Option<Uuid>) -> TracingInfo {
    let id = id.expect("it was traced");
    until_ok("the trace has a duration", async || {
        let trace = session.get_tracing_info(&id).await.expect("its trace");
        match trace.duration {
            Some(_) => Ok(trace),
            None => Err(format!("{trace:?}")),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a gateway before a Cassandra: make cluster-test"]
async fn counters_are_counted_in_batches_too() {
    let scenario = async |session: Session| {
        let create = "CREATE TABLE seen (id int PRIMARY KEY, times counter)";
        execute(&session, create).await;
        let count = "UPDATE seen SET times = times + ? WHERE id = ?";
        let count = session.prepare(count).await.expect("it is prepared");
        let counted = session.execute_unpaged(&count, (Counter(2), 1)).await;
        counted.expect("it is counted");
        let mut batch = Batch::new(BatchType::Counter);
        batch.append_statement(count.clone());
        batch.append_statement("UPDATE seen SET times = times - 1 WHERE id = 1");
        let counted = session.batch(&batch, ((Counter(4), 1), ())).await;
        counted.expect("it is counted");
        let times: Vec<(Counter,)> = select(&session, "SELECT times FROM seen").await;
        assert_eq!(times, [(Counter(5),)]);
    };
    Target::gateway()
        .in_keyspace("rust_counters", scenario)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a gateway before a Cassandra: make cluster-test"]
async fn values_of_composed_types_come_back() {
    let keyspace = "rust_composed";
    let scenario = async |session: Session| {
        execute(&session, "CREATE TYPE place (town text, number int)").await;
        let place = CqlValue::UserDefinedType {
            keyspace: keyspace.to_owned(),
            name: "place".to_owned(),
            fields: vec![
                ("town".to_owned(), Some(text_value("Ghent"))),
                ("number".to_owned(), Some(CqlValue::Int(7))),
            ],
        };
        let tuple = CqlValue::Tuple(vec![Some(CqlValue::Int(1)), None]);
        let texts = CqlValue::Vector(vec![text_value("a"), text_value("longer")]);
        let cases = [
            ("place", place.clone(), "{town: 'Ghent', number: 7}"),
            (
                "list<frozen<place>>",
                CqlValue::List(vec![place]),
                "[{town: 'Ghent', number: 7}]",
            ),
            ("tuple<int, text>", tuple, "(1, null)"),
            ("vector<text, 2>", texts, "['a', 'longer']"),
        ];
        come_back(&session, &cases).await;
    };
    Target::gateway().in_keyspace(keyspace, scenario).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a gateway before a Cassandra: make cluster-test"]
async fn a_condition_on_a_value_holds_or_says_what_is_there() {
    let scenario = async |session: Session| {
        let create = "CREATE TABLE films (id int PRIMARY KEY, name text)";
        execute(&session, create).await;
        execute(&session, "INSERT INTO films (id, name) VALUES (1, 'a')").await;
        let update = "UPDATE films SET name = ? WHERE id = 1 IF name = ?";
        let update = session.prepare(update).await.expect("it is prepared");
        let answer = async |to: &str, from: &str| -> Row {
            let answer = session.execute_unpaged(&update, (to, from)).await;
            let mut rows: Vec<Row> = rows(answer.expect("an answer"));
            rows.remove(0)
        };
        let applied = [Some(CqlValue::Boolean(true))];
        assert_eq!(answer("b", "a").await.columns, applied);
        let refused = [CqlValue::Boolean(false), text_value("b")].map(Some);
        assert_eq!(answer("c", "a").await.columns, refused);

        let mut batch = Batch::new(BatchType::Logged);
        batch.append_statement(update.clone());
        batch.append_statement("UPDATE films SET name = 'both' WHERE id = 1");
        let answer = session.batch(&batch, (("c", "b"), ())).await;
        let answer: Vec<Row> = rows(answer.expect("an answer"));
        assert_eq!(answer[0].columns[0], Some(CqlValue::Boolean(true)));
        let delete = "DELETE FROM films WHERE id = 1 IF EXISTS";
        for exists in [true, false] {
            let answer: Vec<Row> = select(&session, delete).await;
            assert_eq!(answer[0].columns[0], Some(CqlValue::Boolean(exists)));
        }
    };
    Target::gateway()
        .in_keyspace("rust_values_compared", scenario)
        .await;
}
