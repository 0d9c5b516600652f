//! Tokens: the positions of partitions on the ring.

use bytes::{BufMut, Bytes};

/// A position on the ring. `i64::MIN` is never the token of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub i64);

impl Token {
    /// The token of a hash. To drivers `i64::MIN` means "before the ring", so a hash of `i64::MIN`
    /// becomes `i64::MAX`.
    fn of_hash(hash: i64) -> Token {
        Token(if hash == i64::MIN { i64::MAX } else { hash })
    }
}

/// The partitioner of a table: the function that gives a partition key its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioner {
    /// `org.apache.cassandra.dht.Murmur3Partitioner`, which drivers compute too.
    Murmur3,
    /// `com.scylladb.dht.CDCPartitioner`: the token is the first 8 bytes of the stream id.
    Cdc,
}

impl Partitioner {
    /// The token of a partition key in its serialised form (see [`routing_key`]).
    ///
    /// A key too short to be a stream id has the last token under [`Partitioner::Cdc`].
    pub fn token(self, routing_key: &[u8]) -> Token {
        match self {
            Partitioner::Murmur3 => Token::of_hash(murmur3(routing_key)),
            Partitioner::Cdc => match routing_key.first_chunk::<8>() {
                Some(first) => Token::of_hash(i64::from_be_bytes(*first)),
                None => Token(i64::MAX),
            },
        }
    }
}

/// Serialises a partition key for hashing. A single component is its bare value. Several are
/// written one after another, each as its length in two bytes, its value and a zero byte.
///
/// A component longer than 65,535 bytes is not valid in a key, and the caller has to refuse it.
/// Here its length is written modulo 2^16.
pub fn routing_key(components: &[Bytes]) -> Bytes {
    if let [single] = components {
        return single.clone();
    }
    let components = components.iter().map(Bytes::as_ref);
    composite(components).into()
}

/// Serialises a partition key of several components, as [`routing_key`] does.
pub fn composite<'a>(components: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u8> {
    let length = components
        .clone()
        .map(|component| component.len() + 3)
        .sum();
    let mut key = Vec::with_capacity(length);
    for component in components {
        key.put_u16(component.len() as u16);
        key.put_slice(component);
        key.put_u8(0);
    }
    key
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The first half of MurmurHash3 x64 128 with seed 0, as Cassandra computes it: the bytes after
/// the last full block are sign-extended before they are mixed in, unlike in the original.
fn murmur3(data: &[u8]) -> i64 {
    let mut h1: u64 = 0;
    let mut h2: u64 = 0;

    let mut blocks = data.chunks_exact(16);
    for block in &mut blocks {
        let (low, high) = block.split_at(8);
        h1 ^= mix_k1(little_endian(low));
        h1 = h1.rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix_k2(little_endian(high));
        h2 = h2.rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }

    let tail = blocks.remainder();
    let (low, high) = tail.split_at(tail.len().min(8));
    if !high.is_empty() {
        h2 ^= mix_k2(sign_extended(high));
    }
    if !low.is_empty() {
        h1 ^= mix_k1(sign_extended(low));
    }

    h1 ^= data.len() as u64;
    h2 ^= data.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = final_mix(h1);
    h2 = final_mix(h2);
    h1.wrapping_add(h2) as i64
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn sign_extended(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().fold(0, |word, (position, byte)| {
        word ^ ((i64::from(*byte as i8) as u64) << (8 * position))
    })
}

fn mix_k1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_k2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn final_mix(mut h: u64) -> u64 {
    h ^= h >> 33;
    h = h.wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^= h >> 33;
    h = h.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ h >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(key: &[u8]) -> i64 {
        Partitioner::Murmur3.token(key).0
    }

    #[test]
    fn murmur3_gives_the_tokens_of_the_drivers() {
        assert_eq!(token(b"123"), -7468325962851647638);
        assert_eq!(
            token(&b"\x00\xff\x10\xfa\x99".repeat(10)),
            5837342703291459765
        );
        assert_eq!(token(&[0xfe; 8]), -8927430733708461935);
        assert_eq!(token(&[0x10; 8]), 1446172840243228796);
        assert_eq!(token(b"9223372036854775807"), 7162290910810015547);
    }

    #[test]
    fn the_lowest_hash_moves_to_the_other_end() {
        let key = [i64::MIN.to_be_bytes(), [7; 8]].concat();
        assert_eq!(Partitioner::Cdc.token(&key), Token(i64::MAX));
    }

    #[test]
    fn a_stream_id_begins_with_its_token() {
        let id = [(-42_i64).to_be_bytes(), [9; 8]].concat();
        assert_eq!(Partitioner::Cdc.token(&id), Token(-42));
        assert_eq!(Partitioner::Cdc.token(&id[..7]), Token(i64::MAX));
    }

    #[test]
    fn routing_keys_of_several_columns_are_framed() {
        let int = Bytes::from_static(&[0, 0, 0, 1]);
        let text = Bytes::from_static(b"ab");
        assert_eq!(routing_key(std::slice::from_ref(&int)), int);
        assert_eq!(
            routing_key(&[int, text]).as_ref(),
            b"\x00\x04\x00\x00\x00\x01\x00\x00\x02ab\x00"
        );
    }
}
