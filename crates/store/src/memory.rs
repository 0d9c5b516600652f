//! How much memory the process takes, and whether indexes may take more.
//!
//! What counts is the memory that the system can't take back: a mapped file may be as large as it
//! likes. It is looked at from time to time, so the limit can be overstepped by what comes in
//! between two looks; the default limit leaves room for that. At the limit rows that come anew
//! wait ([`crate::monitor_items`]); everything else goes on.

mod limits;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;

use crate::metrics::Metrics;
use crate::options::MemoryOptions;

/// Once the limit was reached, there is room again this part of the limit below it.
const RELIEF: u64 = 64;

/// Whether there is memory for more rows.
#[derive(Debug, Default)]
pub struct Memory {
    is_full: AtomicBool,
    limit_bytes: AtomicU64,
}

impl Memory {
    /// Whether no more rows are to come in.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// How much the process may take.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Takes in how much the process takes, and may take.
    pub fn note(&self, used_bytes: u64, limit_bytes: u64) {
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        let before = self.is_full();
        let is_full = match before {
            false => used_bytes > limit_bytes,
            true => used_bytes > limit_bytes - limit_bytes / RELIEF,
        };
        self.is_full.store(is_full, Ordering::Relaxed);
        match (before, is_full) {
            (false, true) => tracing::error!(
                used_bytes,
                limit_bytes,
                "the memory limit is reached: new rows wait; give the process more memory, or drop an index"
            ),
            (true, false) => {
                tracing::info!(used_bytes, limit_bytes, "there is memory for rows again")
            }
            _ => {}
        }
    }

    /// Looks for ever.
    pub async fn watch(&self, mut options: watch::Receiver<MemoryOptions>, metrics: Metrics) {
        let default_limit_bytes = limits::default_limit_bytes(Path::new("/"));
        loop {
            let now = options.borrow_and_update().clone();
            let limit_bytes = now.limit_bytes.or(default_limit_bytes);
            match (limits::used_bytes(Path::new("/")), limit_bytes) {
                (Some(used_bytes), Some(limit_bytes)) => {
                    self.note(used_bytes, limit_bytes);
                    metrics.set_memory(used_bytes, limit_bytes);
                }
                _ => {
                    tracing::warn!(
                        "this system does not tell how much memory is used: no limit is kept"
                    );
                    return;
                }
            }
            let changed = tokio::time::timeout(now.check_interval, options.changed());
            if let Ok(Err(_)) = changed.await {
                // Nobody is left to change them.
                tokio::time::sleep(now.check_interval).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_returns_some_way_below_the_limit() {
        let memory = Memory::default();
        let full = |used_bytes| {
            memory.note(used_bytes, 6400);
            memory.is_full()
        };
        assert!(!full(6400));
        assert!(full(6401));
        assert!(full(6301), "not yet");
        assert!(!full(6300));
        assert!(!full(6400));
        memory.note(6400, 6000);
        assert!(memory.is_full(), "the limit may change");
        assert_eq!(memory.limit_bytes(), 6000);
    }
}
