//! The open connections of clients: the requests that each waits for, and the way to send it
//! frames.

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use cql::wire::ProtocolVersion;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::stream_set::StreamSet;

/// A connection of a client, as other parts of the gateway see it.
pub(crate) struct ConnectionHandle {
    /// Requests that have no answer yet.
    in_flight: Mutex<PendingRequests>,
    /// Notified whenever one of the client's requests has its answer.
    freed: Notify,
    /// The version of the protocol, once the client has registered for events about the schema.
    hears_schema_changes: OnceLock<ProtocolVersion>,
    /// The way to send frames to the client.
    answers: mpsc::WeakSender<Bytes>,
}

impl ConnectionHandle {
    /// Makes a client to which frames can be sent by `answers`.
    pub(crate) fn new(answers: mpsc::WeakSender<Bytes>) -> ConnectionHandle {
        ConnectionHandle {
            in_flight: Mutex::default(),
            freed: Notify::new(),
            hears_schema_changes: OnceLock::new(),
            answers,
        }
    }

    /// Notes that a request is due an answer on its stream. Must be called before anything is
    /// decided about the request: the one that replaces the catalog's snapshot and then
    /// [marks](ConnectionHandle::mark) the requests in flight relies on every later request being
    /// decided by the new snapshot.
    pub(crate) fn request_came(&self, stream: i16) {
        self.in_flight.lock().due.add(stream);
    }

    /// Notes that the request of a stream has its answer. Answers to nothing are ignored, as a node
    /// may send some.
    pub(crate) fn answered(&self, stream: i16) {
        let mut in_flight = self.in_flight.lock();
        let was_due = in_flight.due.remove(stream);
        in_flight.marked.remove(stream);
        drop(in_flight);
        if was_due {
            // At most one task waits: the loop that reads the client's requests.
            self.freed.notify_one();
        }
    }

    /// Whether an answer is due on a stream.
    ///
    /// The gateway matches answers to requests by their streams. If a second request went out
    /// before the first one was answered, the answer to one would be taken for the answer to the
    /// other, and a client could give a prepared id that all clients use a wrong meaning. So a
    /// stream carries one request at a time.
    pub(crate) fn is_due_on(&self, stream: i16) -> bool {
        self.in_flight.lock().due.holds(stream)
    }

    /// Waits until no answer is due except on the stream `but`.
    pub(crate) async fn others_answered(&self, but: Option<i16>) {
        loop {
            let freed = self.freed.notified();
            if self.in_flight.lock().due.holds_none_but(but) {
                return;
            }
            freed.await;
        }
    }

    /// Notes that the gateway itself sends a request on this connection. Such a request writes
    /// nothing, so it is never marked.
    pub(crate) fn inquired(&self) {
        self.in_flight.lock().inquiries += 1;
    }

    /// Notes that one of the gateway's own requests has its answer.
    pub(crate) fn inquiry_answered(&self) {
        let mut in_flight = self.in_flight.lock();
        in_flight.inquiries = in_flight.inquiries.saturating_sub(1);
    }

    /// The number of requests that wait for an answer, the gateway's own included.
    pub(crate) fn in_flight(&self) -> usize {
        let in_flight = self.in_flight.lock();
        in_flight.due.count() + in_flight.inquiries
    }

    /// Marks the client's requests that are in flight now.
    pub(crate) fn mark(&self) {
        let mut in_flight = self.in_flight.lock();
        let in_flight = &mut *in_flight;
        in_flight.marked.clone_from(&in_flight.due);
    }

    /// Whether all requests that were marked have their answers.
    pub(crate) fn marked_are_answered(&self) -> bool {
        self.in_flight.lock().marked.holds_none_but(None)
    }

    /// The way to send frames to the client; `None` once the client sends no more requests and no
    /// task holds a sender for an answer that is due.
    pub(crate) fn answers(&self) -> Option<mpsc::Sender<Bytes>> {
        self.answers.upgrade()
    }

    /// Notes that the client has registered for changes of the schema, in a version of the
    /// protocol.
    pub(crate) fn hear_schema_changes(&self, version: ProtocolVersion) {
        // A client may register again, in the same version.
        let _ = self.hears_schema_changes.set(version);
    }
}

/// The requests of a connection that wait for answers.
#[derive(Debug, Default)]
struct PendingRequests {
    /// The number of the gateway's own requests. They are only counted, as the client's next
    /// requests may use the same streams.
    inquiries: usize,
    /// The streams of the client's requests.
    due: StreamSet,
    /// The streams whose requests were in flight at the last [`ConnectionHandle::mark`] and still
    /// are.
    marked: StreamSet,
}

/// All connections that are open.
#[derive(Default)]
pub(crate) struct OpenConnections {
    open: Mutex<Vec<Weak<ConnectionHandle>>>,
}

impl OpenConnections {
    /// Adds a connection. It is forgotten once no one holds it any more.
    pub(crate) fn enter(&self, client: &Arc<ConnectionHandle>) {
        let mut open = self.open.lock();
        if open.len() == open.capacity() {
            open.retain(|client| client.strong_count() > 0);
        }
        open.push(Arc::downgrade(client));
    }

    /// The connections that are open now.
    pub(crate) fn open(&self) -> Vec<Weak<ConnectionHandle>> {
        let mut open = self.open.lock();
        open.retain(|client| client.strong_count() > 0);
        open.clone()
    }

    /// The number of requests of all connections that wait for an answer.
    pub(crate) fn in_flight(&self) -> u64 {
        let open = self.open().into_iter();
        let open = open.filter_map(|client| client.upgrade());
        open.map(|client| client.in_flight() as u64).sum()
    }

    /// Sends an event to all clients that registered for changes of the schema, as a frame of their
    /// version. A client that does not read misses it.
    pub(crate) fn tell_schema_change(&self, event: impl Fn(ProtocolVersion) -> Bytes) {
        let events = ProtocolVersion::EVERY.map(|version| (version, event(version)));
        for client in self.open() {
            if let Some(client) = client.upgrade()
                && let Some(heard) = client.hears_schema_changes.get()
                && let Some((_, event)) = events.iter().find(|(version, _)| version == heard)
                && let Some(answers) = client.answers()
                && answers.try_send(event.clone()).is_err()
            {
                tracing::debug!("a client that does not read misses an event");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[test]
    fn schema_changes_reach_registered_connections_and_closed_ones_are_removed() {
        let clients = OpenConnections::default();
        let (sender, mut receiver) = mpsc::channel(1);
        let deaf = Arc::new(ConnectionHandle::new(sender.downgrade()));
        let hearing = Arc::new(ConnectionHandle::new(sender.downgrade()));
        hearing.hear_schema_changes(ProtocolVersion::V5);
        clients.enter(&deaf);
        clients.enter(&hearing);
        // The second event does not fit and is missed; nothing waits.
        let event = |version: ProtocolVersion| Bytes::from(vec![version.number()]);
        clients.tell_schema_change(event);
        clients.tell_schema_change(|_| Bytes::from_static(b"another"));
        assert_eq!(receiver.try_recv().unwrap(), &[5][..]);
        assert!(receiver.try_recv().is_err());
        drop((deaf, hearing));
        assert!(clients.open().is_empty());
    }

    #[test]
    fn requests_in_flight_are_those_of_all_connections() {
        let clients = OpenConnections::default();
        let (sender, _receiver) = mpsc::channel(1);
        let [first, second] = [1, 2].map(|streams| {
            let client = Arc::new(ConnectionHandle::new(sender.downgrade()));
            clients.enter(&client);
            (0..streams).for_each(|stream| client.request_came(stream));
            client
        });
        assert_eq!(clients.in_flight(), 3);
        first.answered(0);
        assert_eq!(clients.in_flight(), 2);
        drop(second);
        assert_eq!(clients.in_flight(), 0);
    }

    #[test]
    fn marked_requests_differ_from_those_that_came_since() {
        let (sender, _receiver) = mpsc::channel(1);
        let client = ConnectionHandle::new(sender.downgrade());
        client.mark();
        assert!(client.marked_are_answered());
        for stream in [0, 5, i16::MAX] {
            client.request_came(stream);
        }
        client.mark();
        // A busy client always has requests in flight, but those that were marked are answered some
        // time.
        client.answered(0);
        client.request_came(0);
        client.request_came(70);
        client.answered(5);
        assert!(!client.marked_are_answered());
        client.answered(i16::MAX);
        assert!(client.marked_are_answered());
        assert_eq!(client.in_flight(), 2);
        client.inquired();
        assert_eq!(client.in_flight(), 3);
        client.inquiry_answered();
        // An answer without a request counts for nothing.
        client.answered(9);
        client.answered(0);
        client.answered(0);
        assert_eq!(client.in_flight(), 1);
    }

    #[tokio::test]
    async fn a_stream_is_in_use_from_request_to_answer() {
        let (sender, _receiver) = mpsc::channel(1);
        let client = ConnectionHandle::new(sender.downgrade());
        let waits = async |but| {
            let wait = client.others_answered(but);
            timeout(Duration::from_millis(5), wait).await.is_err()
        };
        let all = [0, 1, 63, 64, i16::MAX, i16::MIN, -1];
        for stream in all {
            assert!(!client.is_due_on(stream), "{stream}");
            client.request_came(stream);
            assert!(client.is_due_on(stream), "{stream}");
        }
        // No request went out on this stream.
        client.answered(7);
        for stream in all {
            assert!(waits(None).await, "{stream}");
            // Stream -1 is the last of them.
            assert_eq!(waits(Some(-1)).await, stream != -1, "{stream}");
            client.answered(stream);
            assert!(!client.is_due_on(stream), "{stream}");
        }
        assert!(!waits(None).await);
        assert!(!waits(Some(3)).await, "it is not in use itself");
    }

    #[tokio::test]
    async fn a_wait_ends_with_the_last_other_answer() {
        let (sender, _receiver) = mpsc::channel(1);
        let client = ConnectionHandle::new(sender.downgrade());
        client.request_came(1);
        client.request_came(2);
        let answering = async {
            tokio::task::yield_now().await;
            client.answered(1);
        };
        let waiting = async { tokio::join!(client.others_answered(Some(2)), answering) };
        timeout(Duration::from_secs(5), waiting).await.unwrap();
    }
}
