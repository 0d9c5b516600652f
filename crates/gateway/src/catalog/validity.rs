//! Until when a gateway may act by what it knows.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// Before the first word to the cluster there is nothing that could run out; neither is there without a cluster.
const FOREVER: u64 = u64::MAX;

/// Until when a gateway may act by what it knows. A matter of the clock: it ends by itself, also for a process that was
/// stopped meanwhile.
pub(super) struct Validity {
    born: Instant,
    /// Milliseconds since `born`.
    ends_ms: AtomicU64,
}

impl Validity {
    pub(super) fn new() -> Validity {
        Validity {
            born: Instant::now(),
            ends_ms: AtomicU64::new(FOREVER),
        }
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        let ends_ms = self.ends_ms.load(Ordering::Acquire);
        ends_ms != FOREVER && self.born.elapsed().as_millis() as u64 >= ends_ms
    }

    /// Gives it another end.
    pub(super) fn prolong(&self, end: Instant) {
        let ends_ms = end.saturating_duration_since(self.born).as_millis() as u64;
        self.ends_ms.store(ends_ms, Ordering::Release);
    }
}
