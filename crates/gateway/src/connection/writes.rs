//! Requests that write to logged tables: recognised, begun in another form, and answered.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::glance::{self, BatchedRef};
use cql::wire::{Frame, FrameHeader, Response};
use tokio::io::AsyncWrite;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::requests::{Decision, Requests, RequestsEnd, unprepared};
use super::responses::{self, Responses};
use super::session::{Expected, Seen, WriteUnderWay};
use super::socket::send;
use crate::catalog::Snapshot;
use crate::prepared::Meaning;
use crate::writes::{self, ClientRequest, Errand, Next, PreparedWrite};

/// Bytes that the writes under way of one connection may hold; with more, its requests wait. A larger write goes alone.
const MEMORY_MAX: usize = 16 << 20;

/// A write is held as it came and as a batch.
const COPIES: usize = 2;

/// What the writes under way of a new connection may hold.
pub(super) fn write_memory() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MEMORY_MAX))
}

impl Requests {
    /// What is done with a QUERY whose first word is one of a write.
    pub(super) fn write_query(
        &self,
        request: &ClientRequest<'_>,
        text: &[u8],
    ) -> Result<Decision, CqlError> {
        // What is no UTF-8 is refused by Cassandra.
        let Ok(text) = str::from_utf8(text) else {
            return Ok(Decision::Pass);
        };
        let Some(write) = writes::read(text, request.keyspace, request.snapshot)? else {
            return Ok(Decision::Pass);
        };
        request.query(&write, &self.log).map(decision)
    }

    /// What was seen in a PREPARE whose first word is one of a write.
    pub(super) fn write_prepare(
        &self,
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

    /// What is done with an EXECUTE of a write.
    pub(super) fn write_execute(
        &self,
        header: &FrameHeader,
        body: &[u8],
        plain: &[u8],
        write: &PreparedWrite,
    ) -> Result<Decision, CqlError> {
        let snapshot = self.catalog.snapshot();
        let keyspace = self.session.keyspace();
        let request = ClientRequest {
            header,
            body,
            plain,
            keyspace: keyspace.as_deref(),
            snapshot: &snapshot,
        };
        request.execute(write, &self.log).map(decision)
    }

    /// What is done with a BATCH. While no table is logged it passes without a look.
    pub(super) fn batch(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, CqlError> {
        let snapshot = self.catalog.snapshot();
        if snapshot.logs_nothing() {
            return Ok(Decision::Pass);
        }
        let mut scratch = Bytes::new();
        let plain = self.session.plain(header, body, &mut scratch)?;
        let keyspace = self.session.keyspace();
        let mut is_logged = false;
        // Kept, as an id may be forgotten any time.
        let mut prepared = Vec::new();
        for statement in glance::batched(header.flags, plain)? {
            prepared.push(match statement? {
                BatchedRef::Text(text) => {
                    is_logged |= str::from_utf8(text)
                        .is_ok_and(|text| writes::is_logged(text, keyspace.as_deref(), &snapshot));
                    None
                }
                BatchedRef::Prepared(id) => match self.prepared.get(id, snapshot.epoch()) {
                    Some(Meaning::Write(write)) => {
                        is_logged = true;
                        Some(write)
                    }
                    Some(_) => None,
                    None => return Ok(Decision::Answer(unprepared(id))),
                },
            });
        }
        if !is_logged {
            return Ok(Decision::Pass);
        }
        let request = ClientRequest {
            header,
            body,
            plain,
            keyspace: keyspace.as_deref(),
            snapshot: &snapshot,
        };
        request.batch(prepared, &self.log).map(decision)
    }

    /// Takes the first step of a write whose request had `length` bytes.
    pub(super) async fn begin(
        &mut self,
        header: &FrameHeader,
        errand: Errand,
        length: usize,
        node: &mut (impl AsyncWrite + Unpin),
    ) -> Result<(), RequestsEnd> {
        let bytes = length * COPIES + errand.bytes();
        let memory = self.memory(bytes, node).await?;
        let (request, errand) = errand.begin();
        let write = WriteUnderWay { errand, memory };
        self.session
            .expect(header.stream, Expected::Write(Box::new(write)));
        send(node, &request).await.map_err(RequestsEnd::Node)
    }

    /// Waits until so many bytes may be held. Those that hold them go on meanwhile.
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
    /// A write with the names that the node gave its markers.
    pub(super) fn with_names(
        &self,
        header: &FrameHeader,
        body: &[u8],
        mut write: PreparedWrite,
    ) -> Arc<PreparedWrite> {
        // If they cannot be read, because of a type that is unknown here, they stay unknown.
        if let Ok((_, Response::Prepared(prepared))) = self.decode(header, body) {
            let names = prepared.bind.columns.into_iter().map(|column| column.name);
            write.names = names.collect();
        }
        Arc::new(write)
    }

    /// The node has answered a request of a write to logged tables.
    pub(super) fn write_answered(
        &self,
        header: &FrameHeader,
        body: &[u8],
        write: WriteUnderWay,
    ) -> responses::Decision {
        let WriteUnderWay { errand, memory } = write;
        let frame = Frame {
            header: *header,
            body: Bytes::copy_from_slice(body),
        };
        match errand.answered(&frame, self.session.compression(), self.session.body_max()) {
            Next::Ask(request, errand) => {
                let write = WriteUnderWay {
                    errand: *errand,
                    memory,
                };
                let expected = Expected::Write(Box::new(write));
                self.session.expect(header.stream, expected);
                responses::Decision::Ask(request)
            }
            Next::Answer => responses::Decision::Keep,
            Next::AnswerWith(answer) => responses::Decision::Replace(answer),
        }
    }
}

fn decision(errand: Option<Errand>) -> Decision {
    errand.map_or(Decision::Pass, |errand| Decision::Write(Box::new(errand)))
}
