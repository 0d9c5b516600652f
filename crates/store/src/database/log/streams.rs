//! The times up to which the streams of a log have been read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use scylla_cdc::cdc_types::StreamID;

/// The times up to which the streams of one generation have been read, since the epoch.
#[derive(Debug, Default)]
pub(super) struct StreamTimes {
    read_up_to: HashMap<StreamID, Duration>,
    /// The number of streams by time.
    by_time: BTreeMap<Duration, usize>,
    /// The streams that have not reported yet; `None` if it is not known which there are.
    silent: Option<HashSet<StreamID>>,
}

impl StreamTimes {
    /// Notes which streams there are. None of them has reported.
    pub(super) fn expect(&mut self, streams: HashSet<StreamID>) {
        self.silent = Some(streams);
    }

    /// Whether all streams are known to have reported.
    pub(super) fn all_have_reported(&self) -> bool {
        self.silent.as_ref().is_some_and(HashSet::is_empty)
    }

    /// The time of a stream; `None` if it has not reported.
    pub(super) fn of(&self, stream: &StreamID) -> Option<Duration> {
        self.read_up_to.get(stream).copied()
    }

    /// Notes the time of a stream.
    pub(super) fn set(&mut self, stream: &StreamID, time: Duration) {
        if let Some(silent) = &mut self.silent {
            silent.remove(stream);
        }
        if let Some(before) = self.read_up_to.insert(stream.clone(), time)
            && let Some(count) = self.by_time.get_mut(&before)
        {
            *count -= 1;
            if *count == 0 {
                self.by_time.remove(&before);
            }
        }
        *self.by_time.entry(time).or_default() += 1;
    }

    /// The earliest time of a stream that has reported.
    pub(super) fn slowest(&self) -> Option<Duration> {
        let (time, _) = self.by_time.first_key_value()?;
        Some(*time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_those_that_have_reported_is_known() {
        let stream = |n| StreamID::new(vec![n]);
        let second = Duration::from_secs(1);
        let mut streams = StreamTimes::default();
        assert_eq!(streams.slowest(), None);
        assert!(
            !streams.all_have_reported(),
            "it is not known which there are"
        );
        streams.expect([stream(1), stream(2)].into());
        streams.set(&stream(1), 5 * second);
        assert_eq!(streams.slowest(), Some(5 * second));
        assert!(!streams.all_have_reported());
        streams.set(&stream(2), 3 * second);
        assert!(streams.all_have_reported());
        assert_eq!(streams.slowest(), Some(3 * second));
        streams.set(&stream(2), 5 * second);
        assert_eq!(streams.slowest(), Some(5 * second));
        streams.set(&stream(1), 9 * second);
        streams.set(&stream(2), 8 * second);
        assert_eq!(streams.slowest(), Some(8 * second));
        assert_eq!(streams.of(&stream(1)), Some(9 * second));
        assert_eq!(streams.of(&stream(3)), None);
    }
}
