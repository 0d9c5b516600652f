//! How much memory the process takes, and whether indexes may take more.
//!
//! What counts is the memory that the system can't take back: a mapped file may be as large as it
//! likes. It is looked at from time to time, so the limit can be overstepped by what comes in
//! between two looks; the default limit leaves room for that. At the limit rows that come anew
//! wait ([`crate::monitor_items`]); everything else goes on. An index that
//! would overstep it as a whole is not opened from its snapshot ([`claim`]).

mod claim;
mod limits;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;

use crate::metrics::Metrics;
use crate::options::MemoryOptions;
use claim::Claims;
pub use claim::{Claim, NoMemory};

/// Once the limit was reached, there is room again this part of the limit below it.
const RELIEF: u64 = 64;

/// Half of the memory that the machine or the control group has, in bytes, if the system tells.
pub fn half_of_machine_bytes() -> Option<u64> {
    limits::half_bytes(Path::new("/"))
}

/// All of it that a process which is alone there may take, in bytes, if the system tells.
pub fn default_limit_bytes() -> Option<u64> {
    limits::default_limit_bytes(Path::new("/"))
}

/// Whether there is memory for more rows. By default nobody tells, and it is as was noted.
#[derive(Debug, Default)]
pub struct Memory {
    /// Where the system's files begin that tell of it.
    root: Option<PathBuf>,
    default_limit_bytes: Option<u64>,
    is_full: AtomicBool,
    /// Whether anything was noted.
    is_known: AtomicBool,
    used_bytes: AtomicU64,
    limit_bytes: AtomicU64,
    claims: Mutex<Claims>,
}

impl Memory {
    /// The memory of this process.
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

    /// Whether no more rows are to come in.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// How much the process may take, as it was noted last.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Takes in how much the process takes, and may take.
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
                tracing::info!(used_bytes, limit_bytes, "there is memory for rows again")
            }
            _ => {}
        }
    }

    /// Looks once; how much the process takes, and may take, if the system tells both.
    pub fn look(&self, options: &MemoryOptions) -> Option<(u64, u64)> {
        let used_bytes = limits::used_bytes(self.root.as_deref()?)?;
        let limit_bytes = options.limit_bytes.or(self.default_limit_bytes)?;
        self.note(used_bytes, limit_bytes);
        Some((used_bytes, limit_bytes))
    }

    /// Looks for ever, if the system tells anything.
    pub async fn watch(&self, mut options: watch::Receiver<MemoryOptions>, metrics: Metrics) {
        let mut has_told = false;
        loop {
            let now = options.borrow_and_update().clone();
            match self.look(&now) {
                Some((used_bytes, limit_bytes)) => {
                    metrics.set_memory(used_bytes, limit_bytes);
                    has_told = true;
                }
                // Mostly there are no file descriptors left. What was true last holds until then.
                None if has_told => {
                    tracing::debug!("how much memory is used can't be read now");
                }
                None => {
                    tracing::warn!(
                        "this system does not tell how much memory is used: no limit is kept"
                    );
                    return;
                }
            }
            let changed = tokio::time::timeout(now.check_interval, options.changed());
            if let Ok(Err(_)) = changed.await {
                // Nobody is left to change them.
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

    #[tokio::test]
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
