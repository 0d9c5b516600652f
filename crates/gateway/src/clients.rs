//! The connections of clients, as far as others need to know of them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;

/// A connection of a client.
pub(crate) struct Client {
    in_flight: AtomicUsize,
    hears_schema_changes: AtomicBool,
    answers: mpsc::WeakSender<Bytes>,
}

impl Client {
    /// A client to which frames can be sent by `answers`.
    pub(crate) fn new(answers: mpsc::WeakSender<Bytes>) -> Client {
        Client {
            in_flight: AtomicUsize::new(0),
            hears_schema_changes: AtomicBool::new(false),
            answers,
        }
    }

    /// One more request is due an answer. Must be called before anything is decided on it.
    pub(crate) fn asked(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        // Whoever replaces the catalog's snapshot and then sees no request here knows that the next one is decided by
        // the new snapshot. The twin of this fence is in `is_idle`.
        fence(Ordering::SeqCst);
    }

    /// One request has its answer.
    pub(crate) fn answered(&self) {
        // A node that answers more than it was asked must not make the count wrap.
        let _ = self
            .in_flight
            .fetch_update(Ordering::Release, Ordering::Relaxed, |count| {
                count.checked_sub(1)
            });
    }

    /// Requests whose answers are due.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Whether no request is decided on or on its way.
    pub(crate) fn is_idle(&self) -> bool {
        fence(Ordering::SeqCst);
        self.in_flight() == 0
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
    fn a_client_is_idle_when_all_is_answered() {
        let (sender, _receiver) = mpsc::channel(1);
        let client = Client::new(sender.downgrade());
        client.asked();
        client.asked();
        client.answered();
        assert!(!client.is_idle());
        client.answered();
        client.answered();
        assert!(client.is_idle());
        client.asked();
        assert_eq!(client.in_flight(), 1);
    }
}
