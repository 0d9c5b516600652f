//! Timeuuids of the present, for versions, notes and the history.

use clock::{Clock, SystemClock};
use uuid::Uuid;
use value::timeuuid;

use super::cluster::ClusterError;

/// A timeuuid of the present.
///
/// # Errors
/// [`ClusterError::Clock`] if the clock shows a time that no timeuuid can have.
pub(super) fn now() -> Result<Uuid, ClusterError> {
    of(SystemClock.now_micros())
}

/// A timeuuid of the present, or of the microsecond after `newest` if that is later. So it is newer
/// than `newest`, even if that was made by a clock that is ahead.
///
/// # Errors
/// [`ClusterError::Clock`] if the clock shows a time that no timeuuid can have.
pub(super) fn after(newest: Option<Uuid>) -> Result<Uuid, ClusterError> {
    let next = newest.map(|newest| timeuuid::unix_micros(&newest) + 1);
    of(next.unwrap_or(i64::MIN).max(SystemClock.now_micros()))
}

fn of(micros: i64) -> Result<Uuid, ClusterError> {
    let random = Uuid::new_v4().as_u64_pair().1;
    timeuuid::from_micros(micros, random).map_err(|error| ClusterError::Clock(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_another_is_newer_whatever_its_clock() {
        let now = SystemClock.now_micros();
        let later = |at: i64| {
            let newest = of(at).unwrap();
            let after = after(Some(newest)).unwrap();
            timeuuid::unix_micros(&after) - timeuuid::unix_micros(&newest)
        };
        let hour = 3_600_000_000;
        assert_eq!(later(now + hour), 1);
        assert!((hour..2 * hour).contains(&later(now - hour)));
        let first = timeuuid::unix_micros(&after(None).unwrap());
        assert!((now..now + hour).contains(&first));
    }
}
