//! The streams of a connection that the gateway uses for its own requests.
//!
//! The client chooses the streams of its requests. The gateway takes its own from the end of the
//! range, where most drivers never come, and notes who uses which stream there. It takes none that
//! the client uses, and a client that chooses one of the gateway's waits until that one is
//! answered.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::node_requests::{AnswerSender, IN_FLIGHT_MAX};

/// The number of streams that are noted: twice as many as the gateway can use at once.
const COUNT: usize = 2 * IN_FLIGHT_MAX;
/// The first of these streams; the last one is the last stream there is.
const FIRST: i16 = i16::MAX - (COUNT as i16 - 1);

/// The user of a stream.
enum StreamUser {
    /// The client.
    Client,
    /// The gateway; its answer goes to this sender.
    Own(AnswerSender),
}

/// The users of the last [`COUNT`] streams of a connection.
#[derive(Default)]
pub(super) struct OwnStreams {
    in_use: Mutex<StreamsInUse>,
    /// Notified whenever a request of the gateway's is answered.
    released: Notify,
}

/// The streams that are in use.
#[derive(Default)]
struct StreamsInUse {
    by_stream: HashMap<i16, StreamUser>,
    /// The place, counted from [`FIRST`], at which the search for a free stream begins.
    next: usize,
}

impl OwnStreams {
    /// Takes a free stream for a request of the gateway's, whose answer goes to `answer`; `None` if
    /// no stream is free.
    pub(super) fn take(&self, answer: AnswerSender) -> Option<i16> {
        let mut in_use = self.in_use.lock();
        let start = in_use.next;
        let free = (0..COUNT)
            .map(|step| FIRST + ((start + step) % COUNT) as i16)
            .find(|stream| !in_use.by_stream.contains_key(stream))?;
        in_use.next = (usize::from((free - FIRST) as u16) + 1) % COUNT;
        in_use.by_stream.insert(free, StreamUser::Own(answer));
        Some(free)
    }

    /// Waits until the client may use a stream, and notes that it does.
    pub(super) async fn reserve_for_client(&self, stream: i16) {
        if stream < FIRST {
            return;
        }
        loop {
            let released = self.released.notified();
            if self.try_reserve_for_client(stream) {
                return;
            }
            released.await;
        }
    }

    /// Notes that the client uses a stream; false if the gateway uses it.
    fn try_reserve_for_client(&self, stream: i16) -> bool {
        let mut in_use = self.in_use.lock();
        if let Some(StreamUser::Own(_)) = in_use.by_stream.get(&stream) {
            return false;
        }
        in_use.by_stream.insert(stream, StreamUser::Client);
        true
    }

    /// Whether the response on a stream is for the gateway.
    pub(super) fn is_own(&self, stream: i16) -> bool {
        stream >= FIRST
            && matches!(
                self.in_use.lock().by_stream.get(&stream),
                Some(StreamUser::Own(_))
            )
    }

    /// Frees a stream whose response has come. Returns the sender for the answer if the request was
    /// the gateway's.
    pub(super) fn answered(&self, stream: i16) -> Option<AnswerSender> {
        if stream < FIRST {
            return None;
        }
        match self.in_use.lock().by_stream.remove(&stream) {
            Some(StreamUser::Own(answer)) => {
                // At most one task waits: the loop that reads the client's requests.
                self.released.notify_one();
                Some(answer)
            }
            Some(StreamUser::Client) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;
    use tokio::time::timeout;

    use super::*;

    fn take(streams: &OwnStreams) -> Option<i16> {
        streams.take(oneshot::channel().0)
    }

    #[tokio::test]
    async fn no_stream_is_used_by_both() {
        let streams = OwnStreams::default();
        streams.reserve_for_client(FIRST).await;
        streams.reserve_for_client(3).await;
        let own = take(&streams).unwrap();
        assert_eq!(own, FIRST + 1);
        assert!(streams.is_own(own) && !streams.is_own(FIRST) && !streams.is_own(3));

        let mut waiting = Box::pin(streams.reserve_for_client(own));
        let early = timeout(Duration::from_millis(20), &mut waiting).await;
        assert!(early.is_err(), "the stream is the gateway's");
        assert!(streams.answered(own).is_some());
        timeout(Duration::from_secs(5), waiting).await.unwrap();
        assert!(!streams.is_own(own));
        assert!(streams.answered(own).is_none(), "it is the client's");
    }

    #[tokio::test]
    async fn all_may_be_in_use_and_come_back() {
        let streams = OwnStreams::default();
        let mut taken: Vec<i16> = (0..COUNT).map(|_| take(&streams).unwrap()).collect();
        assert_eq!(take(&streams), None);
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(FIRST..=i16::MAX));
        streams.answered(FIRST + 7).unwrap();
        assert_eq!(take(&streams), Some(FIRST + 7));
    }
}
