//! Token-aware routing: the driver computes tokens from the metadata of prepared statements, and
//! asks a replica.

use std::collections::HashSet;

use scylla::client::session::Session;
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use test_support::eventually;
use uuid::Uuid;

use super::target::{Target, execute, rows};

/// The number of keys is large enough for each node of a small ring to have some.
const KEYS: i32 = 60;

/// Checks that the driver's token of a key is the server's.
///
/// `select` gives the token of the row with that key.
async fn check_token(session: &Session, select: &PreparedStatement, key: &impl SerializeRow) {
    assert!(select.is_token_aware(), "{}", select.get_statement());
    let computed = select.calculate_token(key).expect("the key has a token");
    let read = session.execute_unpaged(select, key).await;
    let read: Vec<(i64,)> = rows(read.expect("it is read"));
    let computed = computed.expect("all of the key is bound").value();
    assert_eq!(read, [(computed,)], "{}", select.get_statement());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_those_of_the_server() {
    let scenario = async |session: Session| {
        let one = "CREATE TABLE one (a int PRIMARY KEY, n int)";
        execute(&session, one).await;
        let insert = "INSERT INTO one (n, a) VALUES (0, ?)";
        let insert = session.prepare(insert).await.expect("it is prepared");
        let select = "SELECT token(a) FROM one WHERE a = ?";
        let select = session.prepare(select).await.expect("it is prepared");
        for key in [0, 1, -1, i32::MAX] {
            let written = session.execute_unpaged(&insert, (key,)).await;
            written.expect("it is written");
            check_token(&session, &select, &(key,)).await;
        }

        // The markers have another order than the columns of the key.
        let many =
            "CREATE TABLE many (a int, b text, c uuid, d int, n int, PRIMARY KEY ((a, b, c), d))";
        execute(&session, many).await;
        let insert = "INSERT INTO many (c, d, b, a) VALUES (?, 1, ?, ?)";
        let insert = session.prepare(insert).await.expect("it is prepared");
        let select = "SELECT token(a, b, c) FROM many WHERE d = 1 AND c = ? AND b = ? AND a = ?";
        let select = session.prepare(select).await.expect("it is prepared");
        for number in 0..10 {
            let key = (Uuid::from_u128(number), number.to_string(), number as i32);
            let written = session.execute_unpaged(&insert, &key).await;
            written.expect("it is written");
            check_token(&session, &select, &key).await;
        }
    };
    Target::start().in_keyspace("rust_tokens", scenario).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_go_to_a_replica() {
    let keyspace = "rust_routing";
    let scenario = async |session: Session| {
        let create = "CREATE TABLE films (id int PRIMARY KEY, name text)";
        execute(&session, create).await;
        let insert = "INSERT INTO films (id, name) VALUES (?, 'name')";
        let insert = session.prepare(insert).await.expect("it is prepared");
        let state = session.get_cluster_state();
        let nodes = state.get_nodes_info();
        eventually("all nodes are connected to", async || {
            nodes.iter().all(|node| node.is_connected())
        })
        .await;
        // A node tells the places of tablets when it is asked for a row that it doesn't have. A
        // single node never does.
        let metadata = state.get_keyspace(keyspace).expect("the keyspace");
        let by_tablets = metadata.tablet_based;
        let mut coordinators = HashSet::new();
        for key in 0..KEYS {
            let written = session.execute_unpaged(&insert, (key,)).await;
            let written = written.expect("it is written");
            let coordinator = written.request_coordinator().node().host_id;
            let token = insert
                .calculate_token(&(key,))
                .expect("the key has a token");
            let token = token.expect("the key is bound");
            let replicas = state.get_token_endpoints(keyspace, "films", token);
            let replicas: Vec<Uuid> = replicas.iter().map(|(node, _)| node.host_id).collect();
            match by_tablets {
                true => assert!(replicas.is_empty(), "key {key}: {replicas:?}"),
                false => assert_eq!(replicas, [coordinator], "key {key}"),
            }
            coordinators.insert(coordinator);
        }
        assert_eq!(coordinators.len(), nodes.len());
    };
    Target::start().in_keyspace(keyspace, scenario).await;
}
