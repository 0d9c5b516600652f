//! Options for reading and checking files.

use std::time::Duration;

/// The options of scrubs, which read files and check them against their checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScrubOptions {
    /// The time from the beginning of one scrub to that of the next; `None` for scrubs only on
    /// request.
    pub interval: Option<Duration>,
    /// The limit for the bytes that are read in a second.
    pub bytes_a_second: u64,
}

impl Default for ScrubOptions {
    fn default() -> ScrubOptions {
        ScrubOptions {
            interval: None,
            // At this rate a terabyte takes nine hours, with a small part of the throughput of any
            // disk.
            bytes_a_second: 32 << 20,
        }
    }
}
