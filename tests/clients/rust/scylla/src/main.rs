//! Tests the driver `scylla` with its own defaults. Prints a line for each section: "NAME ok", or
//! "NAME failed: REASON".
//!
//! usage: scylla plain HOST:PORT KEYSPACE, scylla login HOST:PORT SUPERUSER PASSWORD,
//! scylla tls HOST:PORT DIRECTORY, scylla tls-client HOST:PORT DIRECTORY

mod access;
mod schema;
mod session;
mod statements;
mod types;

use std::process::ExitCode;

use sections::{run, section};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["plain", address, keyspace] => plain(address, keyspace).await,
        ["login", address, user, password] => run(access::login(address, user, password)).await,
        ["tls", address, folder] => run(access::encrypted(address, folder.as_ref())).await,
        ["tls-client", address, folder] => {
            run(access::with_certificate(address, folder.as_ref())).await
        }
        _ => panic!("usage: scylla plain|login|tls|tls-client HOST:PORT ..."),
    }
}

async fn plain(address: &str, keyspace: &str) -> ExitCode {
    let session = session::using_new(address, keyspace).await;
    let sections = [
        section("connect", schema::connected(&session)),
        section("metadata", schema::metadata(&session, keyspace)),
        section("events", schema::events(&session, address, keyspace)),
        section("types", types::types(&session, keyspace)),
        section("prepare", statements::prepare(&session)),
        section("batches", statements::batches(&session)),
        section("conditions", statements::conditions(&session)),
        section("counters", statements::counters(&session)),
        section("paging", statements::paging(&session)),
        section("errors", statements::errors(&session, keyspace)),
        section("vectors", statements::vectors(&session)),
    ];
    run(sections).await
}
