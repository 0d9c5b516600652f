//! Repairs that nobody asks for.
//!
//! A setting gives every index a schedule; an update gives one its own, for good: it is kept in a file
//! beside the files of the indexes, with the time of the last repair, so that a service that is
//! restarted more often than it repairs gets round to it all the same.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{RepairError, Repairs, Speed};
use crate::cdc::since_epoch;
use crate::identity::IndexName;
use crate::options::RepairSchedule;

/// How often it is looked whether a repair is due.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// How fast a repair by schedule is if nothing is said of it.
const GENTLE: Speed = Speed {
    parallel: 0,
    intensity: 1,
};

/// The name of the file.
pub const FILE: &str = "repair-schedules.json";

/// The schedules of a service. Cheap to clone; clones are the same.
#[derive(Clone, Debug)]
pub struct Schedules {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: PathBuf,
    default: Option<RepairSchedule>,
    kept: Mutex<BTreeMap<String, Kept>>,
}

/// What is kept of an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Kept {
    /// Its own schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    own: Option<Own>,
    /// When its last repair by schedule began, seconds since the epoch; before the first, when it was
    /// first seen.
    last_s: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Own {
    /// Absent: never.
    interval_s: Option<u64>,
    parallel: usize,
    intensity: usize,
}

/// What an update changes; what is absent stays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Update {
    /// Never, or so often.
    pub interval: Option<Option<Duration>>,
    /// See [`RepairSchedule`].
    pub parallel: Option<usize>,
    /// See [`RepairSchedule`].
    pub intensity: Option<usize>,
}

/// Why a schedule was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// There is none to change.
    #[error("index {0} has no schedule: say how often it is to be repaired")]
    NoInterval(IndexName),
    /// It can't be kept.
    #[error("the schedule can't be written to {}: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl Schedules {
    /// Those that are kept in this directory. A file that can't be read is told of and counts as
    /// none: a service without schedules is better than no service.
    pub fn open(directory: &Path, default: Option<RepairSchedule>) -> Schedules {
        let file = directory.join(FILE);
        let kept = match std::fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        };
        let kept = kept.unwrap_or_else(|error| {
            tracing::error!(%error, file = %file.display(), "schedules of repairs can't be read; those of the settings hold");
            BTreeMap::new()
        });
        Schedules {
            inner: Arc::new(Inner {
                file,
                default,
                kept: Mutex::new(kept),
            }),
        }
    }

    /// The schedule of an index; none: never.
    pub fn of(&self, name: &IndexName) -> Option<RepairSchedule> {
        self.in_effect(self.kept().get(&name.to_string()))
    }

    /// Gives an index a schedule of its own, for good. Reads and writes a file.
    pub fn update(
        &self,
        name: &IndexName,
        update: Update,
    ) -> Result<Option<RepairSchedule>, ScheduleError> {
        let mut kept = self.kept();
        let before = self.in_effect(kept.get(&name.to_string()));
        let interval = match update.interval {
            Some(interval) => interval,
            None => Some(
                before
                    .ok_or_else(|| ScheduleError::NoInterval(name.clone()))?
                    .interval,
            ),
        };
        let before = before.map_or(GENTLE, |before| Speed {
            parallel: before.parallel,
            intensity: before.intensity,
        });
        let mut after = kept.clone();
        let entry = after.entry(name.to_string()).or_insert_with(|| Kept {
            own: None,
            last_s: since_epoch().as_secs(),
        });
        entry.own = Some(Own {
            interval_s: interval.map(|interval| interval.as_secs().max(1)),
            parallel: update.parallel.unwrap_or(before.parallel),
            intensity: update.intensity.unwrap_or(before.intensity),
        });
        self.write(&after)?;
        *kept = after;
        Ok(self.in_effect(kept.get(&name.to_string())))
    }

    /// Begins repairs when they are due, for ever.
    pub async fn run(self, repairs: Repairs) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let (schedules, names) = (self.clone(), repairs.serving());
            let now_s = since_epoch().as_secs();
            let due = tokio::task::spawn_blocking(move || schedules.due(&names, now_s)).await;
            let Ok(Some((name, schedule))) = due else {
                continue;
            };
            let speed = Speed {
                parallel: schedule.parallel,
                intensity: schedule.intensity,
            };
            match repairs.start(&name, speed, None) {
                Ok(_) => {
                    let schedules = self.clone();
                    let noted = tokio::task::spawn_blocking(move || schedules.began(&name, now_s));
                    // It panics as little as the above; if it did, the repair would begin again.
                    let _ = noted.await;
                }
                // It is due as soon as the other one has ended.
                Err(RepairError::Busy(_)) => {}
                Err(error) => tracing::warn!(%error, "a repair that was due did not begin"),
            }
        }
    }

    /// One of these indexes whose repair is due, the one that waits longest first.
    fn due(&self, names: &[IndexName], now_s: u64) -> Option<(IndexName, RepairSchedule)> {
        let mut kept = self.kept();
        let mut due = Vec::new();
        let mut news = false;
        for name in names {
            let Some(schedule) = self.in_effect(kept.get(&name.to_string())) else {
                continue;
            };
            let entry = kept.entry(name.to_string()).or_insert_with(|| {
                news = true;
                Kept {
                    own: None,
                    last_s: now_s,
                }
            });
            if entry.last_s.saturating_add(schedule.interval.as_secs()) <= now_s {
                due.push((entry.last_s, name.clone(), schedule));
            }
        }
        if news {
            self.write_or_tell(&kept);
        }
        let first = due.into_iter().min_by_key(|(last_s, ..)| *last_s)?;
        Some((first.1, first.2))
    }

    fn began(&self, name: &IndexName, now_s: u64) {
        let mut kept = self.kept();
        kept.entry(name.to_string()).or_default().last_s = now_s;
        self.write_or_tell(&kept);
    }

    fn in_effect(&self, kept: Option<&Kept>) -> Option<RepairSchedule> {
        match kept.and_then(|kept| kept.own) {
            Some(own) => own.interval_s.map(|interval_s| RepairSchedule {
                interval: Duration::from_secs(interval_s),
                parallel: own.parallel,
                intensity: own.intensity,
            }),
            None => self.inner.default,
        }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.inner
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn write_or_tell(&self, kept: &BTreeMap<String, Kept>) {
        if let Err(error) = self.write(kept) {
            tracing::warn!(%error, "after a restart the interval begins anew");
        }
    }

    /// Writes all of it, or nothing.
    fn write(&self, kept: &BTreeMap<String, Kept>) -> Result<(), ScheduleError> {
        let file = &self.inner.file;
        let directory = file.parent().unwrap_or(Path::new("."));
        let written = std::fs::create_dir_all(directory).and_then(|()| {
            let mut new = tempfile::NamedTempFile::new_in(directory)?;
            serde_json::to_writer_pretty(&mut new, kept)?;
            new.flush()?;
            new.as_file().sync_all()?;
            new.persist(file)?;
            Ok(())
        });
        written.map_err(|source| ScheduleError::File {
            file: file.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests;
