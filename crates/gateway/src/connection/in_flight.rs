//! The streams on which the node owes the client an answer.
//!
//! What is known of an answer here is known by its stream. Were a second request to go out on a stream before the first
//! is answered, the answer to the one would be taken for the answer to the other: an id that every client uses would
//! come to mean what somebody made it mean. So a stream carries one request at a time.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The streams of one connection.
#[derive(Default)]
pub(super) struct InFlight {
    streams: Mutex<Streams>,
    /// Told whenever an answer has come.
    freed: Notify,
}

#[derive(Default)]
struct Streams {
    /// A bit for each stream, as far as streams were used: most clients keep to the first few hundred.
    words: Vec<u64>,
    count: usize,
}

/// Where the bit of a stream is. Negative streams come last.
fn place(stream: i16) -> (usize, u64) {
    let number = stream as u16;
    (usize::from(number / 64), 1 << (number % 64))
}

impl InFlight {
    /// Whether an answer is due on a stream.
    pub(super) fn holds(&self, stream: i16) -> bool {
        let (word, bit) = place(stream);
        let streams = self.streams.lock();
        streams.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// A request goes to the node on a stream that is free.
    pub(super) fn asked(&self, stream: i16) {
        let (word, bit) = place(stream);
        let mut streams = self.streams.lock();
        if streams.words.len() <= word {
            streams.words.resize(word + 1, 0);
        }
        streams.words[word] |= bit;
        streams.count += 1;
    }

    /// The last answer on a stream has come. A node may also answer what it was not asked.
    pub(super) fn answered(&self, stream: i16) {
        let (word, bit) = place(stream);
        let mut streams = self.streams.lock();
        if let Some(word) = streams.words.get_mut(word)
            && *word & bit != 0
        {
            *word &= !bit;
            streams.count -= 1;
            drop(streams);
            // One waits at most: the loop that reads the client's requests.
            self.freed.notify_one();
        }
    }

    /// Waits until no answer is due.
    pub(super) async fn none(&self) {
        loop {
            let freed = self.freed.notified();
            if self.streams.lock().count == 0 {
                return;
            }
            freed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_stream_is_held_from_request_to_answer() {
        let streams = InFlight::default();
        let all = [0, 1, 63, 64, i16::MAX, i16::MIN, -1];
        for stream in all {
            assert!(!streams.holds(stream), "{stream}");
            streams.asked(stream);
            assert!(streams.holds(stream), "{stream}");
        }
        // Nothing was asked on this one.
        streams.answered(7);
        for stream in all {
            let early = timeout(Duration::from_millis(5), streams.none()).await;
            assert!(early.is_err(), "{stream}");
            streams.answered(stream);
            assert!(!streams.holds(stream), "{stream}");
        }
        timeout(Duration::from_secs(5), streams.none())
            .await
            .unwrap();
    }
}
