//! Statements of clients that came by another way than the native protocol, such as HTTP. They take
//! the way of every request: planned, checked for the rights of the client's role and by
//! guardrails, noted in the audit log and in traces.

use std::net::SocketAddr;
use std::sync::Arc;

use client_memory::MemoryAccount;
use cql::error::{CqlError, ErrorKind};
use cql::wire::Request;
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;
use traces::RequestId;
use uuid::Uuid;

use super::StatementService;
use super::statements::ClientSession;
use crate::database::CqlDatabase;
use crate::server::{ConnectionInfo, CqlService, StatementReply};
use crate::statement::{AddedCondition, ClientPresence, LoggedInRole};

/// Makes sessions for requests. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RequestSessions {
    service: Arc<StatementService>,
    /// The statements under way.
    tasks: TaskTracker,
}

/// The client of a session.
#[derive(Clone)]
pub(crate) struct SessionClient {
    /// The addresses of the client, and of the listener that it came to.
    pub addresses: (SocketAddr, SocketAddr),
    /// Its role, if clients have to log in.
    pub role: Option<LoggedInRole>,
    /// The account that its statements are charged to.
    pub memory: MemoryAccount,
    /// Whether it is still connected.
    pub presence: ClientPresence,
    /// Whether its statements are traced.
    pub is_traced: bool,
}

/// The statements of one client. Cheap to clone.
#[derive(Clone)]
pub(crate) struct StatementSession(Arc<SessionState>);

struct SessionState {
    sessions: RequestSessions,
    session: ClientSession,
    client: SessionClient,
    /// The ids of the traces of its statements, and of those of sessions that were made of it.
    traces: TraceIds,
}

/// The ids of the traces of a client's request.
type TraceIds = Arc<Mutex<Vec<Uuid>>>;

impl RequestSessions {
    /// Sessions for statements of this service. `tasks` are waited for when it stops.
    pub fn new(service: Arc<StatementService>, tasks: TaskTracker) -> RequestSessions {
        RequestSessions { service, tasks }
    }

    /// The database.
    pub fn database(&self) -> &CqlDatabase {
        self.service.database()
    }

    /// A session of a client, whose searches have a condition in addition to WHERE.
    ///
    /// # Errors
    /// Unauthorized if clients have to log in and this one has no role.
    pub fn open(
        &self,
        client: SessionClient,
        condition: Option<Arc<AddedCondition>>,
    ) -> Result<StatementSession, CqlError> {
        self.open_traced(client, condition, TraceIds::default())
    }

    fn open_traced(
        &self,
        client: SessionClient,
        condition: Option<Arc<AddedCondition>>,
        traces: TraceIds,
    ) -> Result<StatementSession, CqlError> {
        let (remote, local) = client.addresses;
        let peer = ConnectionInfo {
            local,
            remote,
            certificate_identity: None,
            tls: None,
        };
        let by = (client.presence.clone(), condition);
        let session = self.service.session_of(peer, client.role.clone(), by);
        if self.service.must_log_in(&session) {
            return Err(CqlError::new(
                ErrorKind::BadCredentials,
                "the client has not logged in",
            ));
        }
        Ok(StatementSession(Arc::new(SessionState {
            sessions: self.clone(),
            session,
            client,
            traces,
        })))
    }
}

impl StatementSession {
    /// Carries out a request to its end, also if no one waits for it any more: what it changes is
    /// in the audit log then, too.
    ///
    /// # Errors
    /// Those of the request, and ServerError if a bug interrupts it.
    pub async fn answer(&self, request: Request) -> Result<StatementReply, CqlError> {
        let state = Arc::clone(&self.0);
        let work = async move {
            let SessionState {
                sessions,
                session,
                client,
                traces,
            } = &*state;
            let service = &sessions.service;
            let trace = client
                .is_traced
                .then(|| service.begin_trace(session, &request, &client.memory))
                .flatten();
            let answer = Box::pin(service.answer(session, request, &client.memory));
            let Some(trace) = trace else {
                return answer.await;
            };
            let answer = trace.scope(answer).await;
            service.keep_trace(&trace);
            traces.lock().push(trace.id());
            answer
        };
        let work = RequestId::carried(RequestId::current(), work);
        let answering = self.0.sessions.tasks.spawn(work);
        answering.await.unwrap_or_else(|error| {
            tracing::error!(%error, "a statement ran into a bug");
            Err(CqlError::server(format!("Internal error: {error}")))
        })
    }

    /// A session of the same client, whose searches have a condition in addition to WHERE.
    ///
    /// # Errors
    /// As [`RequestSessions::open`].
    pub fn with_condition(&self, condition: AddedCondition) -> Result<StatementSession, CqlError> {
        let SessionState {
            sessions,
            client,
            traces,
            ..
        } = &*self.0;
        let condition = Some(Arc::new(condition));
        sessions.open_traced(client.clone(), condition, Arc::clone(traces))
    }

    /// The account that statements are charged to.
    pub fn memory(&self) -> &MemoryAccount {
        &self.0.client.memory
    }

    /// The ids of the traces so far.
    pub fn traces(&self) -> Vec<Uuid> {
        self.0.traces.lock().clone()
    }
}
