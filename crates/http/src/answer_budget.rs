//! Limits the bytes of answers that wait for clients to take them.
//!
//! The admissions bound the memory of a search only until its work ends. The answer is in memory
//! until the client has taken it. A client may be slow: HTTP/2 lets it request hundreds of answers
//! and take none. So every answer of a listener takes its bytes from one budget. It gives them back
//! when they were passed to the system, or when the connection ends.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use bytes::Buf;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::refusal::RequestRefusal;

/// The unit in which the budget counts. Counted in bytes, a large budget would not fit into the 32
/// bits of a semaphore's request.
const UNIT_BYTES: u64 = 1024;

/// The room for answers of a listener. Cheap to clone; clones share it.
#[derive(Clone)]
pub(crate) struct AnswerBudget {
    units: Arc<Semaphore>,
    units_max: u32,
}

impl AnswerBudget {
    /// A budget of `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> AnswerBudget {
        let units_max = units(bytes as u64);
        AnswerBudget {
            units: Arc::new(Semaphore::new(units_max as usize)),
            units_max,
        }
    }

    /// Charges an answer to the budget until its bytes have been sent. Without room for it, the
    /// result is an answer that says so (503). An answer that is larger than the whole budget takes
    /// all of it.
    pub(crate) fn charge(&self, answer: Response) -> Response<ChargedBody> {
        let body = answer.body().size_hint();
        let bytes = body.exact().unwrap_or(body.lower());
        if bytes == 0 {
            return answer.map(ChargedBody::free);
        }
        let units = units(bytes).min(self.units_max);
        match self.units.clone().try_acquire_many_owned(units) {
            Ok(charge) => answer.map(|body| ChargedBody {
                body,
                charge: Some(charge),
            }),
            Err(_) => RequestRefusal::AnswersWait
                .into_response()
                .map(ChargedBody::free),
        }
    }
}

fn units(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// The body of an answer that has been charged for.
pub(crate) struct ChargedBody {
    body: Body,
    charge: Option<OwnedSemaphorePermit>,
}

impl ChargedBody {
    fn free(body: Body) -> ChargedBody {
        ChargedBody { body, charge: None }
    }
}

impl HttpBody for ChargedBody {
    type Data = ChargedBytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<ChargedBytes>, axum::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        // The connection drops a body that has ended, but keeps the bytes that it has not yet sent.
        // So the last bytes carry the charge.
        let charge = match self.body.is_end_stream() {
            true => self.charge.take(),
            false => None,
        };
        Poll::Ready(frame.map(|frame| {
            frame.map(|frame| {
                frame.map_data(|bytes| ChargedBytes {
                    bytes,
                    _charge: charge,
                })
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes of an answer that are being sent.
pub(crate) struct ChargedBytes {
    bytes: Bytes,
    _charge: Option<OwnedSemaphorePermit>,
}

impl Buf for ChargedBytes {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::http::header::RETRY_AFTER;
    use http_body_util::BodyExt;

    use super::*;

    fn answer(bytes: usize) -> Response {
        vec![7; bytes].into_response()
    }

    #[tokio::test]
    async fn answers_take_room_until_their_bytes_are_gone() {
        let budget = AnswerBudget::new(4096);
        let mut first = budget.charge(answer(3000));
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.body().size_hint().exact(), Some(3000));
        assert_eq!(budget.charge(answer(1024)).status(), StatusCode::OK);
        assert_eq!(budget.charge(answer(0)).status(), StatusCode::OK);
        let held = budget.charge(answer(1024));
        let refused = budget.charge(answer(1025));
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.headers().contains_key(RETRY_AFTER));
        drop(held);
        let frame = first.body_mut().frame().await.unwrap().unwrap();
        let mut sent = frame.into_data().unwrap_or_else(|_| panic!("data"));
        drop(first);
        assert_eq!(
            budget.charge(answer(3000)).status(),
            StatusCode::SERVICE_UNAVAILABLE,
            "the connection has let go of the body, and still holds the bytes"
        );
        assert_eq!(sent.copy_to_bytes(3000), vec![7; 3000]);
        drop(sent);
        assert_eq!(budget.charge(answer(3000)).status(), StatusCode::OK);
    }

    #[test]
    fn one_beyond_the_budget_has_it_alone() {
        let budget = AnswerBudget::new(4096);
        let large = budget.charge(answer(1 << 20));
        assert_eq!(large.status(), StatusCode::OK);
        let refused = budget.charge(answer(1));
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(large);
        assert_eq!(budget.charge(answer(1)).status(), StatusCode::OK);
    }
}
