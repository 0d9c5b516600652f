//! The times at which backups and drills run.
//!
//! A run that was missed, as the server was down, is made up for once. One that was interrupted by
//! the end of the process runs again at once, and one that failed after a while, as the reason may
//! have passed. If the next run is interrupted, too, that may be its own doing, and it waits as
//! well.
//!
//! A clock that was set back would have all runs wait until it is where it was. So a run that seems
//! to be in the future is due.

use std::time::Duration;

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use serde::{Deserialize, Serialize};

use crate::BackupTaskError;

/// The time after which a run that failed is tried again, unless the next is due before.
const RETRY_AFTER: Duration = Duration::from_secs(15 * 60);

/// The time that a run may seem to be in the future, as clocks are set by small steps.
const CLOCK_STEP: Duration = Duration::from_secs(60);

/// The bounds of an interval, seconds.
const INTERVAL_MIN_S: u64 = 1;
const INTERVAL_MAX_S: u64 = 366 * 24 * 3600;

const MICROS: i64 = 1_000_000;

/// The times of a series of runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunTimes {
    /// Seconds from the beginning of one run to that of the next.
    IntervalS(u64),
    /// A crontab line of five fields. A sixth names a time zone, which is else UTC.
    Cron(String),
}

impl RunTimes {
    /// The times by an interval or a crontab line; `None` if neither is given.
    ///
    /// # Errors
    /// If both are given, or one can't be used.
    pub(crate) fn of(
        interval_s: Option<u64>,
        cron: Option<&str>,
    ) -> Result<Option<RunTimes>, BackupTaskError> {
        match (interval_s, cron) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(BackupTaskError::Wrong(
                "an interval and a crontab line: give one of them".to_owned(),
            )),
            (Some(s), None) if !(INTERVAL_MIN_S..=INTERVAL_MAX_S).contains(&s) => {
                Err(BackupTaskError::Wrong(format!(
                    "an interval of {s} s: it is at least {INTERVAL_MIN_S} s and at most 366 days"
                )))
            }
            (Some(s), None) => Ok(Some(RunTimes::IntervalS(s))),
            (None, Some(line)) => {
                let never = |why: String| {
                    BackupTaskError::Wrong(format!(
                        "crontab line '{line}': {why}; it has five fields, such as '30 2 * * *' for every day at 02:30 UTC"
                    ))
                };
                let times = crontab(line).map_err(never)?;
                next_of(&times, 0).ok_or_else(|| never("it names no time".to_owned()))?;
                Ok(Some(RunTimes::Cron(line.trim().to_owned())))
            }
        }
    }

    /// The first time after another. Microseconds since the epoch. `None` if there is none.
    fn next_after(&self, micros: i64) -> Option<i64> {
        match self {
            RunTimes::IntervalS(s) => {
                let interval = i64::try_from(*s).ok()?.checked_mul(MICROS)?;
                micros.checked_add(interval)
            }
            RunTimes::Cron(line) => next_of(&crontab(line).ok()?, micros),
        }
    }

    /// The interval in seconds, if it is one.
    pub(crate) fn interval_s(&self) -> Option<u64> {
        match self {
            RunTimes::IntervalS(s) => Some(*s),
            RunTimes::Cron(_) => None,
        }
    }

    /// The crontab line, if it is one.
    pub(crate) fn cron(&self) -> Option<String> {
        match self {
            RunTimes::IntervalS(_) => None,
            RunTimes::Cron(line) => Some(line.clone()),
        }
    }
}

fn crontab(line: &str) -> Result<Crontab, String> {
    let mut options = ParseOptions::default();
    options.fallback_timezone_option = FallbackTimezoneOption::UTC;
    cronexpr::parse_crontab_with(line.trim(), options).map_err(|error| {
        // The library underlines the place, on lines of their own.
        let text = error.to_string();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    })
}

fn next_of(times: &Crontab, micros: i64) -> Option<i64> {
    let after = MakeTimestamp::from_microsecond(micros).ok()?;
    let next = times.find_next(after).ok()?;
    Some(next.timestamp().as_microsecond())
}

/// A series of runs: its times, and its last run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunSeries {
    /// The times.
    pub times: RunTimes,
    /// The time at which the last run began, or the series was made. Microseconds since the epoch.
    began_micros: i64,
    /// Whether the last run has not ended.
    #[serde(default)]
    is_unfinished: bool,
    /// The number of runs before the last one that have not ended either, one after another.
    #[serde(default)]
    interrupted: u32,
    /// The time at which the last run ended, if it failed.
    #[serde(default)]
    failed_micros: Option<i64>,
    /// Whether the run that has not ended is about to begin in this process.
    #[serde(skip)]
    is_announced: bool,
}

impl RunSeries {
    /// A series whose first run comes one interval after `now`.
    pub(crate) fn new(times: RunTimes, now_micros: i64) -> RunSeries {
        RunSeries {
            times,
            began_micros: now_micros,
            is_unfinished: false,
            interrupted: 0,
            failed_micros: None,
            is_announced: false,
        }
    }

    /// Notes that a run will begin in a moment. If the process ends before, it is made up for.
    pub(crate) fn announce(&mut self, now_micros: i64) {
        self.began_micros = now_micros;
        self.is_unfinished = true;
        self.is_announced = true;
    }

    /// The time of the next run, which may be past. `None` if there is none.
    pub(crate) fn next_micros(&self) -> Option<i64> {
        let pause = micros(RETRY_AFTER);
        if self.is_unfinished {
            return Some(match self.interrupted {
                0 => self.began_micros,
                _ => self.began_micros.saturating_add(pause),
            });
        }
        let regular = self.times.next_after(self.began_micros);
        let again = self.failed_micros.map(|at| at.saturating_add(pause));
        match (regular, again) {
            (Some(regular), Some(again)) => Some(regular.min(again)),
            (regular, again) => regular.or(again),
        }
    }

    /// Whether a run is due.
    pub(crate) fn is_due(&self, now_micros: i64) -> bool {
        let last = self
            .began_micros
            .max(self.failed_micros.unwrap_or(i64::MIN));
        if last.saturating_sub(now_micros) > micros(CLOCK_STEP) {
            return true;
        }
        self.next_micros().is_some_and(|next| next <= now_micros)
    }

    /// Notes that a run begins.
    pub(crate) fn begin(&mut self, now_micros: i64) {
        self.began_micros = now_micros;
        let was_begun = !std::mem::take(&mut self.is_announced);
        self.interrupted = match self.is_unfinished && was_begun {
            true => self.interrupted.saturating_add(1),
            false => 0,
        };
        self.is_unfinished = true;
        self.failed_micros = None;
    }

    /// Notes that the run has ended.
    pub(crate) fn end(&mut self, now_micros: i64, has_failed: bool) {
        self.is_unfinished = false;
        self.interrupted = 0;
        self.failed_micros = has_failed.then_some(now_micros);
    }
}

/// Microseconds.
fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-05, a Monday, 00:00 UTC.
    const MONDAY: i64 = 1_767_571_200 * MICROS;
    const HOUR: i64 = 3600 * MICROS;
    const DAY: i64 = 24 * HOUR;

    fn cron(line: &str) -> RunTimes {
        RunTimes::of(None, Some(line)).unwrap().unwrap()
    }

    #[test]
    fn an_interval_counts_from_the_beginning_of_the_last_run() {
        let mut series = RunSeries::new(RunTimes::IntervalS(3600), MONDAY);
        assert_eq!(series.next_micros(), Some(MONDAY + HOUR));
        assert!(!series.is_due(MONDAY + HOUR - 1));
        assert!(series.is_due(MONDAY + HOUR));
        series.begin(MONDAY + HOUR);
        series.end(MONDAY + HOUR + 10, false);
        assert_eq!(series.next_micros(), Some(MONDAY + 2 * HOUR));
    }

    #[test]
    fn a_crontab_line_is_read_in_utc() {
        let daily = cron("30 2 * * *");
        assert_eq!(daily.next_after(MONDAY), Some(MONDAY + 2 * HOUR + HOUR / 2));
        assert_eq!(
            daily.next_after(MONDAY + 2 * HOUR + HOUR / 2),
            Some(MONDAY + DAY + 2 * HOUR + HOUR / 2)
        );
        assert_eq!(
            cron("0 4 * * SUN").next_after(MONDAY),
            Some(MONDAY + 6 * DAY + 4 * HOUR)
        );
        assert_eq!(
            cron("*/15 * * * *").next_after(MONDAY + 1),
            Some(MONDAY + HOUR / 4)
        );
    }

    #[test]
    fn times_that_can_t_be_used_are_refused_with_a_remedy() {
        let refused = |interval, cron| RunTimes::of(interval, cron).unwrap_err().to_string();
        assert!(refused(Some(60), Some("* * * * *")).contains("one of them"));
        assert!(refused(Some(0), None).contains("at least 1 s"));
        for line in ["", "* * * *", "61 * * * *", "soon", "0 0 30 2 *"] {
            let error = refused(None, Some(line));
            assert!(error.contains("five fields"), "{line}: {error}");
        }
        assert_eq!(RunTimes::of(None, None).unwrap(), None);
    }

    #[test]
    fn runs_that_were_missed_are_made_up_for_once() {
        for times in [RunTimes::IntervalS(3600), cron("0 * * * *")] {
            let mut series = RunSeries::new(times, MONDAY);
            let now = MONDAY + DAY + HOUR / 2;
            assert!(series.is_due(now));
            series.begin(now);
            series.end(now + 1, false);
            assert!(!series.is_due(now + 2));
            let next = series.next_micros().unwrap();
            assert!(next > now && next <= now + HOUR, "{next}");
        }
    }

    #[test]
    fn an_interrupted_run_is_due_at_once_and_a_failed_one_after_a_while() {
        let mut series = RunSeries::new(RunTimes::IntervalS(24 * 3600), MONDAY);
        series.begin(MONDAY + DAY);
        assert!(series.is_due(MONDAY + DAY + 1));
        series.end(MONDAY + DAY + HOUR, true);
        assert!(!series.is_due(MONDAY + DAY + HOUR + 1));
        assert!(series.is_due(MONDAY + DAY + HOUR + 900 * MICROS));
        series.begin(MONDAY + DAY + 2 * HOUR);
        series.end(MONDAY + DAY + 2 * HOUR, false);
        assert_eq!(series.next_micros(), Some(MONDAY + 2 * DAY + 2 * HOUR));
        // The regular time comes before the pause has passed.
        let mut often = RunSeries::new(RunTimes::IntervalS(60), MONDAY);
        often.begin(MONDAY + 60 * MICROS);
        often.end(MONDAY + 61 * MICROS, true);
        assert_eq!(often.next_micros(), Some(MONDAY + 120 * MICROS));
    }

    #[test]
    fn runs_that_are_interrupted_one_after_another_wait() {
        let pause = micros(RETRY_AFTER);
        let mut series = RunSeries::new(RunTimes::IntervalS(1), MONDAY);
        series.begin(MONDAY + HOUR);
        assert!(series.is_due(MONDAY + HOUR), "the first is made up at once");
        for times in 1..4 {
            let began = MONDAY + HOUR + times * pause;
            series.begin(began);
            let text = serde_json::to_string(&series).unwrap();
            series = serde_json::from_str(&text).unwrap();
            assert!(!series.is_due(began + pause - 1), "{times}");
            assert!(series.is_due(began + pause), "{times}");
        }
        series.end(MONDAY + DAY, false);
        series.begin(MONDAY + DAY + 1);
        assert!(series.is_due(MONDAY + DAY + 2), "the count begins again");
    }

    #[test]
    fn a_clock_that_was_set_back_holds_up_no_run() {
        let mut series = RunSeries::new(cron("0 3 * * *"), MONDAY + 365 * DAY);
        series.begin(MONDAY + 365 * DAY);
        series.end(MONDAY + 365 * DAY + HOUR, false);
        assert!(series.is_due(MONDAY));
        series.begin(MONDAY);
        series.end(MONDAY + HOUR, false);
        assert!(!series.is_due(MONDAY + HOUR));
        // A small step is none that was made by hand.
        assert!(!series.is_due(MONDAY - 59 * MICROS));
        assert!(series.is_due(MONDAY + 3 * HOUR));
        series.begin(MONDAY + 3 * HOUR);
        series.end(MONDAY + 5 * HOUR, true);
        assert!(series.is_due(MONDAY + 4 * HOUR), "the failure is to come");
    }

    #[test]
    fn a_series_survives_its_file() {
        let mut series = RunSeries::new(cron("0 3 * * *"), MONDAY);
        series.begin(MONDAY + DAY);
        let text = serde_json::to_string(&series).unwrap();
        let again: RunSeries = serde_json::from_str(&text).unwrap();
        assert_eq!(again, series);
        assert!(again.is_due(MONDAY + DAY));
        let early = r#"{"times":{"interval_s":60},"began_micros":5}"#;
        let early: RunSeries = serde_json::from_str(early).unwrap();
        assert_eq!(early.next_micros(), Some(5 + 60 * MICROS));
    }
}
