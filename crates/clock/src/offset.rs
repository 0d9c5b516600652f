//! The machine's clock with an offset, for tests of whole processes.

use std::path::PathBuf;

use crate::{Clock, SystemClock};

const MICROS_PER_SECOND: f64 = 1e6;

/// The machine's clock, fast or slow by a number of seconds that a file holds. The file is read at
/// each look, so a test can set the clock of a process that runs; nothing else should. If the file
/// can't be read, there is no difference.
#[derive(Debug)]
pub struct OffsetClock {
    file: PathBuf,
}

impl OffsetClock {
    /// Makes a clock. `file` holds a number of seconds, which is positive for a clock that is
    /// ahead.
    pub fn new(file: PathBuf) -> OffsetClock {
        OffsetClock { file }
    }

    fn offset_micros(&self) -> i64 {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let seconds: f64 = text.trim().parse().unwrap_or_default();
        (seconds * MICROS_PER_SECOND) as i64
    }
}

impl Clock for OffsetClock {
    fn now_micros(&self) -> i64 {
        SystemClock
            .now_micros()
            .saturating_add(self.offset_micros())
    }

    fn steady_micros(&self) -> i64 {
        SystemClock.steady_micros()
    }
}
