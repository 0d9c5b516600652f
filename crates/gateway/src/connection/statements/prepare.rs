//! PREPARE, of any kind of statement.

use bytes::{BufMut, Bytes, BytesMut};
use cql::error::CqlError;
use cql::wire::{DecodeError, FrameFlags, FrameHeader, HEADER_LENGTH, Response, glance};

use crate::connection::context::DecisionContext;
use crate::connection::pending_response::PendingResponse;
use crate::connection::reply::ResponseAction;
use crate::connection::route::RequestAction;
use crate::dependencies::StatementDependencies;
use crate::prepared::check_text;
use crate::statement::{ClassifiedStatement, StatementText};
use crate::writes::ClientRequest;

/// Decides the way of a PREPARE. Its answer is read, whatever the kind of the statement.
/// `rewritten` is the text that goes to the node in place of the client's.
///
/// # Errors
/// If the text is too long for the statement to be remembered.
pub(in crate::connection) fn route(
    context: &DecisionContext,
    request: &ClientRequest,
    text: &StatementText,
    statement: ClassifiedStatement,
    rewritten: Option<String>,
) -> Result<RequestAction, CqlError> {
    let text_bytes = text.text.len();
    if statement.grows_with_its_text() {
        check_text(text_bytes)?;
    }
    let (verb, snapshot) = (text.verb, request.snapshot);
    let awaited = PendingResponse::Prepared {
        dependencies: StatementDependencies::of(verb, text.text, request.keyspace, snapshot),
        statement,
        text_bytes,
    };
    context
        .session
        .await_response(request.header.stream, awaited);
    Ok(match rewritten {
        Some(rewritten) => with_text(request, text.text, &rewritten),
        None => RequestAction::Pass,
    })
}

/// Remembers the id that the node gave a statement, with what its answer reports.
///
/// # Errors
/// If the id cannot be read.
pub(super) fn reply(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    (dependencies, statement, text_bytes): (StatementDependencies, ClassifiedStatement, usize),
) -> Result<ResponseAction, DecodeError> {
    let mut scratch = Bytes::new();
    let plain = context.session.plain(header, body, &mut scratch)?;
    let Some(id) = glance::prepared_id(header.flags, plain)? else {
        return Ok(ResponseAction::Keep);
    };
    let statement = statement.prepared(|| match context.decode(header, body) {
        Ok((_, Response::Prepared(answer))) => Some(answer),
        _ => None,
    });
    let made_of = text_bytes + plain.len();
    context
        .prepared
        .insert(id, dependencies, statement, made_of);
    Ok(ResponseAction::Keep)
}

/// Sends a QUERY or PREPARE to the node with another text, without compression. `text` must be a
/// part of the request's body.
pub(in crate::connection) fn with_text(
    request: &ClientRequest,
    text: &[u8],
    rewritten: &str,
) -> RequestAction {
    RequestAction::Replace(frame_with_text(
        request.header,
        request.plain,
        text,
        rewritten,
    ))
}

fn frame_with_text(header: &FrameHeader, plain: &[u8], text: &[u8], rewritten: &str) -> Bytes {
    const LENGTH_BYTES: usize = 4;
    // The text is within the body, after its length.
    let text_at = text.as_ptr().addr() - plain.as_ptr().addr();
    let length = plain.len() - text.len() + rewritten.len();
    let mut frame = BytesMut::with_capacity(HEADER_LENGTH + length);
    frame.put_u8(header.version.number());
    frame.put_u8(header.flags.0 & !FrameFlags::COMPRESSION.0);
    frame.put_i16(header.stream);
    frame.put_u8(header.opcode.code());
    frame.put_u32(length as u32);
    frame.put_slice(&plain[..text_at - LENGTH_BYTES]);
    frame.put_u32(rewritten.len() as u32);
    frame.put_slice(rewritten.as_bytes());
    frame.put_slice(&plain[text_at + text.len()..]);
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use cql::wire::{Frame, FrameDirection, QueryParameters, Request};

    use super::*;

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
        let header = FrameHeader::read(&frame, FrameDirection::Request, limit);
        let header = header.unwrap().unwrap();
        let plain = &frame[HEADER_LENGTH..];
        let text = glance::statement_text(header.flags, plain).unwrap();
        let told = frame_with_text(&header, plain, text, "SELECT another");
        let told_header = FrameHeader::read(&told, FrameDirection::Request, limit);
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
