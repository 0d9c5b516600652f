//! Reads of a CDC log wait for the writes that could still add rows to what they read.
//!
//! A reader of the log goes from window to window of `cdc$time` and never back. So a read first
//! asks the storage to settle the log up to the end of the window. Afterwards no row can be added
//! to the window.

use cql::error::CqlError;
use query::clock::StatementClock;
use storage::Storage;
use storage::read::{ClusteringBound, ClusteringSlice};
use uuid::Uuid;
use value::timeuuid;

use crate::failure::storage_error;

/// Settles the log up to the last `cdc$time` in the slices. If the slices have no end, or reach
/// beyond the present, the log is settled up to the present.
pub(super) async fn settle(
    storage: &Storage,
    slices: &[ClusteringSlice],
    clock: &StatementClock,
) -> Result<(), CqlError> {
    let until = end_micros(slices).map_or(clock.micros(), |end| end.min(clock.micros()));
    storage.settle_log(until).await.map_err(storage_error)
}

/// The first microsecond behind all slices, since the epoch; `None` if a slice has no end, or there
/// are no slices.
fn end_micros(slices: &[ClusteringSlice]) -> Option<i64> {
    let ends: Option<Vec<i64>> = slices.iter().map(|slice| end_of(&slice.end)).collect();
    ends?.into_iter().max()
}

fn end_of(bound: &ClusteringBound) -> Option<i64> {
    let (ClusteringBound::Inclusive(prefix) | ClusteringBound::Exclusive(prefix)) = bound else {
        return None;
    };
    let bytes: [u8; 16] = prefix.first()?.as_ref().try_into().ok()?;
    Some(timeuuid::unix_micros(&Uuid::from_bytes(bytes)).saturating_add(1))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

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
}
