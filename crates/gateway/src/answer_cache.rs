//! Answers that are cached for some seconds, as many readers request them and they seldom change:
//! which generations of streams there are. Each reader of each log requests that twice a second. A
//! generation is announced long before it begins, so an answer that is some seconds old does no
//! harm.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cql::wire::{Compression, Frame, FrameHeader, ProtocolVersion};
use parking_lot::Mutex;

/// The time for which an answer is cached.
const VALID_FOR: Duration = Duration::from_secs(10);

/// The number of answers that are cached at once.
const ANSWERS_MAX: usize = 64;

/// The most bytes that a question and its answer may have together; longer ones are not cached.
const BYTES_MAX: usize = 4 << 10;

/// A request of a client, byte for byte, with the compression of its connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestCacheKey {
    /// The request's body as it came.
    pub(crate) body: Bytes,
    /// The version and the flags of the request's frame.
    pub(crate) form: (ProtocolVersion, u8),
    /// The name of the connection's compression; `None` without one.
    pub(crate) compression: Option<&'static str>,
}

impl RequestCacheKey {
    /// The question of a request on a connection with this compression.
    pub(crate) fn new(
        body: &[u8],
        header: &FrameHeader,
        compression: Option<Compression>,
    ) -> RequestCacheKey {
        RequestCacheKey {
            body: Bytes::copy_from_slice(body),
            form: (header.version, header.flags.0),
            compression: compression.map(|compression| compression.name()),
        }
    }
}

/// The cached answers of a gateway.
#[derive(Debug, Default)]
pub(crate) struct AnswerCache {
    answers: Mutex<HashMap<RequestCacheKey, (Instant, Frame)>>,
}

impl AnswerCache {
    /// The cached answer to a question, with the stream on which it came.
    pub(crate) fn get(&self, question: &RequestCacheKey) -> Option<Frame> {
        self.get_at(question, Instant::now())
    }

    fn get_at(&self, question: &RequestCacheKey, now: Instant) -> Option<Frame> {
        let answers = self.answers.lock();
        let (since, frame) = answers.get(question)?;
        (now.duration_since(*since) < VALID_FOR).then(|| frame.clone())
    }

    /// Keeps an answer of the node.
    pub(crate) fn keep(&self, question: RequestCacheKey, answer: Frame) {
        self.keep_at(question, answer, Instant::now());
    }

    fn keep_at(&self, question: RequestCacheKey, answer: Frame, now: Instant) {
        if question.body.len() + answer.body.len() > BYTES_MAX {
            return;
        }
        let mut answers = self.answers.lock();
        answers.retain(|_, (since, _)| now.duration_since(*since) < VALID_FOR);
        if answers.len() < ANSWERS_MAX {
            answers.insert(question, (now, answer));
        }
    }
}

#[cfg(test)]
mod tests {
    use cql::wire::{FrameFlags, Opcode};

    use super::*;

    fn answer(body: &'static [u8]) -> Frame {
        Frame {
            header: FrameHeader {
                version: ProtocolVersion::V4,
                flags: FrameFlags::default(),
                stream: 3,
                opcode: Opcode::Result,
                length: body.len() as u32,
            },
            body: Bytes::from_static(body),
        }
    }

    fn asked(body: &[u8], version: ProtocolVersion, flags: u8) -> RequestCacheKey {
        let header = FrameHeader {
            version,
            flags: FrameFlags(flags),
            stream: 3,
            opcode: Opcode::Execute,
            length: body.len() as u32,
        };
        RequestCacheKey::new(body, &header, None)
    }

    #[test]
    fn an_answer_is_kept_for_a_while_and_for_the_same_question_alone() {
        let kept = AnswerCache::default();
        let v4 = ProtocolVersion::V4;
        let question = asked(b"asked", v4, 0);
        let now = Instant::now();
        kept.keep_at(question.clone(), answer(b"answer"), now);
        let got = kept.get_at(&question, now + VALID_FOR / 2).unwrap();
        assert_eq!(got.body, &b"answer"[..]);
        assert!(kept.get_at(&question, now + VALID_FOR).is_none());
        for other in [
            asked(b"another", v4, 0),
            asked(b"asked", v4, 2),
            asked(b"asked", ProtocolVersion::V5, 0),
            RequestCacheKey {
                compression: Some("lz4"),
                ..question.clone()
            },
        ] {
            assert!(kept.get_at(&other, now).is_none());
        }
    }

    #[test]
    fn answers_take_little() {
        let kept = AnswerCache::default();
        let now = Instant::now();
        for number in 0..1_000u32 {
            let question = asked(&number.to_be_bytes(), ProtocolVersion::V4, 0);
            kept.keep_at(question, answer(b"answer"), now);
        }
        assert_eq!(kept.answers.lock().len(), ANSWERS_MAX);
        let long = asked(&[0; BYTES_MAX], ProtocolVersion::V4, 0);
        kept.keep_at(long.clone(), answer(b"answer"), now + VALID_FOR);
        assert!(kept.get_at(&long, now + VALID_FOR).is_none());
    }
}
