//! How much of a connection's answers the client has not read, and who must wait for that.
//!
//! Answers are of any size, and a client may ask for thousands before it reads the first. So each request waits for
//! its turn before it is worked on, and sets aside what the answers of its connection lately took. That bounds one connection;
//! what all of them hold is charged as it grows (`client-memory`).

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What the first answers of a connection are taken for, until it is known better.
const EXPECTED_BYTES_FIRST: usize = 256 << 10;

/// An answer larger than expected is expected again at once; smaller ones bring the expectation down by one part in so many.
const FORGET_OVER: usize = 16;

pub(super) struct Unread {
    limit: usize,
    /// Bytes handed in and not yet written, and bytes set aside for answers being worked out.
    bytes: AtomicUsize,
    /// What an answer is taken for.
    expected: AtomicUsize,
    /// Told when there are fewer bytes: the requests that wait for their turn, one after the other.
    turns: Notify,
    /// Told as well: the reader of the connection.
    room: Notify,
    /// The client is gone, nothing will ever be written again.
    pub gone: CancellationToken,
}

impl Unread {
    pub fn new(limit: usize) -> Self {
        Unread {
            limit,
            bytes: AtomicUsize::new(0),
            expected: AtomicUsize::new(EXPECTED_BYTES_FIRST),
            turns: Notify::new(),
            room: Notify::new(),
            gone: CancellationToken::new(),
        }
    }

    /// Waits for room for an answer, and sets its bytes aside; `None` if there will never be any.
    pub async fn expect(&self) -> Option<usize> {
        loop {
            let mut fewer = pin!(self.turns.notified());
            fewer.as_mut().enable();
            if let Some(expected) = self.try_expect() {
                // There may be room for the next one, too.
                self.turns.notify_one();
                return Some(expected);
            }
            tokio::select! {
                () = fewer => {}
                () = self.gone.cancelled() => return None,
            }
        }
    }

    /// An answer beyond the limit is taken for one just within, so that it gets its turn when there is no other.
    fn try_expect(&self) -> Option<usize> {
        let expected = self.expected.load(Ordering::Relaxed).min(self.limit);
        let add = |bytes: usize| Some(bytes + expected).filter(|with| *with <= self.limit);
        self.bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .ok()
            .map(|_| expected)
    }

    /// Takes a size into what is expected.
    pub fn learn(&self, bytes: usize) {
        let expected = self.expected.load(Ordering::Relaxed);
        // Two answers at once may count as one: it is an expectation all the same.
        let lower = expected - expected / FORGET_OVER + bytes.div_ceil(FORGET_OVER);
        self.expected.store(lower.max(bytes), Ordering::Relaxed);
    }

    pub fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn subtract(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.turns.notify_one();
        self.room.notify_one();
    }

    /// Waits until the bytes are within the limit; false if there was no need to wait.
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
        let unread = Unread::new(3 * EXPECTED_BYTES_FIRST);
        for _ in 0..3 {
            assert_eq!(unread.expect().await, Some(EXPECTED_BYTES_FIRST));
        }
        assert!(waits(unread.expect()).await);
        unread.subtract(EXPECTED_BYTES_FIRST);
        assert!(unread.expect().await.is_some());
    }

    #[tokio::test]
    async fn small_answers_let_more_requests_in_and_large_ones_fewer() {
        let unread = Unread::new(1 << 20);
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
        let unread = Arc::new(Unread::new(EXPECTED_BYTES_FIRST));
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
    async fn nobody_waits_for_a_client_that_is_gone() {
        let unread = Arc::new(Unread::new(1));
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
