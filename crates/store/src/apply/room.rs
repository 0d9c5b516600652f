//! The room for more rows in the index, and the log lines about it.
//!
//! An index serves once its scan has ended, even if rows wait for room. `rows_without_room` in the
//! status of the index, the metric `index_rows_without_room` and one line in the log tell of them.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two log lines. An index at the limit gains and loses room all the
/// time.
const NEWS_INTERVAL: Duration = Duration::from_secs(60);

/// The state of the room in an index.
#[derive(Debug)]
pub(super) struct CapacityStatus {
    /// Whether the last vectors found room.
    pub is_there: bool,
    /// The time at which the log last said that there is no room.
    told: Option<Instant>,
    /// Whether the last log line about room said that there is none.
    lacks: bool,
}

impl Default for CapacityStatus {
    fn default() -> CapacityStatus {
        CapacityStatus {
            is_there: true,
            told: None,
            lacks: false,
        }
    }
}

impl CapacityStatus {
    /// Whether the log has to tell now that there is no room.
    pub(super) fn should_log_shortage(&mut self, now: Instant) -> bool {
        let news = !self.lacks
            && self
                .told
                .is_none_or(|told| now.duration_since(told) >= NEWS_INTERVAL);
        if news {
            self.told = Some(now);
            self.lacks = true;
        }
        news
    }

    /// Whether the log has to tell that all rows have found room.
    pub(super) fn should_log_recovery(&mut self) -> bool {
        std::mem::take(&mut self.lacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_that_comes_and_goes_is_logged_once() {
        let mut room = CapacityStatus::default();
        let began = Instant::now();
        assert!(!room.should_log_recovery());
        assert!(room.should_log_shortage(began));
        assert!(
            !room.should_log_shortage(began + 2 * NEWS_INTERVAL),
            "still"
        );
        assert!(room.should_log_recovery());
        assert!(!room.should_log_recovery());
        assert!(
            !room.should_log_shortage(began + NEWS_INTERVAL / 2),
            "so soon"
        );
        assert!(!room.should_log_recovery(), "of what it has not heard");
        assert!(room.should_log_shortage(began + NEWS_INTERVAL));
    }
}
