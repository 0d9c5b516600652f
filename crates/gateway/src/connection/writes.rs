//! Requests that write to logged tables: recognised, sent in another form, and answered.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::glance::{self, BatchedRef};
use cql::wire::{Frame, FrameHeader, Opcode, Response};
use tokio::io::AsyncWrite;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::decide::{lapsed, unprepared};
use super::requests::{Requests, RequestsEnd};
use super::responses::{self, Responses};
use super::session::{Expected, Seen, Session, WriteUnderWay};
use super::socket::send;
use crate::catalog::{Catalog, Entered, Snapshot};
use crate::prepared::{Meaning, PreparedStatements};
use crate::writes::{self, ChangeLog, ClientRequest, Next, PreparedWrite, WriteExecution};

/// The memory that the writes under way of one connection may hold. With more, the connection's
/// requests wait. A larger write goes alone. Bytes.
const MEMORY_MAX: usize = 16 << 20;

/// The number of copies of a write that are held: as it came, and as a batch.
const COPIES: usize = 2;

/// The number of times that a write is retried because its definitions were outdated: once for a
/// table that was recreated, and once more for a table that was given an index meanwhile.
const RETRIES_MAX: u32 = 2;

/// The memory for the writes of a new connection.
pub(super) fn write_memory() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MEMORY_MAX))
}

/// Decides about the writes of a connection. A decision is an execution, `None` for a request that
/// passes as it came, or an error for the client.
#[derive(Clone)]
pub(super) struct Writes {
    /// The state that both directions of the connection share.
    pub(super) session: Arc<Session>,
    /// The meanings of prepared statements.
    pub(super) prepared: Arc<PreparedStatements>,
    /// The definitions of vector indexes.
    pub(super) catalog: Arc<Catalog>,
    /// The state that all writes to change logs share.
    pub(super) log: Arc<ChangeLog>,
}

impl Writes {
    /// Decides about a QUERY whose first word is that of a write.
    pub(super) fn query(
        &self,
        header: &FrameHeader,
        body: &[u8],
        plain: &[u8],
        snapshot: &Snapshot,
    ) -> Result<Option<WriteExecution>, CqlError> {
        // Cassandra refuses a text that is no UTF-8.
        let Ok(text) = str::from_utf8(glance::statement_text(header.flags, plain)?) else {
            return Ok(None);
        };
        let keyspace = self.session.keyspace();
        let request = ClientRequest {
            header,
            body,
            plain,
            keyspace: keyspace.as_deref(),
            snapshot,
        };
        match writes::read(text, request.keyspace, snapshot)? {
            Some(write) => request.query(&write, &self.log),
            None => Ok(None),
        }
    }

    /// Decides about an EXECUTE of a write.
    pub(super) fn execute(
        &self,
        header: &FrameHeader,
        body: &[u8],
        plain: &[u8],
        write: &PreparedWrite,
        snapshot: &Snapshot,
    ) -> Result<Option<WriteExecution>, CqlError> {
        let keyspace = self.session.keyspace();
        let request = ClientRequest {
            header,
            body,
            plain,
            keyspace: keyspace.as_deref(),
            snapshot,
        };
        request.execute(write, &self.log)
    }

    /// Decides about a BATCH. While no table is logged, it passes without a look.
    pub(super) fn batch(
        &self,
        header: &FrameHeader,
        body: &[u8],
        snapshot: &Snapshot,
    ) -> Result<Option<WriteExecution>, CqlError> {
        if snapshot.logs_nothing() {
            return Ok(None);
        }
        let mut scratch = Bytes::new();
        let plain = self.session.plain(header, body, &mut scratch)?;
        let keyspace = self.session.keyspace();
        let mut is_logged = false;
        // The meanings are kept, as an id may be forgotten at any time.
        let mut prepared = Vec::new();
        for statement in glance::batched(header.flags, plain)? {
            prepared.push(match statement? {
                BatchedRef::Text(text) => {
                    is_logged |= str::from_utf8(text)
                        .is_ok_and(|text| writes::is_logged(text, keyspace.as_deref(), snapshot));
                    None
                }
                BatchedRef::Prepared(id) => match self.prepared.get(id, snapshot) {
                    Some(Meaning::Write(write)) => {
                        is_logged = true;
                        Some(write)
                    }
                    Some(_) => None,
                    None => return Err(unprepared(id)),
                },
            });
        }
        if !is_logged {
            return Ok(None);
        }
        let request = ClientRequest {
            header,
            body,
            plain,
            keyspace: keyspace.as_deref(),
            snapshot,
        };
        request.batch(prepared, &self.log)
    }

    /// Decides once more about a write that the node refused, by the present snapshot.
    pub(super) fn again(&self, frame: &Frame) -> Result<Option<WriteExecution>, CqlError> {
        self.catalog.lapse_if_over();
        let snapshot = self.catalog.snapshot();
        if snapshot.lapsed() {
            return Err(lapsed());
        }
        let Frame { header, body } = frame;
        if header.opcode == Opcode::Batch {
            return self.batch(header, body, &snapshot);
        }
        let mut scratch = Bytes::new();
        let plain = self.session.plain(header, body, &mut scratch)?;
        if header.opcode == Opcode::Query {
            return self.query(header, body, plain, &snapshot);
        }
        let id = glance::executed_id(header.flags, plain)?;
        match self.prepared.get(id, &snapshot) {
            Some(Meaning::Write(write)) => self.execute(header, body, plain, &write, &snapshot),
            // Somebody has prepared the statement again, and it writes to no logged table now.
            Some(_) => Ok(None),
            None => Err(unprepared(id)),
        }
    }
}

/// The kind of statement that a PREPARE shows whose first word is that of a write.
pub(super) fn seen_in_prepare(
    text: &[u8],
    keyspace: Option<Arc<str>>,
    snapshot: &Snapshot,
) -> Result<Seen, CqlError> {
    let Ok(text) = str::from_utf8(text) else {
        return Ok(Seen::Nothing);
    };
    let write = writes::read(text, keyspace.as_deref(), snapshot)?;
    Ok(write.map_or(Seen::Nothing, |write| {
        Seen::Write(Box::new(PreparedWrite {
            text: write.has_changing_calls().then(|| text.to_owned()),
            keyspace: keyspace.filter(|_| !write.is_qualified()),
            write,
            names: Vec::new(),
        }))
    }))
}

impl Requests {
    /// Sends the first request of a write to the node. `length` is the length of the client's
    /// request. Bytes.
    pub(super) async fn begin(
        &mut self,
        header: &FrameHeader,
        execution: WriteExecution,
        length: usize,
        node: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), RequestsEnd> {
        let bytes = length * COPIES + execution.bytes();
        let memory = self.memory(bytes, node).await?;
        let entered = match self.enter(&execution, node).await? {
            Ok(entered) => entered,
            Err(error) => {
                self.session.client_is_answered(header.stream);
                self.answer(header.stream, error).await;
                return Ok(());
            }
        };
        let (request, execution) = execution.begin();
        let write = WriteUnderWay {
            execution,
            since: Instant::now(),
            retries: 0,
            entered,
            memory,
        };
        self.session
            .expect(header.stream, Expected::Write(Box::new(write)));
        send(node, &request).await.map_err(RequestsEnd::Node)
    }

    /// Waits until it is noted in the cluster that the logs of the write's tables may get rows.
    /// Writes under way go on meanwhile.
    async fn enter(
        &mut self,
        execution: &WriteExecution,
        node: &mut (impl AsyncWrite + Unpin),
    ) -> Result<Result<Entered, CqlError>, RequestsEnd> {
        let mut entered = pin!(self.catalog.enter(execution.tables()));
        loop {
            tokio::select! {
                biased;
                entered = &mut entered => return Ok(entered),
                Some(step) = self.steps.recv() => {
                    send(node, &step).await.map_err(RequestsEnd::Node)?;
                }
            }
        }
    }

    /// Waits until `bytes` more bytes may be held. Writes under way go on meanwhile.
    async fn memory(
        &mut self,
        bytes: usize,
        node: &mut (impl AsyncWrite + Unpin),
    ) -> Result<OwnedSemaphorePermit, RequestsEnd> {
        let bytes = u32::try_from(bytes.min(MEMORY_MAX)).expect("bug: the limit is beyond 4 GiB");
        loop {
            let permit = self.write_memory.clone().acquire_many_owned(bytes);
            tokio::select! {
                biased;
                permit = permit => return Ok(permit.expect("bug: the semaphore is closed")),
                Some(step) = self.steps.recv() => {
                    send(node, &step).await.map_err(RequestsEnd::Node)?;
                }
            }
        }
    }
}

impl Responses {
    /// Adds the names that the node gave the markers to a prepared write.
    pub(super) fn with_names(
        &self,
        header: &FrameHeader,
        body: &[u8],
        mut write: PreparedWrite,
    ) -> Arc<PreparedWrite> {
        // If the names cannot be read, because of a type that the gateway does not know, they stay
        // unknown.
        if let Ok((_, Response::Prepared(prepared))) = self.decode(header, body) {
            let names = prepared.bind.columns.into_iter().map(|column| column.name);
            write.names = names.collect();
        }
        Arc::new(write)
    }

    /// Decides about the node's answer to a request of a write to logged tables.
    pub(super) fn write_answered(
        &self,
        header: &FrameHeader,
        body: &[u8],
        write: WriteUnderWay,
    ) -> responses::Decision {
        let WriteUnderWay {
            execution,
            since,
            retries,
            entered,
            memory,
        } = write;
        let frame = Frame {
            header: *header,
            body: Bytes::copy_from_slice(body),
        };
        match execution.answered(&frame, self.session.compression(), self.session.body_max()) {
            Next::Ask(request, execution) => {
                let write = WriteUnderWay {
                    execution: *execution,
                    since,
                    retries,
                    entered,
                    memory,
                };
                let expected = Expected::Write(Box::new(write));
                self.session.expect(header.stream, expected);
                responses::Decision::Ask(request)
            }
            Next::InDoubt(origin) if retries < RETRIES_MAX => {
                self.retry(origin, frame, retries + 1, memory)
            }
            next => {
                self.writes.log.metrics.write_took(since.elapsed());
                match next {
                    Next::AnswerWith(answer) => responses::Decision::Replace(answer),
                    _ => responses::Decision::Keep,
                }
            }
        }
    }
}
