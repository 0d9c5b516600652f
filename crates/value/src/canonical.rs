//! The canonical form of values, in which sets and maps are stored.

use bytes::{BufMut, Bytes, BytesMut};

use crate::CqlType;
use crate::collection::{join_elements, join_entries, put_field, split_nullable_elements};
use crate::elements::{CollectionElements, MapEntries, TupleFields};
use crate::{ValueError, compare, validate};

/// Checks `bytes` as [`validate()`] does, and gives the form in which the database keeps the value.
///
/// Sets come in order and without repeats. Maps come in the order of their keys; of equal keys the
/// last entry stays. This holds at every depth, but not within vectors, which Cassandra leaves as
/// they are. A type without sets and maps costs no copy.
///
/// # Errors
/// If `bytes` is no value of `cql_type`.
pub fn canonical(cql_type: &CqlType, bytes: &Bytes) -> Result<Bytes, ValueError> {
    validate(cql_type, bytes)?;
    if holds_order(cql_type) {
        canonical_copy(cql_type, bytes)
    } else {
        Ok(bytes.clone())
    }
}

/// Splits the list that is bound to `IN ?` into its values, each in the form in which the database
/// keeps it, as [`canonical`]. An element may be null, and an element of no bytes is null, too, if
/// its type has no value of no bytes but [`Value::Empty`], as in Cassandra: so Apache's driver for
/// Python writes a null.
///
/// # Errors
/// If `bytes` is no list, or an element is neither null nor a value of type `element`.
///
/// [`Value::Empty`]: crate::Value::Empty
pub fn canonical_values_or_nulls(
    element: &CqlType,
    bytes: &[u8],
) -> Result<Vec<Option<Bytes>>, ValueError> {
    let is_null = |bytes: &Bytes| bytes.is_empty() && element.takes_no_bytes();
    split_nullable_elements(bytes)?
        .into_iter()
        .map(|value| match value.filter(|value| !is_null(value)) {
            Some(value) => canonical(element, &value).map(Some),
            None => Ok(None),
        })
        .collect()
}

/// Whether values of the type hold sets or maps that must be in order.
pub(crate) fn holds_order(cql_type: &CqlType) -> bool {
    match cql_type {
        CqlType::Set { .. } | CqlType::Map { .. } => true,
        CqlType::List { element, .. } => holds_order(element),
        CqlType::Tuple(types) => types.iter().any(holds_order),
        CqlType::UserType { definition, .. } => definition.field_types.iter().any(holds_order),
        _ => false,
    }
}

/// As [`canonical`], for a value that is known to be valid.
pub(crate) fn canonical_copy(cql_type: &CqlType, bytes: &[u8]) -> Result<Bytes, ValueError> {
    match cql_type {
        _ if !holds_order(cql_type) => Ok(Bytes::copy_from_slice(bytes)),
        CqlType::List { element, .. } => {
            let elements = each(element, CollectionElements::of_list(bytes)?)?;
            Ok(join_elements(elements.iter().map(Bytes::as_ref)))
        }
        CqlType::Set { element, .. } => {
            let mut elements = each(element, CollectionElements::of_set(bytes)?)?;
            elements.sort_by(|a, b| compare(element, a, b));
            elements.dedup_by(|a, b| compare(element, a, b).is_eq());
            Ok(join_elements(elements.iter().map(Bytes::as_ref)))
        }
        CqlType::Map { key, value, .. } => map(key, value, MapEntries::new(bytes)?),
        CqlType::Tuple(types) => tuple(types, bytes),
        CqlType::UserType { definition, .. } => tuple(&definition.field_types, bytes),
        _ => Ok(Bytes::copy_from_slice(bytes)),
    }
}

fn each(element: &CqlType, elements: CollectionElements<'_>) -> Result<Vec<Bytes>, ValueError> {
    elements
        .map(|bytes| canonical_copy(element, bytes?))
        .collect()
}

fn map(key: &CqlType, value: &CqlType, entries: MapEntries<'_>) -> Result<Bytes, ValueError> {
    let mut entries = entries
        .map(|entry| {
            let (key_bytes, value_bytes) = entry?;
            Ok((
                canonical_copy(key, key_bytes)?,
                canonical_copy(value, value_bytes)?,
            ))
        })
        .collect::<Result<Vec<_>, ValueError>>()?;
    entries.sort_by(|(a, _), (b, _)| compare(key, a, b));
    // The sort is stable, so of equal keys the last is the last written. `kept` comes before
    // `next`.
    entries.dedup_by(|next, kept| {
        let repeated = compare(key, &next.0, &kept.0).is_eq();
        if repeated {
            std::mem::swap(&mut next.1, &mut kept.1);
        }
        repeated
    });
    Ok(join_entries(
        entries.iter().map(|(key, value)| (&key[..], &value[..])),
    ))
}

fn tuple(types: &[CqlType], bytes: &[u8]) -> Result<Bytes, ValueError> {
    let mut out = BytesMut::with_capacity(bytes.len());
    for (field, cql_type) in TupleFields::new(types.len(), bytes).zip(types) {
        match field? {
            Some(bytes) => put_field(&mut out, &canonical_copy(cql_type, bytes)?),
            None => out.put_i32(-1),
        }
    }
    Ok(out.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn set_of(element: CqlType) -> CqlType {
        CqlType::Set {
            element: Box::new(element),
            frozen: true,
        }
    }

    fn ints(numbers: &[i32]) -> Bytes {
        let elements: Vec<_> = numbers.iter().map(|n| n.to_be_bytes()).collect();
        join_elements(elements.iter().map(|e| &e[..]))
    }

    #[test]
    fn sets_are_sorted_at_every_depth_and_lose_repeats() {
        assert_eq!(
            canonical(&set_of(CqlType::Int), &ints(&[3, -1, 3])).unwrap(),
            ints(&[-1, 3])
        );
        let outer = [ints(&[2, 1]), ints(&[1, 2]), ints(&[0])];
        assert_eq!(
            canonical(
                &set_of(set_of(CqlType::Int)),
                &join_elements(outer.iter().map(Bytes::as_ref))
            )
            .unwrap(),
            join_elements([ints(&[0]), ints(&[1, 2])].iter().map(Bytes::as_ref))
        );
    }

    #[test]
    fn the_last_of_equal_keys_wins() {
        let map = CqlType::Map {
            key: Box::new(CqlType::Text),
            value: Box::new(CqlType::Text),
            frozen: false,
        };
        let entries = [("b", "1"), ("a", "2"), ("b", "3"), ("b", "4")];
        let bytes = join_entries(
            entries
                .map(|(k, v)| (k.as_bytes(), v.as_bytes()))
                .into_iter(),
        );
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(
            Value::deserialize(&map, &bytes).unwrap(),
            Value::Map(vec![(text("a"), text("2")), (text("b"), text("4"))])
        );
    }

    #[test]
    fn a_vector_keeps_its_bytes() {
        let vector = CqlType::Vector {
            element: Box::new(set_of(CqlType::Int)),
            dimensions: 1,
        };
        let set = ints(&[3, -1, 3]);
        let bytes: Bytes = [&[set.len() as u8], &set[..]].concat().into();
        assert_eq!(canonical(&vector, &bytes).unwrap(), bytes);
        let list = CqlType::List {
            element: Box::new(vector),
            frozen: true,
        };
        let bytes = join_elements([&bytes[..]].into_iter());
        assert_eq!(canonical(&list, &bytes).unwrap(), bytes);
    }

    #[test]
    fn a_list_keeps_its_order() {
        let list = CqlType::List {
            element: Box::new(CqlType::Int),
            frozen: false,
        };
        assert_eq!(
            canonical(&list, &ints(&[2, 1, 2])).unwrap(),
            ints(&[2, 1, 2])
        );
    }
}
