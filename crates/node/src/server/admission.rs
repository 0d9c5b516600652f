//! Admission: a bound on the number of requests that a listener and a connection work on at once.
//!
//! A request beyond the bound is answered Overloaded at once, which costs next to nothing, so the
//! client can go elsewhere or come back later. The bytes of requests are charged to the client's
//! [`MemoryAccount`].

use std::sync::Arc;

use client_memory::{MemoryAccount, MemoryCharge, NoRoom};
use cql::wire::{Compression, Frame, FrameFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The requests that a listener may still take on.
pub(super) struct RequestLimiter {
    requests: Arc<Semaphore>,
}

/// The right to work on a request. It is given back when this is dropped.
pub(super) struct RequestPermit {
    _of_listener: OwnedSemaphorePermit,
    _of_connection: OwnedSemaphorePermit,
}

impl RequestLimiter {
    /// The admission of a listener that works on at most `requests_max` requests at once.
    pub fn new(requests_max: usize) -> Self {
        RequestLimiter {
            requests: semaphore(requests_max),
        }
    }

    /// Takes a request on; `None` if the listener or the connection has too many requests.
    pub fn admit(&self, of_connection: &Arc<Semaphore>) -> Option<RequestPermit> {
        Some(RequestPermit {
            _of_connection: of_connection.clone().try_acquire_owned().ok()?,
            _of_listener: self.requests.clone().try_acquire_owned().ok()?,
        })
    }
}

/// Charges memory for the decompressed form of a body. It is needed at once, and only until the
/// request is done.
///
/// # Errors
/// If there is no room now. It does not wait for room, since waiting while it holds a frame could
/// last for ever.
pub(super) fn charge_plain(
    account: &MemoryAccount,
    frame: &Frame,
    compression: Option<Compression>,
) -> Result<MemoryCharge, NoRoom> {
    let mut charge = account.charge();
    if frame.header.flags.contains(FrameFlags::COMPRESSION)
        && let Some(compression) = compression
    {
        charge.resize(stated_length(compression, &frame.body))?;
    }
    Ok(charge)
}

/// A semaphore of this many permits, or of the most that a semaphore can have.
pub(super) fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
}

/// The decompressed length that a compressed body states. It is 0 if the length can't be read:
/// decompression will refuse such a body.
fn stated_length(compression: Compression, body: &[u8]) -> usize {
    match compression {
        Compression::Lz4 => body
            .first_chunk()
            .map_or(0, |length| u32::from_be_bytes(*length) as usize),
        Compression::Snappy => {
            let mut length: u64 = 0;
            for (position, byte) in body.iter().take(5).enumerate() {
                length |= u64::from(byte & 0x7f) << (7 * position);
                if byte & 0x80 == 0 {
                    return usize::try_from(length).unwrap_or(usize::MAX);
                }
            }
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use client_memory::MemoryBudget;
    use cql::wire::{FrameDecoder, FrameDirection, QueryParameters, Request};

    use super::*;

    fn frame(text_length: usize, compression: Option<Compression>) -> Frame {
        let mut bytes = BytesMut::new();
        Request::Query {
            statement: "x".repeat(text_length),
            parameters: QueryParameters::default(),
        }
        .encode(1, compression, &mut bytes);
        let mut decoder = FrameDecoder::new(FrameDirection::Request, 1 << 30);
        decoder.decode(&mut bytes).unwrap().unwrap()
    }

    #[test]
    fn requests_are_admitted_up_to_both_limits() {
        let admission = RequestLimiter::new(2);
        let connection = semaphore(1);
        let other = semaphore(5);
        let first = admission.admit(&connection);
        assert!(first.is_some());
        assert!(admission.admit(&connection).is_none(), "the connection's");
        let _second = admission.admit(&other).unwrap();
        assert!(admission.admit(&other).is_none(), "the listener's");
        drop(first);
        assert!(admission.admit(&connection).is_some());
    }

    #[test]
    fn the_stated_length_of_a_compressed_body_is_charged() {
        for compression in Compression::EVERY {
            let account = MemoryBudget::new(3 << 20).client().unwrap();
            let large = frame(900 << 10, Some(compression));
            assert!(stated_length(compression, &large.body) > 900 << 10);
            let held = charge_plain(&account, &large, Some(compression)).unwrap();
            assert!(held.bytes() > 900 << 10);
            assert!(charge_plain(&account, &large, Some(compression)).is_err());
            drop(held);
            assert!(charge_plain(&account, &large, Some(compression)).is_ok());
        }
    }

    #[test]
    fn a_broken_claim_counts_as_nothing() {
        for compression in Compression::EVERY {
            assert_eq!(stated_length(compression, &Bytes::new()), 0);
            assert_eq!(stated_length(compression, &[0x80, 0x80, 0x80]), 0);
        }
        assert_eq!(stated_length(Compression::Snappy, &[0xff; 9]), 0);
    }
}
