//! Processes that a test has started.

use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use crate::blocking::{let_pass, within};

/// A process, which is killed when this is dropped.
#[derive(Debug)]
pub struct Running(pub Child);

impl Running {
    /// Sends the process a signal by its name, such as `-HUP`.
    ///
    /// # Panics
    /// If it can't be sent.
    pub fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Waits until the process ends by itself.
    ///
    /// # Panics
    /// If that takes longer than `longest`.
    pub fn ended(&mut self, longest: Duration) -> ExitStatus {
        let status = within(longest, || self.0.try_wait().expect("a child"));
        status.expect("it ends in time")
    }

    /// Waits for the exit code of the process. It has none if a signal ended it.
    ///
    /// # Panics
    /// If it takes longer than `longest`.
    pub fn end(&mut self, longest: Duration) -> Option<i32> {
        self.ended(longest).code()
    }

    /// Kills the process by `kill -9`, and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Kills the process after that time. Callers choose times at which its work may be anywhere.
    ///
    /// # Panics
    /// If it has ended before.
    pub fn kill_after(&mut self, time: Duration) {
        let_pass(time);
        assert_eq!(self.0.try_wait().expect("a child"), None, "it ran on");
        self.kill();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Running {
        Running(Command::new("sleep").arg("600").spawn().expect("sleep"))
    }

    #[test]
    fn a_process_ends_by_a_signal_and_has_no_code_then() {
        let mut sleeper = sleeper();
        sleeper.signal("-TERM");
        assert_eq!(sleeper.end(Duration::from_secs(60)), None);
    }

    #[test]
    fn a_killed_process_is_gone() {
        let mut sleeper = sleeper();
        sleeper.kill_after(Duration::from_millis(1));
        let status = sleeper.0.try_wait().expect("a child");
        assert!(status.is_some_and(|status| !status.success()));
    }
}
