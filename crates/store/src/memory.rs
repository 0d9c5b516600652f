//! The memory of the process, and whether indexes may take more of it.
//!
//! Only memory that the system can't take back counts; a mapped file may have any size. The use is
//! measured from time to time, and rows that come between two measurements are estimated
//! ([`ProcessMemory::take`]). Rows leave free what other parts of the process may still take
//! ([`BytesToCome`]), and what changes of rows that indexes have may take ([`FreshCharge`]). At the
//! limit new rows wait ([`crate::apply`]), and everything else goes on. An index that would
//! overstep the limit as a whole is not opened from its snapshot ([`claim`]).

mod claim;
mod fresh;
mod limits;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claim::RecentClaims;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::metrics::ServiceMetrics;
use crate::options::{BytesToCome, MemoryOptions};
pub(crate) use claim::{Claim, NoMemory};
pub(crate) use fresh::FreshCharge;

/// The distance below the limit at which there is room again after the limit was reached: one part
/// in this many.
const RELIEF: u64 = 64;

/// The distance below the limit from which on free memory is returned to the system: one part in
/// this many.
const NEAR: u64 = 16;

/// The most bytes that rows leave free for what other parts of the process may take: one part of
/// the limit in this many.
const TO_COME_PART: u64 = 4;

/// The part of the time in which free memory may be returned to the system: one in this many.
const GIVE_BACK_SHARE: u32 = 50;

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
pub(crate) struct ProcessMemory {
    /// The root of the system's files that tell memory use; `None` for no measurements.
    root: Option<PathBuf>,
    /// The bytes in use as another source reports them.
    reported_bytes: Option<Arc<AtomicU64>>,
    default_limit_bytes: Option<u64>,
    is_full: AtomicBool,
    /// Whether a measurement was noted yet.
    is_known: AtomicBool,
    used_bytes: AtomicU64,
    /// About the bytes that rows have taken since the last measurement.
    taken_bytes: AtomicU64,
    limit_bytes: AtomicU64,
    /// The bytes that may be taken in addition to those of the last measurement, other than by
    /// rows.
    to_come_bytes: AtomicU64,
    /// The bytes of changes that indexes have not taken in yet.
    fresh_bytes: AtomicU64,
    claims: Mutex<RecentClaims>,
}

impl ProcessMemory {
    /// The memory of this process, by the files of the system, unless the options tell it.
    pub(crate) fn of_process(options: &MemoryOptions) -> ProcessMemory {
        match &options.reported_bytes {
            Some(told_bytes) => ProcessMemory {
                reported_bytes: Some(told_bytes.clone()),
                ..ProcessMemory::default()
            },
            None => ProcessMemory::with_root(Path::new("/")),
        }
    }

    /// The bytes in use at this moment, if they are known.
    fn used_bytes_now(&self) -> Option<u64> {
        match &self.reported_bytes {
            Some(told_bytes) => Some(told_bytes.load(Ordering::Relaxed)),
            None => limits::used_bytes(self.root.as_deref()?),
        }
    }

    fn with_root(root: &Path) -> ProcessMemory {
        ProcessMemory {
            default_limit_bytes: limits::default_limit_bytes(root),
            root: Some(root.to_owned()),
            ..ProcessMemory::default()
        }
    }

    /// Whether no more rows may come in.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Notes that a row is about to take so many bytes. Returns whether there is room for it, by
    /// the last measurement and by what was taken since.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        if self.is_full() {
            return false;
        }
        if !self.is_known.load(Ordering::Relaxed) {
            return true;
        }
        let taken_bytes = self.taken_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let used_bytes = self.used_bytes.load(Ordering::Relaxed);
        let to_come_bytes = self.to_come_bytes.load(Ordering::Relaxed);
        let bytes = used_bytes.saturating_add(to_come_bytes);
        bytes.saturating_add(taken_bytes) <= self.limit_bytes()
    }

    /// The limit in bytes, as it was noted last.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// The limit in bytes; `None` before one was noted.
    fn known_limit_bytes(&self) -> Option<u64> {
        let is_known = self.is_known.load(Ordering::Relaxed);
        is_known.then(|| self.limit_bytes())
    }

    /// Notes the bytes in use and the limit.
    pub(crate) fn note(&self, used_bytes: u64, limit_bytes: u64) {
        self.taken_bytes.store(0, Ordering::Relaxed);
        self.used_bytes.store(used_bytes, Ordering::Relaxed);
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        self.is_known.store(true, Ordering::Relaxed);
        let before = self.is_full();
        let to_come_bytes = self.to_come_bytes.load(Ordering::Relaxed);
        let bytes = used_bytes.saturating_add(to_come_bytes);
        let is_full = match before {
            false => bytes > limit_bytes,
            true => bytes > limit_bytes - limit_bytes / RELIEF,
        };
        self.is_full.store(is_full, Ordering::Relaxed);
        match (before, is_full) {
            (false, true) => tracing::error!(
                used_bytes,
                to_come_bytes,
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
    /// reports both.
    pub(crate) fn refresh(&self, options: &MemoryOptions) -> Option<(u64, u64)> {
        let (used_bytes, limit_bytes) = self.measure(options)?;
        let to_come_bytes = self.to_come(options, limit_bytes);
        self.to_come_bytes.store(to_come_bytes, Ordering::Relaxed);
        self.note(used_bytes, limit_bytes);
        Some((used_bytes, limit_bytes))
    }

    /// The bytes that may be taken in addition to those in use, other than by rows: by other parts
    /// of the process, and by changes of rows that indexes have.
    fn to_come(&self, options: &MemoryOptions, limit_bytes: u64) -> u64 {
        let of_others = options.to_come.as_ref().map_or(0, BytesToCome::now);
        let fresh_bytes = self.fresh_bytes.load(Ordering::Relaxed);
        let of_changes = fresh::room_of_all(limit_bytes).saturating_sub(fresh_bytes);
        of_others.min(limit_bytes / TO_COME_PART) + of_changes
    }

    fn measure(&self, options: &MemoryOptions) -> Option<(u64, u64)> {
        let used_bytes = self.used_bytes_now()?;
        let limit_bytes = options.limit_bytes.or(self.default_limit_bytes)?;
        Some((used_bytes, limit_bytes))
    }

    /// Looks, and near the limit has memory that is free within the process returned to the system
    /// before.
    async fn refresh_near_limit(
        &self,
        options: &MemoryOptions,
        pause: &mut GiveBackPause,
    ) -> Option<(u64, u64)> {
        let (used_bytes, limit_bytes) = self.measure(options)?;
        let bytes = used_bytes.saturating_add(self.to_come(options, limit_bytes));
        let is_near = bytes > limit_bytes - limit_bytes / NEAR;
        if is_near && self.reported_bytes.is_none() && pause.is_over() {
            let began = Instant::now();
            // It takes some milliseconds for each GB.
            let _ = tokio::task::spawn_blocking(options.give_back).await;
            pause.begin(began.elapsed());
        }
        self.refresh(options)
    }

    /// Measures until the future is dropped. Returns if the system reports nothing.
    pub(crate) async fn watch(
        &self,
        mut options: watch::Receiver<MemoryOptions>,
        metrics: ServiceMetrics,
    ) {
        let mut has_told = false;
        let mut pause = GiveBackPause::default();
        loop {
            let now = options.borrow_and_update().clone();
            match self.refresh_near_limit(&now, &mut pause).await {
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
                // No sender is left to change the options.
                tokio::time::sleep(now.check_interval).await;
            }
        }
    }
}

/// The time for which no memory is returned to the system after it was.
#[derive(Debug, Default)]
struct GiveBackPause {
    until: Option<Instant>,
}

impl GiveBackPause {
    fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    fn begin(&mut self, took: Duration) {
        self.until = Some(Instant::now() + GIVE_BACK_SHARE * took);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
            ..MemoryOptions::default()
        });
        let memory = ProcessMemory::with_root(root.path());
        let watching = memory.watch(receiver, ServiceMetrics::new());
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
        let memory = ProcessMemory::default();
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

    #[test]
    fn rows_leave_free_what_is_still_to_come() {
        const LIMIT_BYTES: u64 = 64 << 20;
        let (used_bytes, to_come) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let told = to_come.clone();
        let options = MemoryOptions {
            limit_bytes: Some(LIMIT_BYTES),
            to_come: Some(BytesToCome::new(move || told.load(Ordering::Relaxed))),
            reported_bytes: Some(used_bytes.clone()),
            ..MemoryOptions::default()
        };
        let memory = Arc::new(ProcessMemory::of_process(&options));
        let look = |used_mib: u64, to_come_mib: u64| {
            used_bytes.store(used_mib << 20, Ordering::Relaxed);
            to_come.store(to_come_mib << 20, Ordering::Relaxed);
            memory.refresh(&options).unwrap();
            memory.is_full()
        };
        // Changes may take 4 MiB.
        assert!(!look(52, 8));
        assert!(memory.take(0) && !memory.take(1));
        assert!(look(53, 8));
        // What is taken is no longer to come.
        assert!(!look(56, 0));
        let mut changes = FreshCharge::new(memory.clone());
        changes.add(3 << 20);
        assert!(!look(59, 4));
        assert!(look(60, 4));
        drop(changes);
        // Who may take more than there is takes a quarter.
        assert!(!look(40, 100));
        assert!(!look(44, 100));
        assert!(look(45, 100));
    }
}
