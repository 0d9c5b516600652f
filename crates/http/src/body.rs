//! Reads the bodies of requests: within a time, up to a number of bytes, and out of one budget.

use std::pin::{Pin, pin};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Bytes, HttpBody};
use bytes::BytesMut;
use client_memory::{MemoryBudget, MemoryCharge};
use http_body_util::BodyExt;
use net::sockets::{LINGER, LINGER_BYTES};

use crate::refusal::RequestRefusal;

/// The bounds of the bodies of a listener.
pub struct BodyLimits {
    /// The budget of bytes of bodies that are on their way.
    budget: MemoryBudget,
    /// The most bytes that a body may have.
    bytes_max: usize,
    /// The longest time that a body may take to arrive.
    within: Duration,
}

/// A body that has arrived whole.
pub struct ReceivedBody {
    /// Its bytes.
    pub bytes: Bytes,
    /// The charge for them; `None` if they came at once.
    pub charge: Option<MemoryCharge>,
}

impl BodyLimits {
    /// Bounds by which a body has `bytes_max` bytes at most and arrives `within` this time. All
    /// bodies that are on their way have `budget_bytes` bytes at most.
    pub fn new(budget_bytes: usize, bytes_max: usize, within: Duration) -> BodyLimits {
        BodyLimits {
            budget: MemoryBudget::new(budget_bytes),
            bytes_max,
            within,
        }
    }

    /// Reads a whole body.
    ///
    /// # Errors
    /// If it breaks off, is too long or too slow, or there is no room for it.
    pub async fn read<B>(&self, body: B) -> Result<ReceivedBody, RequestRefusal>
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
    {
        self.read_up_to(self.bytes_max, body).await
    }

    /// Reads a whole body of a request that may be longer than others: it has `bytes_max` bytes at
    /// most, out of the same budget.
    ///
    /// # Errors
    /// If it breaks off, is too long or too slow, or there is no room for it.
    pub async fn read_up_to<B>(
        &self,
        bytes_max: usize,
        body: B,
    ) -> Result<ReceivedBody, RequestRefusal>
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
    {
        let mut body = pin!(body);
        let received = self.collect(bytes_max, body.as_mut());
        let received = tokio::time::timeout(self.within, received);
        let received = received.await.unwrap_or(Err(RequestRefusal::SlowBody));
        if matches!(received, Err(RequestRefusal::LongBody { .. })) {
            drop_rest(body).await;
        }
        received
    }

    /// Reads the whole body. A body that comes in pieces is charged as they come.
    async fn collect<B>(
        &self,
        bytes_max: usize,
        mut body: Pin<&mut B>,
    ) -> Result<ReceivedBody, RequestRefusal>
    where
        B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
    {
        let mut pieces: Option<(BytesMut, MemoryCharge)> = None;
        while let Some(frame) = body.as_mut().frame().await {
            let frame = frame.map_err(|error| {
                let error: BoxError = error.into();
                RequestRefusal::BrokenBody(error.to_string())
            })?;
            let Ok(piece) = frame.into_data() else {
                continue;
            };
            let before = pieces.as_ref().map_or(0, |(bytes, _)| bytes.len());
            let length = before + piece.len();
            if length > bytes_max {
                return Err(RequestRefusal::LongBody { bytes_max });
            }
            if pieces.is_none() && body.is_end_stream() {
                return Ok(ReceivedBody {
                    bytes: piece,
                    charge: None,
                });
            }
            let (mut bytes, mut charge) = match pieces.take() {
                Some(pieces) => pieces,
                None => {
                    let client = self.budget.client();
                    let client = client.map_err(|_| RequestRefusal::BodiesWait)?;
                    (BytesMut::new(), client.charge())
                }
            };
            let resized = charge.resize(length);
            resized.map_err(|_| RequestRefusal::BodiesWait)?;
            bytes.extend_from_slice(&piece);
            pieces = Some((bytes, charge));
        }
        let (bytes, charge) = pieces.unzip();
        Ok(ReceivedBody {
            bytes: bytes.map_or_else(Bytes::new, BytesMut::freeze),
            charge,
        })
    }
}

/// Reads the rest of a body that is refused and drops it, so that the client gets the answer: a
/// connection that is closed with unread bytes in it is reset. Ends at the bounds for such reading.
async fn drop_rest<B>(mut body: Pin<&mut B>)
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>>,
{
    let reading = async {
        let mut dropped = 0;
        while dropped < LINGER_BYTES
            && let Some(Ok(frame)) = body.as_mut().frame().await
        {
            dropped += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
    };
    let _ = tokio::time::timeout(LINGER, reading).await;
}
