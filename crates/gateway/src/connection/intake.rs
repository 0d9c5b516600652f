//! The buffer of one direction: bytes that came from one socket and have not gone to the other yet.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The room that is made for the first read, small for a connection with few requests. Bytes.
const READ_BYTES_MIN: usize = 4 << 10;
/// The limit of that room, which doubles when a read fills it. Bytes.
const READ_BYTES_MAX: usize = 64 << 10;

/// Bytes that were read and have not gone on yet.
pub(super) struct Intake {
    bytes: BytesMut,
    /// The room for the next read. Bytes.
    read_bytes: usize,
}

impl Intake {
    /// An empty buffer.
    pub(super) fn new() -> Self {
        Intake {
            bytes: BytesMut::new(),
            read_bytes: READ_BYTES_MIN,
        }
    }

    /// The bytes that have not gone on yet.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes the first `count` bytes, which have gone on.
    pub(super) fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }

    /// Reads more bytes and returns their number; 0 at the end. Nothing is lost if the future is
    /// dropped.
    pub(super) async fn fill(
        &mut self,
        socket: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<usize> {
        if self.bytes.is_empty() && self.bytes.capacity() > 2 * READ_BYTES_MAX {
            // A large message went through; the next is likely a small one.
            self.bytes = BytesMut::new();
        }
        // A large message is read in ever larger pieces, so that it is not moved for each of them.
        // No more memory is taken for it than has come already.
        self.bytes.reserve(self.read_bytes.max(self.bytes.len()));
        let room = self.bytes.capacity() - self.bytes.len();
        let read = socket.read_buf(&mut self.bytes).await?;
        if read == room {
            self.read_bytes = (self.read_bytes * 2).min(READ_BYTES_MAX);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn memory_follows_what_comes() {
        let stream = vec![7; 4 << 20];
        let mut socket = &stream[..];
        let mut intake = Intake::new();
        while intake.fill(&mut socket).await.unwrap() > 0 {
            assert!(intake.bytes.capacity() <= READ_BYTES_MIN + 3 * intake.bytes().len());
        }
        assert_eq!(intake.bytes(), stream);
        intake.advance(stream.len());
        intake.fill(&mut &b"small"[..]).await.unwrap();
        assert_eq!(intake.bytes(), b"small");
        assert!(intake.bytes.capacity() <= 2 * READ_BYTES_MAX);
    }

    #[tokio::test]
    async fn what_passes_in_pieces_needs_no_more_than_a_few_of_them() {
        let stream = vec![7; 4 << 20];
        let mut socket = &stream[..];
        let mut intake = Intake::new();
        loop {
            let read = intake.fill(&mut socket).await.unwrap();
            if read == 0 {
                break;
            }
            intake.advance(read);
            assert!(intake.bytes.capacity() <= 2 * READ_BYTES_MAX);
        }
    }
}
