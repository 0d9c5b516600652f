//! The execution of a write with its log rows, from the first request to the node to the answer for
//! the client. It takes bytes and returns bytes.
//!
//! All requests of an execution are made one after another on the client's own stream, so they have
//! the client's user and keyspace. An execution goes one of two ways:
//!
//! - **Together**: one LOGGED batch holds the client's statements and the log rows. Both come about
//!   or neither does, whatever fails, since the batch log plays a batch that was begun to its end.
//! - **Around**: the log rows are written first, then the client's request as it came. Then log
//!   rows are written again with a later time, unless it is certain that the request wrote nothing.
//!   The first log rows make sure that the reader of the log which lags by 30 s looks at the row,
//!   even if this gateway dies meanwhile. The second ones make sure that it is looked at soon.
//!
//! A write goes around if it cannot share a batch with another table (a condition, a batch as
//! text), if it would be too large for one, and for a while when the [batch log](super::batch_log)
//! does not answer.
//!
//! The INSERT of a log row is prepared when it is first needed, and whenever the node has forgotten
//! it. The client sees nothing of that.
//!
//! # Log rows that come late
//!
//! A log row is dated when its request is made. One reader of the log follows close to the present,
//! and reads each time once. A log row that is long on its way, as its node is stopped or slow, may
//! come after that reader has passed its time. Then only the reader that lags by 30 s finds it. So
//! log rows that took [too long](super::LATE_AFTER) are written again with a later time before the
//! client is answered, whichever way the execution went. Thus an acknowledged write is found at
//! once. This is repeated a few times at most, as it would only add to the load of a cluster that
//! answers slowly.
//!
//! # Refusals by the node
//!
//! A snapshot decides which log rows go with a write, and may be half a second old. A table that
//! was dropped and recreated meanwhile may have no log, or another one. Then the node refuses a
//! write to which its client did nothing wrong. Such a refusal is [in
//! doubt](NextWriteAction::InDoubt): the client's request may be decided again from the beginning,
//! by a newer snapshot. That is safe for every kind of statement, as nothing of it has been carried
//! out:
//!
//! - *Together*: Cassandra checks all of a batch, with all permissions, before it writes any of it.
//!   So a statement that must not be carried out twice (`l = l + [1]`) was not carried out once.
//! - *Around*: only the log rows before the write can be refused because of the gateway. The
//!   client's request was not sent, so its condition was not checked either. Log rows that were
//!   already written are needless hints. A write that goes around because the batch log did not
//!   answer may be written twice in any case.
//! - A *prepared* statement was understood by the old snapshot. By a newer one it is answered
//!   UNPREPARED, as it would be if it came now. Drivers then prepare it again and repeat it by
//!   themselves.
//!
//! A timeout, or any other error that leaves the outcome open, is never in doubt. The client gets
//! it as the answer.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BatchKind, BatchRequest, BatchStatement, BatchedStatement, Compression, Consistency,
    DecodeError, Frame, FrameFlags, Opcode, Request, Response, ResponseContext,
};
use slow_statements::{ExecutedStatement, batch_text};
use uuid::Uuid;

use super::frames::{encode, without_size_warning};
use super::hint::{LogRowValues, WriteHint, log_rows};
use super::request_forms::{DecidedFrame, RequestForms, SentWrite};
use super::verdict::{is_refusal, nothing_was_written, of_batch_log};
use super::{ChangeLog, inserts};
use crate::catalog::LoggedTable;
use crate::error_frame::error_frame;

/// The number of log rows in one request without the client's write. Beyond ten partitions
/// Cassandra warns of an unlogged batch.
const ROWS_IN_A_REQUEST: usize = 10;

/// The bytes that a hint takes, with a key of a few columns. An estimate.
const HINT_BYTES: usize = 256;

/// The number of times that an execution prepares statements again because the node does not know
/// them.
const UNPREPARED_MAX: u32 = 3;

/// The number of times that the late log rows of a request are written again.
const AGAIN_MAX: u32 = 2;

/// The error that the client gets if the node forgets the statement once more. Drivers then try
/// another gateway.
const INSERT_UNPREPARED: &str = "the node does not keep the statement by which the gateway logs writes, so this one was not carried out: \
                        try again, and see whether too many statements are prepared on the node";

/// A part of Cassandra's error for a batch beyond `batch_size_fail_threshold`.
const TOO_LARGE: &str = "Batch too large";

/// A write under way.
#[derive(Debug)]
pub(crate) struct WriteExecution {
    forms: RequestForms,
    log: Arc<ChangeLog>,
    stage: WriteStage,
    /// The table whose INSERT of log rows is being prepared for the stage.
    preparing: Option<Arc<LoggedTable>>,
    /// The number of times that the node did not know a prepared INSERT of log rows.
    unprepared: u32,
    /// The time at which the last request was made and its log rows were dated.
    dated: Instant,
    /// The time of the last of these log rows, in microseconds since the epoch; `None` if the
    /// request had none.
    last_row: Option<i64>,
    /// The number of times that the log rows of the present request were written again.
    again: u32,
}

/// The kind of request that is under way.
#[derive(Clone, Debug)]
enum WriteStage {
    /// The batch of the client's statements and all log rows.
    Together,
    /// Log rows before the client's request, from this one on.
    Before(usize),
    /// The client's request, without log rows.
    WithoutLog,
    /// Log rows after the client's request, from this one on, with the answer that the client will
    /// get.
    After(usize, Bytes),
}

/// The next step of a connection for an execution.
#[derive(Debug)]
pub(crate) enum NextWriteAction {
    /// Send this frame to the node, and give its answer to the execution.
    Ask(Bytes, Box<WriteExecution>),
    /// Pass the node's answer on to the client.
    Answer,
    /// Send this frame to the client.
    AnswerWith(Bytes),
    /// Decide the request again, if the gateway has a newer snapshot. Otherwise pass the node's
    /// answer, a refusal, on to the client.
    InDoubt(DecidedFrame),
}

impl WriteExecution {
    /// Makes an execution. It goes together with its log rows if they fit in one batch and the
    /// batch log is not avoided, else around.
    pub(super) fn new(forms: RequestForms, log: Arc<ChangeLog>) -> WriteExecution {
        let fits = forms
            .batch
            .as_ref()
            .is_some_and(|batch| log.fits(batch, &forms.hints));
        // A client that sent a LOGGED batch gets one even while the batch log does not answer in
        // time.
        let avoids = !forms.wants_batch_log() && log.batch_log.is_avoided();
        WriteExecution {
            stage: if fits && !avoids {
                WriteStage::Together
            } else {
                WriteStage::Before(0)
            },
            forms,
            log,
            preparing: None,
            unprepared: 0,
            dated: Instant::now(),
            last_row: None,
            again: 0,
        }
    }

    /// The bytes that the execution takes in addition to those of the request. An estimate.
    pub(crate) fn bytes(&self) -> usize {
        self.forms.hints.len() * HINT_BYTES
    }

    /// The tables that the execution writes to. A table may come more than once.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<LoggedTable>> {
        self.forms.hints.iter().map(|hint| &hint.table)
    }

    /// The writes of a client at this address, for the log of slow statements. A batch is shown by
    /// its tables with an index.
    pub(crate) fn executed(&self, client: SocketAddr) -> ExecutedStatement<'static> {
        let keyspace = self.tables().next().map(|table| table.keyspace.clone());
        let tables = self.tables();
        let names = tables.map(|table| (table.keyspace.as_str(), table.name.as_str()));
        let text = match &self.forms.sent {
            SentWrite::Statement(text) => String::from(&**text),
            SentWrite::Batch(_) => batch_text(names),
        };
        ExecutedStatement {
            // No table shows it.
            id: Uuid::nil(),
            client,
            // The client logs in to the cluster.
            role: None,
            keyspace: keyspace.map(Cow::Owned),
            text: Cow::Owned(text),
            plan: None,
        }
    }

    /// Makes the first request. The node's answer to it goes to [`WriteExecution::answered`].
    pub(crate) fn begin(mut self) -> (Bytes, WriteExecution) {
        let frame = self.request();
        (frame, self)
    }

    /// Takes the node's answer to the last request.
    pub(crate) fn answered(
        mut self,
        frame: &Frame,
        compression: Option<Compression>,
        body_max: usize,
    ) -> NextWriteAction {
        let (context, response) = match Response::decode(frame, compression, body_max) {
            Ok((context, response)) => (context, Ok(response)),
            Err(error) => (ResponseContext::default(), Err(error)),
        };
        // The answer is to the gateway's own PREPARE, so it says nothing about the write.
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
                false => self.insert_unprepared(),
            };
        }
        // Before the client is answered, so that its next search waits for this write.
        if frame.header.opcode != Opcode::Error {
            self.note_newest();
        }
        match self.stage.clone() {
            WriteStage::Together => self.batch_answered(frame, compression, context, response),
            WriteStage::Before(_) | WriteStage::After(..)
                if frame.header.opcode == Opcode::Error =>
            {
                self.give_up(error)
            }
            WriteStage::Before(done) => {
                let done = done + self.rows_at(done).len();
                self.stage = match done < self.forms.hints.len() {
                    true => WriteStage::Before(done),
                    false => WriteStage::WithoutLog,
                };
                self.ask()
            }
            WriteStage::WithoutLog => {
                // The log rows before the request are hints to unchanged rows, which do no harm.
                if response.as_ref().is_ok_and(nothing_was_written) {
                    return NextWriteAction::Answer;
                }
                self.stage = WriteStage::After(0, bytes_of(frame));
                self.ask()
            }
            WriteStage::After(..) if self.is_late() && self.again < AGAIN_MAX => {
                self.log.metrics.log_rows_late();
                self.again += 1;
                self.ask()
            }
            WriteStage::After(done, answer) => {
                self.again = 0;
                let done = done + self.rows_at(done).len();
                if done == self.forms.hints.len() {
                    return NextWriteAction::AnswerWith(answer);
                }
                self.stage = WriteStage::After(done, answer);
                self.ask()
            }
        }
    }

    /// Notes the times of log rows that came with the client's write, or after it.
    fn note_newest(&self) {
        if let (WriteStage::Together | WriteStage::After(..), Some(micros)) =
            (&self.stage, self.last_row)
        {
            for table in self.tables() {
                self.log.newest.note(table.id, micros);
            }
        }
    }

    /// Takes the node's answer to the batch of the client's statements and all log rows.
    fn batch_answered(
        mut self,
        frame: &Frame,
        compression: Option<Compression>,
        context: ResponseContext,
        response: Result<Response, DecodeError>,
    ) -> NextWriteAction {
        let error = match &response {
            Ok(Response::Error(error)) => Some(error),
            _ => None,
        };
        // The threshold of the node may be lower than the gateway's bound, or count the cells
        // otherwise.
        if error.is_some_and(|error| error.message.contains(TOO_LARGE)) {
            self.stage = WriteStage::Before(0);
            return self.ask();
        }
        if error.is_some_and(|error| of_batch_log(&error.kind)) {
            self.log.batch_log.timed_out();
            // One node may have a part of the batch in its batch log, and plays it later, with its
            // earlier time.
            if !self.forms.wants_batch_log() && self.forms.is_repeatable {
                self.stage = WriteStage::Before(0);
                return self.ask();
            }
        }
        if error.is_some_and(is_refusal) {
            return NextWriteAction::InDoubt(self.forms.origin);
        }
        // The writes may have been carried out, so it is the client that decides whether to repeat
        // them.
        if frame.header.opcode == Opcode::Error {
            return NextWriteAction::Answer;
        }
        let shorter = match response {
            Ok(response) if matches!(self.forms.sent, SentWrite::Statement(_)) => {
                without_size_warning(context, &response, compression)
            }
            _ => None,
        };
        if self.is_late() {
            self.log.metrics.log_rows_late();
            let answer = shorter.unwrap_or_else(|| bytes_of(frame));
            self.stage = WriteStage::After(0, answer);
            return self.ask();
        }
        shorter.map_or(NextWriteAction::Answer, NextWriteAction::AnswerWith)
    }

    /// Ends the execution, as a log row could not be written. `error` is the node's answer; `None`
    /// if that was no error. After the client's write the log rows before it replace the missing
    /// one. Before the write, nothing was written.
    fn give_up(self, error: Option<&CqlError>) -> NextWriteAction {
        match (self.stage, error) {
            (WriteStage::After(_, answer), _) => {
                tracing::warn!(
                    reason = error.map_or("no error", |error| &error.message),
                    "a log row after a write could not be written: index services find the write later, by the log row before it"
                );
                NextWriteAction::AnswerWith(answer)
            }
            (_, Some(error)) if is_refusal(error) => NextWriteAction::InDoubt(self.forms.origin),
            _ => NextWriteAction::Answer,
        }
    }

    /// Ends the execution, as the node does not know the INSERT of log rows although it was
    /// prepared several times. The client does not get the node's error, which names an id that it
    /// never saw.
    fn insert_unprepared(self) -> NextWriteAction {
        let error = CqlError::new(ErrorKind::Overloaded, INSERT_UNPREPARED);
        let (version, stream) = (self.forms.version, self.forms.stream);
        match self.give_up(Some(&error)) {
            NextWriteAction::Answer => {
                NextWriteAction::AnswerWith(error_frame(version, stream, error))
            }
            next => next,
        }
    }

    fn ask(mut self) -> NextWriteAction {
        let frame = self.request();
        NextWriteAction::Ask(frame, Box::new(self))
    }

    /// Makes the next request: that of the stage, or the PREPARE that the stage needs first.
    fn request(&mut self) -> Bytes {
        // Before the rows are dated, so that no part of their way is left out.
        self.dated = Instant::now();
        self.last_row = None;
        let hints = match &self.stage {
            WriteStage::Together => &self.forms.hints[..],
            WriteStage::Before(done) | WriteStage::After(done, _) => self.rows_at(*done),
            WriteStage::WithoutLog => return self.forms.alone.clone(),
        };
        let unknown = hints
            .iter()
            .find(|hint| self.log.inserts.id(&hint.table).is_none());
        if let Some(hint) = unknown {
            let table = hint.table.clone();
            let prepare = Request::Prepare {
                statement: inserts::text(&table),
                keyspace: None,
            };
            self.preparing = Some(table);
            return self.frame(&prepare, FrameFlags::default(), &[]);
        }
        let rows = log_rows(hints, &self.log.clock);
        self.last_row = rows.iter().map(|row| row.micros).max();
        let rows = rows.into_iter().map(|row| self.statement(row));
        match (&self.stage, &self.forms.batch) {
            (WriteStage::Together, Some(batch)) => {
                let mut batch = batch.clone();
                batch.kind = BatchKind::Logged;
                batch.statements.extend(rows);
                let request = Request::Batch(batch);
                self.frame(&request, self.forms.flags, &self.forms.payload)
            }
            _ => {
                let request = Request::Batch(BatchRequest {
                    kind: BatchKind::Unlogged,
                    statements: rows.collect(),
                    // With ANY the log row may be stored where no reader finds it.
                    consistency: match self.forms.consistency {
                        Consistency::Any => Consistency::One,
                        level => level,
                    },
                    serial_consistency: None,
                    timestamp: None,
                    keyspace: None,
                    now_in_seconds: None,
                });
                self.frame(&request, FrameFlags::default(), &[])
            }
        }
    }

    /// Whether the log rows of the last request may have come after a reader had passed their time.
    fn is_late(&self) -> bool {
        self.dated.elapsed() >= self.log.late_after
    }

    /// The hints that go in one request, from the one at `done` on.
    fn rows_at(&self, done: usize) -> &[WriteHint] {
        let rest = &self.forms.hints[done..];
        &rest[..rest.len().min(ROWS_IN_A_REQUEST)]
    }

    fn statement(&self, row: LogRowValues) -> BatchStatement {
        // Another connection may have forgotten the id meanwhile. Then the text of the statement is
        // sent.
        let statement = match self.log.inserts.id(&row.table) {
            Some(id) => BatchedStatement::Prepared(id),
            None => BatchedStatement::Text(inserts::text(&row.table)),
        };
        BatchStatement {
            statement,
            values: row.values,
        }
    }

    /// Whether an id that the node does not know belongs to a statement of the gateway's own. The
    /// client must not get that error, as it could not prepare the statement again.
    fn is_own(&self, id: &[u8]) -> bool {
        match (&self.stage, &self.forms.batch) {
            (WriteStage::WithoutLog, _) => false,
            (WriteStage::Together, Some(batch)) => !batch.statements.iter().any(|item| {
                matches!(&item.statement, BatchedStatement::Prepared(of_client) if of_client == id)
            }),
            _ => true,
        }
    }

    /// Forgets the INSERTs of log rows that have this id. Another connection may have done so
    /// before.
    fn forget(&self, id: &[u8]) {
        for hint in &self.forms.hints {
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

    fn frame(&self, request: &Request, flags: FrameFlags, payload: &[u8]) -> Bytes {
        let RequestForms {
            version, stream, ..
        } = self.forms;
        encode(request, version, stream, flags, payload)
    }
}

fn bytes_of(frame: &Frame) -> Bytes {
    [&frame.header.to_bytes()[..], &frame.body].concat().into()
}
