//! Decides what the gateway does with a request, without waiting. The loop that reads requests
//! carries the decision out.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    Compression, EventKind, Frame, FrameHeader, Opcode, Request, Response, ResponseContext, glance,
};

use super::requests::Requests;
use super::session::{Expected, Seen};
use super::work::Work;
use super::writes::seen_in_prepare;
use crate::catalog::{LoggedTable, Snapshot};
use crate::dependencies::Dependencies;
use crate::prepared::{Meaning, check_text};
use crate::recognise::{self, Verb};
use crate::writes::WriteExecution;

/// A decision about a request.
pub(super) enum Decision {
    /// The request goes to the node as it is.
    Pass,
    /// This frame goes to the node in place of the request, on the same stream.
    Replace(Bytes),
    /// The client gets this error from the gateway.
    Answer(CqlError),
    /// The gateway carries the request out itself.
    Begin(Work),
    /// The request writes to logged tables, and goes to the node in another form.
    Write(Box<WriteExecution>),
    /// The request truncates a logged table, and goes to the node once that is noted.
    Truncate(Arc<LoggedTable>),
    /// The request is a USE.
    Use,
}

impl Decision {
    /// The decision about a write; without an execution it passes.
    fn of_write(execution: Option<WriteExecution>) -> Decision {
        execution.map_or(Decision::Pass, |execution| {
            Decision::Write(Box::new(execution))
        })
    }
}

impl Requests {
    /// Decides on a request.
    pub(super) fn decide(&self, header: &FrameHeader, body: &[u8]) -> Decision {
        self.catalog.lapse_if_over();
        let decided = match header.opcode {
            Opcode::Query | Opcode::Prepare | Opcode::Execute | Opcode::Batch
                if !self.session.is_let_in() =>
            {
                Err(not_let_in())
            }
            Opcode::Startup => self.startup(header, body),
            Opcode::Query | Opcode::Prepare => self.text(header, body),
            Opcode::Execute => self.execute(header, body),
            Opcode::Batch => self.batch(header, body),
            Opcode::Register => self.register(header, body),
            _ => Ok(Decision::Pass),
        };
        decided.unwrap_or_else(Decision::Answer)
    }

    /// Notes the compression that STARTUP asks for. It must be one that the gateway can read.
    fn startup(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, CqlError> {
        let frame = Frame {
            header: *header,
            body: Bytes::copy_from_slice(body),
        };
        let request = Request::decode(&frame, None, self.session.body_max())?;
        if let Request::Startup(startup) = request {
            self.session.agree_on(startup.compression()?);
        }
        Ok(Decision::Pass)
    }

    /// Decides about a QUERY or PREPARE by its text.
    fn text(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, CqlError> {
        let mut scratch = Bytes::new();
        let plain = self.session.plain(header, body, &mut scratch)?;
        let text = glance::statement_text(header.flags, plain)?;
        let snapshot = self.catalog.snapshot();
        let verb = recognise::verb(text);
        if verb == Verb::Select
            && let Some(decision) = self.neighbours(header, plain, text, &snapshot)?
        {
            return Ok(decision);
        }
        if matches!(verb, Verb::Write | Verb::Truncate) && snapshot.lapsed() {
            return Err(lapsed());
        }
        if let Some(decision) = self.overlaid_text(header, plain, verb, &snapshot)? {
            return Ok(decision);
        }
        let seen = match verb {
            Verb::Select if recognise::may_read_ring(text) => Seen::RingTable,
            Verb::Use => Seen::Use,
            Verb::Write | Verb::Truncate if snapshot.logs_nothing() => Seen::Nothing,
            Verb::Truncate => match self.truncated_table(text, &snapshot)? {
                Some(table) => Seen::Truncate(table),
                None => Seen::Nothing,
            },
            Verb::Write if header.opcode == Opcode::Prepare => {
                let seen = seen_in_prepare(text, self.session.keyspace(), &snapshot)?;
                if matches!(seen, Seen::Write(_)) {
                    check_text(text.len())?;
                }
                seen
            }
            Verb::Write => {
                let execution = self.writes.query(header, body, plain, &snapshot)?;
                return Ok(Decision::of_write(execution));
            }
            _ => Seen::Nothing,
        };
        let expected = match (header.opcode, seen) {
            (Opcode::Prepare, seen) => self.expected_of_prepare(verb, text, seen, &snapshot),
            (_, Seen::RingTable) => Expected::RingRows(None),
            (_, Seen::Truncate(table)) => return Ok(Decision::Truncate(table)),
            (_, Seen::Use) => return Ok(Decision::Use),
            (
                _,
                Seen::Nothing
                | Seen::Concern(_)
                | Seen::Write(_)
                | Seen::LogRead(_)
                | Seen::Generations,
            ) => return Ok(Decision::Pass),
        };
        self.session.expect(header.stream, expected);
        Ok(Decision::Pass)
    }

    /// The reason to read the answer to a PREPARE.
    pub(super) fn expected_of_prepare(
        &self,
        verb: Verb,
        text: &[u8],
        seen: Seen,
        snapshot: &Snapshot,
    ) -> Expected {
        let keyspace = self.session.keyspace();
        Expected::Prepared {
            dependencies: Dependencies::of(verb, text, keyspace.as_deref(), snapshot),
            seen,
            text_bytes: text.len(),
        }
    }

    /// Decides about an EXECUTE by the meaning of its id.
    fn execute(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, CqlError> {
        let mut scratch = Bytes::new();
        let plain = self.session.plain(header, body, &mut scratch)?;
        let id = glance::executed_id(header.flags, plain)?;
        let snapshot = self.catalog.snapshot();
        match self.prepared.get(id, &snapshot) {
            Some(Meaning::Plain) => {}
            Some(Meaning::Use) => return Ok(Decision::Use),
            Some(Meaning::RingRows(columns)) => {
                self.session
                    .expect(header.stream, Expected::RingRows(Some(columns)));
            }
            Some(Meaning::LogRead(poll)) => return self.poll(header, plain, poll),
            Some(Meaning::Kept) => return Ok(self.kept_answer(header, body)),
            Some(Meaning::Ann(statement)) => return self.search(header, plain, statement),
            Some(Meaning::Concern(prepared)) => {
                return self.overlaid_execute(header, body, &prepared, &snapshot);
            }
            Some(Meaning::Truncate(table)) => return Ok(Decision::Truncate(table)),
            Some(Meaning::Write(write)) => {
                let execution = self
                    .writes
                    .execute(header, body, plain, &write, &snapshot)?;
                return Ok(Decision::of_write(execution));
            }
            None => return Ok(Decision::Answer(unprepared(id))),
        }
        Ok(Decision::Pass)
    }

    /// Decides about a BATCH.
    fn batch(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, CqlError> {
        let snapshot = self.catalog.snapshot();
        if snapshot.lapsed() {
            return Err(lapsed());
        }
        let execution = self.writes.batch(header, body, &snapshot)?;
        Ok(Decision::of_write(execution))
    }

    /// Notes clients that register for changes of the schema: the gateway tells them about vector
    /// indexes, which the node knows nothing of.
    fn register(&self, header: &FrameHeader, body: &[u8]) -> Result<Decision, CqlError> {
        let frame = Frame {
            header: *header,
            body: Bytes::copy_from_slice(body),
        };
        // A request that cannot be read goes to the node, which says what is wrong with it.
        if let Ok(Request::Register { events }) =
            Request::decode(&frame, self.session.compression(), self.session.body_max())
            && events.contains(&EventKind::SchemaChange)
        {
            self.session.client.hear_schema_changes();
        }
        Ok(Decision::Pass)
    }
}

/// Encodes an error response, never compressed: the client may not know yet which compression was
/// agreed on.
pub(super) fn encode_error(stream: i16, error: CqlError) -> Bytes {
    const NONE: Option<Compression> = None;
    let mut out = BytesMut::new();
    Response::Error(error).encode(&ResponseContext::new(stream), NONE, &mut out);
    out.freeze()
}

/// The error for statements before the node has let the client in. The node would refuse them as
/// well, unless it lets the client in meanwhile. Then a statement would get through that the
/// gateway did not look at.
fn not_let_in() -> CqlError {
    CqlError::new(
        ErrorKind::ProtocolError,
        "the connection is not open yet: send STARTUP, log in if the node asks for it, and wait for its answer",
    )
}

/// The error for writes while the snapshot is out of date. Upon this drivers ask another gateway.
pub(super) fn lapsed() -> CqlError {
    CqlError::new(
        ErrorKind::IsBootstrapping,
        "the gateway has lost touch with the cluster's definitions of vector indexes and passes no writes: use another one",
    )
}

/// The error for an unknown prepared id. Upon this drivers prepare the statement again and execute
/// it once more.
pub(super) fn unprepared(id: &[u8]) -> CqlError {
    let id = Bytes::copy_from_slice(id);
    let message = format!(
        "Prepared query with ID {id:02x} was not prepared through this gateway, or was forgotten: prepare it again"
    );
    CqlError::new(ErrorKind::Unprepared { id }, message)
}
