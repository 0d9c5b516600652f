//! The counters of a listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only rises, or that rises and falls.
#[derive(Debug, Default)]
pub(super) struct AtomicCounter(AtomicU64);

impl AtomicCounter {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub fn subtract(&self, n: u64) {
        self.0.fetch_sub(n, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The live counters of a listener.
#[derive(Debug, Default)]
pub(super) struct ListenerCounters {
    pub connections_open: AtomicCounter,
    pub connections_accepted: AtomicCounter,
    pub connections_refused: AtomicCounter,
    pub connections_given_way: AtomicCounter,
    pub requests: AtomicCounter,
    pub requests_overloaded: AtomicCounter,
    pub requests_failed: AtomicCounter,
    pub panics: AtomicCounter,
    pub bytes_read: AtomicCounter,
    pub bytes_written: AtomicCounter,
}

/// The counters of a listener at one moment. All except `connections_open` count since the listener
/// began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterValues {
    /// Connections open now.
    pub connections_open: u64,
    /// Connections accepted.
    pub connections_accepted: u64,
    /// Connections closed at once, because too many had begun or clients held all the memory.
    pub connections_refused: u64,
    /// Connections that had not begun, and were closed to make room for others.
    pub connections_given_way: u64,
    /// Statements answered or refused: QUERY, PREPARE, EXECUTE and BATCH.
    pub requests: u64,
    /// Requests answered Overloaded.
    pub requests_overloaded: u64,
    /// Requests answered with any error.
    pub requests_failed: u64,
    /// Requests that failed by a bug (a panic).
    pub panics: u64,
    /// Bytes received from clients.
    pub bytes_read: u64,
    /// Bytes sent to clients.
    pub bytes_written: u64,
}

impl ListenerCounters {
    /// The values of the counters now.
    pub fn values(&self) -> CounterValues {
        CounterValues {
            connections_open: self.connections_open.get(),
            connections_accepted: self.connections_accepted.get(),
            connections_refused: self.connections_refused.get(),
            connections_given_way: self.connections_given_way.get(),
            requests: self.requests.get(),
            requests_overloaded: self.requests_overloaded.get(),
            requests_failed: self.requests_failed.get(),
            panics: self.panics.get(),
            bytes_read: self.bytes_read.get(),
            bytes_written: self.bytes_written.get(),
        }
    }
}

/// The live counters of some listeners, by the listeners' names. It keeps nothing else of them
/// alive.
#[derive(Clone, Debug)]
pub struct LiveCounters(pub(super) Vec<(&'static str, Arc<ListenerCounters>)>);

impl LiveCounters {
    /// The values of the counters now.
    pub fn values(&self) -> Vec<(&'static str, CounterValues)> {
        let listeners = self.0.iter();
        listeners
            .map(|(name, counters)| (*name, counters.values()))
            .collect()
    }
}
