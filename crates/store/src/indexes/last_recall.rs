//! The recall that the last check of an index measured.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use store_api::types::MeasuredRecall;

/// The outcome of the last check of an index's recall, by request or by schedule. Readers of
/// metrics take no lock.
#[derive(Debug, Default)]
pub(crate) struct LastRecall(ArcSwapOption<CheckedRecall>);

/// The recall that a check measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CheckedRecall {
    /// The share of the ten nearest rows that searches found, from 0 to 1.
    pub recall: f64,
    /// The lower end of the interval that has the recall of all rows with 95 % confidence.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
    /// The number of rows that were queries.
    pub queries: usize,
    /// The end of the check, in seconds since the epoch.
    pub at_s: u64,
}

impl LastRecall {
    /// Notes the outcome of a check that ended at this time, in seconds since the epoch. A check
    /// of an index without rows has no outcome, and changes nothing.
    pub(crate) fn set(&self, measured: &MeasuredRecall, at_s: u64) {
        let MeasuredRecall {
            recall: Some(recall),
            low: Some(low),
            high: Some(high),
            queries,
            ..
        } = *measured
        else {
            return;
        };
        self.0.store(Some(Arc::new(CheckedRecall {
            recall,
            low,
            high,
            queries,
            at_s,
        })));
    }

    /// The outcome of the last check since the start. `None` before the first one.
    pub(crate) fn get(&self) -> Option<CheckedRecall> {
        self.0.load().as_deref().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_check_that_measured_something_is_remembered() {
        let last = LastRecall::default();
        assert_eq!(last.get(), None);
        let measured = |recall| MeasuredRecall {
            recall: Some(recall),
            low: Some(0.5),
            high: Some(1.0),
            self_recall: Some(1.0),
            queries: 100,
        };
        last.set(&measured(0.9), 10);
        last.set(&measured(0.95), 20);
        last.set(&MeasuredRecall::default(), 30);
        let checked = last.get().expect("two checks");
        assert!((checked.recall - 0.95).abs() < f64::EPSILON);
        assert_eq!((checked.queries, checked.at_s), (100, 20));
    }
}
