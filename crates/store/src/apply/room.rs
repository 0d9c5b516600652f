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
pub struct Room {
    /// Whether the last vectors found room.
    pub is_there: bool,
    /// The time at which the log last said that there is no room.
    told: Option<Instant>,
    /// Whether the last log line about room said that there is none.
    lacks: bool,
}

impl Default for Room {
    fn default() -> Room {
        Room {
            is_there: true,
            told: None,
            lacks: false,
        }
    }
}

impl Room {
    /// Whether the log has to tell now that there is no room.
    pub fn lack_is_news(&mut self, now: Instant) -> bool {
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
    pub fn end_is_news(&mut self) -> bool {
        std::mem::take(&mut self.lacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_hears_of_it_once_and_not_every_time_it_comes_and_goes() {
        let mut room = Room::default();
        let began = Instant::now();
        assert!(!room.end_is_news());
        assert!(room.lack_is_news(began));
        assert!(!room.lack_is_news(began + 2 * NEWS_INTERVAL), "still");
        assert!(room.end_is_news());
        assert!(!room.end_is_news());
        assert!(!room.lack_is_news(began + NEWS_INTERVAL / 2), "so soon");
        assert!(!room.end_is_news(), "of what it has not heard");
        assert!(room.lack_is_news(began + NEWS_INTERVAL));
    }
}
