//! Types that a dropped column may have when it is added again, by Cassandra's rules.

use query::functions::{Assignability, type_assignability};
use value::CqlType;

/// Whether stored values of a dropped column can be read as values of the type with which it is
/// added again. Its cells that are newer than the drop show again.
pub(super) fn is_read_as(dropped: &CqlType, added: &CqlType) -> bool {
    if dropped == added {
        return true;
    }
    if dropped.is_multi_cell() != added.is_multi_cell() {
        return false;
    }
    match (dropped, added) {
        (CqlType::List { element: a, .. }, CqlType::List { element: b, .. }) => is_read_as(a, b),
        (CqlType::Set { element: a, .. }, CqlType::Set { element: b, .. }) => is_ordered_as(a, b),
        (
            CqlType::Map {
                key: a, value: c, ..
            },
            CqlType::Map {
                key: b, value: d, ..
            },
        ) => is_ordered_as(a, b) && is_read_as(c, d),
        (CqlType::Tuple(a), CqlType::Tuple(b)) => {
            a.len() <= b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| is_read_as(a, b) || are_values_of(a, b))
        }
        (CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. }, _) => false,
        _ => dropped.fixed_length() == added.fixed_length() && are_values_of(dropped, added),
    }
}

/// Whether the bytes of a value of one type are a value of the other. Their lengths may differ.
fn are_values_of(dropped: &CqlType, added: &CqlType) -> bool {
    type_assignability(dropped, added) != Assignability::No
}

/// Whether values of one type have their order as values of the other, too: they are keys.
fn is_ordered_as(dropped: &CqlType, added: &CqlType) -> bool {
    dropped == added
        || matches!(
            (dropped, added),
            (CqlType::Ascii, CqlType::Text) | (CqlType::Ascii | CqlType::Text, CqlType::Blob)
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(element: CqlType, frozen: bool) -> CqlType {
        let element = Box::new(element);
        CqlType::List { element, frozen }
    }

    fn set(element: CqlType) -> CqlType {
        let element = Box::new(element);
        CqlType::Set {
            element,
            frozen: false,
        }
    }

    #[test]
    fn as_cassandra_has_it() {
        use CqlType::{Ascii, Bigint, Blob, Int, Text, Timestamp, Timeuuid, Tuple, Uuid, Varint};
        let read = [
            (Bigint, Timestamp),
            (Timestamp, Bigint),
            (Varint, Blob),
            (list(Timeuuid, false), list(Uuid, false)),
            (set(Ascii), set(Text)),
            (Tuple(vec![Int]), Tuple(vec![Varint, Text])),
            (
                Tuple(vec![list(Ascii, true)]),
                Tuple(vec![list(Text, true)]),
            ),
            (Tuple(vec![Int]), Blob),
        ];
        for (dropped, added) in read {
            assert!(is_read_as(&dropped, &added), "{dropped} {added}");
        }
        let not_read = [
            (Int, Varint),
            (Bigint, Blob),
            (Text, Ascii),
            (set(Timeuuid), set(Uuid)),
            (list(Int, false), list(Blob, false)),
            (list(Text, false), list(Text, true)),
            (list(Text, true), Blob),
            (Tuple(vec![Int, Text]), Tuple(vec![Int])),
        ];
        for (dropped, added) in not_read {
            assert!(!is_read_as(&dropped, &added), "{dropped} {added}");
        }
    }
}
