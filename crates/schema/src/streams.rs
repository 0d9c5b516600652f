//! CDC streams: the form of a stream id, and the choice of the stream for the changes of a
//! partition.
//!
//! ```text
//! stream id   16 bytes, big-endian: token (8), then from the upper bit on 38 random bits,
//!             the vnode's index (22 bits, 0 with tablets), version (4 bits: 1)
//! ```

use bytes::Bytes;
use uuid::Uuid;
use value::token::Token;

use super::{RING_TOKENS, StreamGeneration};

const VERSION: u64 = 1;
const VERSION_BITS: u32 = 4;
const INDEX_BITS: u32 = 22;

fn stream_id(token: Token, vnode_index: u64) -> Bytes {
    let random = Uuid::new_v4().as_u64_pair().1 << (VERSION_BITS + INDEX_BITS);
    let lower = random | vnode_index << VERSION_BITS | VERSION;
    let id = [token.0.to_be_bytes(), lower.to_be_bytes()].concat();
    id.into()
}

impl StreamGeneration {
    /// The streams of a table in tablets mode: one tablet that holds the whole ring.
    pub fn of_one_tablet(since_ms: i64) -> StreamGeneration {
        StreamGeneration {
            since_ms,
            streams: vec![stream_id(Token(i64::MAX), 0)],
        }
    }

    /// The streams of all keyspaces without tablets: one for each vnode, with the vnode's token.
    pub fn of_vnodes(since_ms: i64) -> StreamGeneration {
        StreamGeneration {
            since_ms,
            streams: (0..)
                .zip(RING_TOKENS)
                .map(|(index, token)| stream_id(token, index))
                .collect(),
        }
    }

    /// The stream whose range holds a token: the first that ends at or after it. After the last
    /// stream the ring begins again.
    pub fn stream_of(&self, token: Token) -> Option<&Bytes> {
        let last_token = |stream: &Bytes| {
            stream
                .first_chunk::<8>()
                .map(|bytes| Token(i64::from_be_bytes(*bytes)))
        };
        let at = self
            .streams
            .partition_point(|stream| last_token(stream).is_some_and(|last| last < token));
        self.streams.get(at).or_else(|| self.streams.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(tokens: &[i64]) -> StreamGeneration {
        StreamGeneration {
            since_ms: 0,
            streams: tokens.iter().map(|t| stream_id(Token(*t), 0)).collect(),
        }
    }

    #[test]
    fn a_stream_takes_the_tokens_up_to_its_own_and_the_ring_closes() {
        let generation = generation(&[-10, 5]);
        let stream_of = |token| generation.stream_of(Token(token)).unwrap();
        assert_eq!(stream_of(-11), &generation.streams[0]);
        assert_eq!(stream_of(-10), &generation.streams[0]);
        assert_eq!(stream_of(-9), &generation.streams[1]);
        assert_eq!(stream_of(5), &generation.streams[1]);
        assert_eq!(stream_of(6), &generation.streams[0]);
    }

    #[test]
    fn the_lower_half_holds_index_and_version() {
        let id = stream_id(Token(-2), 3);
        assert_eq!(&id[..8], &(-2_i64).to_be_bytes());
        let lower = u64::from_be_bytes(id[8..].try_into().unwrap());
        assert_eq!(lower & 0xf, 1);
        assert_eq!(lower >> 4 & 0x3f_ffff, 3);
        let other = stream_id(Token(-2), 3);
        assert_ne!(id, other, "the upper bits are random");
    }
}
