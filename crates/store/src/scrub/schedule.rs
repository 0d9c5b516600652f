//! Scrubs by schedule.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::Scrubs;

/// A file next to those of the indexes. Its modification time is the time at which the last scrub
/// by schedule began. So a service that is restarted more often than it scrubs still scrubs in
/// time.
const LAST: &str = "last-scrub";

/// The pause before a scrub is tried again that can't begin at its time.
const RETRY: Duration = Duration::from_secs(60);

impl Scrubs {
    /// Begins scrubs at the interval of the options, without end. Returns at once if there is no
    /// interval.
    pub(crate) async fn run_by_schedule(self) {
        let Some(interval) = self.inner.options.interval else {
            return;
        };
        let path = self.inner.directory.join(LAST);
        let mut wait = left(&path, interval).unwrap_or_else(|| {
            note(&path);
            interval
        });
        loop {
            tokio::time::sleep(wait).await;
            wait = match self.start(None) {
                Ok(_) => {
                    note(&path);
                    interval
                }
                Err(_) => RETRY.min(interval),
            };
        }
    }
}

/// The time until the next scrub by schedule; `None` if there was none before.
fn left(path: &Path, interval: Duration) -> Option<Duration> {
    let last = path.metadata().and_then(|meta| meta.modified()).ok()?;
    // A time in the future counts as the present.
    let since = now().duration_since(last).unwrap_or_default();
    Some(interval.saturating_sub(since))
}

#[expect(
    clippy::disallowed_methods,
    reason = "times of files are compared with it, which the machine's clock gives"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

fn note(path: &Path) {
    let noted = File::create(path).and_then(|file| file.set_modified(now()));
    if let Err(error) = noted {
        tracing::warn!(path = %path.display(), %error, "the time of the last scrub can't be kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_one_is_known_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(LAST);
        let day = Duration::from_secs(86_400);
        assert_eq!(left(&path, day), None);
        note(&path);
        let wait = left(&path, day).unwrap();
        assert!(wait <= day && wait > day / 2, "{wait:?}");
        let before = now() - 2 * day;
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(before)
            .unwrap();
        assert_eq!(left(&path, day), Some(Duration::ZERO));
    }
}
