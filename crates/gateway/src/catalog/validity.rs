//! The time until which a gateway may act by its snapshot.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

/// The value of an end that never comes: before the first heartbeat, and in a gateway without a
/// cluster.
const FOREVER: u64 = u64::MAX;

/// The time until which a gateway may act by its snapshot. It ends by the clock, so it also ends
/// for a process that is stopped meanwhile.
pub(super) struct SnapshotValidity {
    born: Instant,
    /// The end in milliseconds since `born`, or [`FOREVER`].
    ends_ms: AtomicU64,
}

impl SnapshotValidity {
    /// A validity without an end, until one is set.
    pub(super) fn new() -> SnapshotValidity {
        SnapshotValidity {
            born: Instant::now(),
            ends_ms: AtomicU64::new(FOREVER),
        }
    }

    /// Whether the time is over.
    pub(super) fn is_over(&self) -> bool {
        let ends_ms = self.ends_ms.load(Ordering::Acquire);
        ends_ms != FOREVER && self.born.elapsed().as_millis() as u64 >= ends_ms
    }

    /// Sets another end.
    pub(super) fn prolong(&self, end: Instant) {
        let ends_ms = end.saturating_duration_since(self.born).as_millis() as u64;
        self.ends_ms.store(ends_ms, Ordering::Release);
    }
}
