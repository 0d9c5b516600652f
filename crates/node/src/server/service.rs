//! The service of a connection, which answers its statements.

use std::future::Future;

use bytes::Bytes;
use client_memory::{MemoryAccount, MemoryCharge};
use cql::error::CqlError;
use cql::secret::Secret;
use cql::wire::{ProtocolVersion, Request, Response, ServerEvent, Startup};
use tokio::sync::broadcast;
use traces::Trace;

use super::peer::ConnectionInfo;

/// Answers the requests of connections. The connection handles the handshake, admission and
/// framing. A service sees only `QUERY`, `PREPARE`, `EXECUTE` and `BATCH`, many of them at once.
pub trait CqlService: Send + Sync + 'static {
    /// The state that lives as long as a connection, such as the keyspace in use.
    type Session: Send + Sync + 'static;

    /// Makes the session of a new connection.
    fn open_session(&self, peer: ConnectionInfo) -> impl Future<Output = Self::Session> + Send;

    /// Whether the client has to log in before it may send requests.
    fn must_log_in(&self, session: &Self::Session) -> bool;

    /// Checks a token of SASL PLAIN. If it is right, the session belongs to its role from now on. A
    /// client that hangs up does not wait for it any more.
    fn log_in(
        &self,
        session: &Self::Session,
        token: Secret<Option<Bytes>>,
    ) -> impl Future<Output = Result<(), CqlError>> + Send;

    /// Notes the version of the protocol and the options with which a client has begun.
    fn started(&self, _session: &Self::Session, _version: ProtocolVersion, _startup: &Startup) {}

    /// Notes that the client of a session has hung up. Reads for it may end then. What it has sent
    /// is answered all the same, in case it still reads.
    fn hung_up(&self, _session: &Self::Session) {}

    /// The answer to `OPTIONS`.
    fn supported(&self) -> Vec<(String, Vec<String>)>;

    /// Answers a request. The memory of the answer is charged to `memory` while it grows. A panic
    /// becomes a ServerError only for this request.
    fn answer(
        &self,
        session: &Self::Session,
        request: Request,
        memory: &MemoryAccount,
    ) -> impl Future<Output = Result<StatementReply, CqlError>> + Send;

    /// Notes that a request was refused as overloaded without a call of [`CqlService::answer`], or
    /// that its answer was dropped.
    fn shed(&self, _reason: ShedReason) {}

    /// Begins the trace of a request, which is charged to `memory`. `None` from a service that
    /// makes no traces.
    fn begin_trace(
        &self,
        _session: &Self::Session,
        _request: &Request,
        _memory: &MemoryAccount,
    ) -> Option<Trace> {
        None
    }

    /// Keeps the trace of a request that is answered, so that the client can read it.
    fn keep_trace(&self, _trace: &Trace) {}

    /// Schema events from now on, for a connection that registers for them. A receiver that lags
    /// too far loses its connection, since a driver refreshes its schema when it connects again.
    fn events(&self) -> broadcast::Receiver<ServerEvent>;
}

/// The reason for which a connection refuses a request as overloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShedReason {
    /// The listener or the connection works on as many requests as it may.
    Requests,
    /// There is no memory for the request.
    Memory,
    /// There is no memory for the answer to the request, which is dropped.
    AnswerMemory,
}

/// The answer to a request that succeeded.
#[derive(Debug)]
pub struct StatementReply {
    /// The answer itself.
    pub response: Response,
    /// Warnings, which drivers show with the answer.
    pub warnings: Vec<String>,
    /// The charge for the rows of the answer, if they were charged as they grew.
    pub charge: Option<MemoryCharge>,
}

impl From<Response> for StatementReply {
    fn from(response: Response) -> Self {
        StatementReply {
            response,
            warnings: Vec::new(),
            charge: None,
        }
    }
}
