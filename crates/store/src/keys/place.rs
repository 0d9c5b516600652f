//! The place of a row in an order that does not depend on one index.

use super::KeySchema;
use super::token::token;

/// The place of a row among all rows of a table: by the token of its partition, then by the bytes
/// of its encoded key. It is the same in each service, and after an index was built again, so that
/// pages of rows can be continued anywhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowPlace {
    token: i64,
    key: Box<[u8]>,
}

impl RowPlace {
    /// The place of the row with this encoded key.
    pub(crate) fn of(keys: &KeySchema, key: &[u8]) -> RowPlace {
        RowPlace {
            token: token(keys, key),
            key: key.into(),
        }
    }

    /// The place as bytes: the token, big-endian, and the key.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        [&self.token.to_be_bytes()[..], &self.key].concat()
    }

    /// Reads a place; `None` if the bytes are too few for one.
    pub(crate) fn read(bytes: &[u8]) -> Option<RowPlace> {
        let (token, key) = bytes.split_first_chunk()?;
        Some(RowPlace {
            token: i64::from_be_bytes(*token),
            key: key.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::text_schema;

    #[test]
    fn places_are_ordered_by_token_then_by_key() {
        let schema = text_schema(1, 1);
        let place = |p: &str, c: &str| {
            let key = schema.encode([p.as_bytes(), c.as_bytes()]);
            RowPlace::of(&schema, key.as_bytes())
        };
        assert!(place("a", "x") < place("a", "y"));
        let (a, b) = (place("a", "x"), place("b", "x"));
        assert_eq!(a < b, a.token < b.token);
        assert_eq!(RowPlace::read(&a.to_bytes()), Some(a));
        assert_eq!(RowPlace::read(&[1, 2, 3]), None);
    }
}
