//! The question which generations of streams there are. Its answer seldom changes, so it is cached
//! for all clients.

use bytes::Bytes;
use cql::wire::{Frame, FrameHeader};

use crate::answer_cache::RequestCacheKey;
use crate::connection::background_requests::{DeferredJob, DeferredRequest};
use crate::connection::context::DecisionContext;
use crate::connection::pending_response::PendingResponse;
use crate::connection::reply::ResponseAction;
use crate::connection::route::RequestAction;
use crate::writes::ClientRequest;

/// Decides the way of an EXECUTE: answers from memory, or passes it and keeps the answer.
pub(super) fn route(context: &DecisionContext, request: &ClientRequest) -> RequestAction {
    let ClientRequest { header, body, .. } = request;
    let question = RequestCacheKey::new(body, header, context.session.compression());
    if let Some(frame) = context.answer_cache.get(&question) {
        return RequestAction::Begin(DeferredRequest {
            stream: header.stream,
            traced: false,
            job: DeferredJob::Repeat(frame),
        });
    }
    let awaited = PendingResponse::Kept(question);
    context.session.await_response(header.stream, awaited);
    RequestAction::Pass
}

/// Keeps the node's answer.
pub(super) fn reply(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    question: RequestCacheKey,
) -> ResponseAction {
    let frame = Frame {
        header: *header,
        body: Bytes::copy_from_slice(body),
    };
    context.answer_cache.keep(question, frame);
    ResponseAction::Keep
}
