//! Reads of a CDC log wait for the writes that could still add rows to what they read.
//!
//! A reader of the log goes from window to window of `cdc$time` and never back. So a read first has
//! the storage settle the log up to the end of the window. Afterwards no row can be added to the
//! window. It ends at the present: rows of deletions may be dated a little ahead, and a reader that
//! went on after them would miss the rows that come meanwhile.

use bytes::Bytes;
use cql::error::CqlError;
use query::statement_clock::StatementClock;
use storage::Storage;
use storage::read::{ClusteringBound, ClusteringSlice};
use uuid::Uuid;
use value::timeuuid;

use crate::statement::storage_error;

/// Settles the log up to the last `cdc$time` in the slices. If the slices have no end, or reach
/// beyond the present, the log is settled up to the present. Returns the slices up to there; `None`
/// if all of them are later.
pub(super) async fn settle(
    storage: &Storage,
    slices: Vec<ClusteringSlice>,
    clock: &StatementClock,
) -> Result<Option<Vec<ClusteringSlice>>, CqlError> {
    let until = end_micros(&slices).map_or(clock.micros(), |end| end.min(clock.micros()));
    let end = storage.settle_log(until).await.map_err(storage_error)?;
    Ok(up_to(slices, end.saturating_add(1)))
}

/// The slices before that microsecond; `None` if nothing is left. No slices mean the whole log.
fn up_to(slices: Vec<ClusteringSlice>, end_micros: i64) -> Option<Vec<ClusteringSlice>> {
    let Ok(end) = timeuuid::min_for_micros(end_micros) else {
        return Some(slices);
    };
    let end = ClusteringBound::Exclusive(vec![Bytes::copy_from_slice(end.as_bytes())]);
    if slices.is_empty() {
        return Some(vec![ClusteringSlice {
            start: ClusteringBound::Unbounded,
            end,
        }]);
    }
    let cut = slices.into_iter().filter_map(|slice| {
        if end_of(&slice.end).is_some_and(|ends| ends <= end_micros) {
            return Some(slice);
        }
        let begins = time_of(&slice.start);
        let end = end.clone();
        let start = slice.start;
        begins
            .is_none_or(|begins| begins < end_micros)
            .then_some(ClusteringSlice { start, end })
    });
    let cut: Vec<ClusteringSlice> = cut.collect();
    (!cut.is_empty()).then_some(cut)
}

/// The first microsecond after all slices, since the epoch; `None` if a slice has no end, or there
/// are no slices.
fn end_micros(slices: &[ClusteringSlice]) -> Option<i64> {
    let ends: Option<Vec<i64>> = slices.iter().map(|slice| end_of(&slice.end)).collect();
    ends?.into_iter().max()
}

/// The first microsecond after a bound; `None` if there is none.
fn end_of(bound: &ClusteringBound) -> Option<i64> {
    time_of(bound).map(|time| time.saturating_add(1))
}

/// The microsecond of a bound; `None` if there is none.
fn time_of(bound: &ClusteringBound) -> Option<i64> {
    let (ClusteringBound::Inclusive(prefix) | ClusteringBound::Exclusive(prefix)) = bound else {
        return None;
    };
    let bytes: [u8; 16] = prefix.first()?.as_ref().try_into().ok()?;
    Some(timeuuid::unix_micros(&Uuid::from_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(millis: i64) -> ClusteringSlice {
        let uuid = timeuuid::min_for_millis(millis).unwrap();
        ClusteringSlice {
            start: ClusteringBound::Unbounded,
            end: ClusteringBound::Exclusive(vec![Bytes::copy_from_slice(uuid.as_bytes())]),
        }
    }

    #[test]
    fn the_latest_end_counts() {
        assert_eq!(end_micros(&[until(5), until(3)]), Some(5_001));
        let open = ClusteringSlice {
            end: ClusteringBound::Unbounded,
            ..until(1)
        };
        assert_eq!(end_micros(&[until(5), open]), None);
        assert_eq!(end_micros(&[]), None);
    }

    #[test]
    fn a_read_ends_at_the_present() {
        let whole = up_to(Vec::new(), 5_000).unwrap();
        assert_eq!(whole, [until(5)]);
        let open = ClusteringSlice {
            start: until(3).end,
            end: ClusteringBound::Unbounded,
        };
        let cut = ClusteringSlice {
            start: until(3).end,
            end: until(5).end,
        };
        let both = vec![until(2), open.clone(), until(9)];
        let expected = vec![until(2), cut, until(5)];
        assert_eq!(up_to(both, 5_000), Some(expected));
        assert_eq!(up_to(vec![open], 2_000), None);
    }
}
