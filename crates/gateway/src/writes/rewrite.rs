//! From a client's request to an errand.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::{
    Batch, BatchKind, BatchStatement, BatchedStatement, BoundValue, Consistency, DecodeError,
    Flags, Frame, FrameHeader, HEADER_LENGTH, QueryParameters, Request, glance,
};

use super::asked::{Asked, Origin};
use super::errand::Errand;
use super::frames::encode;
use super::hint::{Hint, distinct};
use super::plan::Unplanned;
use super::statement::{LoggedWrite, read};
use super::{ChangeLog, calls};
use crate::catalog::Snapshot;

/// A prepared statement that writes to logged tables.
#[derive(Debug)]
pub(crate) struct PreparedWrite {
    pub(crate) write: LoggedWrite,
    /// The text, if it must be written anew for each execution.
    pub(crate) text: Option<String>,
    /// Where names without a keyspace are; `None` if there are none.
    pub(crate) keyspace: Option<Arc<str>>,
    /// The names of the markers as the node gave them.
    pub(crate) names: Vec<Arc<str>>,
}

/// A request of a client, and what it is understood by.
pub(crate) struct ClientRequest<'a> {
    pub(crate) header: &'a FrameHeader,
    /// The body as it came.
    pub(crate) body: &'a [u8],
    /// The body, decompressed if it was compressed.
    pub(crate) plain: &'a [u8],
    /// The keyspace of the connection.
    pub(crate) keyspace: Option<&'a str>,
    pub(crate) snapshot: &'a Snapshot,
}

/// What writes a request makes, before it is known how they go to the node.
struct Found {
    /// With the changing calls evaluated; the values by position.
    statements: Vec<BatchStatement>,
    hints: Vec<Hint>,
    can_share_a_batch: bool,
    is_repeatable: bool,
    /// The statements are not what the client wrote, so its frame cannot go to the node.
    is_changed: bool,
}

impl ClientRequest<'_> {
    /// A QUERY of a logged table.
    ///
    /// # Errors
    /// If the rows that it writes are not known here. `None` if Cassandra refuses it anyway.
    pub(crate) fn query(
        &self,
        write: &LoggedWrite,
        log: &Arc<ChangeLog>,
    ) -> Result<Option<Errand>, CqlError> {
        let Request::Query {
            statement,
            parameters,
        } = self.decode()?
        else {
            return Ok(None);
        };
        let values = write.positional(&parameters.values, None);
        let found = values.and_then(|values| self.text(statement, write, values, 0, log));
        self.alone(found, parameters, log)
    }

    /// An EXECUTE of a logged table. Errors and `None` as in [`ClientRequest::query`].
    pub(crate) fn execute(
        &self,
        prepared: &PreparedWrite,
        log: &Arc<ChangeLog>,
    ) -> Result<Option<Errand>, CqlError> {
        let Request::Execute { id, parameters } = self.decode()? else {
            return Ok(None);
        };
        let values = prepared
            .write
            .positional(&parameters.values, Some(&prepared.names));
        let found = values.and_then(|values| self.prepared(id, prepared, values, 0, log));
        self.alone(found, parameters, log)
    }

    /// A BATCH. `prepared` are what its statements mean that are named by their ids, at the positions of those; `None` for
    /// what writes to no logged table.
    ///
    /// # Errors
    /// As [`ClientRequest::query`].
    pub(crate) fn batch(
        &self,
        prepared: Vec<Option<Arc<PreparedWrite>>>,
        log: &Arc<ChangeLog>,
    ) -> Result<Option<Errand>, CqlError> {
        let Request::Batch(mut batch) = self.decode()? else {
            return Ok(None);
        };
        // A counter's table has no vectors, and nothing else may be in a batch of counters.
        if batch.kind == BatchKind::Counter {
            return Ok(None);
        }
        let mut found = Found {
            statements: Vec::with_capacity(batch.statements.len()),
            hints: Vec::new(),
            can_share_a_batch: true,
            is_repeatable: true,
            is_changed: false,
        };
        let mut prepared = prepared.into_iter();
        for BatchStatement { statement, values } in std::mem::take(&mut batch.statements) {
            let known = prepared.next().flatten();
            let before = found.hints.len();
            let of_statement = match statement {
                BatchedStatement::Text(text) => match read(&text, self.keyspace, self.snapshot)? {
                    Some(write) => self.text(text, &write, values, before, log),
                    None => Ok(Found::plain(BatchedStatement::Text(text), values)),
                },
                BatchedStatement::Prepared(id) => match known {
                    Some(write) => self.prepared(id, &write, values, before, log),
                    None => Ok(Found::plain(BatchedStatement::Prepared(id), values)),
                },
            };
            match of_statement {
                Ok(more) => found.add(more),
                Err(Unplanned::Refused) => return Ok(None),
                Err(Unplanned::Unreadable(error)) => return Err(error),
            }
        }
        batch.statements = std::mem::take(&mut found.statements);
        let changed = found
            .is_changed
            .then(|| self.encode(&Request::Batch(batch.clone())));
        let (consistency, kind) = (batch.consistency, batch.kind);
        let batch = found.can_share_a_batch.then_some(batch);
        self.errand(changed, batch, consistency, Some(kind), found, log)
    }

    /// A statement by its text, in a request that needs `before` log rows already.
    fn text(
        &self,
        text: String,
        write: &LoggedWrite,
        values: Vec<BoundValue>,
        before: usize,
        log: &ChangeLog,
    ) -> Result<Found, Unplanned> {
        if !write.has_changing_calls() {
            return Found::write(BatchedStatement::Text(text), write, values, before, false);
        }
        let text = calls::evaluated(&text, &log.clock);
        match read(&text, self.keyspace, self.snapshot) {
            Ok(Some(write)) => {
                Found::write(BatchedStatement::Text(text), &write, values, before, true)
            }
            Ok(None) => Err(Unplanned::Refused),
            Err(error) => Err(Unplanned::Unreadable(error)),
        }
    }

    /// A statement by its id, in a request that needs `before` log rows already.
    fn prepared(
        &self,
        id: Bytes,
        prepared: &PreparedWrite,
        values: Vec<BoundValue>,
        before: usize,
        log: &ChangeLog,
    ) -> Result<Found, Unplanned> {
        match &prepared.text {
            None => Found::write(
                BatchedStatement::Prepared(id),
                &prepared.write,
                values,
                before,
                false,
            ),
            Some(_)
                if prepared.keyspace.is_some() && prepared.keyspace.as_deref() != self.keyspace =>
            {
                Err(Unplanned::Unreadable(CqlError::invalid(
                    "the statement has now() or the like in the key of a table with a vector index, and was prepared in \
                     another keyspace: bind the value, or go back with USE",
                )))
            }
            Some(text) => self.text(text.clone(), &prepared.write, values, before, log),
        }
    }

    /// A statement that came in no batch.
    fn alone(
        &self,
        found: Result<Found, Unplanned>,
        parameters: QueryParameters,
        log: &Arc<ChangeLog>,
    ) -> Result<Option<Errand>, CqlError> {
        let mut found = match found {
            Ok(found) => found,
            Err(Unplanned::Refused) => return Ok(None),
            Err(Unplanned::Unreadable(error)) => return Err(error),
        };
        let changed = match &found.statements[..] {
            [
                BatchStatement {
                    statement: BatchedStatement::Text(text),
                    ..
                },
            ] if found.is_changed => Some(self.encode(&Request::Query {
                statement: text.clone(),
                parameters: parameters.clone(),
            })),
            _ => None,
        };
        let batch = found.can_share_a_batch.then(|| Batch {
            // What it is when it goes to the node with its log rows.
            kind: BatchKind::Logged,
            statements: std::mem::take(&mut found.statements),
            consistency: parameters.consistency,
            serial_consistency: parameters.serial_consistency,
            timestamp: parameters.timestamp,
        });
        self.errand(changed, batch, parameters.consistency, None, found, log)
    }

    /// `changed` is the request if it is not the one that came.
    fn errand(
        &self,
        changed: Option<Bytes>,
        batch: Option<Batch>,
        consistency: Consistency,
        sent: Option<BatchKind>,
        found: Found,
        log: &Arc<ChangeLog>,
    ) -> Result<Option<Errand>, CqlError> {
        if found.hints.is_empty() {
            return Ok(None);
        }
        log.clock.check()?;
        let frame = self.as_it_came();
        let asked = Asked {
            stream: self.header.stream,
            flags: self.flags(),
            payload: Bytes::copy_from_slice(self.payload()?),
            alone: changed.unwrap_or_else(|| frame.clone()),
            origin: Origin {
                frame,
                epoch: self.snapshot.epoch(),
            },
            batch,
            sent,
            is_repeatable: found.is_repeatable,
            consistency,
            hints: distinct(found.hints),
        };
        Ok(Some(Errand::new(asked, log.clone())))
    }

    /// The flags of the frame, but that its body is not compressed.
    fn flags(&self) -> Flags {
        Flags(self.header.flags.0 & !Flags::COMPRESSION.0)
    }

    fn payload(&self) -> Result<&[u8], DecodeError> {
        glance::custom_payload(self.header.flags, self.plain)
    }

    fn decode(&self) -> Result<Request, DecodeError> {
        let header = FrameHeader {
            flags: self.flags(),
            ..*self.header
        };
        let body = Bytes::copy_from_slice(self.plain);
        Request::decode(&Frame { header, body }, None, self.plain.len())
    }

    fn encode(&self, request: &Request) -> Bytes {
        let payload = self.payload().unwrap_or_default();
        encode(request, self.header.stream, self.flags(), payload)
    }

    fn as_it_came(&self) -> Bytes {
        let mut frame = Vec::with_capacity(HEADER_LENGTH + self.body.len());
        frame.extend_from_slice(&self.header.to_bytes());
        frame.extend_from_slice(self.body);
        frame.into()
    }
}

impl Found {
    /// A statement of no logged table.
    fn plain(statement: BatchedStatement, values: Vec<BoundValue>) -> Found {
        Found {
            statements: vec![BatchStatement { statement, values }],
            hints: Vec::new(),
            can_share_a_batch: true,
            // It is not looked at.
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
    ) -> Result<Found, Unplanned> {
        Ok(Found {
            hints: write.hints(&values, before)?,
            statements: vec![BatchStatement { statement, values }],
            can_share_a_batch: write.can_share_a_batch(),
            is_repeatable: write.is_repeatable(),
            is_changed,
        })
    }

    fn add(&mut self, more: Found) {
        self.statements.extend(more.statements);
        self.hints.extend(more.hints);
        self.can_share_a_batch &= more.can_share_a_batch;
        self.is_repeatable &= more.is_repeatable;
        self.is_changed |= more.is_changed;
    }
}
