//! A write with its log rows, from the first request to the node to the answer for the client: bytes in, bytes out.
//!
//! All requests of an errand are made one after another on the client's own stream, so as the client's user and in its
//! keyspace. Two ways:
//!
//! - **Together**: one LOGGED batch of the client's statements and the log rows. Both come about or none does,
//!   whatever fails when, since the batch log plays a batch that was begun to its end.
//! - **Around**: for what cannot share a batch with another table (a condition, a batch as text) and what would be too large
//!   for one, and for a while where the [batch log](super::batch_log) does not answer. The log rows are written first, then the client's request as it came, then log rows again with a later time unless it
//!   is certain that nothing was written. The first make sure that the row is looked at once the reader of the log
//!   that stays behind (by 30 s) comes past, even if this gateway dies meanwhile; the second that it is soon.
//!
//! The INSERT of a log row is prepared when it is first needed and whenever the node has forgotten it; the client sees
//! nothing of it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cql::error::ErrorKind;
use cql::wire::{
    Batch, BatchKind, BatchStatement, BatchedStatement, Compression, Consistency, Flags, Frame,
    HEADER_LENGTH, Opcode, Request, Response, ResponseContext,
};

use super::ChangeLog;
use super::hint::{Hint, LogRow, log_rows};
use super::inserts;
use crate::catalog::LoggedTable;

/// Log rows in one request when they go alone: beyond ten partitions Cassandra warns of an unlogged batch.
const ROWS_IN_A_REQUEST: usize = 10;

/// What a hint takes, with a key of a few columns.
const HINT_BYTES: usize = 256;

/// How often an errand prepares statements anew that the node says it does not know.
const UNPREPARED_MAX: u32 = 3;

/// What Cassandra says of a batch beyond `batch_size_fail_threshold`.
const TOO_LARGE: &str = "Batch too large";

/// How Cassandra's warning of a batch beyond `batch_size_warn_threshold` begins.
const SIZE_WARNING: &str = "Batch for [";

/// What a client asked, in the forms that it can go to the node in.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) stream: i16,
    /// The flags of the client's frame that the node must see, and the custom payload as it came.
    pub(super) flags: Flags,
    pub(super) payload: Bytes,
    /// The frame that makes the writes without log rows.
    pub(super) alone: Bytes,
    /// The same writes as a batch; `None` if they cannot share one with log rows.
    pub(super) batch: Option<Batch>,
    /// The client sent a batch itself; of which kind.
    pub(super) sent: Option<BatchKind>,
    /// It comes to the same whether it is carried out once or twice.
    pub(super) is_repeatable: bool,
    pub(super) consistency: Consistency,
    pub(super) hints: Vec<Hint>,
}

impl Asked {
    /// The client asks for the batch log itself, and gets what becomes of that.
    fn wants_batch_log(&self) -> bool {
        self.sent == Some(BatchKind::Logged)
    }
}

/// A write under way.
#[derive(Debug)]
pub(crate) struct Errand {
    asked: Asked,
    log: Arc<ChangeLog>,
    stage: Stage,
    /// The table whose INSERT of log rows is being prepared for the stage.
    preparing: Option<Arc<LoggedTable>>,
    unprepared: u32,
}

/// How far it is.
#[derive(Clone, Debug)]
enum Stage {
    Together,
    /// The log rows from this one on.
    Before(usize),
    Alone,
    /// The log rows from this one on, with the answer that the client will get.
    After(usize, Bytes),
}

/// What is to be done next.
#[derive(Debug)]
pub(crate) enum Next {
    /// This goes to the node, and its answer comes back here.
    Ask(Bytes, Box<Errand>),
    /// The client gets the answer at hand.
    Answer,
    /// The client gets this frame.
    AnswerWith(Bytes),
}

impl Errand {
    pub(super) fn new(asked: Asked, log: Arc<ChangeLog>) -> Errand {
        let fits = asked
            .batch
            .as_ref()
            .is_some_and(|batch| log.fits(batch, &asked.hints));
        let avoids = !asked.wants_batch_log() && log.batch_log.is_avoided();
        Errand {
            stage: if fits && !avoids {
                Stage::Together
            } else {
                Stage::Before(0)
            },
            asked,
            log,
            preparing: None,
            unprepared: 0,
        }
    }

    /// The bytes that it takes beside those of the request.
    pub(crate) fn bytes(&self) -> usize {
        self.asked.hints.len() * HINT_BYTES
    }

    /// The first request, whose answer goes to [`Errand::answered`].
    pub(crate) fn begin(mut self) -> (Bytes, Errand) {
        let frame = self.request();
        (frame, self)
    }

    /// Takes the node's answer to the last request.
    pub(crate) fn answered(
        mut self,
        frame: &Frame,
        compression: Option<Compression>,
        body_max: usize,
    ) -> Next {
        let (context, response) = match Response::decode(frame, compression, body_max) {
            Ok((context, response)) => (context, Ok(response)),
            Err(error) => (ResponseContext::default(), Err(error)),
        };
        if let Some(table) = self.preparing.take() {
            return match response {
                Ok(Response::Prepared(prepared)) => {
                    self.log.inserts.remember(&table, &prepared.id);
                    self.ask()
                }
                _ => self.give_up(&format!("{:?}", frame.header.opcode)),
            };
        }
        let error = match &response {
            Ok(Response::Error(error)) => Some(error),
            _ => None,
        };
        if let Some(ErrorKind::Unprepared { id }) = error.map(|error| &error.kind)
            && self.unprepared < UNPREPARED_MAX
            && self.forget(id)
        {
            self.unprepared += 1;
            return self.ask();
        }
        match self.stage.clone() {
            Stage::Together => {
                if error.is_some_and(|error| error.message.contains(TOO_LARGE)) {
                    self.stage = Stage::Before(0);
                    return self.ask();
                }
                if error.is_some_and(|error| of_batch_log(&error.kind)) {
                    self.log.batch_log.timed_out();
                    // What one node may have of it is played one day, with its earlier time.
                    if !self.asked.wants_batch_log() && self.asked.is_repeatable {
                        self.stage = Stage::Before(0);
                        return self.ask();
                    }
                }
                match response {
                    Ok(response) if self.asked.sent.is_none() => {
                        without_size_warning(context, &response, compression)
                    }
                    _ => Next::Answer,
                }
            }
            Stage::Before(_) | Stage::After(..) if frame.header.opcode == Opcode::Error => {
                let reason = error.map_or("an error", |error| &error.message);
                let reason = reason.to_owned();
                self.give_up(&reason)
            }
            Stage::Before(done) => {
                let done = done + self.rows_at(done).len();
                self.stage = match done < self.asked.hints.len() {
                    true => Stage::Before(done),
                    false => Stage::Alone,
                };
                self.ask()
            }
            Stage::Alone => {
                if response.as_ref().is_ok_and(nothing_was_written) {
                    return Next::Answer;
                }
                let answer = [&frame.header.to_bytes()[..], &frame.body].concat();
                self.stage = Stage::After(0, answer.into());
                self.ask()
            }
            Stage::After(done, answer) => {
                let done = done + self.rows_at(done).len();
                if done == self.asked.hints.len() {
                    return Next::AnswerWith(answer);
                }
                self.stage = Stage::After(done, answer);
                self.ask()
            }
        }
    }

    /// A log row could not be written. Before the client's write that is the answer; after it the
    /// first log rows stand in for the second.
    fn give_up(self, reason: &str) -> Next {
        match self.stage {
            Stage::After(_, answer) => {
                tracing::warn!(
                    reason,
                    "a log row after a write failed: the write is seen later by the one before it"
                );
                Next::AnswerWith(answer)
            }
            _ => Next::Answer,
        }
    }

    fn ask(mut self) -> Next {
        let frame = self.request();
        Next::Ask(frame, Box::new(self))
    }

    /// The next request: that of the stage, or the PREPARE of what it needs.
    fn request(&mut self) -> Bytes {
        let hints = match &self.stage {
            Stage::Together => &self.asked.hints[..],
            Stage::Before(done) | Stage::After(done, _) => self.rows_at(*done),
            Stage::Alone => return self.asked.alone.clone(),
        };
        let unknown = hints
            .iter()
            .find(|hint| self.log.inserts.id(&hint.table).is_none());
        if let Some(hint) = unknown {
            let table = hint.table.clone();
            let prepare = Request::Prepare {
                statement: inserts::text(&table),
            };
            self.preparing = Some(table);
            return self.frame(&prepare, Flags::default(), &[]);
        }
        let rows = log_rows(hints, &self.log.clock);
        let rows = rows.into_iter().map(|row| self.statement(row));
        match (&self.stage, &self.asked.batch) {
            (Stage::Together, Some(batch)) => {
                let mut batch = batch.clone();
                batch.kind = BatchKind::Logged;
                batch.statements.extend(rows);
                let request = Request::Batch(batch);
                self.frame(&request, self.asked.flags, &self.asked.payload)
            }
            _ => {
                let request = Request::Batch(Batch {
                    kind: BatchKind::Unlogged,
                    statements: rows.collect(),
                    // With ANY it may lie where no reader finds it.
                    consistency: match self.asked.consistency {
                        Consistency::Any => Consistency::One,
                        level => level,
                    },
                    serial_consistency: None,
                    timestamp: None,
                });
                self.frame(&request, Flags::default(), &[])
            }
        }
    }

    /// The hints that go in one request, from that one on.
    fn rows_at(&self, done: usize) -> &[Hint] {
        let rest = &self.asked.hints[done..];
        &rest[..rest.len().min(ROWS_IN_A_REQUEST)]
    }

    fn statement(&self, row: LogRow) -> BatchStatement {
        // Another connection may have been told meanwhile that the node has forgotten it; then its text does.
        let statement = match self.log.inserts.id(&row.table) {
            Some(id) => BatchedStatement::Prepared(id),
            None => BatchedStatement::Text(inserts::text(&row.table)),
        };
        BatchStatement {
            statement,
            values: row.values,
        }
    }

    /// Forgets the INSERT of log rows that has this id; false if it is none of this errand's.
    fn forget(&self, id: &[u8]) -> bool {
        let of_ours = self.asked.hints.iter().find(|hint| {
            self.log
                .inserts
                .id(&hint.table)
                .is_some_and(|ours| ours == id)
        });
        match of_ours {
            Some(hint) => {
                self.log.inserts.forget(&hint.table);
                true
            }
            None => false,
        }
    }

    fn frame(&self, request: &Request, flags: Flags, payload: &[u8]) -> Bytes {
        encode(request, self.asked.stream, flags, payload)
    }
}

/// A request as a frame with these flags and a custom payload as it came.
pub(super) fn encode(request: &Request, stream: i16, flags: Flags, payload: &[u8]) -> Bytes {
    const FLAGS_AT: usize = 1;
    const LENGTH_AT: usize = 5;
    let mut plain = BytesMut::new();
    request.encode(stream, None, &mut plain);
    let mut frame = BytesMut::with_capacity(plain.len() + payload.len());
    frame.extend_from_slice(&plain[..HEADER_LENGTH]);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&plain[HEADER_LENGTH..]);
    let length = u32::try_from(frame.len() - HEADER_LENGTH).expect("bug: a frame beyond 4 GiB");
    frame[FLAGS_AT] = flags.0;
    frame[LENGTH_AT..HEADER_LENGTH].copy_from_slice(&length.to_be_bytes());
    frame.freeze()
}

/// The answer to a statement that went as a batch, without the warning that it would not have had alone.
fn without_size_warning(
    mut context: ResponseContext,
    response: &Response,
    compression: Option<Compression>,
) -> Next {
    let given = context.warnings.len();
    context
        .warnings
        .retain(|warning| !warning.starts_with(SIZE_WARNING));
    if context.warnings.len() == given {
        return Next::Answer;
    }
    let mut frame = BytesMut::new();
    response.encode(&context, compression, &mut frame);
    Next::AnswerWith(frame.freeze())
}

/// Whether an error says that a batch was not begun, as the batch log did not answer in time.
fn of_batch_log(error: &ErrorKind) -> bool {
    matches!(error, ErrorKind::WriteTimeout { write_type, .. } if *write_type == "BATCH_LOG")
}

/// Whether an answer says for certain that nothing was written.
pub(crate) fn nothing_was_written(response: &Response) -> bool {
    match response {
        Response::Error(error) => matches!(
            error.kind,
            ErrorKind::Unprepared { .. }
                | ErrorKind::SyntaxError
                | ErrorKind::Invalid
                | ErrorKind::Unauthorized
                | ErrorKind::ConfigError
                | ErrorKind::ProtocolError
                | ErrorKind::Unavailable { .. }
        ),
        // The answer to a condition: `[applied]` is its first column.
        Response::Rows(rows) => rows.decode().is_ok_and(|decoded| {
            let applied = decoded.rows.first().and_then(|row| row.first());
            matches!(applied, Some(Some(cell)) if cell[..] == [0])
        }),
        _ => false,
    }
}
