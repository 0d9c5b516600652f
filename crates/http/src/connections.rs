//! The connections of a listener. At the limit one gives way, so one more can always come in.
//!
//! The connection that has been silent for the longest gives way. So clients that connect and send
//! no request can't keep others from `/metrics` or from searching.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::traffic::HttpTraffic;

/// All connections of a listener.
#[derive(Default)]
pub(crate) struct ConnectionSet {
    connections: Mutex<Vec<Arc<HttpConnection>>>,
}

/// A connection.
pub(crate) struct HttpConnection {
    began: Instant,
    /// Requests that are not answered yet.
    in_flight: AtomicUsize,
    /// The time of the last answer, microseconds since the connection began.
    silent_since: AtomicU64,
    /// Cancelled to end the connection, once its requests are answered.
    pub(crate) end: CancellationToken,
}

/// A request that is being answered.
pub(crate) struct RequestGuard(Arc<HttpConnection>);

impl HttpConnection {
    /// A connection that begins now, and ends at the latest with `end`.
    pub(crate) fn new(end: CancellationToken) -> Arc<HttpConnection> {
        Arc::new(HttpConnection {
            began: Instant::now(),
            in_flight: AtomicUsize::new(0),
            silent_since: AtomicU64::new(0),
            end,
        })
    }

    /// Counts a request as in flight until the result is dropped.
    pub(crate) fn begin_request(self: &Arc<HttpConnection>) -> RequestGuard {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        RequestGuard(self.clone())
    }

    /// The time since when the connection has been silent. `None` while a request is in flight, or
    /// once the connection is to end.
    fn silent_since(&self) -> Option<Instant> {
        if self.in_flight.load(Ordering::Relaxed) > 0 || self.end.is_cancelled() {
            return None;
        }
        let after = self.silent_since.load(Ordering::Relaxed);
        Some(self.began + std::time::Duration::from_micros(after))
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let connection = &self.0;
        let now = connection.began.elapsed().as_micros();
        connection.silent_since.store(now as u64, Ordering::Relaxed);
        connection.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConnectionSet {
    /// Adds a connection.
    pub(crate) fn enter(&self, connection: Arc<HttpConnection>) {
        let mut connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        connections.push(connection);
    }

    /// Removes a connection that has ended.
    pub(crate) fn leave(&self, connection: &Arc<HttpConnection>) {
        let mut connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = connections
            .iter()
            .position(|other| Arc::ptr_eq(other, connection))
        {
            connections.swap_remove(at);
        }
    }

    /// Ends the connection that has been silent for the longest, if any is silent.
    pub(crate) fn make_room(&self) {
        let connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let silent = connections
            .iter()
            .filter_map(|connection| Some((connection.silent_since()?, connection)));
        if let Some((_, connection)) = silent.min_by_key(|(since, _)| *since) {
            connection.end.cancel();
            HttpTraffic::of_process().connection_gave_way();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_is_silent_for_the_longest_gives_way() {
        let set = ConnectionSet::default();
        let connections: Vec<_> = (0..4)
            .map(|_| HttpConnection::new(CancellationToken::new()))
            .collect();
        for connection in &connections {
            set.enter(connection.clone());
        }
        let _busy = connections[0].begin_request();
        // Two answers in one microsecond would be equally old.
        std::thread::sleep(std::time::Duration::from_millis(2));
        drop(connections[1].begin_request());
        let ended = || {
            connections
                .iter()
                .map(|connection| connection.end.is_cancelled())
                .collect::<Vec<_>>()
        };
        set.make_room();
        assert_eq!(ended(), [false, false, true, false]);
        set.make_room();
        set.make_room();
        assert_eq!(ended(), [false, true, true, true]);
        set.make_room();
        assert_eq!(ended(), [false, true, true, true], "one is busy");
        set.leave(&connections[0]);
        assert_eq!(set.connections.lock().unwrap().len(), 3);
    }
}
