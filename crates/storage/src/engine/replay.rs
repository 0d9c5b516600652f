//! Lines of the log that say how far the journals are read, as a start can take long.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of journals below which the log says nothing.
const LOGGED_FROM_BYTES: u64 = 1 << 20;
/// The time between two lines.
const EVERY: Duration = Duration::from_secs(2);

/// How far the journals are read.
pub(super) struct JournalReadProgress {
    work: &'static str,
    total: u64,
    began: Instant,
    read: Mutex<LoggedProgress>,
}

#[derive(Default)]
struct LoggedProgress {
    bytes: u64,
    /// The time since the beginning at which the last line was due.
    logged_at: Duration,
}

impl LoggedProgress {
    /// Adds bytes that were read. Returns whether a line is due after this time.
    fn add(&mut self, bytes: u64, elapsed: Duration) -> bool {
        self.bytes += bytes;
        let is_due = elapsed >= self.logged_at + EVERY;
        if is_due {
            self.logged_at = elapsed;
        }
        is_due
    }
}

impl JournalReadProgress {
    /// Begins the work on so many bytes.
    pub(super) fn begin(work: &'static str, total: u64) -> JournalReadProgress {
        if total >= LOGGED_FROM_BYTES {
            tracing::info!(bytes = total, "{work}");
        }
        JournalReadProgress {
            work,
            total,
            began: Instant::now(),
            read: Mutex::default(),
        }
    }

    /// Adds bytes that were read.
    pub(super) fn add(&self, bytes: u64) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.add(bytes, self.began.elapsed()) {
            let percent = read.bytes.min(self.total) * 100 / self.total.max(1);
            tracing::info!(
                bytes = read.bytes,
                of = self.total,
                percent,
                "{}",
                self.work
            );
        }
    }

    /// Ends the work.
    pub(super) fn end(&self, done: &str) {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if self.total >= LOGGED_FROM_BYTES {
            let millis = self.began.elapsed().as_millis();
            tracing::info!(bytes = read.bytes, millis, "{done}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_every_two_seconds() {
        let mut read = LoggedProgress::default();
        let due: Vec<u64> = (0..90)
            .filter(|tenths| read.add(10, Duration::from_millis(tenths * 100)))
            .collect();
        assert_eq!(due, [20, 40, 60, 80]);
        assert_eq!(read.bytes, 900);
    }
}
