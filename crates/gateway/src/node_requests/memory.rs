//! The memory for answers to the gateway's own requests, which hold the rows of searches under way.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The memory for the answers of a gateway. Each connection may take half of it. An answer above a
/// limit fits when nothing else is held under that limit.
#[derive(Clone, Debug)]
pub(crate) struct AnswerMemory {
    /// The bytes that are free for this connection.
    of_connection: Arc<Semaphore>,
    /// The bytes that are free for the gateway.
    of_gateway: Arc<Semaphore>,
    /// The bytes that a gateway may take.
    gateway_max: usize,
}

/// A share of the memory, held until this value is dropped.
#[derive(Debug)]
pub(crate) struct ReservedMemory {
    _of_connection: OwnedSemaphorePermit,
    _of_gateway: OwnedSemaphorePermit,
}

impl AnswerMemory {
    /// Makes the memory of a gateway: `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> AnswerMemory {
        let gateway_max = bytes_max.clamp(2, u32::MAX as usize);
        AnswerMemory {
            of_connection: Arc::new(Semaphore::new(gateway_max / 2)),
            of_gateway: Arc::new(Semaphore::new(gateway_max)),
            gateway_max,
        }
    }

    /// The memory for a new connection of this gateway.
    pub(crate) fn of_connection(&self) -> AnswerMemory {
        AnswerMemory {
            of_connection: Arc::new(Semaphore::new(self.gateway_max / 2)),
            ..self.clone()
        }
    }

    /// Takes memory for an answer; `None` if there is not enough left. No answer waits for memory:
    /// the answers that would free it come on the same connection, after this one.
    pub(crate) fn hold(&self, bytes: usize) -> Option<ReservedMemory> {
        let hold = |semaphore: &Arc<Semaphore>, max: usize| {
            let permits = bytes.min(max) as u32;
            semaphore.clone().try_acquire_many_owned(permits).ok()
        };
        Some(ReservedMemory {
            _of_connection: hold(&self.of_connection, self.gateway_max / 2)?,
            _of_gateway: hold(&self.of_gateway, self.gateway_max)?,
        })
    }
}

/// A frame for the client, with the memory of the answers that it was made of.
struct HeldFrame {
    frame: Bytes,
    _held: Vec<ReservedMemory>,
}

impl AsRef<[u8]> for HeldFrame {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

/// Makes the frame hold the memory until it is dropped, which is once it is written.
pub(crate) fn holding(frame: Bytes, held: Vec<ReservedMemory>) -> Bytes {
    match held.is_empty() {
        true => frame,
        false => Bytes::from_owner(HeldFrame { frame, _held: held }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAY_MAX: usize = 1 << 20;
    const CONNECTION_MAX: usize = GATEWAY_MAX / 2;

    #[test]
    fn memory_is_held_until_the_frame_is_gone() {
        let memory = AnswerMemory::new(GATEWAY_MAX).of_connection();
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
        let of_gateway = AnswerMemory::new(GATEWAY_MAX);
        let held: Vec<_> = (0..GATEWAY_MAX / CONNECTION_MAX)
            .map(|_| of_gateway.of_connection().hold(CONNECTION_MAX))
            .collect();
        assert!(held.iter().all(Option::is_some));
        assert!(of_gateway.of_connection().hold(1).is_none());
    }
}
