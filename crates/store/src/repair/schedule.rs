//! Starts repairs by schedule.
//!
//! A setting gives every index a schedule. An update gives an index a permanent schedule of its
//! own. Schedules from updates are stored in a file next to the files of the indexes, with the time
//! of each index's last repair. So a service that is restarted more often than it repairs still
//! repairs every index.

mod entries;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use entries::{CustomSchedule, Entries, IndexScheduleEntry};
use platform::aside;
use store_api::types::NodeStatus;

use super::{ComparisonSpeed, RepairError, Repairs};
use crate::identity::IndexName;
use crate::indexes::IndexEngine;
use crate::options::PeriodicRepair;
use crate::present::TimeSource;

pub(crate) use entries::IndexCreation;

/// The interval at which due repairs are looked for.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The time after which the entry of a missing index is forgotten. An index whose table can't be
/// read may look missing for a while.
const GONE_AFTER: Duration = Duration::from_secs(3600);

/// The speed of a repair by schedule if neither the settings nor an update give one.
const GENTLE: ComparisonSpeed = ComparisonSpeed {
    parallel: 0,
    intensity: 1,
};

/// The name of the file of schedules.
pub(super) const FILE: &str = "repair-schedules.json";

/// The schedules of a service. Cheap to clone; clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct IndexSchedules {
    inner: Arc<SharedSchedules>,
}

#[derive(Debug)]
struct SharedSchedules {
    present: TimeSource,
    file: PathBuf,
    /// The schedule of the settings.
    default: Option<PeriodicRepair>,
    /// The schedule that takes its place with gateways, if the settings give none.
    behind_gateways: Option<PeriodicRepair>,
    is_behind_gateways: AtomicBool,
    /// The entries of indexes. They are read without a lock, as threads that serve sockets must not
    /// wait.
    kept: ArcSwap<Entries>,
    /// Held while entries are changed and the file is written; never on a thread that serves
    /// sockets.
    changing: Mutex<Absences>,
}

/// For each missing index that has an entry, the time since when it is missing, seconds since the
/// epoch.
type Absences = BTreeMap<String, u64>;

/// The values that an update changes. `None` leaves a value as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PeriodicRepairUpdate {
    /// The new interval; `Some(None)` means never.
    pub interval: Option<Option<Duration>>,
    /// The new [`PeriodicRepair::parallel`].
    pub parallel: Option<usize>,
    /// The new [`PeriodicRepair::intensity`].
    pub intensity: Option<usize>,
}

/// The reason why a schedule was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScheduleError {
    /// The index has no schedule, and the update gives no interval.
    #[error("index {0} has no schedule: say how often it is to be repaired")]
    NoInterval(IndexName),
    /// The schedule can't be written to its file.
    #[error("the schedule can't be written to {}: {source}", file.display())]
    File {
        /// The file that can't be written.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl IndexSchedules {
    /// Opens the schedules that are stored in a directory. An unreadable file is logged and counts
    /// as empty: a service without schedules is better than no service.
    pub(crate) fn open(
        directory: &Path,
        default: Option<PeriodicRepair>,
        behind_gateways: Option<PeriodicRepair>,
        present: TimeSource,
    ) -> IndexSchedules {
        let file = directory.join(FILE);
        let kept = entries::read(&file).unwrap_or_else(|error| {
            tracing::error!(%error, file = %file.display(), "schedules of repairs can't be read; those of the settings are used");
            Entries::new()
        });
        IndexSchedules {
            inner: Arc::new(SharedSchedules {
                present,
                file,
                default,
                behind_gateways,
                is_behind_gateways: AtomicBool::new(false),
                kept: ArcSwap::from_pointee(kept),
                changing: Mutex::default(),
            }),
        }
    }

    /// The schedule of an index; `None`: never.
    pub(crate) fn of(&self, index: &IndexCreation) -> Option<PeriodicRepair> {
        self.in_effect(&self.inner.kept.load(), index)
    }

    /// Gives an index a permanent schedule of its own, and returns the schedule then in effect.
    /// Blocks: it writes a file and waits for other writers.
    pub(crate) fn update(
        &self,
        index: &IndexCreation,
        update: PeriodicRepairUpdate,
    ) -> Result<Option<PeriodicRepair>, ScheduleError> {
        let _changing = self.changing();
        let mut kept = self.kept();
        let before = self.in_effect(&kept, index);
        let interval = match update.interval {
            Some(interval) => interval,
            None => Some(
                before
                    .ok_or_else(|| ScheduleError::NoInterval(index.name.clone()))?
                    .interval,
            ),
        };
        let before = before.map_or(GENTLE, |before| ComparisonSpeed {
            parallel: before.parallel,
            intensity: before.intensity,
        });
        entry(&mut kept, index, self.inner.present.now().as_secs()).own = Some(CustomSchedule {
            interval_s: interval.map(|interval| interval.as_secs().max(1)),
            parallel: update.parallel.unwrap_or(before.parallel),
            intensity: update.intensity.unwrap_or(before.intensity),
        });
        let after = self.in_effect(&kept, index);
        if kept != **self.inner.kept.load() {
            self.write(&kept)?;
            self.inner.kept.store(Arc::new(kept));
        }
        Ok(after)
    }

    /// Sets whether the database is reached through gateways.
    pub(crate) fn set_behind_gateways(&self, is_behind: bool) {
        self.inner
            .is_behind_gateways
            .store(is_behind, Ordering::Relaxed);
    }

    /// Starts repairs when they are due. Never returns.
    pub(crate) async fn run(self, repairs: Repairs, engine: Arc<IndexEngine>) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            self.set_behind_gateways(engine.is_behind_gateways());
            let (schedules, serving) = (self.clone(), repairs.serving());
            // As long as the service still looks for indexes, none is known to be missing.
            let known = (engine.status() == NodeStatus::Serving).then(|| engine.indexes());
            let now_s = self.inner.present.now().as_secs();
            let due = aside(move || {
                if let Some(known) = known {
                    let names = known.iter().map(|index| index.identity.name.to_string());
                    schedules.forget_missing(&names.collect::<Vec<_>>(), now_s);
                }
                schedules.due(&serving, now_s)
            });
            let Ok(Some((index, schedule))) = due.await else {
                continue;
            };
            let speed = ComparisonSpeed {
                parallel: schedule.parallel,
                intensity: schedule.intensity,
            };
            match repairs.start(&index.name, speed, None) {
                Ok(_) => {
                    let schedules = self.clone();
                    let noted = aside(move || schedules.began(&index, now_s));
                    // An error here would mean a panic, which is not expected. Then the repair
                    // would begin again.
                    let _ = noted.await;
                }
                // The repair stays due and begins once the other one has ended.
                Err(RepairError::Busy(_)) => {}
                Err(error) => tracing::warn!(%error, "a repair that was due did not begin"),
            }
        }
    }

    /// Returns the index whose repair has been due for the longest.
    fn due(
        &self,
        indexes: &[IndexCreation],
        now_s: u64,
    ) -> Option<(IndexCreation, PeriodicRepair)> {
        let _changing = self.changing();
        let mut kept = self.kept();
        let mut due = Vec::new();
        for index in indexes {
            let known = kept.contains_key(&index.name.to_string());
            let schedule = self.in_effect(&kept, index);
            if !known && schedule.is_none() {
                continue;
            }
            let entry = entry(&mut kept, index, now_s);
            if let Some(schedule) = schedule
                && entry.last_s.saturating_add(schedule.interval.as_secs()) <= now_s
            {
                due.push((entry.last_s, index, schedule));
            }
        }
        self.apply_and_save(kept);
        let (_, index, schedule) = due.into_iter().min_by_key(|(last_s, ..)| *last_s)?;
        Some((index.clone(), schedule))
    }

    fn began(&self, index: &IndexCreation, now_s: u64) {
        let _changing = self.changing();
        let mut kept = self.kept();
        entry(&mut kept, index, now_s).last_s = now_s;
        self.apply_and_save(kept);
    }

    /// Forgets the entries of indexes that have been missing for long. `there` has the names of all
    /// indexes.
    fn forget_missing(&self, there: &[String], now_s: u64) {
        let mut absences = self.changing();
        let mut kept = self.kept();
        absences.retain(|name, _| kept.contains_key(name) && !there.contains(name));
        kept.retain(|name, _| {
            if there.contains(name) {
                return true;
            }
            let since_s = *absences.entry(name.clone()).or_insert(now_s);
            now_s.saturating_sub(since_s) < GONE_AFTER.as_secs()
        });
        self.apply_and_save(kept);
    }

    fn in_effect(&self, kept: &Entries, index: &IndexCreation) -> Option<PeriodicRepair> {
        let kept = kept.get(&index.name.to_string());
        let kept = kept.filter(|kept| kept.is_of(index));
        match kept.and_then(|kept| kept.own) {
            Some(own) => own.interval_s.map(|interval_s| PeriodicRepair {
                interval: Duration::from_secs(interval_s),
                parallel: own.parallel,
                intensity: own.intensity,
            }),
            None => self.inner.default.or_else(|| {
                let is_behind_gateways = self.inner.is_behind_gateways.load(Ordering::Relaxed);
                self.inner.behind_gateways.filter(|_| is_behind_gateways)
            }),
        }
    }

    fn changing(&self) -> MutexGuard<'_, Absences> {
        let changing = self.inner.changing.lock();
        changing.unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> Entries {
        Entries::clone(&self.inner.kept.load())
    }

    /// Puts entries into effect and writes them. If they can't be written they take effect all the
    /// same.
    fn apply_and_save(&self, kept: Entries) {
        if kept == **self.inner.kept.load() {
            return;
        }
        if let Err(error) = self.write(&kept) {
            tracing::warn!(%error, "schedules of repairs can't be written: after a restart the interval begins anew");
        }
        self.inner.kept.store(Arc::new(kept));
    }

    fn write(&self, kept: &Entries) -> Result<(), ScheduleError> {
        let file = &self.inner.file;
        entries::write(file, kept).map_err(|source| ScheduleError::File {
            file: file.clone(),
            source,
        })
    }
}

/// Returns the entry of an index, which is made if there is none. The entry of an earlier index of
/// the same name is replaced.
fn entry<'a>(
    kept: &'a mut Entries,
    index: &IndexCreation,
    now_s: u64,
) -> &'a mut IndexScheduleEntry {
    let first = || IndexScheduleEntry::first(index, now_s);
    let entry = kept.entry(index.name.to_string()).or_insert_with(first);
    if !entry.is_of(index) {
        *entry = first();
    }
    entry.creation = Some(index.id.clone());
    entry
}

#[cfg(test)]
mod tests;
