//! The `cdc$time` of log rows, and the low-water mark that it stays above.
//!
//! A log row carries the timestamp of its write, so that it sorts as the write does. If that
//! timestamp is in the future, or not above the mark, the row carries the time of the commit
//! instead. So a reader that has read the log up to the mark has read it for good. The mark begins
//! at the present when a directory is opened, and never goes back.
//!
//! The row of a deletion that is dated at most [`AHEAD_MAX_MICROS`] ahead carries its timestamp,
//! too. An index service that is not ours takes the time of such a row for the timestamp of the
//! deletion, which has to win over what a client with the same clock has inserted before. A
//! reader of the log up to the present reads the row when its time has come. The index service in
//! this process learns of it at the commit, as it reads so far ahead.
//!
//! ScyllaDB refuses a write that is dated further ahead. Here such a write is taken, and its rows
//! carry the time of the commit, as a log row is only a hint to an index service.

use uuid::Uuid;

/// Steps of 100 ns from 1582-10-15 to 1970-01-01.
const EPOCH_STEPS: i64 = 122_192_928_000_000_000;
const STEPS_PER_MICROSECOND: i64 = 10;

/// The longest time by which a row of the log may be dated ahead of its commit. Microseconds.
pub const AHEAD_MAX_MICROS: i64 = 5_000_000;

/// The times of a group of log rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupTime {
    /// The `cdc$time` of the rows.
    pub time: LogTime,
    /// The time that the log reaches with them, for readers that wait for its growth. That of the
    /// rows, or of the commit if they are dated ahead. Microseconds.
    pub reached_micros: i64,
}

/// A time of the log in steps of 100 ns since 1970, the resolution of a timeuuid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogTime(i64);

impl LogTime {
    /// The microsecond since 1970 that holds this time.
    pub(crate) fn micros(self) -> i64 {
        self.0.div_euclid(STEPS_PER_MICROSECOND)
    }

    /// A unique timeuuid of this time: the rest of its bits is random.
    pub(crate) fn timeuuid(self) -> Uuid {
        let steps = (self.0 + EPOCH_STEPS) as u64;
        let upper = steps << 32 | (steps >> 16 & 0xffff_0000) | 0x1000 | (steps >> 48 & 0xfff);
        // The lower half of a random UUID: the variant, then 62 random bits.
        Uuid::from_u64_pair(upper, Uuid::new_v4().as_u64_pair().1)
    }
}

/// Gives out the times of log rows. Only the committer takes times; anyone may raise the mark.
#[derive(Debug)]
pub(crate) struct CdcClock {
    /// The low-water mark: no time at or below it is given out any more. Microseconds.
    mark_micros: i64,
    /// The last commit time given out; the next one is greater.
    last_commit: LogTime,
}

impl CdcClock {
    pub(crate) fn new(mark_micros: i64) -> CdcClock {
        CdcClock {
            mark_micros,
            last_commit: LogTime(mark_micros.saturating_mul(STEPS_PER_MICROSECOND)),
        }
    }

    /// Takes the time of a group with this write timestamp. `deletes` says that the group has only
    /// deletions of rows. Both times are in microseconds.
    pub(crate) fn take(&mut self, timestamp: i64, now_micros: i64, deletes: bool) -> GroupTime {
        let own = LogTime(timestamp.saturating_mul(STEPS_PER_MICROSECOND));
        if timestamp > self.mark_micros && timestamp <= now_micros {
            return GroupTime {
                time: own,
                reached_micros: timestamp,
            };
        }
        let commit = self.commit_time(now_micros);
        let is_ahead =
            timestamp > commit.micros() && timestamp <= now_micros.saturating_add(AHEAD_MAX_MICROS);
        GroupTime {
            time: if deletes && is_ahead { own } else { commit },
            reached_micros: commit.micros(),
        }
    }

    /// Takes the time of a commit.
    fn commit_time(&mut self, now_micros: i64) -> LogTime {
        // Commits of the same microsecond keep their order.
        let time = LogTime(now_micros.saturating_mul(STEPS_PER_MICROSECOND))
            .max(LogTime((self.mark_micros + 1) * STEPS_PER_MICROSECOND))
            .max(LogTime(self.last_commit.0 + 1));
        self.last_commit = time;
        time
    }

    /// Raises the mark to `micros`, so that all later times are greater.
    pub(crate) fn raise_mark(&mut self, micros: i64) {
        self.mark_micros = self.mark_micros.max(micros);
    }

    /// The later of the mark and the last commit time. After a restart the mark has to be there.
    pub(crate) fn latest_micros(&self) -> i64 {
        self.mark_micros.max(self.last_commit.micros())
    }
}

#[cfg(test)]
mod tests {
    use value::timeuuid::unix_micros;

    use super::*;

    #[test]
    fn a_timestamp_between_mark_and_present_is_kept() {
        let mut clock = CdcClock::new(1_000);
        for timestamp in [1_500, 2_000] {
            let taken = clock.take(timestamp, 2_000, false);
            assert_eq!(unix_micros(&taken.time.timeuuid()), timestamp);
            assert_eq!(taken.reached_micros, timestamp);
        }
    }

    #[test]
    fn others_get_the_commit_time_which_never_repeats_nor_falls_below_the_mark() {
        let mut clock = CdcClock::new(1_000);
        let mut take = |timestamp, now_micros| clock.take(timestamp, now_micros, false).time;
        let past = take(1_000, 2_000);
        let future = take(2_001, 2_000);
        let clock_went_back = take(5, 400);
        assert!(past < future && future < clock_went_back);
        assert_eq!(unix_micros(&past.timeuuid()), 2_000);
        clock.raise_mark(3_000);
        let take = |clock: &mut CdcClock, timestamp, now_micros| {
            unix_micros(&clock.take(timestamp, now_micros, true).time.timeuuid())
        };
        assert_eq!(take(&mut clock, 2_500, 3_500), 3_500);
        assert_eq!(take(&mut clock, 2_500, 2_600), 3_500);
        clock.raise_mark(4_000);
        assert_eq!(take(&mut clock, 2_500, 2_600), 4_001);
        assert_eq!(clock.latest_micros(), 4_001);
    }

    #[test]
    fn a_deletion_that_is_dated_a_little_ahead_keeps_its_timestamp_and_moves_no_other() {
        let mut clock = CdcClock::new(1_000);
        let last = 2_000 + AHEAD_MAX_MICROS;
        for timestamp in [2_001, last] {
            let ahead = clock.take(timestamp, 2_000, true);
            assert_eq!(ahead.time.micros(), timestamp);
            assert_eq!(ahead.reached_micros, 2_000);
        }
        let (further, other) = (
            clock.take(last + 1, 2_000, true),
            clock.take(2_001, 2_000, false),
        );
        assert!(further.time < other.time);
        assert_eq!((further.time.micros(), other.time.micros()), (2_000, 2_000));
        assert_eq!(clock.latest_micros(), 2_000);
        // Below the mark there is no place any more.
        clock.raise_mark(9_000);
        assert_eq!(clock.take(8_000, 2_100, true).time.micros(), 9_001);
        assert_eq!(clock.take(i64::MAX, 9_100, true).time.micros(), 9_100);
    }

    #[test]
    fn timeuuids_are_of_version_1_and_differ() {
        let time = LogTime(17_000_000_000_000_003);
        let (a, b) = (time.timeuuid(), time.timeuuid());
        assert_ne!(a, b);
        assert_eq!(a.get_version_num(), 1);
        assert_eq!(a.get_variant(), uuid::Variant::RFC4122);
        assert_eq!(unix_micros(&a), 1_700_000_000_000_000);
    }
}
