//! Reports that the machine's clock lags the time that a server has given.

/// The least lead that is reported.
const LOUD_FROM_MICROS: i64 = 10_000_000;
/// A lead that stays large is reported again after this time.
const AGAIN_AFTER_MICROS: i64 = 600_000_000;

/// Decides which leads are worth a line in the log: one when the lead becomes large, one at long
/// intervals, and one when it has ended.
#[derive(Debug, Default)]
pub struct AheadMonitor {
    /// The time of the last report by the steady clock; None while the lead is not large.
    said_micros: Option<i64>,
}

/// News of a lead, for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AheadEvent {
    /// The clock lags by this many microseconds.
    Behind(i64),
    /// The clock has caught up, after it had been reported to lag.
    CaughtUp,
}

impl AheadMonitor {
    /// Takes a look, which callers do every so often, at [`crate::ServerClock::ahead_micros`] and
    /// the steady clock.
    pub fn poll(&mut self, lead_micros: i64, steady_micros: i64) -> Option<AheadEvent> {
        if lead_micros < LOUD_FROM_MICROS {
            // A lead near the bound would be reported again and again.
            let is_over = lead_micros < LOUD_FROM_MICROS / 2;
            return (is_over && self.said_micros.take().is_some()).then_some(AheadEvent::CaughtUp);
        }
        let is_due = self
            .said_micros
            .is_none_or(|said| steady_micros.saturating_sub(said) >= AGAIN_AFTER_MICROS);
        is_due.then(|| {
            self.said_micros = Some(steady_micros);
            AheadEvent::Behind(lead_micros)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    #[test]
    fn a_large_lead_is_reported_at_once_then_rarely_and_its_end_once() {
        let mut report = AheadMonitor::default();
        assert_eq!(report.poll(9 * S, 0), None);
        assert_eq!(report.poll(10 * S, S), Some(AheadEvent::Behind(10 * S)));
        for second in 2..601 {
            assert_eq!(report.poll(3600 * S, second * S), None);
        }
        assert_eq!(
            report.poll(3500 * S, 601 * S),
            Some(AheadEvent::Behind(3500 * S))
        );
        assert_eq!(report.poll(9 * S, 700 * S), None);
        assert_eq!(report.poll(4 * S, 800 * S), Some(AheadEvent::CaughtUp));
        assert_eq!(report.poll(4 * S, 801 * S), None);
    }
}
