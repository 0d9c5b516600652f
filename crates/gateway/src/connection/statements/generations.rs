//! The question which generations of streams there are. Its answer seldom changes, so it is cached
//! for all clients.

use bytes::Bytes;
use cql::wire::{Frame, FrameHeader};

use crate::connection::awaited::Awaited;
use crate::connection::context::Context;
use crate::connection::reply::Reply;
use crate::connection::route::Route;
use crate::connection::work::{Job, Work};
use crate::kept_answers::Question;
use crate::writes::ClientRequest;

/// Decides the way of an EXECUTE: answers from memory, or passes it and keeps the answer.
pub(super) fn route(context: &Context, request: &ClientRequest) -> Route {
    let ClientRequest { header, body, .. } = request;
    let question = Question::new(body, header, context.session.compression());
    if let Some(frame) = context.kept_answers.get(&question) {
        return Route::Begin(Work {
            stream: header.stream,
            traced: false,
            job: Job::Repeat(frame),
        });
    }
    let awaited = Awaited::Kept(question);
    context.session.await_response(header.stream, awaited);
    Route::Pass
}

/// Keeps the node's answer.
pub(super) fn reply(
    context: &Context,
    header: &FrameHeader,
    body: &[u8],
    question: Question,
) -> Reply {
    let frame = Frame {
        header: *header,
        body: Bytes::copy_from_slice(body),
    };
    context.kept_answers.keep(question, frame);
    Reply::Keep
}
