//! Progress of long work on the terminal: a line on stderr, which is not there if that is none.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use store_api::types::TaskStatus;

/// The interval at which the line is drawn while nothing is heard.
const DRAWN_EVERY: Duration = Duration::from_millis(200);

/// The line of some work.
pub struct TerminalBar(ProgressBar);

/// The form of a line whose total is known, and that of another.
fn style(has_total: bool) -> ProgressStyle {
    let template = match has_total {
        true => "{prefix} {bar:40} {percent}% {msg}",
        false => "{prefix} {spinner} {msg}",
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl TerminalBar {
    /// The line of a task of which nothing is known yet.
    pub fn of_task() -> TerminalBar {
        TerminalBar::on(ProgressDrawTarget::stderr())
    }

    fn on(target: ProgressDrawTarget) -> TerminalBar {
        let bar = ProgressBar::with_draw_target(None, target).with_style(style(false));
        TerminalBar(bar)
    }

    /// The line of work on so many bytes.
    pub fn of_bytes(what: &str, total: u64) -> TerminalBar {
        let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr())
            .with_style(style(true));
        bar.set_prefix(what.to_owned());
        TerminalBar(bar)
    }

    /// Whether somebody sees it.
    pub fn is_seen(&self) -> bool {
        !self.0.is_hidden()
    }

    /// Shows how far a task is.
    pub fn show(&self, task: &TaskStatus, said: String) {
        self.0.set_prefix(task.kind.replace('_', " "));
        self.0.set_message(said);
        match task.progress_total {
            Some(total) => {
                if self.0.length() != Some(total) {
                    self.0.set_style(style(true));
                    self.0.set_length(total);
                }
                self.0.set_position(task.progress_completed.min(total));
            }
            None => self.0.enable_steady_tick(DRAWN_EVERY),
        }
    }

    /// Sets how much work there is in all.
    pub fn set_total(&self, total: u64) {
        self.0.set_style(style(true));
        self.0.set_length(total);
    }

    /// Shows what is said about work whose total is not known.
    pub fn say(&self, said: String) {
        self.0.set_message(said);
        self.0.tick();
    }

    /// Adds work that is done.
    pub fn add(&self, units: u64) {
        self.0.inc(units);
    }

    /// Ends at 100 %, and leaves the line as it is.
    pub fn end(&self) {
        self.0.finish();
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(completed: u64, total: Option<u64>) -> TaskStatus {
        let task = serde_json::json!({
            "id": "1", "sequence_number": 1, "kind": "catch_up", "scope": "index", "state": "running",
            "is_abortable": true, "start_time": "2026-01-01T00:00:00Z", "progress_units": "rows",
            "progress_completed": completed, "progress_total": total, "counters": {},
        });
        serde_json::from_value(task).unwrap()
    }

    #[test]
    fn a_task_is_shown_by_its_share_of_the_total() {
        let bar = TerminalBar::on(ProgressDrawTarget::hidden());
        assert!(!bar.is_seen());
        bar.show(&task(3, None), "3 rows".to_owned());
        assert_eq!((bar.0.position(), bar.0.length()), (0, None));
        bar.show(&task(3, Some(12)), "3/12 rows".to_owned());
        assert_eq!((bar.0.position(), bar.0.length()), (3, Some(12)));
        assert_eq!(bar.0.prefix(), "catch up");
        assert_eq!(bar.0.message(), "3/12 rows");
        // More was done than was expected.
        bar.show(&task(13, Some(12)), String::new());
        assert_eq!(bar.0.position(), 12);
        bar.clear();
    }
}
