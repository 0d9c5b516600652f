//! The schedules and the last results, in a file of the data directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use store_api::types::{BackupLocationStatus, BackupPlace, BackupScheduleStatus};
use uuid::Uuid;
use value::iso_timestamp;

use crate::BackupTaskError;
use crate::files::replace;
use crate::order::ScheduleOrder;
use crate::schedule::RunSeries;

/// The name of the file.
const FILE: &str = "schedules.json";

/// The version of the file.
const FORMAT: u32 = 1;

/// The most locations without a schedule whose results are remembered.
const RESULTS_MAX: usize = 64;

/// The schedules and results of a server.
#[derive(Debug)]
pub(crate) struct BackupBook {
    file: PathBuf,
    pages: BookPages,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct BookPages {
    format: u32,
    #[serde(default)]
    schedules: BTreeMap<String, BackupSchedule>,
    /// By location.
    #[serde(default)]
    results: BTreeMap<String, LocationResults>,
}

/// The schedule of a location.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BackupSchedule {
    /// The location.
    pub place: BackupPlace,
    /// The number of points that remain.
    #[serde(default)]
    pub retention: Option<usize>,
    /// The backups.
    pub backups: RunSeries,
    /// The drills.
    #[serde(default)]
    pub drills: Option<RunSeries>,
}

/// The last results at a location. Times are microseconds since the epoch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LocationResults {
    pub last_attempt_micros: Option<i64>,
    pub last_success_micros: Option<i64>,
    pub last_point: Option<String>,
    pub last_error: Option<String>,
    pub duration_s: f64,
    pub sent_bytes: u64,
    pub sent_objects: u64,
    pub points: u64,
    pub last_drill_micros: Option<i64>,
    pub last_drill_success_micros: Option<i64>,
    pub drill_error: Option<String>,
    /// Since the start of the process, as all fields below.
    #[serde(skip)]
    pub failures: u64,
    #[serde(skip)]
    pub sent_bytes_total: u64,
    #[serde(skip)]
    pub sent_objects_total: u64,
    #[serde(skip)]
    pub drill_failures: u64,
}

/// The work that is due by a schedule.
#[derive(Clone, Debug)]
pub(crate) enum DueWork {
    /// A backup.
    Backup(BackupSchedule),
    /// A drill.
    Drill(BackupSchedule),
}

/// The id of the schedule of a location: each has one at most.
fn schedule_id(location: &str) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, location.as_bytes()).to_string()
}

impl BackupBook {
    /// Opens the book in a directory. A file that can't be read is logged and set aside: a server
    /// without schedules is better than no server.
    pub(crate) fn open(directory: &Path) -> BackupBook {
        let file = directory.join(FILE);
        let pages = match read(&file) {
            Ok(pages) => pages.unwrap_or_default(),
            Err(error) => {
                let aside = file.with_extension("unreadable");
                let path = file.display();
                tracing::error!(%error, %path, "the schedules of backups can't be read, and none runs: make them again");
                // If it can't be renamed, the next schedule replaces it.
                let _ = fs::rename(&file, aside);
                BookPages::default()
            }
        };
        BackupBook { file, pages }
    }

    /// Makes or replaces the schedule of a location. The first run comes after one interval, as the
    /// caller runs at once.
    ///
    /// # Errors
    /// If the file can't be written. Then nothing changes.
    pub(crate) fn put_schedule(
        &mut self,
        place: &BackupPlace,
        retention: Option<usize>,
        order: ScheduleOrder,
        now_micros: i64,
    ) -> Result<(), BackupTaskError> {
        let mut backups = RunSeries::new(order.backups, now_micros);
        // The run that makes the schedule is its first.
        backups.announce(now_micros);
        let schedule = BackupSchedule {
            place: place.clone(),
            retention,
            backups,
            drills: order.drills.map(|times| RunSeries::new(times, now_micros)),
        };
        let id = schedule_id(&place.location);
        let before = self.pages.schedules.insert(id.clone(), schedule);
        self.write().inspect_err(|_| {
            match before {
                Some(before) => self.pages.schedules.insert(id, before),
                None => self.pages.schedules.remove(&id),
            };
        })
    }

    /// Removes a schedule, and returns it.
    ///
    /// # Errors
    /// If there is none of this id, or the file can't be written.
    pub(crate) fn remove_schedule(
        &mut self,
        id: &str,
    ) -> Result<BackupScheduleStatus, BackupTaskError> {
        let Some(removed) = self.pages.schedules.remove(id) else {
            return Err(BackupTaskError::NoSchedule(id.to_owned()));
        };
        let shown = shown_schedule(id, &removed);
        self.write().inspect_err(|_| {
            self.pages.schedules.insert(id.to_owned(), removed);
        })?;
        Ok(shown)
    }

    /// The work that is due first: backups go before drills.
    pub(crate) fn due(&self, now_micros: i64) -> Option<DueWork> {
        let mut schedules = self.pages.schedules.values();
        let backup = schedules.clone().find(|it| it.backups.is_due(now_micros));
        if let Some(backup) = backup {
            return Some(DueWork::Backup(backup.clone()));
        }
        let is_due = |it: &&BackupSchedule| {
            let drills = it.drills.as_ref();
            drills.is_some_and(|drills| drills.is_due(now_micros))
        };
        schedules.find(is_due).cloned().map(DueWork::Drill)
    }

    /// Notes that a backup to a location begins.
    pub(crate) fn backup_begins(&mut self, location: &str, now_micros: i64) {
        if let Some(schedule) = self.pages.schedules.get_mut(&schedule_id(location)) {
            schedule.backups.begin(now_micros);
        }
        self.results_of(location).last_attempt_micros = Some(now_micros);
        self.save();
    }

    /// Notes that it has ended, and what came of it.
    pub(crate) fn backup_ends(
        &mut self,
        location: &str,
        now_micros: i64,
        has_failed: bool,
        note: impl FnOnce(&mut LocationResults),
    ) {
        if let Some(schedule) = self.pages.schedules.get_mut(&schedule_id(location)) {
            schedule.backups.end(now_micros, has_failed);
        }
        note(self.results_of(location));
        self.save();
    }

    /// Notes that a drill at a location begins.
    pub(crate) fn drill_begins(&mut self, location: &str, now_micros: i64) {
        let schedule = self.pages.schedules.get_mut(&schedule_id(location));
        if let Some(drills) = schedule.and_then(|schedule| schedule.drills.as_mut()) {
            drills.begin(now_micros);
        }
        self.save();
    }

    /// Notes that it has ended, and what came of it.
    pub(crate) fn drill_ends(
        &mut self,
        location: &str,
        now_micros: i64,
        has_failed: bool,
        note: impl FnOnce(&mut LocationResults),
    ) {
        let schedule = self.pages.schedules.get_mut(&schedule_id(location));
        if let Some(drills) = schedule.and_then(|schedule| schedule.drills.as_mut()) {
            drills.end(now_micros, has_failed);
        }
        note(self.results_of(location));
        self.save();
    }

    /// The results by location.
    pub(crate) fn results(&self) -> impl Iterator<Item = (&String, &LocationResults)> {
        self.pages.results.iter()
    }

    /// The time of the next backup of each location with a schedule.
    pub(crate) fn next_backups(&self) -> impl Iterator<Item = (&str, i64)> {
        self.pages.schedules.values().filter_map(|schedule| {
            let next = schedule.backups.next_micros()?;
            Some((schedule.place.location.as_str(), next))
        })
    }

    /// The schedules as the API shows them.
    pub(crate) fn shown_schedules(&self) -> Vec<BackupScheduleStatus> {
        let schedules = self.pages.schedules.iter();
        schedules
            .map(|(id, schedule)| shown_schedule(id, schedule))
            .collect()
    }

    /// The results as the API shows them.
    pub(crate) fn shown_results(&self) -> Vec<BackupLocationStatus> {
        let results = self.pages.results.iter();
        results
            .map(|(location, results)| shown_results(location, results))
            .collect()
    }

    fn results_of(&mut self, location: &str) -> &mut LocationResults {
        if !self.pages.results.contains_key(location) && self.pages.results.len() >= RESULTS_MAX {
            self.forget_oldest();
        }
        self.pages.results.entry(location.to_owned()).or_default()
    }

    /// Forgets the results of the location without a schedule that was used the longest ago.
    fn forget_oldest(&mut self) {
        let BookPages {
            schedules, results, ..
        } = &mut self.pages;
        let without = results
            .iter()
            .filter(|(location, _)| !schedules.contains_key(&schedule_id(location)));
        let oldest = without.min_by_key(|(_, results)| results.last_attempt_micros);
        if let Some(oldest) = oldest.map(|(location, _)| location.clone()) {
            results.remove(&oldest);
        }
    }

    fn write(&mut self) -> Result<(), BackupTaskError> {
        self.pages.format = FORMAT;
        let bytes = serde_json::to_vec_pretty(&self.pages);
        let bytes = bytes.map_err(|error| BackupTaskError::Internal(error.to_string()))?;
        replace(&self.file, &bytes).map_err(|error| BackupTaskError::file(&self.file, error))
    }

    /// Writes results, which are less important than the work itself.
    fn save(&mut self) {
        if let Err(error) = self.write() {
            tracing::warn!(%error, "the results of backups can't be saved");
        }
    }
}

/// Reads the file, if it is there.
fn read(file: &Path) -> io::Result<Option<BookPages>> {
    let bytes = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let pages: BookPages = serde_json::from_slice(&bytes)?;
    match pages.format {
        FORMAT => Ok(Some(pages)),
        other => Err(io::Error::other(format!(
            "it has format {other}, and this version reads {FORMAT}"
        ))),
    }
}

/// RFC 3339, milliseconds, UTC.
pub(crate) fn shown_time(micros: i64) -> String {
    iso_timestamp(micros.div_euclid(1000))
}

fn shown_schedule(id: &str, schedule: &BackupSchedule) -> BackupScheduleStatus {
    let drills = schedule.drills.as_ref();
    BackupScheduleStatus {
        id: id.to_owned(),
        location: schedule.place.location.clone(),
        interval_s: schedule.backups.times.interval_s(),
        cron: schedule.backups.times.cron(),
        retention: schedule.retention,
        drill_interval_s: drills.and_then(|drills| drills.times.interval_s()),
        drill_cron: drills.and_then(|drills| drills.times.cron()),
        next_time: schedule.backups.next_micros().map(shown_time),
        next_drill_time: drills.and_then(RunSeries::next_micros).map(shown_time),
    }
}

fn shown_results(location: &str, results: &LocationResults) -> BackupLocationStatus {
    BackupLocationStatus {
        location: location.to_owned(),
        last_attempt_time: results.last_attempt_micros.map(shown_time),
        last_success_time: results.last_success_micros.map(shown_time),
        last_point: results.last_point.clone(),
        last_error: results.last_error.clone(),
        duration_s: results.duration_s,
        sent_bytes: results.sent_bytes,
        sent_objects: results.sent_objects,
        points: results.points,
        failures: results.failures,
        last_drill_time: results.last_drill_micros.map(shown_time),
        last_drill_success_time: results.last_drill_success_micros.map(shown_time),
        drill_ok: results.drill_ok(),
        drill_error: results.drill_error.clone(),
        drill_failures: results.drill_failures,
    }
}

impl LocationResults {
    /// Whether the last drill found no difference; `None` before the first.
    pub(crate) fn drill_ok(&self) -> Option<bool> {
        self.last_drill_micros.map(|_| self.drill_error.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::RunTimes;

    const HOUR: i64 = 3_600_000_000;

    fn place(location: &str) -> BackupPlace {
        BackupPlace {
            location: location.to_owned(),
            ..BackupPlace::default()
        }
    }

    fn hourly(drills: Option<RunTimes>) -> ScheduleOrder {
        ScheduleOrder {
            backups: RunTimes::IntervalS(3600),
            drills,
        }
    }

    #[test]
    fn schedules_and_results_survive_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let mut book = BackupBook::open(directory.path());
        assert!(book.due(i64::MAX).is_none());
        let drills = Some(RunTimes::IntervalS(7200));
        book.put_schedule(&place("file:///b"), Some(3), hourly(drills), 0)
            .unwrap();
        book.backup_ends("file:///b", 5, false, |results| {
            results.last_success_micros = Some(5);
            results.failures = 2;
        });
        let again = BackupBook::open(directory.path());
        let [schedule] = &again.shown_schedules()[..] else {
            panic!("one schedule");
        };
        assert_eq!(schedule.retention, Some(3));
        assert_eq!(schedule.interval_s, Some(3600));
        assert_eq!(schedule.drill_interval_s, Some(7200));
        assert_eq!(
            schedule.next_time.as_deref(),
            Some("1970-01-01T01:00:00.000Z")
        );
        let results = again.shown_results();
        assert!(results[0].last_success_time.is_some());
        assert_eq!(results[0].failures, 0, "counters begin with the process");
        assert!(matches!(again.due(HOUR), Some(DueWork::Backup(_))));
        assert!(again.due(HOUR - 1).is_none());
    }

    #[test]
    fn a_backup_that_a_kill_interrupted_is_due_after_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let mut book = BackupBook::open(directory.path());
        book.put_schedule(&place("file:///b"), None, hourly(None), HOUR)
            .unwrap();
        book.backup_begins("file:///b", HOUR);
        let again = BackupBook::open(directory.path());
        assert!(matches!(again.due(HOUR + 1), Some(DueWork::Backup(_))));
    }

    #[test]
    fn a_location_has_one_schedule_which_can_be_removed() {
        let directory = tempfile::tempdir().unwrap();
        let mut book = BackupBook::open(directory.path());
        for retention in [1, 2] {
            book.put_schedule(&place("file:///b"), Some(retention), hourly(None), 0)
                .unwrap();
        }
        let schedules = book.shown_schedules();
        assert_eq!(schedules.len(), 1);
        assert_eq!(schedules[0].retention, Some(2));
        let removed = book.remove_schedule(&schedules[0].id).unwrap();
        assert_eq!(removed.location, "file:///b");
        assert!(matches!(
            book.remove_schedule(&schedules[0].id),
            Err(BackupTaskError::NoSchedule(_))
        ));
        assert!(
            BackupBook::open(directory.path())
                .shown_schedules()
                .is_empty()
        );
    }

    #[test]
    fn an_unreadable_file_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), "{").unwrap();
        let mut book = BackupBook::open(directory.path());
        assert!(book.shown_schedules().is_empty());
        book.put_schedule(&place("file:///b"), None, hourly(None), 0)
            .unwrap();
        assert!(directory.path().join("schedules.unreadable").exists());
        fs::write(directory.path().join(FILE), r#"{"format":9}"#).unwrap();
        assert!(
            BackupBook::open(directory.path())
                .shown_schedules()
                .is_empty()
        );
    }

    #[test]
    fn results_of_many_locations_are_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let mut book = BackupBook::open(directory.path());
        book.put_schedule(&place("file:///0"), None, hourly(None), 0)
            .unwrap();
        for location in 0..=RESULTS_MAX {
            book.backup_begins(&format!("file:///{location}"), location as i64);
        }
        let known: Vec<&String> = book.results().map(|(location, _)| location).collect();
        assert_eq!(known.len(), RESULTS_MAX);
        assert!(known.iter().any(|location| *location == "file:///0"));
        assert!(!known.iter().any(|location| *location == "file:///1"));
    }
}
