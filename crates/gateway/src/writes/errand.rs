//! A write with its log rows, from the first request to the node to the answer for the client: bytes in, bytes out.
//!
//! All requests of an errand are made one after another on the client's own stream, so as the client's user and in its
//! keyspace. Two ways:
//!
//! - **Together**: one LOGGED batch of the client's statements and the log rows. Both come about or none does,
//!   whatever fails when, since the batch log plays a batch that was begun to its end.
//! - **Around**: for what cannot share a batch with another table (a condition, a batch as text) and what would be too large
//!   for one, and for a while where the [batch log](super::batch_log) does not answer. The log rows are written first, then the client's
//!   request as it came, then log rows again with a later time unless it
//!   is certain that nothing was written. The first make sure that the row is looked at once the reader of the log
//!   that stays behind (by 30 s) comes past, even if this gateway dies meanwhile; the second that it is soon.
//!
//! # Log rows that come late
//!
//! A log row has the time at which it sets out, and a reader at the heels of the present reads each time once. One that is on its way for
//! longer than a moment, as its node is stopped or slow, may come where the reader has been; the one that stays behind would find it
//! half a minute later. So whichever way they went, log rows that took [too long](super::LATE_AFTER) are written again with a later time
//! before the client has its answer: what is acknowledged is found at once. A few times at most, as a cluster that answers nothing
//! faster would only be given more to do.
//!
//! The INSERT of a log row is prepared when it is first needed and whenever the node has forgotten it; the client sees
//! nothing of it.
//!
//! # What the node refuses
//!
//! What is added to a write is decided by a snapshot that may be half a second old. A table that was dropped and made anew meanwhile
//! may have no log, or no longer that one, and the node refuses a write to which its client did nothing wrong. Such a refusal
//! is [in doubt](Next::InDoubt): the client's request may be decided anew, by a newer snapshot, from the beginning. That is safe for
//! every kind of statement, as nothing of it has been carried out:
//!
//! - *Together*: Cassandra looks at all of a batch, and asks for the permissions of all of it, before it writes any of it. So even what
//!   must not be carried out twice (`l = l + [1]`) was not carried out once.
//! - *Around*: only log rows before the write can be refused for the gateway's sake. The client's request has not gone out, so its
//!   condition was not looked at either. Log rows that were written already are hints too many. What goes around because the batch log
//!   did not answer may be written twice in any case.
//! - A *prepared* statement was understood by the old snapshot: by a newer one it is answered UNPREPARED, as it would be if it came now,
//!   and drivers prepare it again and repeat it by themselves.
//!
//! A timeout, or any other error that leaves the outcome open, is never in doubt: it is the answer.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    Batch, BatchKind, BatchStatement, BatchedStatement, Compression, Consistency, Flags, Frame,
    Opcode, Request, Response, ResponseContext,
};

use super::asked::{Asked, Origin};
use super::frames::{encode, error_frame, without_size_warning};
use super::hint::{Hint, LogRow, log_rows};
use super::verdict::{is_refusal, nothing_was_written, of_batch_log};
use super::{ChangeLog, inserts};
use crate::catalog::LoggedTable;

/// Log rows in one request when they go alone: beyond ten partitions Cassandra warns of an unlogged batch.
const ROWS_IN_A_REQUEST: usize = 10;

/// What a hint takes, with a key of a few columns.
const HINT_BYTES: usize = 256;

/// How often an errand prepares statements anew that the node says it does not know.
const UNPREPARED_MAX: u32 = 3;

/// How often log rows that come late are written again.
const AGAIN_MAX: u32 = 2;

/// What the client is told if it does so once more. Upon such an error drivers ask another gateway.
const NOT_KEPT: &str = "the node does not keep the statement by which the gateway logs writes, so this one was not carried out: \
                        try again, and see whether too many statements are prepared on the node";

/// What Cassandra says of a batch beyond `batch_size_fail_threshold`.
const TOO_LARGE: &str = "Batch too large";

/// A write under way.
#[derive(Debug)]
pub(crate) struct Errand {
    asked: Asked,
    log: Arc<ChangeLog>,
    stage: Stage,
    /// The table whose INSERT of log rows is being prepared for the stage.
    preparing: Option<Arc<LoggedTable>>,
    unprepared: u32,
    /// When the last request was made, and its log rows were given their time.
    dated: Instant,
    /// How often those of this request were written again.
    again: u32,
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
    /// The node refuses the write for what it was decided by, or so it may be: if the gateway knows better by now, the request may be
    /// decided anew, else the client gets the answer at hand.
    InDoubt(Origin),
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
            dated: Instant::now(),
            again: 0,
        }
    }

    /// The bytes that it takes beside those of the request.
    pub(crate) fn bytes(&self) -> usize {
        self.asked.hints.len() * HINT_BYTES
    }

    /// The tables that it writes to, perhaps more than once.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<LoggedTable>> {
        self.asked.hints.iter().map(|hint| &hint.table)
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
                Ok(Response::Error(error)) => self.give_up(Some(&error)),
                _ => self.give_up(None),
            };
        }
        let error = match &response {
            Ok(Response::Error(error)) => Some(error),
            _ => None,
        };
        if let Some(ErrorKind::Unprepared { id }) = error.map(|error| &error.kind)
            && self.is_own(id)
        {
            self.forget(id);
            self.unprepared += 1;
            return match self.unprepared <= UNPREPARED_MAX {
                true => self.ask(),
                false => self.not_kept(),
            };
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
                    Ok(Response::Error(error)) if is_refusal(&error) => {
                        Next::InDoubt(self.asked.origin)
                    }
                    // What may have been written is the client's to write again.
                    _ if frame.header.opcode == Opcode::Error => Next::Answer,
                    response => {
                        let shorter = match response {
                            Ok(response) if self.asked.sent.is_none() => {
                                without_size_warning(context, &response, compression)
                            }
                            _ => None,
                        };
                        if self.is_late() {
                            let answer = shorter.unwrap_or_else(|| bytes_of(frame));
                            self.stage = Stage::After(0, answer);
                            return self.ask();
                        }
                        shorter.map_or(Next::Answer, Next::AnswerWith)
                    }
                }
            }
            Stage::Before(_) | Stage::After(..) if frame.header.opcode == Opcode::Error => {
                self.give_up(error)
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
                self.stage = Stage::After(0, bytes_of(frame));
                self.ask()
            }
            Stage::After(..) if self.is_late() && self.again < AGAIN_MAX => {
                self.again += 1;
                self.ask()
            }
            Stage::After(done, answer) => {
                self.again = 0;
                let done = done + self.rows_at(done).len();
                if done == self.asked.hints.len() {
                    return Next::AnswerWith(answer);
                }
                self.stage = Stage::After(done, answer);
                self.ask()
            }
        }
    }

    /// A log row could not be written; `error` is what the node said at last, if it is one. After the client's write the first log rows
    /// stand in for the second; before it, nothing was written.
    fn give_up(self, error: Option<&CqlError>) -> Next {
        match (self.stage, error) {
            (Stage::After(_, answer), _) => {
                tracing::warn!(
                    reason = error.map_or("no error", |error| &error.message),
                    "a log row after a write failed: the write is seen later by the one before it"
                );
                Next::AnswerWith(answer)
            }
            (_, Some(error)) if is_refusal(error) => Next::InDoubt(self.asked.origin),
            _ => Next::Answer,
        }
    }

    /// The node does not know the INSERT of log rows although it was prepared several times. What it said names an id that the client
    /// never heard of.
    fn not_kept(self) -> Next {
        let error = CqlError::new(ErrorKind::Overloaded, NOT_KEPT);
        let stream = self.asked.stream;
        match self.give_up(Some(&error)) {
            Next::Answer => Next::AnswerWith(error_frame(stream, error)),
            next => next,
        }
    }

    fn ask(mut self) -> Next {
        let frame = self.request();
        Next::Ask(frame, Box::new(self))
    }

    /// The next request: that of the stage, or the PREPARE of what it needs.
    fn request(&mut self) -> Bytes {
        self.dated = Instant::now();
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

    /// Whether the log rows of the last request may have come after a reader that passed their time.
    fn is_late(&self) -> bool {
        self.dated.elapsed() >= self.log.late_after
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

    /// Whether an id that the node does not know is of a statement of the gateway's own. The client must not hear of it: it could
    /// not prepare it again.
    fn is_own(&self, id: &[u8]) -> bool {
        match (&self.stage, &self.asked.batch) {
            (Stage::Alone, _) => false,
            (Stage::Together, Some(batch)) => !batch.statements.iter().any(|item| {
                matches!(&item.statement, BatchedStatement::Prepared(of_client) if of_client == id)
            }),
            _ => true,
        }
    }

    /// Forgets the INSERTs of log rows that have this id. Another connection may have done so before.
    fn forget(&self, id: &[u8]) {
        for hint in &self.asked.hints {
            if self
                .log
                .inserts
                .id(&hint.table)
                .is_some_and(|known| known == id)
            {
                self.log.inserts.forget(&hint.table);
            }
        }
    }

    fn frame(&self, request: &Request, flags: Flags, payload: &[u8]) -> Bytes {
        encode(request, self.asked.stream, flags, payload)
    }
}

fn bytes_of(frame: &Frame) -> Bytes {
    [&frame.header.to_bytes()[..], &frame.body].concat().into()
}
