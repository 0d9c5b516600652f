//! How much work is taken on: requests by number, and all but the smallest by their bytes too.
//!
//! A request beyond the number is answered Overloaded at once, which costs next to nothing, so that clients can go
//! elsewhere or come back. Bytes are waited for instead: a large frame stays in the socket until there is room.

use std::sync::Arc;

use cql::wire::{Compression, Flags, Frame};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Frames up to this many bytes are counted by number alone.
const SMALL_BYTES: usize = 4 << 10;

/// What one permit of the byte budget stands for.
const UNIT_BYTES: usize = 1 << 10;

/// The budget of a listener.
pub(super) struct Admission {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    /// All permits of `bytes`.
    units: u32,
}

/// The right to work on a request; given back when dropped.
pub(super) struct Admitted {
    _of_listener: OwnedSemaphorePermit,
    _of_connection: OwnedSemaphorePermit,
}

/// The right to hold a large request in memory; given back when dropped.
pub(super) struct Reservation {
    _units: OwnedSemaphorePermit,
}

impl Admission {
    pub fn new(requests_max: usize, request_bytes_max: usize) -> Self {
        let units = u32::try_from(request_bytes_max.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        Admission {
            requests: semaphore(requests_max),
            bytes: semaphore(units as usize),
            units,
        }
    }

    /// Takes a request on, unless the listener or the connection has too many.
    pub fn admit(&self, of_connection: &Arc<Semaphore>) -> Option<Admitted> {
        Some(Admitted {
            _of_connection: of_connection.clone().try_acquire_owned().ok()?,
            _of_listener: self.requests.clone().try_acquire_owned().ok()?,
        })
    }

    /// Waits until there is room for a body of so many bytes; small ones need none.
    pub async fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let units = self.units_of(bytes)?;
        // The semaphore is never closed.
        let permit = self.bytes.clone().acquire_many_owned(units).await.ok()?;
        Some(Reservation { _units: permit })
    }

    /// Room for the decompressed form of a body that is small as it came but large when plain.
    ///
    /// # Errors
    /// If there is none just now. (Waiting for it while holding a frame could wait for ever.)
    pub fn reserve_plain(
        &self,
        frame: &Frame,
        compression: Option<Compression>,
    ) -> Result<Option<Reservation>, NoRoom> {
        let compressed = frame.header.flags.contains(Flags::COMPRESSION);
        let Some(compression) = compression.filter(|_| compressed) else {
            return Ok(None);
        };
        let Some(units) = self.units_of(stated_length(compression, &frame.body)) else {
            return Ok(None);
        };
        match self.bytes.clone().try_acquire_many_owned(units) {
            Ok(permit) => Ok(Some(Reservation { _units: permit })),
            Err(_) => Err(NoRoom),
        }
    }

    /// One frame never needs more than all there is.
    fn units_of(&self, bytes: usize) -> Option<u32> {
        if bytes <= SMALL_BYTES {
            return None;
        }
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        Some(units.min(self.units))
    }
}

/// There is no room for a request's bytes.
#[derive(Debug)]
pub(super) struct NoRoom;

/// A semaphore of at most as many permits as there can be.
pub(super) fn semaphore(permits: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))
}

/// The length that a compressed body claims to have when plain. What cannot be read counts as nothing: the
/// decompression will refuse it.
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
    use cql::wire::{Direction, FrameDecoder, QueryParameters, Request};

    use super::*;

    fn frame(text_length: usize, compression: Option<Compression>) -> Frame {
        let mut bytes = BytesMut::new();
        Request::Query {
            statement: "x".repeat(text_length),
            parameters: QueryParameters::default(),
        }
        .encode(1, compression, &mut bytes);
        let mut decoder = FrameDecoder::new(Direction::Request, 1 << 30);
        decoder.decode(&mut bytes).unwrap().unwrap()
    }

    #[test]
    fn requests_are_admitted_up_to_both_limits() {
        let admission = Admission::new(2, 1 << 20);
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

    #[tokio::test]
    async fn large_bodies_wait_for_room_and_small_ones_do_not() {
        let admission = Admission::new(1, 1 << 20);
        assert!(admission.reserve(SMALL_BYTES).await.is_none());
        let whole = admission.reserve(5 << 20).await;
        assert!(whole.is_some(), "larger than the budget: all of it");
        let waiting = tokio::time::timeout(
            std::time::Duration::from_millis(20),
            admission.reserve(SMALL_BYTES + 1),
        );
        assert!(waiting.await.is_err());
        drop(whole);
        assert!(admission.reserve(SMALL_BYTES + 1).await.is_some());
    }

    #[test]
    fn what_a_compressed_body_claims_is_reserved() {
        for compression in Compression::EVERY {
            let admission = Admission::new(1, 1 << 20);
            let large = frame(900 << 10, Some(compression));
            assert!(stated_length(compression, &large.body) > 900 << 10);
            let held = admission.reserve_plain(&large, Some(compression)).unwrap();
            assert!(held.is_some());
            assert!(admission.reserve_plain(&large, Some(compression)).is_err());
            drop(held);
            assert!(admission.reserve_plain(&large, Some(compression)).is_ok());
            let small = frame(10, Some(compression));
            assert!(
                admission
                    .reserve_plain(&small, Some(compression))
                    .unwrap()
                    .is_none()
            );
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
