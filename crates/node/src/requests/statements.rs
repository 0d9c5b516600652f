//! The [`CqlService`] of a node with embedded storage: it parses, prepares and executes statements.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use client_memory::{MemoryAccount, MemoryCharge};
use cql::ast::{ParsedStatement, TextBatchKind};
use cql::error::{CqlError, ErrorKind};
use cql::secret::Secret;
use cql::wire::{
    BatchRequest, BatchStatement, BatchedStatement, Compression, MarkerValues, ProtocolVersion,
    QueryParameters, Request, Response, ServerEvent, Startup,
};
use futures::FutureExt;
use http_server::MaintenanceMode;
use query::statement_clock::timeuuid;
use schema::Catalog;
use slow_statements::{ExecutedStatement, beginning};
use tokio::sync::broadcast;
use traces::Trace;

use super::audited::RequestAudit;
use super::convert;
use super::counts::{CountedKind, CqlRequestCounts};
use super::events::SchemaEvents;
use super::parsing::{ParsedText, charge_text, parse};
use super::prepared::{ExecutableStatement, PlanCache};
use super::traced;
use super::values;
use crate::database::{CqlDatabase, resolve};
use crate::modify;
use crate::planner::{self, StatementPlan};
use crate::security::access::login::{RoleCredentials, role_of_identity};
use crate::security::audit::{AuditLog, login_line};
use crate::security::audited_login::{LoginAttempt, log_in};
use crate::server::{ConnectionInfo, CqlService, KIND_BYTES, ShedReason, StatementReply};
use crate::statement::{
    Actor, AddedCondition, BoundValue, ClientPresence, ColumnSpec, ExecutionOutcome,
    ExecutionParameters, ExecutionResult, LoggedInRole,
};
use crate::system::CQL_VERSION;
use crate::system::clients::ConnectionRegistration;

/// Executes statements on a [`CqlDatabase`].
pub(crate) struct StatementService {
    database: Arc<CqlDatabase>,
    prepared: PlanCache,
    events: SchemaEvents,
    audit: Option<Arc<AuditLog>>,
    counts: CqlRequestCounts,
    maintenance: MaintenanceMode,
}

/// The state of a connection: its addresses, and the client.
pub(crate) struct ClientSession {
    peer: ConnectionInfo,
    client: ConnectionRegistration,
    presence: ClientPresence,
    /// A condition in addition to the WHERE of SELECTs by searches.
    condition: Option<Arc<AddedCondition>>,
}

impl ClientSession {
    fn actor(&self) -> Actor {
        match self.client.role.get() {
            Some(role) => Actor::Role(role.clone()),
            None => Actor::Anybody,
        }
    }
}

/// The keyspace of names without one, for one request.
enum CurrentKeyspace<'a> {
    /// The one that the request gives.
    OfRequest(&'a str),
    /// The one that the connection uses, if it does.
    OfSession(Option<Arc<String>>),
}

impl<'a> CurrentKeyspace<'a> {
    /// The one that the request gives, whether it is there or not, else that of the connection.
    fn of(session: &ClientSession, given: Option<&'a str>) -> CurrentKeyspace<'a> {
        match given {
            Some(given) => CurrentKeyspace::OfRequest(given),
            None => CurrentKeyspace::OfSession(session.client.keyspace.load_full()),
        }
    }

    fn name(&self) -> Option<&str> {
        match self {
            CurrentKeyspace::OfRequest(name) => Some(name),
            CurrentKeyspace::OfSession(name) => name.as_deref().map(String::as_str),
        }
    }
}

impl StatementService {
    pub fn new(
        database: Arc<CqlDatabase>,
        prepared_bytes_max: u64,
        audit: Option<Arc<AuditLog>>,
        maintenance: MaintenanceMode,
    ) -> Self {
        let prepared = PlanCache::new(prepared_bytes_max);
        prepared.show_in(database.system.prepared());
        StatementService {
            audit,
            counts: CqlRequestCounts::default(),
            maintenance,
            prepared,
            events: SchemaEvents::new(database.storage.catalog()),
            database,
        }
    }

    /// Checks the keyspace that the request gives, if it does.
    ///
    /// # Errors
    /// If it does not exist.
    fn check_keyspace(&self, keyspace: &CurrentKeyspace<'_>) -> Result<(), CqlError> {
        match keyspace {
            CurrentKeyspace::OfRequest(given) => resolve::check_keyspace(&self.database, given),
            CurrentKeyspace::OfSession(_) => Ok(()),
        }
    }

    /// Returns when the lines of requests that were answered or left are in the audit log, or do
    /// not get there.
    pub async fn flush_audit_log(&self) {
        if let Some(log) = &self.audit {
            log.flush().await;
        }
    }

    pub fn database(&self) -> &Arc<CqlDatabase> {
        &self.database
    }

    /// The counts of statements.
    pub fn counts(&self) -> &CqlRequestCounts {
        &self.counts
    }

    /// The session of a client that has logged in by another way than the native protocol;
    /// `role` is its role, if clients have to log in.
    pub fn session_of(
        &self,
        peer: ConnectionInfo,
        role: Option<LoggedInRole>,
        (presence, condition): (ClientPresence, Option<Arc<AddedCondition>>),
    ) -> ClientSession {
        let asks_for_login = self.database.access.requires_login();
        let clients = self.database.system.clients();
        let client = clients.register(peer.remote, peer.tls.clone(), asks_for_login);
        if let Some(role) = role {
            let _ = client.role.set(role);
        }
        ClientSession {
            peer,
            client,
            presence,
            condition,
        }
    }

    async fn query(
        &self,
        session: &ClientSession,
        text: String,
        mut parameters: QueryParameters,
        (memory, audited): (&MemoryAccount, &mut RequestAudit<'_>),
    ) -> Result<StatementReply, CqlError> {
        // The text lives as long as the charge for it: the log of slow statements shows it.
        let _parsed = charge_text(&text, memory)?;
        let slow_queries = self.database.system.slow_queries();
        let began = slow_queries.begin();
        let read = parse(text).await;
        traced::record_statement(&read.text, read.statement());
        let keyspace = parameters.keyspace.take();
        let keyspace = CurrentKeyspace::of(session, keyspace.as_deref());
        let text = Cow::Borrowed(read.text.as_str());
        audited.note(text, read.statement(), keyspace.name())?;
        let parsed = read.parsed?;
        self.check_keyspace(&keyspace)?;
        let plan = planner::prepare(&self.database, keyspace.name(), &parsed)?;
        let (parameters, skip_metadata) = bind(
            session,
            memory,
            &parsed.markers,
            plan.variables(),
            parameters,
        )?;
        let answer = plan.execute(&self.database, parameters).await;
        slow_queries.end(began, || {
            let text = Cow::Borrowed(beginning(&read.text));
            self.executed(session, keyspace.name(), text, Some(&plan))
        });
        Ok(self.reply(session, answer?, skip_metadata))
    }

    /// A statement of a session that was carried out, for the log of slow ones.
    fn executed<'a>(
        &self,
        session: &'a ClientSession,
        keyspace: Option<&'a str>,
        text: Cow<'a, str>,
        plan: Option<&StatementPlan>,
    ) -> ExecutedStatement<'a> {
        ExecutedStatement {
            id: timeuuid(self.database.storage.clock()),
            client: session.peer.remote,
            role: session.client.role.get().map(|role| &**role),
            keyspace: keyspace.map(Cow::Borrowed),
            text,
            plan: plan.and_then(StatementPlan::search),
        }
    }

    async fn prepare(
        &self,
        session: &ClientSession,
        text: String,
        keyspace: Option<&str>,
        (memory, audited): (&MemoryAccount, &mut RequestAudit<'_>),
    ) -> Result<StatementReply, CqlError> {
        let _parsed = charge_text(&text, memory)?;
        let read = parse(text).await;
        traced::record_statement(&read.text, read.statement());
        let keyspace = CurrentKeyspace::of(session, keyspace);
        let text = Cow::Borrowed(read.text.as_str());
        audited.note(text, read.statement(), keyspace.name())?;
        self.check_keyspace(&keyspace)?;
        let prepared =
            ExecutableStatement::new(&self.database, keyspace.name(), &read.text, read.parsed?)?;
        let prepared = self.prepared.keep(prepared)?;
        let resolved = prepared.reported();
        let response = Response::Prepared(cql::wire::PreparedResponse {
            id: prepared.id.to_bytes(),
            result_metadata_id: Some(resolved.result_id.clone()),
            bind: resolved.variables.clone(),
            partition_key_indexes: resolved.plan.partition_key_variables().to_vec(),
            result: resolved.result.clone(),
        });
        Ok(response.into())
    }

    async fn execute(
        &self,
        session: &ClientSession,
        id: Bytes,
        expected: Option<Bytes>,
        parameters: QueryParameters,
        (memory, audited): (&MemoryAccount, &mut RequestAudit<'_>),
    ) -> Result<StatementReply, CqlError> {
        let slow_queries = self.database.system.slow_queries();
        let began = slow_queries.begin();
        let prepared = self.prepared.find(&id)?;
        audited.note_prepared(&prepared)?;
        let resolved = prepared.resolved(&self.database, expected.is_some())?;
        let plan = &resolved.plan;
        let (parameters, skip_metadata) = bind(
            session,
            memory,
            &prepared.parsed.markers,
            plan.variables(),
            parameters,
        )?;
        let statement = (&*prepared.text, &prepared.parsed.statement);
        traced::record_prepared(statement, &resolved.variables, &parameters.values);
        let answer = plan.execute(&self.database, parameters).await;
        slow_queries.end(began, || {
            let text = Cow::Borrowed(beginning(&prepared.text));
            self.executed(session, prepared.keyspace.as_deref(), text, Some(plan))
        });
        let answer = answer?;
        let Some(metadata) = &resolved.result else {
            // The plan promises no rows, so these are the answer of a conditional write.
            return Ok(self.reply(session, answer, false));
        };
        let has_changed = match &expected {
            None => !resolved.columns_are_as_prepared,
            Some(expected) => *expected != resolved.result_id,
        };
        let new_id = expected.filter(|_| has_changed);
        let new_id = new_id.map(|_| resolved.result_id.clone());
        let skip_metadata = skip_metadata && !has_changed;
        let (response, charge) = match answer.outcome {
            ExecutionOutcome::Rows(rows) => convert::rows(rows, metadata, skip_metadata, new_id),
            outcome => (self.without_rows(session, outcome), None),
        };
        Ok(StatementReply {
            response,
            warnings: answer.warnings,
            charge,
        })
    }

    fn without_rows(&self, session: &ClientSession, outcome: ExecutionOutcome) -> Response {
        match outcome {
            ExecutionOutcome::SetKeyspace(keyspace) => {
                session
                    .client
                    .keyspace
                    .store(Some(Arc::new(keyspace.clone())));
                Response::SetKeyspace(keyspace)
            }
            ExecutionOutcome::SchemaChange(change) => {
                self.events.publish(self.database.storage.catalog());
                convert::schema_change(change)
            }
            ExecutionOutcome::Void => Response::Void,
            ExecutionOutcome::Rows(_) => unreachable!("bug: rows are answered by the caller"),
        }
    }

    async fn batch(
        &self,
        session: &ClientSession,
        batch: BatchRequest,
        (memory, audited): (&MemoryAccount, &mut RequestAudit<'_>),
    ) -> Result<StatementReply, CqlError> {
        let slow_queries = self.database.system.slow_queries();
        let began = slow_queries.begin();
        let keyspace = CurrentKeyspace::of(session, batch.keyspace.as_deref());
        let checked = self.check_keyspace(&keyspace);
        let mut texts: Vec<MemoryCharge> = Vec::new();
        let mut plans: Vec<Arc<StatementPlan>> = Vec::with_capacity(batch.statements.len());
        let mut bound: Vec<Vec<BoundValue>> = Vec::with_capacity(batch.statements.len());
        for BatchStatement { statement, values } in batch.statements {
            // A batch may be long, so other tasks get their turn between its statements.
            tokio::task::consume_budget().await;
            let values = MarkerValues::Positional(values);
            let (plan, values) = match statement {
                BatchedStatement::Text(text) => {
                    texts.push(charge_text(&text, memory)?);
                    let parsed = noted(parse(text).await, &keyspace, audited)?;
                    checked.clone()?;
                    let plan = planner::prepare(&self.database, keyspace.name(), &parsed)?;
                    let values = values::in_order(&parsed.markers, plan.variables(), values)?;
                    (Arc::new(plan), values)
                }
                BatchedStatement::Prepared(id) => {
                    let prepared = self.prepared.find(&id)?;
                    audited.note_prepared(&prepared)?;
                    checked.clone()?;
                    let plan = prepared.resolved(&self.database, false)?.plan.clone();
                    let markers = &prepared.parsed.markers;
                    let values = values::in_order(markers, plan.variables(), values)?;
                    (plan, values)
                }
            };
            plans.push(plan);
            bound.push(values);
        }
        checked?;
        let entries = plans.iter().zip(bound).map(|(plan, values)| {
            match &**plan {
                StatementPlan::Modify(plan) => Ok((plan, values)),
                _ => Err(CqlError::invalid(
                    "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
                )),
            }
        });
        let entries = entries.collect::<Result<Vec<_>, CqlError>>()?;
        let actor = session.actor();
        let catalog = self.database.storage.catalog();
        for plan in &plans {
            plan.check_rights(&self.database.access, &catalog, &actor)?;
        }
        let kind = match batch.kind {
            cql::wire::BatchKind::Logged => TextBatchKind::Logged,
            cql::wire::BatchKind::Unlogged => TextBatchKind::Unlogged,
            cql::wire::BatchKind::Counter => TextBatchKind::Counter,
        };
        let parameters = ExecutionParameters {
            timestamp_micros: batch.timestamp,
            consistency: batch.consistency,
            serial_consistency: batch.serial_consistency,
            client_now_s: batch.now_in_seconds.map(i64::from),
            memory: memory.clone(),
            actor,
            presence: session.presence.clone(),
            ..ExecutionParameters::default()
        };
        let answer = modify::execute_batch(&self.database, kind, entries, &parameters).await;
        slow_queries.end(began, || {
            let text = Cow::Owned(batch_text(&catalog, &plans));
            self.executed(session, keyspace.name(), text, None)
        });
        Ok(self.reply(session, answer?, false))
    }

    /// Carries out a request, and notes for the audit log what it is about.
    async fn carry_out(
        &self,
        session: &ClientSession,
        request: Request,
        by: (&MemoryAccount, &mut RequestAudit<'_>),
    ) -> Result<StatementReply, CqlError> {
        match request {
            Request::Query {
                statement,
                parameters,
            } => boxed(self.query(session, statement, parameters, by)).await,
            Request::Prepare {
                statement,
                keyspace,
            } => {
                let keyspace = keyspace.as_deref();
                boxed(self.prepare(session, statement, keyspace, by)).await
            }
            Request::Execute {
                id,
                result_metadata_id,
                parameters,
            } => {
                let answer = self.execute(session, id, result_metadata_id, parameters, by);
                boxed(answer).await
            }
            Request::Batch(batch) => boxed(self.batch(session, batch, by)).await,
            Request::Startup(_)
            | Request::Options
            | Request::Register { .. }
            | Request::AuthResponse { .. } => Err(CqlError::protocol("not a statement")),
        }
    }

    /// The role that may log in by a certificate of this identity. `None` also if that can't be
    /// logged.
    async fn role_of(&self, identity: &str, address: SocketAddr) -> Option<LoggedInRole> {
        let role = role_of_identity(&self.database.storage.catalog(), identity)?;
        if let Some(log) = &self.audit
            && let Some(line) = login_line(log, &address.to_string(), Some(&role), None)
        {
            log.check_login().ok()?;
            log.write_login(line).await.ok()?;
        }
        Some(role)
    }

    /// The reply to a statement whose columns were not reported to the client before.
    fn reply(
        &self,
        session: &ClientSession,
        answer: ExecutionResult,
        skip_metadata: bool,
    ) -> StatementReply {
        let (response, charge) = match answer.outcome {
            ExecutionOutcome::Rows(rows) => {
                let metadata = convert::metadata(&rows.columns);
                convert::rows(rows, &metadata, skip_metadata, None)
            }
            outcome => (self.without_rows(session, outcome), None),
        };
        StatementReply {
            response,
            warnings: answer.warnings,
            charge,
        }
    }
}

/// The work on one kind of request, in an allocation of its own, so that none takes as much as the
/// largest.
fn boxed<F: Future>(work: F) -> Pin<Box<F>> {
    debug_assert!(size_of::<F>() <= KIND_BYTES, "{} bytes", size_of::<F>());
    Box::pin(work)
}

impl CqlService for StatementService {
    type Session = ClientSession;

    async fn open_session(&self, peer: ConnectionInfo) -> ClientSession {
        let asks_for_login = self.database.access.requires_login();
        let clients = self.database.system.clients();
        let client = clients.register(peer.remote, peer.tls.clone(), asks_for_login);
        if asks_for_login
            && let Some(identity) = &peer.certificate_identity
            && let Some(role) = self.role_of(identity, peer.remote).await
        {
            let _ = client.role.set(role);
        }
        ClientSession {
            peer,
            client,
            presence: ClientPresence::of_client(),
            condition: None,
        }
    }

    fn must_log_in(&self, session: &ClientSession) -> bool {
        self.database.access.requires_login() && session.client.role.get().is_none()
    }

    async fn log_in(
        &self,
        session: &ClientSession,
        token: Secret<Option<Bytes>>,
    ) -> Result<(), CqlError> {
        let address = session.peer.remote;
        let token = token.expose().as_deref().unwrap_or_default();
        let attempt = LoginAttempt {
            credentials: RoleCredentials::of_token(token),
            address: address.ip(),
            source: address.to_string(),
            is_always_logged: true,
        };
        let logins = &self.database.access.logins;
        let role = log_in(&self.database.storage, logins, self.audit.as_ref(), attempt).await;
        let _ = session.client.role.set(role?);
        Ok(())
    }

    fn started(&self, session: &ClientSession, version: ProtocolVersion, startup: &Startup) {
        session.client.started(version, &startup.options);
    }

    fn hung_up(&self, session: &ClientSession) {
        session.presence.end();
    }

    fn supported(&self) -> Vec<(String, Vec<String>)> {
        let versions = ProtocolVersion::EVERY.map(|version| version.to_string());
        let compressions = Compression::EVERY.map(|compression| compression.name().to_owned());
        vec![
            ("CQL_VERSION".to_owned(), vec![CQL_VERSION.to_owned()]),
            ("COMPRESSION".to_owned(), compressions.to_vec()),
            ("PROTOCOL_VERSIONS".to_owned(), versions.to_vec()),
        ]
    }

    async fn answer(
        &self,
        session: &ClientSession,
        request: Request,
        memory: &MemoryAccount,
    ) -> Result<StatementReply, CqlError> {
        session.client.requests.fetch_add(1, Ordering::Relaxed);
        let (began, kind) = (Instant::now(), CountedKind::of_request(&request));
        let _work = self.maintenance.begin_borrowed().map_err(|error| {
            // Drivers send a request that is refused so to another node.
            let error = CqlError::new(ErrorKind::IsBootstrapping, error.to_string());
            let kind = kind.unwrap_or(CountedKind::Other);
            self.counts
                .answered(kind, began.elapsed(), Some(&error.kind));
            error
        })?;
        let Some(log) = &self.audit else {
            let mut audited = RequestAudit::nothing();
            let answer = self
                .carry_out(session, request, (memory, &mut audited))
                .await;
            let error = answer.as_ref().err().map(|error| &error.kind);
            let kind = kind.unwrap_or(audited.kind());
            self.counts.answered(kind, began.elapsed(), error);
            return answer;
        };
        let by = (session.peer.remote, session.client.role.get().cloned());
        let batch = || timeuuid(self.database.storage.clock());
        let mut audited = RequestAudit::begin(log, by, &request, memory, batch);
        let carried_out = Box::pin(self.carry_out(session, request, (memory, &mut audited)));
        // Also what a bug has interrupted may have changed something.
        let outcome = AssertUnwindSafe(carried_out).catch_unwind().await;
        let error = match &outcome {
            Ok(answer) => answer.as_ref().err().map(|error| &error.kind),
            Err(_) => Some(&ErrorKind::ServerError),
        };
        let kind = kind.unwrap_or(audited.kind());
        self.counts.answered(kind, began.elapsed(), error);
        audited.finish(error).await?;
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn shed(&self, reason: ShedReason) {
        self.counts.shed(reason);
    }

    fn begin_trace(
        &self,
        session: &ClientSession,
        request: &Request,
        memory: &MemoryAccount,
    ) -> Option<Trace> {
        let addresses = (session.peer.remote, session.peer.local);
        traced::begin(&self.database.storage, addresses, request, memory)
    }

    fn keep_trace(&self, trace: &Trace) {
        self.database.system.traces().keep(trace.end());
    }

    fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.events.subscribe()
    }
}

/// The text by which the log of slow statements shows a batch: the tables that it writes to.
fn batch_text(catalog: &Catalog, plans: &[Arc<StatementPlan>]) -> String {
    let ids = plans.iter().flat_map(|plan| plan.tables());
    let tables = ids.filter_map(|id| catalog.table_by_id(id));
    slow_statements::batch_text(tables.map(|table| (&*table.keyspace, &*table.name)))
}

/// Notes a text, and gives it up. Returns the statement that it is.
fn noted(
    ParsedText { text, parsed }: ParsedText,
    keyspace: &CurrentKeyspace<'_>,
    audited: &mut RequestAudit<'_>,
) -> Result<ParsedStatement, CqlError> {
    let statement = parsed.as_ref().ok().map(|parsed| &parsed.statement);
    audited.note(Cow::Owned(text), statement, keyspace.name())?;
    parsed
}

/// The parameters with which a plan is executed, and whether the client wants the answer without
/// metadata.
fn bind(
    session: &ClientSession,
    memory: &MemoryAccount,
    markers: &[Option<String>],
    variables: &[ColumnSpec],
    parameters: QueryParameters,
) -> Result<(ExecutionParameters, bool), CqlError> {
    let values = values::in_order(markers, variables, parameters.values)?;
    let bound = ExecutionParameters {
        values,
        page_size: parameters.page_size.map(|rows| rows as usize),
        paging_state: parameters.paging_state,
        timestamp_micros: parameters.timestamp,
        consistency: parameters.consistency,
        serial_consistency: parameters.serial_consistency,
        client_now_s: parameters.now_in_seconds.map(i64::from),
        server_address: Some(session.peer.local),
        memory: memory.clone(),
        actor: session.actor(),
        presence: session.presence.clone(),
        condition: session.condition.clone(),
    };
    Ok((bound, parameters.skip_metadata))
}
