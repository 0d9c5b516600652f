//! One statement: read from its frame, answered by the service, encoded. A bug on the way fails it alone.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use cql::error::CqlError;
use cql::wire::{Compression, Flags, Frame, Request, Response, ResponseContext};
use futures::FutureExt;

use super::listener::Shared;
use super::outbox::{Encoded, encode};
use super::service::{Reply, Service};

const TRACING_WARNING: &str = "Tracing is not supported: the request was executed without a trace.";

/// The frame that answers a statement's frame.
pub(super) async fn answer<S: Service>(
    shared: &Shared<S>,
    session: &S::Session,
    frame: Frame,
    compression: Option<Compression>,
) -> Encoded {
    let stream = frame.header.stream;
    let answer = AssertUnwindSafe(work_out(shared, session, frame, compression));
    match answer.catch_unwind().await {
        Ok(frame) => frame,
        Err(panic) => {
            shared.counters.panics.add(1);
            shared.counters.requests_failed.add(1);
            let error = bug(&*panic);
            encode(
                &Response::Error(error),
                &ResponseContext::new(stream),
                compression,
            )
        }
    }
}

async fn work_out<S: Service>(
    shared: &Shared<S>,
    session: &S::Session,
    frame: Frame,
    compression: Option<Compression>,
) -> Encoded {
    let mut context = ResponseContext::new(frame.header.stream);
    let traced = frame.header.flags.contains(Flags::TRACING);
    let limit = shared.options.connection.frame_body_max;
    let request = Request::decode(&frame, compression, limit);
    drop(frame);
    let answer = match request {
        Ok(request) => shared.service.answer(session, request).await,
        Err(error) => Err(error.into()),
    };
    let response = match answer {
        Ok(Reply { response, warnings }) => {
            context.warnings = warnings;
            response
        }
        Err(error) => {
            shared.counters.requests_failed.add(1);
            Response::Error(error)
        }
    };
    if traced {
        context.warnings.push(TRACING_WARNING.to_owned());
    }
    encode(&response, &context, compression)
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
