//! The paths and values of the elements of non-frozen collections, which have one cell for each
//! element.
//!
//! In a set the path is the element, and in a map it is the key. In a list the path is a timeuuid,
//! and the elements are in the order of their timeuuids. An appended element gets the present time.
//! A prepended element gets the present time mirrored at a fixed day in the past, so a later write
//! has an earlier path.

use bytes::Bytes;
use cql::error::CqlError;
use query::statement_clock::{self, StatementClock};
use value::{split_elements, split_entries};

/// The day at which times are mirrored: 2010-01-01, in 100-ns units since the Unix epoch. It is the
/// day that Cassandra uses. Every appended path is after it and every prepended one before it.
const MIRROR_TICKS: i64 = 12_623_040_000_000_000;

/// The elements of a serialised list as (path, value), with paths after all that exist.
pub(super) fn appended(
    list: &[u8],
    clock: &StatementClock,
) -> Result<Vec<(Bytes, Bytes)>, CqlError> {
    let elements = elements(list)?;
    let first = clock.reserve_ticks(elements.len() as i64);
    Ok(with_paths(elements, first))
}

/// The elements of a serialised list as (path, value), with paths before all that exist. The paths
/// keep the order of the list.
pub(super) fn prepended(
    list: &[u8],
    clock: &StatementClock,
) -> Result<Vec<(Bytes, Bytes)>, CqlError> {
    let elements = elements(list)?;
    let count = elements.len() as i64;
    let mirrored = 2 * MIRROR_TICKS - (clock.reserve_ticks(count) + count - 1);
    Ok(with_paths(elements, mirrored))
}

/// The elements of a serialised set as (path, value), with empty values.
pub(super) fn set_elements(set: &[u8]) -> Result<Vec<(Bytes, Bytes)>, CqlError> {
    Ok(elements(set)?
        .into_iter()
        .map(|element| (element, Bytes::new()))
        .collect())
}

/// The elements of a serialised list or set.
pub(super) fn elements(bytes: &[u8]) -> Result<Vec<Bytes>, CqlError> {
    split_elements(bytes).map_err(|error| CqlError::invalid(error.0))
}

/// The entries of a serialised map as (path, value).
pub(super) fn map_entries(map: &[u8]) -> Result<Vec<(Bytes, Bytes)>, CqlError> {
    split_entries(map).map_err(|error| CqlError::invalid(error.0))
}

fn with_paths(elements: Vec<Bytes>, first_tick: i64) -> Vec<(Bytes, Bytes)> {
    (first_tick..)
        .zip(elements)
        .map(|(tick, element)| {
            let path = statement_clock::timeuuid_at(tick);
            (Bytes::copy_from_slice(path.as_bytes()), element)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use value::{CqlType, compare, join_elements};

    use super::*;

    #[test]
    fn lists_grow_at_both_ends() {
        let list = |elements: &[&str]| join_elements(elements.iter().map(|text| text.as_bytes()));
        let clock = StatementClock::of_none();
        let mut cells = Vec::new();
        cells.extend(appended(&list(&["c", "d"]), &clock).unwrap());
        cells.extend(prepended(&list(&["a", "b"]), &clock).unwrap());
        cells.extend(appended(&list(&["e"]), &clock).unwrap());
        cells.extend(prepended(&list(&["x", "y", "z"]), &clock).unwrap());
        cells.sort_by(|(a, _), (b, _)| compare(&CqlType::Timeuuid, a, b));
        let order: Vec<&[u8]> = cells.iter().map(|(_, value)| value.as_ref()).collect();
        assert_eq!(order, [b"x", b"y", b"z", b"a", b"b", b"c", b"d", b"e"]);
    }
}
