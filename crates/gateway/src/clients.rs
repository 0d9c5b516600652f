//! The connections of clients, as far as others need to know of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::stream_set::StreamSet;

/// A connection of a client.
pub(crate) struct Client {
    in_flight: Mutex<InFlight>,
    /// Told whenever a request has its answer.
    freed: Notify,
    hears_schema_changes: AtomicBool,
    answers: mpsc::WeakSender<Bytes>,
}

impl Client {
    /// A client to which frames can be sent by `answers`.
    pub(crate) fn new(answers: mpsc::WeakSender<Bytes>) -> Client {
        Client {
            in_flight: Mutex::default(),
            freed: Notify::new(),
            hears_schema_changes: AtomicBool::new(false),
            answers,
        }
    }

    /// A request is due an answer on its stream. Must be called before anything is decided on it: whoever replaces the catalog's
    /// snapshot and then [marks](Client::mark) what is in flight knows that all else is decided by the new one.
    pub(crate) fn asked(&self, stream: i16) {
        self.in_flight.lock().asked.add(stream);
    }

    /// The request of a stream has its answer. A node may also answer what it was not asked.
    pub(crate) fn answered(&self, stream: i16) {
        let mut in_flight = self.in_flight.lock();
        let was_asked = in_flight.asked.remove(stream);
        in_flight.marked.remove(stream);
        drop(in_flight);
        if was_asked {
            // One waits at most: the loop that reads the client's requests.
            self.freed.notify_one();
        }
    }

    /// Whether an answer is due on a stream. What is known of an answer is known by its stream: were a second request to go
    /// out before the first is answered, the answer to the one would be taken for the answer to the other, and an id that every
    /// client uses would come to mean what somebody made it mean. So a stream carries one request at a time.
    pub(crate) fn is_due_on(&self, stream: i16) -> bool {
        self.in_flight.lock().asked.holds(stream)
    }

    /// Waits until no answer is due, but for one on the stream `but`.
    pub(crate) async fn others_answered(&self, but: Option<i16>) {
        loop {
            let freed = self.freed.notified();
            if self.in_flight.lock().asked.holds_none_but(but) {
                return;
            }
            freed.await;
        }
    }

    /// The gateway asks something itself on this connection. It writes nothing, so it is never marked.
    pub(crate) fn inquired(&self) {
        self.in_flight.lock().inquiries += 1;
    }

    /// One of the gateway's own requests has its answer.
    pub(crate) fn inquiry_answered(&self) {
        let mut in_flight = self.in_flight.lock();
        in_flight.inquiries = in_flight.inquiries.saturating_sub(1);
    }

    /// Requests whose answers are due.
    pub(crate) fn in_flight(&self) -> usize {
        let in_flight = self.in_flight.lock();
        in_flight.asked.count() + in_flight.inquiries
    }

    /// Marks the requests that are in flight now.
    pub(crate) fn mark(&self) {
        let mut in_flight = self.in_flight.lock();
        let in_flight = &mut *in_flight;
        in_flight.marked.clone_from(&in_flight.asked);
    }

    /// Whether all requests that were marked have their answers.
    pub(crate) fn marked_are_answered(&self) -> bool {
        self.in_flight.lock().marked.holds_none_but(None)
    }

    /// Where frames for the client go, as long as it may ask more or something is held that it is due.
    pub(crate) fn answers(&self) -> Option<mpsc::Sender<Bytes>> {
        self.answers.upgrade()
    }

    /// The client has registered for changes of the schema.
    pub(crate) fn hear_schema_changes(&self) {
        self.hears_schema_changes.store(true, Ordering::Relaxed);
    }
}

/// What is due an answer.
#[derive(Debug, Default)]
struct InFlight {
    /// The gateway's own requests. Their streams may be wanted by the client's next requests, so they are only counted.
    inquiries: usize,
    /// The streams of the client's requests.
    asked: StreamSet,
    /// Those of them that were in flight at some moment.
    marked: StreamSet,
}

/// All connections that are open.
#[derive(Default)]
pub(crate) struct Clients {
    open: Mutex<Vec<Weak<Client>>>,
}

impl Clients {
    /// Takes note of a connection, for as long as somebody holds it.
    pub(crate) fn enter(&self, client: &Arc<Client>) {
        let mut open = self.open.lock();
        if open.len() == open.capacity() {
            open.retain(|client| client.strong_count() > 0);
        }
        open.push(Arc::downgrade(client));
    }

    /// The connections that are open now.
    pub(crate) fn open(&self) -> Vec<Weak<Client>> {
        let mut open = self.open.lock();
        open.retain(|client| client.strong_count() > 0);
        open.clone()
    }

    /// Sends an event to all that hear changes of the schema. One that does not read misses it.
    pub(crate) fn tell_schema_change(&self, event: &Bytes) {
        for client in self.open() {
            if let Some(client) = client.upgrade()
                && client.hears_schema_changes.load(Ordering::Relaxed)
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
    fn those_that_hear_are_told_and_those_that_are_gone_forgotten() {
        let clients = Clients::default();
        let (sender, mut receiver) = mpsc::channel(1);
        let deaf = Arc::new(Client::new(sender.downgrade()));
        let hearing = Arc::new(Client::new(sender.downgrade()));
        hearing.hear_schema_changes();
        clients.enter(&deaf);
        clients.enter(&hearing);
        // The second does not fit and is missed; nothing waits.
        clients.tell_schema_change(&Bytes::from_static(b"one"));
        clients.tell_schema_change(&Bytes::from_static(b"two"));
        assert_eq!(receiver.try_recv().unwrap(), &b"one"[..]);
        assert!(receiver.try_recv().is_err());
        drop((deaf, hearing));
        assert!(clients.open().is_empty());
    }

    #[test]
    fn what_was_in_flight_is_known_among_what_came_since() {
        let (sender, _receiver) = mpsc::channel(1);
        let client = Client::new(sender.downgrade());
        client.mark();
        assert!(client.marked_are_answered());
        for stream in [0, 5, i16::MAX] {
            client.asked(stream);
        }
        client.mark();
        // A busy client is never idle, but what was in flight is answered some time.
        client.answered(0);
        client.asked(0);
        client.asked(70);
        client.answered(5);
        assert!(!client.marked_are_answered());
        client.answered(i16::MAX);
        assert!(client.marked_are_answered());
        assert_eq!(client.in_flight(), 2);
        client.inquired();
        assert_eq!(client.in_flight(), 3);
        client.inquiry_answered();
        // An answer that nobody asked for counts for nothing.
        client.answered(9);
        client.answered(0);
        client.answered(0);
        assert_eq!(client.in_flight(), 1);
    }

    #[tokio::test]
    async fn a_stream_is_in_use_from_request_to_answer() {
        let (sender, _receiver) = mpsc::channel(1);
        let client = Client::new(sender.downgrade());
        let waits = async |but| {
            let wait = client.others_answered(but);
            timeout(Duration::from_millis(5), wait).await.is_err()
        };
        let all = [0, 1, 63, 64, i16::MAX, i16::MIN, -1];
        for stream in all {
            assert!(!client.is_due_on(stream), "{stream}");
            client.asked(stream);
            assert!(client.is_due_on(stream), "{stream}");
        }
        // Nothing was asked on this one.
        client.answered(7);
        for stream in all {
            assert!(waits(None).await, "{stream}");
            // It is the last.
            assert_eq!(waits(Some(-1)).await, stream != -1, "{stream}");
            client.answered(stream);
            assert!(!client.is_due_on(stream), "{stream}");
        }
        assert!(!waits(None).await);
        assert!(!waits(Some(3)).await, "it is not in use itself");
    }

    #[tokio::test]
    async fn who_waits_for_an_answer_goes_on_with_it() {
        let (sender, _receiver) = mpsc::channel(1);
        let client = Client::new(sender.downgrade());
        client.asked(1);
        client.asked(2);
        let answering = async {
            tokio::task::yield_now().await;
            client.answered(1);
        };
        let waiting = async { tokio::join!(client.others_answered(Some(2)), answering) };
        timeout(Duration::from_secs(5), waiting).await.unwrap();
    }
}
