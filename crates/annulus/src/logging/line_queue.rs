//! Records that wait for their receiver.
//!
//! A thread that logs never waits: it appends to a bounded queue, and a record that finds no room
//! is dropped and counted.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most bytes of waiting records.
const BYTES_MAX: usize = 1 << 20;

/// The bytes that a record takes in addition to its text.
const RECORD_BYTES: usize = 32;

/// A bounded queue of records.
#[derive(Debug, Default)]
pub struct LineQueue {
    state: Mutex<WaitingLines>,
    /// Notified when a record comes, or one is delivered.
    changed: Condvar,
    dropped: AtomicU64,
    /// Whether the receiver takes records.
    connected: AtomicBool,
}

#[derive(Debug, Default)]
struct WaitingLines {
    lines: VecDeque<String>,
    bytes: usize,
    /// Whether a record was taken out and is not delivered yet.
    in_delivery: bool,
}

impl LineQueue {
    /// Appends a record, or drops it if there is no room. It never waits for the receiver.
    pub fn push(&self, line: String) {
        let mut state = self.state();
        let bytes = line.len() + RECORD_BYTES;
        if state.bytes + bytes > BYTES_MAX {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        state.bytes += bytes;
        state.lines.push_back(line);
        drop(state);
        self.changed.notify_all();
    }

    /// Takes the oldest record out, and waits this long for one. The one before it counts as
    /// delivered.
    pub fn pop(&self, within: Duration) -> Option<String> {
        let mut state = self.state();
        if state.in_delivery {
            state.in_delivery = false;
            self.changed.notify_all();
        }
        let waited = self
            .changed
            .wait_timeout_while(state, within, |state| state.lines.is_empty());
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let line = state.lines.pop_front()?;
        state.bytes -= line.len() + RECORD_BYTES;
        state.in_delivery = true;
        Some(line)
    }

    /// Waits at most this long until all records are delivered. Returns at once if the receiver is
    /// away.
    pub fn flush(&self, within: Duration) {
        if !self.connected.load(Ordering::Relaxed) {
            return;
        }
        let state = self.state();
        let is_busy = |state: &mut WaitingLines| state.in_delivery || !state.lines.is_empty();
        drop(self.changed.wait_timeout_while(state, within, is_busy));
    }

    /// Notes whether the receiver takes records.
    pub fn set_connected(&self, connected: bool) {
        self.connected.store(connected, Ordering::Relaxed);
    }

    /// The number of records that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, WaitingLines> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_in_their_order() {
        let lines = LineQueue::default();
        lines.push("one".to_owned());
        lines.push("two".to_owned());
        let next = || lines.pop(Duration::ZERO);
        assert_eq!(next().as_deref(), Some("one"));
        assert_eq!(next().as_deref(), Some("two"));
        assert_eq!(next(), None);
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let lines = LineQueue::default();
        let text = "x".repeat(1 << 10);
        for _ in 0..2_000 {
            lines.push(text.clone());
        }
        let held = lines.state().lines.len() as u64;
        assert!(held < 1_000, "{held} records");
        assert_eq!(lines.dropped(), 2_000 - held);
        // What was taken out makes room.
        assert!(lines.pop(Duration::ZERO).is_some());
        lines.push(text);
        assert_eq!(lines.dropped(), 2_000 - held);
    }

    #[test]
    fn a_flush_does_not_wait_for_an_absent_receiver() {
        let lines = LineQueue::default();
        lines.push("one".to_owned());
        lines.flush(Duration::from_secs(600));
        assert_eq!(lines.pop(Duration::ZERO).as_deref(), Some("one"));
        lines.set_connected(true);
        assert_eq!(lines.pop(Duration::ZERO), None);
        lines.flush(Duration::from_secs(600));
    }
}
