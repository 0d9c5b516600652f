//! Counters of events by name, which tests of the whole service start, read and clear (contract,
//! section 1.2).
//!
//! An event is counted from the moment at which somebody starts its counter. While there are no
//! counters, an event costs one atomic load.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// The most counters at a time.
pub(crate) const COUNTERS_MAX: usize = 1000;

/// An event that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedEvent {
    /// A search was answered.
    Search,
    /// A search was refused, as there were too many or the index lagged.
    Refusal,
    /// A row was read from the table, by a scan or again.
    RowRead,
}

impl CountedEvent {
    fn name(self) -> &'static str {
        match self {
            CountedEvent::Search => "searches",
            CountedEvent::Refusal => "searches_refused",
            CountedEvent::RowRead => "rows_read",
        }
    }
}

/// There are as many counters as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are {} counters already: clear them", COUNTERS_MAX)]
pub struct TooManyCounters;

/// The counters that were started.
#[derive(Debug, Default)]
pub struct EventCounters {
    are_any: AtomicBool,
    by_name: RwLock<BTreeMap<String, AtomicU64>>,
}

impl EventCounters {
    /// Starts a counter from zero. A counter of another name than that of an [`CountedEvent`] stays
    /// there.
    ///
    /// # Errors
    /// If there are too many.
    pub fn start(&self, name: String) -> Result<(), TooManyCounters> {
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        if by_name.len() == COUNTERS_MAX && !by_name.contains_key(&name) {
            return Err(TooManyCounters);
        }
        by_name.insert(name, AtomicU64::new(0));
        self.are_any.store(true, Ordering::Release);
        Ok(())
    }

    /// Removes all counters.
    pub fn clear(&self) {
        let mut by_name = self.by_name.write().unwrap_or_else(PoisonError::into_inner);
        by_name.clear();
        self.are_any.store(false, Ordering::Release);
    }

    /// Counts so many events, if their counter was started.
    pub fn count(&self, event: CountedEvent, events: usize) {
        self.add(events, || event.name().to_owned());
    }

    /// Counts an event of this name, if its counter was started.
    pub fn count_named(&self, name: impl FnOnce() -> String) {
        self.add(1, name);
    }

    fn add(&self, events: usize, name: impl FnOnce() -> String) {
        if !self.are_any.load(Ordering::Acquire) {
            return;
        }
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = by_name.get(&name()) {
            counter.fetch_add(events as u64, Ordering::Relaxed);
        }
    }

    /// The counters and what they have counted.
    pub fn values(&self) -> BTreeMap<String, u64> {
        let by_name = self.by_name.read().unwrap_or_else(PoisonError::into_inner);
        let values = by_name.iter();
        values
            .map(|(name, counter)| (name.clone(), counter.load(Ordering::Relaxed)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_once_somebody_asks() {
        let counters = EventCounters::default();
        counters.count(CountedEvent::Search, 1);
        counters.start("searches".to_owned()).unwrap();
        counters.start("whatever".to_owned()).unwrap();
        counters.count(CountedEvent::Search, 1);
        counters.count(CountedEvent::Search, 2);
        counters.count(CountedEvent::RowRead, 1);
        let values = |counts: &[(&str, u64)]| {
            let counts = counts
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count));
            counts.collect::<BTreeMap<_, _>>()
        };
        assert_eq!(
            counters.values(),
            values(&[("searches", 3), ("whatever", 0)])
        );
        counters.start("searches".to_owned()).unwrap();
        assert_eq!(counters.values()["searches"], 0);
        counters.clear();
        counters.count(CountedEvent::Search, 1);
        assert_eq!(counters.values(), values(&[]));
    }

    #[test]
    fn counters_are_bounded() {
        let counters = EventCounters::default();
        let start = |number: usize| counters.start(number.to_string());
        assert!((0..COUNTERS_MAX).all(|number| start(number).is_ok()));
        assert_eq!(start(COUNTERS_MAX), Err(TooManyCounters));
        assert_eq!(start(0), Ok(()));
    }
}
