//! The count of the work on elements of collections.
//!
//! Other writes wait while the committer works, so its work must not grow faster than what it reads
//! and writes. Each element that is read, compared, moved or written by itself counts one. Bytes
//! that are copied in one piece count nothing here.

use std::cell::Cell;

thread_local! {
    static ELEMENTS: Cell<u64> = const { Cell::new(0) };
}

/// Counts elements.
pub(crate) fn count(elements: usize) {
    ELEMENTS.set(ELEMENTS.get() + elements as u64);
}

/// The elements that this thread has counted since the last call.
pub(crate) fn take() -> u64 {
    ELEMENTS.take()
}
