//! Computes the token of a row as the database does.

use value::token::{Partitioner, composite};

use super::{EncodedValues, KeySchema};

/// The token of an encoded primary key, by the Murmur3 partitioner: the only one that the driver
/// and ScyllaDB know for tables.
pub(crate) fn token(keys: &KeySchema, key: &[u8]) -> i64 {
    let mut values = EncodedValues::of(keys.partition_of(key));
    let token = match keys.partition.len() {
        1 => Partitioner::Murmur3.token(values.next().unwrap_or_default()),
        _ => Partitioner::Murmur3.token(&composite(values)),
    };
    token.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::text_schema;

    /// The token is the one that Cassandra 5 gives.
    #[test]
    fn tokens_are_those_of_the_database() {
        let one = text_schema(1, 1);
        let key = one.encode([b"a".as_slice(), b"anything"]);
        assert_eq!(token(&one, key.as_bytes()), -8_839_064_797_231_613_815);
    }

    #[test]
    fn a_composite_is_more_than_its_values_in_a_row() {
        let two = text_schema(2, 0);
        let token_of = |a: &str, b: &str| {
            let key = two.encode([a.as_bytes(), b.as_bytes()]);
            token(&two, key.as_bytes())
        };
        assert_ne!(token_of("ab", "c"), token_of("a", "bc"));
    }
}
