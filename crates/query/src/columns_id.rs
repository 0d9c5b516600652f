//! The id of an answer's columns, by which clients of version 5 of the protocol tell which columns
//! they expect.

use bytes::Bytes;
use uuid::Uuid;
use value::CqlType;

/// The id of columns with these names and types: a hash of them after a `prefix`, which sets it
/// apart from the ids of others. Every node gives the same id.
pub fn columns_id<'a>(
    prefix: &[u8],
    columns: impl IntoIterator<Item = (&'a str, &'a CqlType)>,
) -> Bytes {
    let mut named = prefix.to_vec();
    for (name, cql_type) in columns {
        named.extend_from_slice(name.as_bytes());
        named.push(0);
        named.extend_from_slice(cql_type.to_string().as_bytes());
        named.extend_from_slice(&[0, 0]);
    }
    Bytes::copy_from_slice(Uuid::new_v5(&Uuid::nil(), &named).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_that_of_names_and_types() {
        let id = |prefix: &[u8], columns: &[(&str, CqlType)]| {
            columns_id(prefix, columns.iter().map(|(name, of)| (*name, of)))
        };
        let one = id(b"", &[("a", CqlType::Int)]);
        assert_eq!(one, id(b"", &[("a", CqlType::Int)]));
        for other in [
            id(b"", &[]),
            id(b"p", &[("a", CqlType::Int)]),
            id(b"", &[("b", CqlType::Int)]),
            id(b"", &[("a", CqlType::Text)]),
            id(b"", &[("a", CqlType::Int), ("a", CqlType::Int)]),
        ] {
            assert_ne!(one, other);
        }
    }
}
