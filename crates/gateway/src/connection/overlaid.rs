//! Statements that concern vector indexes: recognised on their way to the node, and carried out or
//! added to on the way back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    Compression, DecodeError, Flags, Frame, FrameHeader, HEADER_LENGTH, Opcode, Prepared,
    QueryParameters, Request, Response, ResponseContext, Values, glance,
};
use tokio::sync::mpsc;

use super::decide::{Decision, encode_error};
use super::requests::Requests;
use super::responses::{self, Responses};
use super::session::{Expected, Seen};
use crate::catalog::{IndexStatement, Snapshot};
use crate::overlay::log_read::LogRead;
use crate::overlay::{Answering, Concern, PreparedConcern, rewrite};
use crate::prepared::{Meaning, check_text};
use crate::recognise::Verb;

/// The time for which CREATE INDEX waits until index services serve the index. The index of a large
/// table takes longer to build; then searches get an error that says so.
const SERVED_WITHIN: Duration = Duration::from_secs(5);

/// The time after which CREATE INDEX waits no longer, counted from the beginning of its definition.
/// It is shorter than drivers wait for an answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(9);

impl Requests {
    /// Decides about the text of a QUERY or PREPARE; `None` if the text does not concern vector
    /// indexes.
    pub(super) fn overlaid_text(
        &self,
        header: &FrameHeader,
        plain: &[u8],
        verb: Verb,
        snapshot: &Snapshot,
    ) -> Result<Option<Decision>, CqlError> {
        let Some(definitions) = self.catalog.keyspace() else {
            return Ok(None);
        };
        let text = glance::statement_text(header.flags, plain)?;
        // A text that is no UTF-8 goes to the node, which says what is wrong with it.
        let Ok(text) = std::str::from_utf8(text) else {
            return Ok(None);
        };
        let prepares = header.opcode == Opcode::Prepare;
        if verb == Verb::Select
            && let Some(told) = rewrite::select(text, definitions)
        {
            if prepares {
                let seen = match LogRead::read(text) {
                    Some(poll) => Seen::LogRead(poll),
                    None if rewrite::asks_for_generations(text) => Seen::Generations,
                    None => Seen::Nothing,
                };
                self.expect_prepared(header, verb, text, seen, snapshot);
            }
            return Ok(Some(Decision::Replace(with_text(
                header, plain, text, &told,
            ))));
        }
        let keyspace = self.session.keyspace();
        let Some(concern) = Concern::of(verb, text, keyspace.as_deref(), snapshot)? else {
            return Ok(None);
        };
        if prepares {
            check_text(text.len())?;
            self.expect_prepared(header, verb, text, Seen::Concern(concern), snapshot);
            return Ok(Some(Decision::Pass));
        }
        let answering = concern.answering(&Values::Positional(Vec::new()), None, snapshot);
        Ok(Some(self.ask(header, answering)))
    }

    /// Decides about the EXECUTE of a prepared statement that concerns vector indexes.
    pub(super) fn overlaid_execute(
        &self,
        header: &FrameHeader,
        body: &[u8],
        prepared: &PreparedConcern,
        snapshot: &Snapshot,
    ) -> Result<Decision, CqlError> {
        let frame = Frame {
            header: *header,
            body: Bytes::copy_from_slice(body),
        };
        let request = Request::decode(&frame, self.session.compression(), self.session.body_max())?;
        let Request::Execute { parameters, .. } = request else {
            return Ok(Decision::Pass);
        };
        let columns = prepared.columns.as_ref();
        let concern = &prepared.concern;
        let answering = concern.answering(&parameters.values, columns, snapshot);
        Ok(self.ask(header, answering))
    }

    /// Decides which statement the node is asked first: the client's own, or a probe that shows
    /// whether the client may change the table.
    fn ask(&self, header: &FrameHeader, answering: Answering) -> Decision {
        let probe = match &answering {
            Answering::Define(statement) => Some(statement.probe()),
            Answering::Refuse(refusal) => Some(refusal.probe()),
            Answering::Indexes(_) | Answering::Describe(_) => None,
        };
        // The sender is held until the node answers, so that the other loop does not take the
        // client for one that is due no more answers.
        let answers = probe.as_ref().and_then(|_| self.session.client.answers());
        let expected = Expected::Answering(Box::new((answering, answers)));
        self.session.expect(header.stream, expected);
        probe.map_or(Decision::Pass, |statement| {
            let request = Request::Query {
                statement,
                parameters: QueryParameters::default(),
            };
            let mut frame = BytesMut::new();
            request.encode(header.stream, None, &mut frame);
            Decision::Replace(frame.freeze())
        })
    }

    /// Has the answer to a PREPARE read when it comes.
    fn expect_prepared(
        &self,
        header: &FrameHeader,
        verb: Verb,
        text: &str,
        seen: Seen,
        snapshot: &Snapshot,
    ) {
        let expected = self.expected_of_prepare(verb, text.as_bytes(), seen, snapshot);
        self.session.expect(header.stream, expected);
    }
}

impl Responses {
    /// Decides about the node's response to a statement that concerns vector indexes, or to its
    /// probe.
    pub(super) fn answer_overlaid(
        &self,
        header: &FrameHeader,
        body: &[u8],
        (answering, answers): (Answering, Option<mpsc::Sender<Bytes>>),
    ) -> Result<responses::Decision, DecodeError> {
        let (context, response) = self.decode(header, body)?;
        let told = match (&answering, response) {
            (Answering::Define(_) | Answering::Refuse(_), Response::Error(error))
                if !is_of_the_statement(&error) =>
            {
                None
            }
            (Answering::Refuse(refusal), _) => {
                const PLAIN: Option<Compression> = None;
                let mut refused = BytesMut::new();
                let context = ResponseContext::new(header.stream);
                refusal.answer.encode(&context, PLAIN, &mut refused);
                return Ok(responses::Decision::Replace(refused.freeze()));
            }
            (Answering::Define(statement), _) => {
                self.define(header.stream, statement.clone(), answers);
                return Ok(responses::Decision::Replace(Bytes::new()));
            }
            (Answering::Indexes(rows), Response::Rows(answer)) => rows.add_to(&answer)?,
            (Answering::Describe(description), Response::Rows(answer)) => {
                description.add_to(&answer, &self.catalog.snapshot())?
            }
            (Answering::Describe(description), Response::Error(error))
                if is_of_the_statement(&error) =>
            {
                description.instead(&self.catalog.snapshot())
            }
            (Answering::Indexes(_) | Answering::Describe(_), _) => None,
        };
        Ok(told.map_or(responses::Decision::Keep, |rows| {
            let mut frame = BytesMut::new();
            let compression = self.session.compression();
            Response::Rows(rows).encode(&context, compression, &mut frame);
            responses::Decision::Replace(frame.freeze())
        }))
    }

    /// Carries out a definition in a task, which answers the client once it is done.
    fn define(
        &self,
        stream: i16,
        statement: Arc<IndexStatement>,
        answers: Option<mpsc::Sender<Bytes>>,
    ) {
        // Without a sender the connection is at its end.
        let Some(answers) = answers else { return };
        let (catalog, stores) = (self.catalog.clone(), self.stores.clone());
        tokio::spawn(async move {
            let began = Instant::now();
            let answer = match catalog.define(&statement).await {
                Ok(outcome) => {
                    if let Some(index) = &outcome.created {
                        let within =
                            SERVED_WITHIN.min(ANSWERED_WITHIN.saturating_sub(began.elapsed()));
                        let version = index.version;
                        stores
                            .created_everywhere(&index.keyspace, &index.name, version, within)
                            .await;
                    }
                    const PLAIN: Option<Compression> = None;
                    let context = ResponseContext {
                        warnings: outcome.warning.into_iter().collect(),
                        ..ResponseContext::new(stream)
                    };
                    let mut frame = BytesMut::new();
                    outcome.response.encode(&context, PLAIN, &mut frame);
                    frame.freeze()
                }
                Err(error) => encode_error(stream, error),
            };
            // If the other loop has ended, the client is gone.
            let _ = answers.send(answer).await;
        });
    }

    /// The meaning of a prepared statement that concerns vector indexes.
    pub(super) fn concern(&self, header: &FrameHeader, body: &[u8], concern: Concern) -> Meaning {
        let columns = match self.decode(header, body) {
            Ok((_, Response::Prepared(Prepared { result, .. }))) => result,
            _ => None,
        };
        Meaning::Concern(Arc::new(PreparedConcern {
            concern,
            columns: columns.map(Arc::new),
        }))
    }
}

/// Whether an error is about the statement itself, and not about the client's permissions or the
/// node's state.
fn is_of_the_statement(error: &CqlError) -> bool {
    matches!(
        error.kind,
        ErrorKind::Invalid | ErrorKind::SyntaxError | ErrorKind::ConfigError
    )
}

/// Encodes a QUERY or PREPARE with another text, without compression. `text` must be a part of
/// `plain`.
fn with_text(header: &FrameHeader, plain: &[u8], text: &str, told: &str) -> Bytes {
    const LENGTH_BYTES: usize = 4;
    // The text lies within the body, after its length.
    let text_at = text.as_ptr().addr() - plain.as_ptr().addr();
    let length = plain.len() - text.len() + told.len();
    let mut frame = BytesMut::with_capacity(HEADER_LENGTH + length);
    frame.put_u8(cql::wire::VERSION);
    frame.put_u8(header.flags.0 & !Flags::COMPRESSION.0);
    frame.put_i16(header.stream);
    frame.put_u8(header.opcode.code());
    frame.put_u32(length as u32);
    frame.put_slice(&plain[..text_at - LENGTH_BYTES]);
    frame.put_u32(told.len() as u32);
    frame.put_slice(told.as_bytes());
    frame.put_slice(&plain[text_at + text.len()..]);
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use cql::wire::Direction;

    use super::super::played::{Shared, snapshot};
    use super::*;
    use crate::overlay::refusal::Refusal;

    #[tokio::test]
    async fn a_change_is_refused_unless_the_client_may_not_make_it() {
        let shared = Shared::new(snapshot());
        let told = |answer: CqlError| {
            let error = CqlError::invalid("Cannot drop column name");
            let refusal = Refusal::new("shop", "products", error);
            let mut frame = BytesMut::new();
            Response::Error(answer).encode(&ResponseContext::new(5), None, &mut frame);
            let header = FrameHeader::read(&frame, Direction::Response, 1 << 20);
            let header = header.unwrap().unwrap();
            let answering = (Answering::Refuse(Arc::new(refusal)), None);
            let responses = shared.responses();
            let decision = responses.answer_overlaid(&header, &frame[HEADER_LENGTH..], answering);
            match decision.unwrap() {
                responses::Decision::Keep => None,
                responses::Decision::Replace(told) => Some(told),
                _ => panic!("the client is not answered"),
            }
        };
        // Cassandra's answer to the probe if the client may change the table.
        let no_class = CqlError::new(
            ErrorKind::ConfigError,
            "Unable to find custom indexer class",
        );
        let refused = CqlError::invalid("Cannot drop column name");
        assert_eq!(told(no_class), Some(encode_error(5, refused)));
        let may_not = CqlError::new(ErrorKind::Unauthorized, "no ALTER permission");
        assert_eq!(told(may_not), None);
    }

    #[test]
    fn a_text_is_changed_and_all_else_stays() {
        let request = Request::Query {
            statement: "SELECT 1".to_owned(),
            parameters: QueryParameters {
                page_size: Some(7),
                ..QueryParameters::default()
            },
        };
        let mut frame = BytesMut::new();
        request.encode(5, None, &mut frame);
        let limit = 1 << 20;
        let header = FrameHeader::read(&frame, Direction::Request, limit);
        let header = header.unwrap().unwrap();
        let plain = &frame[HEADER_LENGTH..];
        let text = glance::statement_text(header.flags, plain).unwrap();
        let text = std::str::from_utf8(text).unwrap();
        let told = with_text(&header, plain, text, "SELECT another");
        let told_header = FrameHeader::read(&told, Direction::Request, limit);
        let told = Frame {
            header: told_header.unwrap().unwrap(),
            body: told.slice(HEADER_LENGTH..),
        };
        let Request::Query { parameters, .. } = request else {
            unreachable!("it is a QUERY")
        };
        assert_eq!(
            Request::decode(&told, None, limit),
            Ok(Request::Query {
                statement: "SELECT another".to_owned(),
                parameters
            })
        );
        assert_eq!(told.header.stream, 5);
    }
}
