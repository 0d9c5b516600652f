//! Sessions, and steps that all sections share.

use cdrs_tokio::cluster::session::{Session, SessionBuilder, TcpSessionBuilder};
use cdrs_tokio::cluster::{NodeTcpConfigBuilder, TcpConnectionManager};
use cdrs_tokio::error::Error;
use cdrs_tokio::frame::Envelope;
use cdrs_tokio::frame::message_error::ErrorType;
use cdrs_tokio::load_balancing::RoundRobinLoadBalancingStrategy;
use cdrs_tokio::query::QueryValues;
use cdrs_tokio::transport::TransportTcp;
use cdrs_tokio::types::rows::Row;
use sections::in_time;

pub type Client = Session<
    TransportTcp,
    TcpConnectionManager,
    RoundRobinLoadBalancingStrategy<TransportTcp, TcpConnectionManager>,
>;

pub fn node(address: &str) -> NodeTcpConfigBuilder {
    NodeTcpConfigBuilder::new().with_contact_point(address.into())
}

/// A session that uses a keyspace, or none.
pub async fn connect(node: NodeTcpConfigBuilder, keyspace: Option<&str>) -> Client {
    let node = node.build().await.expect("the configuration");
    let mut builder = TcpSessionBuilder::new(RoundRobinLoadBalancingStrategy::new(), node);
    if let Some(keyspace) = keyspace {
        builder = builder.with_keyspace(keyspace.to_owned());
    }
    in_time(builder.build()).await.expect("a session")
}

/// A session that uses a keyspace which it makes.
pub async fn using_new(address: &str, keyspace: &str) -> Client {
    let client = connect(node(address), None).await;
    let create = format!(
        "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    );
    run(&client, &create).await;
    connect(node(address), Some(keyspace)).await
}

pub async fn run(client: &Client, statement: &str) -> Envelope {
    let done = client.query(statement).await;
    done.unwrap_or_else(|error| panic!("{statement}: {error}"))
}

/// Executes a statement with values, which the driver sends beside the text.
pub async fn with(client: &Client, statement: &str, values: QueryValues) -> Envelope {
    let done = client.query_with_values(statement, values).await;
    done.unwrap_or_else(|error| panic!("{statement}: {error}"))
}

pub fn rows(answer: Envelope) -> Vec<Row> {
    let body = answer.response_body().expect("a body");
    body.into_rows().expect("rows")
}

pub async fn select(client: &Client, statement: &str) -> Vec<Row> {
    rows(run(client, statement).await)
}

/// The kind of error with which the server answered, and its text.
pub fn refused<T>(result: Result<T, Error>) -> (ErrorType, String) {
    match result {
        Err(Error::Server { body, .. }) => (body.ty, body.message),
        Err(other) => panic!("not an error of the server: {other}"),
        Ok(_) => panic!("the server takes it"),
    }
}

pub async fn refusal(client: &Client, statement: &str) -> (ErrorType, String) {
    refused(client.query(statement).await)
}
