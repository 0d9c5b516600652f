//! Turns a client's request into an execution.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::{
    BatchKind, BatchRequest, BatchStatement, BatchedStatement, BoundValue, ColumnsMetadata,
    Consistency, DecodeError, Frame, FrameFlags, FrameHeader, HEADER_LENGTH, QueryParameters,
    Request, glance,
};

use super::execution::WriteExecution;
use super::frames::encode;
use super::hint::{WriteHint, distinct};
use super::plan::UnplannableWrite;
use super::request_forms::{DecidedFrame, RequestForms, SentWrite};
use super::statement::{LoggedWrite, read};
use super::{ChangeLog, calls};
use crate::catalog::IndexCatalogSnapshot;

/// A statement that writes to logged tables, with everything that its executions need.
#[derive(Clone, Debug)]
pub(crate) struct PreparedWrite {
    /// The plans of the statement.
    pub(crate) write: Arc<LoggedWrite>,
    /// The text of the statement, if it must be written again for each execution.
    pub(crate) text: Option<String>,
    /// The keyspace of names without one; `None` if the statement has no such name.
    pub(crate) keyspace: Option<Arc<str>>,
    /// The names that the node gave the bind markers; none if they are not known.
    pub(crate) names: Vec<Arc<str>>,
}

impl PreparedWrite {
    /// Reads a statement, as [`read`] does. The names of its bind markers are not known yet.
    ///
    /// # Errors
    /// As those of [`read`].
    pub(crate) fn read(
        text: &str,
        keyspace: Option<&Arc<str>>,
        snapshot: &IndexCatalogSnapshot,
    ) -> Result<Option<PreparedWrite>, CqlError> {
        let write = read(text, keyspace.map(|name| &**name), snapshot)?;
        Ok(write.map(|write| PreparedWrite {
            text: write.has_changing_calls().then(|| text.to_owned()),
            keyspace: keyspace.filter(|_| !write.is_qualified()).cloned(),
            write: Arc::new(write),
            names: Vec::new(),
        }))
    }

    /// The statement with the names that the node gave its bind markers.
    pub(crate) fn named(&self, markers: ColumnsMetadata) -> PreparedWrite {
        let names = markers.columns.into_iter().map(|column| column.name);
        PreparedWrite {
            names: names.collect(),
            ..self.clone()
        }
    }
}

/// A client's request, with everything that it is understood by.
pub(crate) struct ClientRequest<'a> {
    /// The header of the client's frame.
    pub(crate) header: &'a FrameHeader,
    /// The body of the frame as it came.
    pub(crate) body: &'a [u8],
    /// The body of the frame after decompression; the same bytes as `body` if it was not
    /// compressed.
    pub(crate) plain: &'a [u8],
    /// The keyspace that the connection has set by USE.
    pub(crate) keyspace: Option<&'a str>,
    /// The snapshot that decides the request.
    pub(crate) snapshot: &'a IndexCatalogSnapshot,
}

/// The writes of a request, before the way to the node is chosen.
struct RequestWrites {
    /// The statements, with changing calls evaluated and values by position.
    statements: Vec<BatchStatement>,
    hints: Vec<WriteHint>,
    can_share_a_batch: bool,
    is_repeatable: bool,
    /// Whether a statement differs from the client's, so that the client's frame cannot go to the
    /// node.
    is_changed: bool,
}

impl ClientRequest<'_> {
    /// Turns a QUERY that writes to a logged table into an execution. `None` if Cassandra refuses
    /// it anyway, or if it touches no row.
    ///
    /// # Errors
    /// If the body is malformed, if the gateway cannot know the rows that the statement writes, or
    /// if the gateway's clock is wrong.
    pub(crate) fn query(
        &self,
        write: &LoggedWrite,
        log: &Arc<ChangeLog>,
    ) -> Result<Option<WriteExecution>, CqlError> {
        let Request::Query {
            statement,
            parameters,
        } = self.decode()?
        else {
            return Ok(None);
        };
        let values = write.positional(&parameters.values, None);
        let writes = values.and_then(|values| self.text(statement, write, values, 0, log));
        self.single_statement(write, writes, parameters, log)
    }

    /// Turns an EXECUTE that writes to a logged table into an execution. `None` as in
    /// [`ClientRequest::query`].
    ///
    /// # Errors
    /// The errors of [`ClientRequest::query`].
    pub(crate) fn execute(
        &self,
        prepared: &PreparedWrite,
        log: &Arc<ChangeLog>,
    ) -> Result<Option<WriteExecution>, CqlError> {
        let Request::Execute { id, parameters, .. } = self.decode()? else {
            return Ok(None);
        };
        let values = prepared
            .write
            .positional(&parameters.values, Some(&prepared.names));
        let writes = values.and_then(|values| self.prepared(id, prepared, values, 0, log));
        self.single_statement(&prepared.write, writes, parameters, log)
    }

    /// Turns a BATCH into an execution. `prepared` has an entry for each statement of the batch:
    /// the write of its id, or `None` if it is a text or writes to no logged table. The result is
    /// `None` as in [`ClientRequest::query`], and if the batch writes to no logged table.
    ///
    /// # Errors
    /// The errors of [`ClientRequest::query`].
    pub(crate) fn batch(
        &self,
        prepared: Vec<Option<Arc<PreparedWrite>>>,
        log: &Arc<ChangeLog>,
    ) -> Result<Option<WriteExecution>, CqlError> {
        let Request::Batch(mut batch) = self.decode()? else {
            return Ok(None);
        };
        // A table of counters has no vectors, and a batch of counters writes to no other table.
        if batch.kind == BatchKind::Counter {
            return Ok(None);
        }
        let mut writes = RequestWrites {
            statements: Vec::with_capacity(batch.statements.len()),
            hints: Vec::new(),
            can_share_a_batch: true,
            is_repeatable: true,
            is_changed: false,
        };
        let mut prepared = prepared.into_iter();
        for BatchStatement { statement, values } in std::mem::take(&mut batch.statements) {
            let known = prepared.next().flatten();
            let before = writes.hints.len();
            let of_statement = match statement {
                BatchedStatement::Text(text) => match read(&text, self.keyspace, self.snapshot)? {
                    Some(write) => self.text(text, &write, values, before, log),
                    None => Ok(RequestWrites::plain(BatchedStatement::Text(text), values)),
                },
                BatchedStatement::Prepared(id) => match known {
                    Some(write) => self.prepared(id, &write, values, before, log),
                    None => Ok(RequestWrites::plain(BatchedStatement::Prepared(id), values)),
                },
            };
            match of_statement {
                Ok(more) => writes.add(more),
                Err(UnplannableWrite::Refused) => return Ok(None),
                Err(UnplannableWrite::Unreadable(error)) => return Err(error),
            }
        }
        batch.statements = std::mem::take(&mut writes.statements);
        // Encoded with the client's own kind and present, as these writes may go without log rows.
        let changed = writes
            .is_changed
            .then(|| self.encode(&Request::Batch(batch.clone())));
        let (consistency, kind) = (batch.consistency, batch.kind);
        writes.can_share_a_batch &= has_no_present(batch.now_in_seconds);
        let batch = writes.can_share_a_batch.then_some(batch);
        let sent = SentWrite::Batch(kind);
        self.execution(changed, batch, consistency, sent, writes, log)
    }

    /// The writes of a statement given by its text, in a request that needs `before` log rows
    /// already.
    fn text(
        &self,
        text: String,
        write: &LoggedWrite,
        values: Vec<BoundValue>,
        before: usize,
        log: &ChangeLog,
    ) -> Result<RequestWrites, UnplannableWrite> {
        if !write.has_changing_calls() {
            return RequestWrites::write(
                BatchedStatement::Text(text),
                write,
                values,
                before,
                false,
            );
        }
        // The log row must name the key that the node writes. So the text gets values in place of
        // the calls, and the key is read from that text.
        let text = calls::evaluated(&text, &log.clock);
        match read(&text, self.keyspace, self.snapshot) {
            Ok(Some(write)) => {
                RequestWrites::write(BatchedStatement::Text(text), &write, values, before, true)
            }
            Ok(None) => Err(UnplannableWrite::Refused),
            Err(error) => Err(UnplannableWrite::Unreadable(error)),
        }
    }

    /// The writes of a statement given by its id, in a request that needs `before` log rows
    /// already.
    fn prepared(
        &self,
        id: Bytes,
        prepared: &PreparedWrite,
        values: Vec<BoundValue>,
        before: usize,
        log: &ChangeLog,
    ) -> Result<RequestWrites, UnplannableWrite> {
        match &prepared.text {
            None => RequestWrites::write(
                BatchedStatement::Prepared(id),
                &prepared.write,
                values,
                before,
                false,
            ),
            // The text goes to the node instead of the id, and its names would be looked up in the
            // keyspace that is in use now.
            Some(_)
                if prepared.keyspace.is_some() && prepared.keyspace.as_deref() != self.keyspace =>
            {
                Err(UnplannableWrite::Unreadable(CqlError::invalid(
                    "the statement has now() or the like in the key of a table with a vector index, and was prepared in \
                     another keyspace: bind the value, or go back with USE",
                )))
            }
            Some(text) => self.text(text.clone(), &prepared.write, values, before, log),
        }
    }

    /// Turns a statement that came in no batch into an execution.
    fn single_statement(
        &self,
        statement: &LoggedWrite,
        writes: Result<RequestWrites, UnplannableWrite>,
        parameters: QueryParameters,
        log: &Arc<ChangeLog>,
    ) -> Result<Option<WriteExecution>, CqlError> {
        let mut writes = match writes {
            Ok(writes) => writes,
            Err(UnplannableWrite::Refused) => return Ok(None),
            Err(UnplannableWrite::Unreadable(error)) => return Err(error),
        };
        let changed = match &writes.statements[..] {
            [
                BatchStatement {
                    statement: BatchedStatement::Text(text),
                    ..
                },
            ] if writes.is_changed => Some(self.encode(&Request::Query {
                statement: text.clone(),
                parameters: parameters.clone(),
            })),
            _ => None,
        };
        writes.can_share_a_batch &= has_no_present(parameters.now_in_seconds);
        let batch = writes.can_share_a_batch.then(|| BatchRequest {
            // The kind of the batch in which the statement and its log rows go to the node.
            kind: BatchKind::Logged,
            statements: std::mem::take(&mut writes.statements),
            consistency: parameters.consistency,
            serial_consistency: parameters.serial_consistency,
            timestamp: parameters.timestamp,
            keyspace: parameters.keyspace,
            now_in_seconds: None,
        });
        let sent = SentWrite::Statement(statement.beginning());
        self.execution(changed, batch, parameters.consistency, sent, writes, log)
    }

    /// Makes the execution. `changed` is the frame to send if it differs from the client's.
    fn execution(
        &self,
        changed: Option<Bytes>,
        batch: Option<BatchRequest>,
        consistency: Consistency,
        sent: SentWrite,
        writes: RequestWrites,
        log: &Arc<ChangeLog>,
    ) -> Result<Option<WriteExecution>, CqlError> {
        if writes.hints.is_empty() {
            return Ok(None);
        }
        // Only here, as a request without log rows does not depend on the gateway's clock.
        log.clock.check()?;
        let frame = self.as_it_came();
        let forms = RequestForms {
            version: self.header.version,
            stream: self.header.stream,
            flags: self.flags(),
            payload: Bytes::copy_from_slice(self.payload()?),
            alone: changed.unwrap_or_else(|| frame.clone()),
            origin: DecidedFrame {
                frame,
                epoch: self.snapshot.epoch(),
            },
            batch,
            sent,
            is_repeatable: writes.is_repeatable,
            consistency,
            hints: distinct(writes.hints),
        };
        Ok(Some(WriteExecution::new(forms, log.clone())))
    }

    /// The flags of the client's frame without the one for a compressed body.
    fn flags(&self) -> FrameFlags {
        // The gateway has decompressed the body, and sends what it encodes itself without
        // compression.
        FrameFlags(self.header.flags.0 & !FrameFlags::COMPRESSION.0)
    }

    fn payload(&self) -> Result<&[u8], DecodeError> {
        glance::custom_payload(self.header.flags, self.plain)
    }

    /// Decodes the request.
    ///
    /// # Errors
    /// If the body is malformed.
    pub(crate) fn decode(&self) -> Result<Request, DecodeError> {
        let header = FrameHeader {
            flags: self.flags(),
            ..*self.header
        };
        let body = Bytes::copy_from_slice(self.plain);
        Request::decode(&Frame { header, body }, None, self.plain.len())
    }

    fn encode(&self, request: &Request) -> Bytes {
        let payload = self.payload().unwrap_or_default();
        let FrameHeader {
            version, stream, ..
        } = *self.header;
        encode(request, version, stream, self.flags(), payload)
    }

    fn as_it_came(&self) -> Bytes {
        let mut frame = Vec::with_capacity(HEADER_LENGTH + self.body.len());
        frame.extend_from_slice(&self.header.to_bytes());
        frame.extend_from_slice(self.body);
        frame.into()
    }
}

/// Whether a request leaves the present to the node. One that sends its own must not share a batch
/// with log rows, which would expire by it.
fn has_no_present(now_in_seconds: Option<u32>) -> bool {
    now_in_seconds.is_none()
}

impl RequestWrites {
    /// The statement of a table that is not logged.
    fn plain(statement: BatchedStatement, values: Vec<BoundValue>) -> RequestWrites {
        RequestWrites {
            statements: vec![BatchStatement { statement, values }],
            hints: Vec::new(),
            can_share_a_batch: true,
            // The statement is not looked at, so it may not be repeatable.
            is_repeatable: false,
            is_changed: false,
        }
    }

    fn write(
        statement: BatchedStatement,
        write: &LoggedWrite,
        values: Vec<BoundValue>,
        before: usize,
        is_changed: bool,
    ) -> Result<RequestWrites, UnplannableWrite> {
        Ok(RequestWrites {
            hints: write.hints(&values, before)?,
            statements: vec![BatchStatement { statement, values }],
            can_share_a_batch: write.can_share_a_batch(),
            is_repeatable: write.is_repeatable(),
            is_changed,
        })
    }

    fn add(&mut self, more: RequestWrites) {
        self.statements.extend(more.statements);
        self.hints.extend(more.hints);
        self.can_share_a_batch &= more.can_share_a_batch;
        self.is_repeatable &= more.is_repeatable;
        self.is_changed |= more.is_changed;
    }
}
