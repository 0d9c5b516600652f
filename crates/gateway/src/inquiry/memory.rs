//! The memory of answers to the gateway's own inquiries: rows of searches that are under way.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of answers that one connection may hold, and all of a gateway together. One answer may be larger when nothing else is
/// held.
const CONNECTION_MAX: usize = 128 << 20;
const GATEWAY_MAX: usize = 1 << 30;

/// What all connections of a gateway may hold.
pub(crate) fn gateway_memory() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(GATEWAY_MAX))
}

/// What one connection may hold.
#[derive(Clone, Debug)]
pub(crate) struct AnswerMemory {
    of_connection: Arc<Semaphore>,
    of_gateway: Arc<Semaphore>,
}

/// Memory that is held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    _of_connection: OwnedSemaphorePermit,
    _of_gateway: OwnedSemaphorePermit,
}

impl AnswerMemory {
    /// That of a new connection of this gateway.
    pub(crate) fn new(of_gateway: Arc<Semaphore>) -> AnswerMemory {
        AnswerMemory {
            of_connection: Arc::new(Semaphore::new(CONNECTION_MAX)),
            of_gateway,
        }
    }

    /// Room for so many bytes; `None` if there is none left. Nobody waits for it: what would make room is read on the same
    /// connection, behind the answer that waits.
    pub(crate) fn hold(&self, bytes: usize) -> Option<Held> {
        let hold = |semaphore: &Arc<Semaphore>, max: usize| {
            let permits = bytes.min(max) as u32;
            semaphore.clone().try_acquire_many_owned(permits).ok()
        };
        Some(Held {
            _of_connection: hold(&self.of_connection, CONNECTION_MAX)?,
            _of_gateway: hold(&self.of_gateway, GATEWAY_MAX)?,
        })
    }
}

/// A frame for the client, and the memory of what it was made of.
struct HeldFrame {
    frame: Bytes,
    _held: Vec<Held>,
}

impl AsRef<[u8]> for HeldFrame {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

/// The frame, which holds the memory until it is dropped: once it is written.
pub(crate) fn holding(frame: Bytes, held: Vec<Held>) -> Bytes {
    match held.is_empty() {
        true => frame,
        false => Bytes::from_owner(HeldFrame { frame, _held: held }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_held_until_the_frame_is_gone() {
        let memory = AnswerMemory::new(gateway_memory());
        let half = memory.hold(CONNECTION_MAX / 2).unwrap();
        assert!(memory.hold(CONNECTION_MAX).is_none());
        let rest = memory.hold(CONNECTION_MAX / 2).unwrap();
        assert!(memory.hold(1).is_none());
        let frame = holding(Bytes::from_static(b"rows"), vec![half, rest]);
        assert_eq!(frame, &b"rows"[..]);
        assert!(memory.hold(1).is_none());
        drop(frame);
        assert!(memory.hold(10 * CONNECTION_MAX).is_some(), "alone");
    }

    #[test]
    fn connections_share_the_memory_of_their_gateway() {
        let of_gateway = gateway_memory();
        let held: Vec<_> = (0..GATEWAY_MAX / CONNECTION_MAX)
            .map(|_| AnswerMemory::new(of_gateway.clone()).hold(CONNECTION_MAX))
            .collect();
        assert!(held.iter().all(Option::is_some));
        assert!(AnswerMemory::new(of_gateway).hold(1).is_none());
    }
}
