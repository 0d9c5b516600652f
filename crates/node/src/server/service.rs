//! What stands behind a connection: that which answers statements.

use std::future::Future;
use std::net::SocketAddr;

use client_memory::{Account, Charge};
use cql::error::CqlError;
use cql::wire::{Event, Request, Response};
use tokio::sync::broadcast;

/// Answers the requests of connections. The connection has dealt with the handshake, admission and
/// framing; a service sees `QUERY`, `PREPARE`, `EXECUTE` and `BATCH` alone, many of them at once.
pub trait Service: Send + Sync + 'static {
    /// What lives as long as a connection, such as its keyspace.
    type Session: Send + Sync + 'static;

    /// The session of a new connection, which came to `address` of ours.
    fn open_session(&self, address: SocketAddr) -> Self::Session;

    /// The answer to `OPTIONS`.
    fn supported(&self) -> Vec<(String, Vec<String>)>;

    /// Answers a request. What grows with the answer is charged to `memory` as it grows. A panic in here becomes a ServerError for this request alone.
    fn answer(
        &self,
        session: &Self::Session,
        request: Request,
        memory: &Account,
    ) -> impl Future<Output = Result<Reply, CqlError>> + Send;

    /// Schema events from now on, for a connection that registers for them. A receiver that falls behind loses its
    /// connection, since a driver refreshes its schema when it connects anew.
    fn events(&self) -> broadcast::Receiver<Event>;
}

/// A successful answer.
#[derive(Debug)]
pub struct Reply {
    /// The answer itself.
    pub response: Response,
    /// Shown by drivers beside it.
    pub warnings: Vec<String>,
    /// What the rows of the answer are charged for already.
    pub charge: Option<Charge>,
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        Reply {
            response,
            warnings: Vec::new(),
            charge: None,
        }
    }
}
