//! The memory of a buffer off whose front pieces are taken.
//!
//! A piece shares the memory of its buffer, and so does the rest of the buffer. A long message
//! would stay in memory for as long as anything that came with it: a short message after it, or the
//! empty buffer of a connection that requests nothing more. So pieces and rests of large buffers
//! are copied out where they are small.

use bytes::{Buf, BytesMut};

/// The longest rest of a large buffer that is copied out of it after a short piece, in bytes.
const REST_MAX: usize = 16 << 10;

/// The memory of one buffer. It must see all that is taken off the front.
#[derive(Debug)]
pub struct BufferMemory {
    /// Buffers up to this many bytes are left as they are.
    small: usize,
    /// The size of the buffer's memory since it was copied last, in bytes: this at most.
    allocated: usize,
}

impl BufferMemory {
    /// The memory of a buffer that may keep up to `small` bytes, whatever is within it.
    pub fn new(small: usize) -> Self {
        BufferMemory {
            small,
            allocated: 0,
        }
    }

    /// Takes the first `length` bytes off. The piece keeps at most about twice its length in
    /// memory, or the size up to which buffers are left as they are.
    ///
    /// # Panics
    /// If the buffer is shorter: that is a bug of the caller.
    pub fn split_to(&mut self, buffer: &mut BytesMut, length: usize) -> BytesMut {
        self.see(buffer);
        if self.allocated <= self.small {
            return buffer.split_to(length);
        }
        let piece = if length < self.allocated / 2 {
            let piece = BytesMut::from(&buffer[..length]);
            buffer.advance(length);
            piece
        } else {
            buffer.split_to(length)
        };
        self.shrink_after_piece(buffer, length);
        piece
    }

    /// Removes the first `length` bytes.
    ///
    /// # Panics
    /// If the buffer is shorter: that is a bug of the caller.
    pub fn advance(&mut self, buffer: &mut BytesMut, length: usize) {
        self.see(buffer);
        buffer.advance(length);
        self.shrink_after_piece(buffer, length);
    }

    fn see(&mut self, buffer: &BytesMut) {
        // The capacity counts from the present front, so it shrinks as pieces are taken.
        self.allocated = self.allocated.max(buffer.capacity());
    }

    /// Copies the rest of a large buffer after a piece of `length` bytes. A rest that is longer
    /// than the piece is not, since it would be copied again for every piece.
    fn shrink_after_piece(&mut self, buffer: &mut BytesMut, length: usize) {
        if self.allocated > self.small && buffer.len() <= length.max(REST_MAX) {
            *buffer = BytesMut::from(&buffer[..]);
            self.allocated = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: usize = 32 << 10;
    const LARGE: usize = 1 << 20;

    /// A buffer of these bytes with room after them, as one has that grew.
    fn grown(bytes: &[u8]) -> BytesMut {
        let mut buffer = BytesMut::with_capacity(bytes.len() + bytes.len() / 2);
        buffer.extend_from_slice(bytes);
        buffer
    }

    fn memory_of(buffer: &BytesMut) -> std::ops::Range<*const u8> {
        let begin = buffer.as_ptr();
        begin..begin.wrapping_add(buffer.capacity())
    }

    #[test]
    fn the_rest_after_a_long_piece_has_memory_of_its_own() {
        for rest in [0, 1, 1_000, LARGE / 4] {
            let mut buffer = grown(&vec![7; LARGE + rest]);
            let shared = memory_of(&buffer);
            let piece = BufferMemory::new(SMALL).split_to(&mut buffer, LARGE);
            assert!(shared.contains(&piece.as_ptr()), "it is not copied");
            assert_eq!(buffer.len(), rest);
            assert!(!shared.contains(&buffer.as_ptr()));
            assert!(buffer.capacity() <= rest.max(64), "{}", buffer.capacity());
        }
    }

    #[test]
    fn short_pieces_do_not_keep_a_large_buffer() {
        let bytes: Vec<u8> = (0..LARGE).map(|at| at as u8).collect();
        let mut buffer = grown(&bytes);
        let shared = memory_of(&buffer);
        // No other buffer is allocated at this address.
        let _kept = buffer.split_to(0);
        let mut memory = BufferMemory::new(SMALL);
        let mut pieces = Vec::new();
        while !buffer.is_empty() {
            let piece = memory.split_to(&mut buffer, 1_024);
            assert!(!shared.contains(&piece.as_ptr()));
            pieces.extend_from_slice(&piece);
            let copied = !shared.contains(&buffer.as_ptr());
            assert_eq!(copied, buffer.len() <= REST_MAX, "{} bytes", buffer.len());
        }
        assert_eq!(pieces, bytes);
    }

    #[test]
    fn small_buffers_are_shared() {
        let mut buffer = grown(&[7; SMALL / 2]);
        let shared = memory_of(&buffer);
        let piece = BufferMemory::new(SMALL).split_to(&mut buffer, 10);
        assert!(shared.contains(&piece.as_ptr()));
        assert!(shared.contains(&buffer.as_ptr()));
    }

    #[test]
    fn bytes_that_are_removed_leave_no_memory_behind() {
        let mut buffer = grown(&vec![7; LARGE]);
        let mut memory = BufferMemory::new(SMALL);
        // The room that is left looks small by now.
        memory.advance(&mut buffer, 10);
        buffer = buffer.split_to(LARGE - 10);
        memory.advance(&mut buffer, LARGE - 20);
        assert_eq!(&buffer[..], [7; 10]);
        assert!(buffer.capacity() <= 64);
    }
}
