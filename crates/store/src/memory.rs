//! The memory of the process, and whether indexes may take more of it.
//!
//! Only memory that the system can't take back counts; a mapped file may have any size. The use is
//! measured from time to time, so rows that come between two measurements can overstep the limit;
//! the default limit leaves room for that. At the limit new rows wait ([`crate::apply`]),
//! and everything else goes on. An index that would overstep the limit as a whole is not opened
//! from its snapshot ([`claim`]).

mod claim;
mod limits;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use claim::Claims;
use tokio::sync::watch;

use crate::metrics::Metrics;
use crate::options::MemoryOptions;
pub use claim::{Claim, NoMemory};

/// The distance below the limit at which there is room again after the limit was reached: one part
/// in this many.
const RELIEF: u64 = 64;

/// Half of the memory of the machine or the control group, in bytes; `None` if the system doesn't
/// tell.
pub fn half_of_machine_bytes() -> Option<u64> {
    limits::half_bytes(Path::new("/"))
}

/// The default limit for a process that shares the memory with no other, in bytes; `None` if the
/// system doesn't tell.
pub fn default_limit_bytes() -> Option<u64> {
    limits::default_limit_bytes(Path::new("/"))
}

/// The memory state of the process. The default measures nothing and keeps what was noted.
#[derive(Debug, Default)]
pub struct Memory {
    /// The root of the system's files that tell memory use; `None` for no measurements.
    root: Option<PathBuf>,
    default_limit_bytes: Option<u64>,
    is_full: AtomicBool,
    /// Whether a measurement was noted yet.
    is_known: AtomicBool,
    used_bytes: AtomicU64,
    limit_bytes: AtomicU64,
    claims: Mutex<Claims>,
}

impl Memory {
    /// The memory of this process, by the files of the system.
    pub fn of_process() -> Memory {
        Memory::told_below(Path::new("/"))
    }

    fn told_below(root: &Path) -> Memory {
        Memory {
            default_limit_bytes: limits::default_limit_bytes(root),
            root: Some(root.to_owned()),
            ..Memory::default()
        }
    }

    /// Whether no more rows may come in.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// The limit in bytes, as it was noted last.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Notes the bytes in use and the limit.
    pub fn note(&self, used_bytes: u64, limit_bytes: u64) {
        self.is_known.store(true, Ordering::Relaxed);
        self.used_bytes.store(used_bytes, Ordering::Relaxed);
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        let before = self.is_full();
        let is_full = match before {
            false => used_bytes > limit_bytes,
            true => used_bytes > limit_bytes - limit_bytes / RELIEF,
        };
        self.is_full.store(is_full, Ordering::Relaxed);
        match (before, is_full) {
            (false, true) => tracing::error!(
                used_bytes,
                limit_bytes,
                "the memory limit is reached: new rows wait; give the process more memory, or drop an index"
            ),
            (true, false) => {
                tracing::info!(used_bytes, limit_bytes, "there is memory for rows again");
            }
            _ => {}
        }
    }

    /// Measures once and notes the result. Returns the bytes in use and the limit, if the system
    /// tells both.
    pub fn look(&self, options: &MemoryOptions) -> Option<(u64, u64)> {
        let used_bytes = limits::used_bytes(self.root.as_deref()?)?;
        let limit_bytes = options.limit_bytes.or(self.default_limit_bytes)?;
        self.note(used_bytes, limit_bytes);
        Some((used_bytes, limit_bytes))
    }

    /// Measures until the future is dropped. Returns if the system tells nothing.
    pub async fn watch(&self, mut options: watch::Receiver<MemoryOptions>, metrics: Metrics) {
        let mut has_told = false;
        loop {
            let now = options.borrow_and_update().clone();
            match self.look(&now) {
                Some((used_bytes, limit_bytes)) => {
                    metrics.set_memory(used_bytes, limit_bytes);
                    has_told = true;
                }
                // Mostly there are no file descriptors left. The last measurement holds until there
                // are.
                None if has_told => {
                    tracing::debug!("the use of memory can't be read now");
                }
                None => {
                    tracing::warn!(
                        "this system does not tell the use of memory, so no limit is kept"
                    );
                    return;
                }
            }
            let changed = tokio::time::timeout(now.check_interval, options.changed());
            if let Ok(Err(_)) = changed.await {
                // Nobody is left to change the options.
                tokio::time::sleep(now.check_interval).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    /// Time is simulated: it goes on when the watch and the test both wait.
    #[tokio::test(start_paused = true)]
    async fn a_look_that_fails_is_not_the_last() {
        let root = tempfile::tempdir().unwrap();
        let status = root.path().join("proc/self/status");
        fs::create_dir_all(status.parent().unwrap()).unwrap();
        fs::write(&status, "RssAnon: 2 kB\n").unwrap();
        let (_options, receiver) = watch::channel(MemoryOptions {
            limit_bytes: Some(1024),
            check_interval: Duration::from_millis(1),
        });
        let memory = Memory::told_below(root.path());
        let watching = memory.watch(receiver, Metrics::new());
        let test = async {
            let looked = || tokio::time::sleep(Duration::from_millis(20));
            while !memory.is_full() {
                looked().await;
            }
            fs::remove_file(&status).unwrap();
            looked().await;
            assert!(memory.is_full(), "nothing says otherwise");
            fs::write(&status, "RssAnon: 0 kB\n").unwrap();
            while memory.is_full() {
                looked().await;
            }
        };
        let test = tokio::time::timeout(Duration::from_secs(20), test);
        tokio::select! {
            () = watching => panic!("it looks for ever"),
            done = test => done.unwrap(),
        }
    }

    #[test]
    fn room_returns_some_way_below_the_limit() {
        let memory = Memory::default();
        let full = |used_bytes| {
            memory.note(used_bytes, 6400);
            memory.is_full()
        };
        assert!(!full(6400));
        assert!(full(6401));
        assert!(full(6301), "not yet");
        assert!(!full(6300));
        assert!(!full(6400));
        memory.note(6400, 6000);
        assert!(memory.is_full(), "the limit may change");
        assert_eq!(memory.limit_bytes(), 6000);
    }
}
