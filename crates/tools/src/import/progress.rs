//! The progress of an import on stderr: a line on a terminal, else a line every ten seconds.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::feed::FeedMeter;
use super::log::ImportLog;
use super::source::FilePosition;

/// The times after which the line is drawn again: on a terminal, and elsewhere.
const DRAWN_EVERY: Duration = Duration::from_millis(200);
const WRITTEN_EVERY: Duration = Duration::from_secs(10);

/// The reasons of rejected rows that are shown; the others are in their file.
const REASONS_SHOWN: u64 = 3;

/// The progress of an import.
pub struct ImportProgress {
    bar: ProgressBar,
    meter: Arc<FeedMeter>,
    started: Instant,
    drawn: Instant,
    rows_before: u64,
    done_before: u64,
    reasons: u64,
}

impl ImportProgress {
    /// Begins with `rows_before` rows that an earlier import did.
    pub fn new(meter: Arc<FeedMeter>, rows_before: u64) -> ImportProgress {
        let style = ProgressStyle::with_template("{bar:30} {percent}% {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let now = Instant::now();
        ImportProgress {
            bar: bar.with_style(style),
            meter,
            started: now,
            drawn: now,
            rows_before,
            done_before: 0,
            reasons: 0,
        }
    }

    /// Shows how far the import is, if it is time.
    pub fn show(&mut self, log: &ImportLog) {
        let every = if self.bar.is_hidden() {
            WRITTEN_EVERY
        } else {
            DRAWN_EVERY
        };
        if self.drawn.elapsed() < every {
            return;
        }
        self.drawn = Instant::now();
        let position = self.meter.now();
        if self.done_before == 0 && self.rows_before > 0 {
            // Rows that were skipped took no time, so they say nothing of the rest.
            self.done_before = position.done;
        }
        let text = self.text(log, position);
        if self.bar.is_hidden() {
            let _ = writeln!(io::stderr(), "{text}");
        } else {
            self.bar.set_length(position.total);
            self.bar.set_position(position.done.min(position.total));
            self.bar.set_message(text);
        }
    }

    fn text(&self, log: &ImportLog, position: FilePosition) -> String {
        let elapsed = self.started.elapsed().as_secs_f64();
        let rate = self.rate(log);
        let mut text = format!("{} rows, {rate:.0} rows/s", log.rows());
        let done = position.done.saturating_sub(self.done_before);
        if position.total > 0 && done > 0 {
            let left = position.total.saturating_sub(position.done) as f64 / done as f64 * elapsed;
            text += &format!(", {} left", minutes(left));
        }
        if log.rejected() > 0 {
            text += &format!(", {} rejected", log.rejected());
        }
        text
    }

    /// Rows a second.
    fn rate(&self, log: &ImportLog) -> f64 {
        let rows = log.rows().saturating_sub(self.rows_before);
        rows as f64 / self.started.elapsed().as_secs_f64().max(0.001)
    }

    /// Shows why a row was rejected, if it is one of the first.
    pub fn rejected(&mut self, reason: &str, log: &ImportLog) {
        self.reasons += 1;
        if self.reasons <= REASONS_SHOWN {
            self.say(&format!("rejected: {reason}"));
        } else if self.reasons == REASONS_SHOWN + 1 {
            self.say(&format!(
                "more rejected rows are in {}",
                log.rejects_path().display()
            ));
        }
        self.show(log);
    }

    /// Writes a line that stays.
    pub fn say(&self, text: &str) {
        self.bar.suspend(|| {
            let _ = writeln!(io::stderr(), "{text}");
        });
    }

    /// Takes the line away, and sums up.
    pub fn sum_up(&self, table: &str, log: &ImportLog) {
        self.bar.finish_and_clear();
        let written = log.rows().saturating_sub(log.rejected());
        let elapsed = self.started.elapsed().as_secs_f64();
        let rate = self.rate(log);
        self.say(&format!(
            "imported {written} rows into {table} in {elapsed:.1} s ({rate:.0} rows/s)"
        ));
        if log.rejected() > 0 {
            let path = log.rejects_path().display();
            self.say(&format!(
                "{} rows are rejected, with reasons: {path}",
                log.rejected()
            ));
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// Seconds as minutes and seconds, or as hours and minutes.
fn minutes(seconds: f64) -> String {
    let seconds = seconds.min(1e9) as u64;
    match seconds {
        0..3_600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(minutes(65.9), "1:05");
        assert_eq!(minutes(7_260.0), "2 h 1 min");
        assert_eq!(minutes(f64::INFINITY), "277777 h 46 min");
    }
}
