//! A process of `annulus` that a test has started.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The process, which is killed when this is dropped.
pub struct Running(pub Child);

impl Running {
    /// Sends the process a signal by its name, such as `-HUP`.
    pub fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([name, &pid]).status();
        assert!(sent.expect("kill is there").success());
    }

    /// Waits for the exit code of the process, and panics if it takes longer than `within`.
    pub fn end(&mut self, within: Duration) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().expect("a child") {
                return status.code();
            }
            assert!(began.elapsed() < within, "it ends");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
