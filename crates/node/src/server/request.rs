//! One request with a statement: read from its frame, answered by the service, encoded. A bug on
//! the way fails only this request.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use client_memory::{MemoryAccount, MemoryCharge, NoRoom};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{Frame, FrameFlags, Request, Response, ResponseContext, SegmentForm};
use futures::FutureExt;

use super::framing::Framing;
use super::outbox::{EncodedResponse, encode};
use super::service::{CqlService, ShedReason};
use super::shared::ListenerState;

/// Rows up to this many bytes are compressed without a charge for the memory that compression
/// takes.
const COMPRESSED_UNCHARGED_BYTES: usize = 1 << 20;

/// The bytes that a request is charged for the futures of the work on it, from its beginning to its
/// end. A future holds all that it may ever hold, so what is large and rare is boxed.
const WORK_BYTES: usize = SERVICE_BYTES + KIND_BYTES;
/// The longest future of a service, in bytes.
const SERVICE_BYTES: usize = 3 << 9;
/// The longest future of the work on one kind of request, which a service boxes, in bytes.
pub(crate) const KIND_BYTES: usize = 16 << 8;

/// The parts of a connection that its requests need.
pub(super) struct ConnectionContext<S: CqlService> {
    pub session: Arc<S::Session>,
    pub account: MemoryAccount,
    pub framing: Framing,
}

/// The frame with the answer to a request. `charge` is the charge for the request's frame.
pub(super) async fn answer<S: CqlService>(
    shared: &ListenerState<S>,
    of: &ConnectionContext<S>,
    frame: Frame,
    charge: MemoryCharge,
) -> EncodedResponse {
    let context = ResponseContext::new(frame.header.stream).at(of.framing.version);
    let answer = AssertUnwindSafe(execute_request(shared, of, frame, charge));
    match answer.catch_unwind().await {
        Ok(frame) => frame,
        Err(panic) => {
            shared.counters.panics.add(1);
            shared.counters.requests_failed.add(1);
            let error = bug(&*panic);
            encode(&Response::Error(error), &context, None)
        }
    }
}

async fn execute_request<S: CqlService>(
    shared: &ListenerState<S>,
    of: &ConnectionContext<S>,
    frame: Frame,
    mut charge: MemoryCharge,
) -> EncodedResponse {
    let framing = of.framing;
    let mut context = ResponseContext::new(frame.header.stream).at(framing.version);
    let traced = frame.header.flags.contains(FrameFlags::TRACING);
    let limit = shared.options.connection.frame_body_max;
    let request = Request::decode(&frame, framing.frames, limit);
    drop(frame);
    let mut rows = None;
    let room = charge.resize(charge.bytes() + WORK_BYTES);
    let answer = match request {
        Ok(_) if room.is_err() => {
            shared.service.shed(ShedReason::Memory);
            Err(memory_error("this request"))
        }
        Ok(request) => {
            let service = &shared.service;
            let trace = traced.then(|| service.begin_trace(&of.session, &request, &of.account));
            // In an allocation of its own, so that a request that waits for its turn takes little.
            let answer = Box::pin(service.answer(&of.session, request, &of.account));
            debug_assert!(size_of_val(&*answer) <= SERVICE_BYTES);
            match trace.flatten() {
                None => answer.await,
                Some(trace) => {
                    let answer = trace.scope(answer).await;
                    service.keep_trace(&trace);
                    context.tracing_id = Some(trace.id());
                    answer
                }
            }
        }
        Err(error) => Err(error.into()),
    };
    let response = match answer {
        Ok(reply) => {
            context.warnings = reply.warnings;
            rows = reply.charge;
            reply.response
        }
        Err(error) => {
            shared.counters.requests_failed.add(1);
            if error.kind == ErrorKind::Overloaded {
                shared.counters.requests_overloaded.add(1);
            }
            Response::Error(error)
        }
    };
    let stream = context.stream;
    encoded(response, &context, framing, charge, rows).unwrap_or_else(|NoRoom| {
        shared.counters.requests_failed.add(1);
        shared.counters.requests_overloaded.add(1);
        shared.service.shed(ShedReason::AnswerMemory);
        let error = memory_error("this answer, as others are not read yet");
        let context = ResponseContext::new(stream).at(framing.version);
        encode(&Response::Error(error), &context, None)
    })
}

/// Encodes the response and charges its frame.
fn encoded(
    response: Response,
    context: &ResponseContext,
    framing: Framing,
    mut charge: MemoryCharge,
    mut rows: Option<MemoryCharge>,
) -> Result<EncodedResponse, NoRoom> {
    let is_compressed = framing.frames.is_some() || framing.segments == Some(SegmentForm::Lz4);
    if is_compressed {
        // The rows are copied to be compressed. They are dropped afterwards.
        let bytes = rows.as_ref().map_or(0, MemoryCharge::bytes);
        if bytes > COMPRESSED_UNCHARGED_BYTES {
            charge.resize(2 * bytes)?;
        }
    }
    let frame = encode(&response, context, framing.frames).within(framing.segments);
    drop(response);
    if is_compressed {
        rows = None;
    }
    frame.charged(charge, rows)
}

fn memory_error(what: &str) -> CqlError {
    let message = format!("Overloaded: there is no memory for {what}");
    CqlError::new(ErrorKind::Overloaded, message)
}

fn bug(panic: &(dyn Any + Send)) -> CqlError {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    tracing::error!(panic = message, "a request ran into a bug");
    CqlError::server(format!("Internal error: {message}"))
}
