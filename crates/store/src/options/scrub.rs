//! How files are read and checked.

use std::time::Duration;

/// How files are read and held against their checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubOptions {
    /// From the beginning of one scrub to that of the next; absent: only when someone asks for it.
    pub interval: Option<Duration>,
    /// Bytes that are read in a second at most.
    pub bytes_a_second: u64,
}

impl Default for ScrubOptions {
    fn default() -> ScrubOptions {
        ScrubOptions {
            interval: None,
            // A terabyte in nine hours, and a small part of what any disk gives.
            bytes_a_second: 32 << 20,
        }
    }
}
