//! The bytes of a connection's answers that its client has not read, and the tasks that wait for it
//! to read them.
//!
//! Answers have any size, and a client may send thousands of requests before it reads the first
//! answer. So each request waits for its turn before work on it begins, and sets aside as many
//! bytes as the connection's latest answers took. That bounds one connection. The answers of all
//! connections together are charged as they grow (`client-memory`).

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The size that is expected of a connection's first answers, in bytes.
const EXPECTED_BYTES_FIRST: usize = 256 << 10;

/// The weight of the past in the expected size. A larger answer than expected is expected again at
/// once. A smaller one lowers the expectation by one part in this many of the difference.
const FORGET_OVER: usize = 16;

/// The count of unread bytes of a connection.
pub(super) struct ResponseBacklog {
    limit: usize,
    /// The bytes of answers that were handed in and not yet written, and the bytes set aside for
    /// answers that are being made.
    bytes: AtomicUsize,
    /// The size that is expected of an answer, in bytes.
    expected: AtomicUsize,
    /// Notified when there are fewer bytes. Requests that wait for their turn listen to it, one
    /// after the other.
    turns: Notify,
    /// Notified when there are fewer bytes. The reader of the connection listens to it.
    room: Notify,
    /// Cancelled when the client has disconnected, so that nothing will be written any more.
    pub gone: CancellationToken,
}

impl ResponseBacklog {
    pub fn new(limit: usize) -> Self {
        ResponseBacklog {
            limit,
            bytes: AtomicUsize::new(0),
            expected: AtomicUsize::new(EXPECTED_BYTES_FIRST),
            turns: Notify::new(),
            room: Notify::new(),
            gone: CancellationToken::new(),
        }
    }

    /// Waits until there is room for an answer, and sets its expected bytes aside; `None` if the
    /// client has disconnected.
    pub async fn expect(&self) -> Option<usize> {
        loop {
            let mut fewer = pin!(self.turns.notified());
            fewer.as_mut().enable();
            if let Some(expected) = self.try_expect() {
                // There may be room for the next request, too.
                self.turns.notify_one();
                return Some(expected);
            }
            tokio::select! {
                () = fewer => {}
                () = self.gone.cancelled() => return None,
            }
        }
    }

    /// Sets bytes for an answer aside if there is room. An answer expected to exceed the limit
    /// counts as one of just the limit, so that it gets its turn when there is no other.
    fn try_expect(&self) -> Option<usize> {
        let expected = self.expected.load(Ordering::Relaxed).min(self.limit);
        let add = |bytes: usize| Some(bytes + expected).filter(|with| *with <= self.limit);
        self.bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .ok()
            .map(|_| expected)
    }

    /// Adjusts the expected size after an answer of this many bytes.
    pub fn learn(&self, bytes: usize) {
        let expected = self.expected.load(Ordering::Relaxed);
        // Of two answers at once one may be lost, which does no harm to an estimate.
        let lower = expected - expected / FORGET_OVER + bytes.div_ceil(FORGET_OVER);
        self.expected.store(lower.max(bytes), Ordering::Relaxed);
    }

    /// Counts bytes of an answer that was handed in.
    pub fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The bytes that are counted now.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes off bytes that were written or are no longer set aside, and wakes the waiting tasks.
    pub fn subtract(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.turns.notify_one();
        self.room.notify_one();
    }

    /// Waits until the bytes are within the limit. Returns whether it had to wait.
    pub async fn has_room(&self) -> bool {
        let mut has_waited = false;
        loop {
            let mut fewer = pin!(self.room.notified());
            fewer.as_mut().enable();
            if self.bytes.load(Ordering::Relaxed) <= self.limit {
                return has_waited;
            }
            has_waited = true;
            fewer.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    async fn waits(future: impl Future) -> bool {
        timeout(Duration::from_millis(20), future).await.is_err()
    }

    #[tokio::test]
    async fn turns_are_given_while_their_answers_fit() {
        let unread = ResponseBacklog::new(3 * EXPECTED_BYTES_FIRST);
        for _ in 0..3 {
            assert_eq!(unread.expect().await, Some(EXPECTED_BYTES_FIRST));
        }
        assert!(waits(unread.expect()).await);
        unread.subtract(EXPECTED_BYTES_FIRST);
        assert!(unread.expect().await.is_some());
    }

    #[tokio::test]
    async fn small_answers_let_more_requests_in_and_large_ones_fewer() {
        let unread = ResponseBacklog::new(1 << 20);
        for _ in 0..200 {
            unread.learn(1000);
        }
        let small = unread.expected.load(Ordering::Relaxed);
        assert!((900..1200).contains(&small), "{small}");
        for _ in 0..200 {
            unread.learn(5_000_000);
        }
        assert!(unread.expect().await.is_some(), "one at least");
        assert!(waits(unread.expect()).await);
    }

    #[tokio::test]
    async fn everybody_who_waits_gets_a_turn_in_the_end() {
        let unread = Arc::new(ResponseBacklog::new(EXPECTED_BYTES_FIRST));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..500 {
            let unread = unread.clone();
            tasks.spawn(async move {
                let expected = unread.expect().await.unwrap();
                tokio::task::yield_now().await;
                unread.subtract(expected);
            });
        }
        timeout(Duration::from_secs(10), tasks.join_all())
            .await
            .expect("nobody is forgotten");
    }

    #[tokio::test]
    async fn a_wait_ends_when_the_client_disconnects() {
        let unread = Arc::new(ResponseBacklog::new(1));
        assert!(unread.expect().await.is_some());
        let waiting = tokio::spawn({
            let unread = unread.clone();
            async move { unread.expect().await }
        });
        tokio::task::yield_now().await;
        unread.gone.cancel();
        assert_eq!(waiting.await.unwrap(), None);
    }
}
