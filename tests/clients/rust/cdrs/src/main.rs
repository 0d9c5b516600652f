//! Tests cdrs-tokio with its own defaults. Prints a line for each section: "NAME ok", or
//! "NAME failed: REASON"; or "ok" after the brief form.
//!
//! usage: cdrs HOST:PORT KEYSPACE, cdrs plain HOST:PORT KEYSPACE, cdrs login HOST:PORT SUPERUSER
//! PASSWORD, cdrs tls HOST:PORT DIRECTORY, cdrs tls-client HOST:PORT DIRECTORY

mod access;
mod brief;
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
        [address, keyspace] => {
            brief::run(address, keyspace).await;
            ExitCode::SUCCESS
        }
        _ => panic!("usage: cdrs [plain|login|tls|tls-client] HOST:PORT ..."),
    }
}

async fn plain(address: &str, keyspace: &str) -> ExitCode {
    let client = session::using_new(address, keyspace).await;
    let sections = [
        section("connect", schema::connected(&client)),
        section("version-5", schema::in_version_5(address, keyspace)),
        section("metadata", schema::metadata(&client, keyspace)),
        section("events", schema::events(&client, address, keyspace)),
        section("types", types::types(&client)),
        section("prepare", statements::prepare(&client)),
        section("batches", statements::batches(&client)),
        section("conditions", statements::conditions(&client)),
        section("counters", statements::counters(&client)),
        section("paging", statements::paging(&client)),
        section("errors", statements::errors(&client, keyspace)),
        section("vectors", statements::vectors(&client)),
    ];
    run(sections).await
}
