//! Routes of HTTP for tables, for clients that have no CQL driver.
//!
//! ```text
//! a row of the table of routes -> call: login, header, time, hang-up
//!   -> the route: rows, batch, search, cql_text, schema, definitions
//!     -> statements: prepared once, executed with bound values -> requests (the way of all CQL)
//!   -> answers: JSON, charged to the client's memory
//! ```
//!
//! A route makes a statement of names, which are quoted, and of markers, whose values are bound. It
//! goes through [`crate::requests`], so rights, guardrails, the audit log and traces are those of
//! CQL. Names of tables and columns are looked up in the catalog for better errors only.

mod answers;
mod batch;
mod call;
mod cql_text;
mod definitions;
mod failure;
mod names;
mod query_text;
mod rows;
mod schema;
mod search;
mod statements;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::handler::Handler;
use axum::routing::MethodFilter;
use client_memory::{MemoryBudget, MemoryShares};
use http_server::{AddedRoutes, BodyLimits, RequiredRight, RouteRow};
use statements::PreparedIds;

use crate::requests::RequestSessions;
use crate::security::HttpLogins;

/// The longest body of a request, in bytes. One client has room for it and for the answer.
const BODY_BYTES_MAX: usize = 8 << 20;
/// The longest time in which a body must arrive.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// The bounds of the routes.
#[derive(Clone, Copy, Debug)]
pub struct HttpTablesOptions {
    /// The address of the listener, which traces show.
    pub listener: SocketAddr,
    /// The bytes of bodies that are on their way, of all clients.
    pub bodies_bytes_max: usize,
    /// The bytes of statements and answers under way, of all clients.
    pub memory_bytes: usize,
    /// The longest time of a request that names none.
    pub request_time: Duration,
}

impl HttpTablesOptions {
    /// The options of the routes at a listener, which take half of a process's shares for HTTP.
    pub fn new(listener: SocketAddr, shares: MemoryShares) -> HttpTablesOptions {
        HttpTablesOptions {
            listener,
            bodies_bytes_max: shares.http_bodies / 2,
            memory_bytes: shares.http_answers / 2,
            request_time: Duration::from_secs(30),
        }
    }
}

/// The routes of HTTP for the tables of a node.
pub struct HttpTables {
    sessions: RequestSessions,
    logins: HttpLogins,
    options: HttpTablesOptions,
    bodies: BodyLimits,
    memory: MemoryBudget,
    prepared: PreparedIds,
}

type Shared = Arc<HttpTables>;

impl HttpTables {
    /// Routes whose statements are those of these sessions.
    pub(crate) fn new(
        sessions: RequestSessions,
        logins: HttpLogins,
        options: HttpTablesOptions,
    ) -> HttpTables {
        let memory = MemoryBudget::new(options.memory_bytes);
        let body_bytes_max = BODY_BYTES_MAX.min(memory.client_bytes_max() / 2);
        HttpTables {
            sessions,
            logins,
            options,
            bodies: BodyLimits::new(options.bodies_bytes_max, body_bytes_max, BODY_WITHIN),
            memory,
            prepared: PreparedIds::default(),
        }
    }

    /// The rows of the table of routes, with their description.
    pub fn routes(self) -> AddedRoutes {
        let shared = Arc::new(self);
        let rows = table().into_iter();
        AddedRoutes {
            rows: rows.map(|row| row.with_state(shared.clone())).collect(),
            description: include_str!("openapi.json"),
        }
    }
}

/// A row. Each is private, and checks the login by itself: its statements need the rights.
fn row<H, T>(method: MethodFilter, path: &'static str, handler: H) -> RouteRow<Shared>
where
    H: Handler<T, Shared>,
    T: 'static,
{
    let row = RouteRow::new(method, path, handler);
    row.private().needs(RequiredRight::Nothing)
}

fn table() -> [RouteRow<Shared>; 14] {
    const GET: MethodFilter = MethodFilter::GET;
    const POST: MethodFilter = MethodFilter::POST;
    const PUT: MethodFilter = MethodFilter::PUT;
    const DELETE: MethodFilter = MethodFilter::DELETE;
    const KEYSPACE: &str = "/api/v1/keyspaces/{keyspace}";
    const TABLE: &str = "/api/v1/tables/{keyspace}/{table}";
    const ROWS: &str = "/api/v1/tables/{keyspace}/{table}/rows";
    const SEARCH: &str = "/api/v1/tables/{keyspace}/{table}/search";
    const INDEX: &str = "/api/v1/tables/{keyspace}/{table}/indexes/{name}";
    [
        row(PUT, ROWS, rows::put),
        row(GET, ROWS, rows::get),
        row(DELETE, ROWS, rows::delete),
        row(POST, "/api/v1/batch", batch::run),
        row(POST, SEARCH, search::run),
        row(POST, "/api/v1/cql", cql_text::run),
        row(GET, "/api/v1/schema", schema::show),
        row(PUT, KEYSPACE, definitions::create_keyspace),
        row(DELETE, KEYSPACE, definitions::drop_keyspace),
        row(GET, TABLE, schema::show_table),
        row(PUT, TABLE, definitions::create_table),
        row(DELETE, TABLE, definitions::drop_table),
        row(PUT, INDEX, definitions::create_index),
        row(DELETE, INDEX, definitions::drop_index),
    ]
}
