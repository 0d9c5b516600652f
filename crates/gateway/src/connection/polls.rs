//! Questions that readers of change logs ask all the time. The gateway answers them itself where it
//! knows the answer, so that idle tables cost the node nothing.

use std::sync::Arc;

use cql::error::CqlError;
use cql::wire::{Flags, FrameHeader, Prepared, Request, Response};

use super::decide::Decision;
use super::neighbours::decode;
use super::requests::Requests;
use super::responses::Responses;
use super::session::Expected;
use super::work::{Job, Work};
use crate::kept_answers::Question;
use crate::overlay::log_read::{LogRead, PreparedLogRead};
use crate::prepared::Meaning;

impl Requests {
    /// Decides about the EXECUTE of a poll. It passes if the log may have rows, if the client wants
    /// something that only the node can do, or if there is no place for more work.
    pub(super) fn poll(
        &self,
        header: &FrameHeader,
        plain: &[u8],
        poll: Arc<PreparedLogRead>,
    ) -> Result<Decision, CqlError> {
        if header.flags.contains(Flags::TRACING)
            || header.flags.contains(Flags::CUSTOM_PAYLOAD)
            || !self.workshop.has_room()
        {
            return Ok(Decision::Pass);
        }
        let Request::Execute { id, parameters } = decode(header, plain)? else {
            return Ok(Decision::Pass);
        };
        let Some(from_micros) = PreparedLogRead::from_micros(&parameters) else {
            return Ok(Decision::Pass);
        };
        let LogRead { keyspace, table } = &poll.of;
        if !self.catalog.is_idle(keyspace, table, from_micros) {
            return Ok(Decision::Pass);
        }
        Ok(Decision::Begin(Work {
            stream: header.stream,
            traced: false,
            job: Job::Poll {
                poll,
                from_micros,
                id,
                parameters,
            },
        }))
    }

    /// Decides about the EXECUTE of a statement whose answer seldom changes: answers from memory,
    /// or passes it and keeps the answer.
    pub(super) fn kept_answer(&self, header: &FrameHeader, body: &[u8]) -> Decision {
        let question = Question::new(body, header.flags.0, self.session.compression());
        if let Some(frame) = self.kept_answers.get(&question) {
            return Decision::Begin(Work {
                stream: header.stream,
                traced: false,
                job: Job::Repeat(frame),
            });
        }
        self.session.expect(header.stream, Expected::Kept(question));
        Decision::Pass
    }
}

impl Responses {
    /// The meaning of a prepared poll of a log. Without the columns of its result the gateway
    /// cannot answer it, so it passes.
    pub(super) fn poll_of(&self, header: &FrameHeader, body: &[u8], of: LogRead) -> Meaning {
        match self.decode(header, body) {
            Ok((
                _,
                Response::Prepared(Prepared {
                    result: Some(columns),
                    ..
                }),
            )) => Meaning::LogRead(Arc::new(PreparedLogRead {
                of,
                columns: Arc::new(columns),
            })),
            _ => Meaning::Plain,
        }
    }
}
