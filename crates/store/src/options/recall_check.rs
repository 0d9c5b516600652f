//! Options for checking the recall of indexes by schedule.

use std::time::Duration;

/// The options of checks of recall by schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecallCheckOptions {
    /// The time from the beginning of one check of an index to that of the next; `None` for checks
    /// only on request.
    pub interval: Option<Duration>,
    /// The number of rows that a check takes as queries.
    pub queries: usize,
}

impl Default for RecallCheckOptions {
    fn default() -> RecallCheckOptions {
        RecallCheckOptions {
            interval: None,
            queries: 100,
        }
    }
}
