//! Requests that were checked: what is to be done, in the types of the crates that do it.

use std::path::PathBuf;

use backup::{ChunkCompression, LocationOptions, LocationText, PointId};
use store_api::types::{
    BackupCompression, BackupPlace, BackupRequest, DrillRequest, RestoreRequest,
};

use crate::BackupTaskError;
use crate::choice::TableChoice;
use crate::schedule::RunTimes;

/// A backup that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct BackupOrder {
    /// The location as it was given, which a schedule keeps.
    pub place: BackupPlace,
    /// The location.
    pub options: LocationOptions,
    /// The number of points that remain.
    pub retention: Option<usize>,
    /// The schedule that is made or replaced.
    pub schedule: Option<ScheduleOrder>,
    /// Whether another server's location is taken over.
    pub take_over: bool,
    /// Whether all files are read.
    pub full_check: bool,
    /// Whether all rows are read, for drills.
    pub digests: bool,
}

/// A schedule that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct ScheduleOrder {
    /// The times of backups.
    pub backups: RunTimes,
    /// The times of drills.
    pub drills: Option<RunTimes>,
}

/// A drill that is to be held.
#[derive(Clone, Debug)]
pub(crate) struct DrillOrder {
    /// The location as it was given.
    pub place: BackupPlace,
    /// The location.
    pub options: LocationOptions,
    /// The point; the newest without it.
    pub point: Option<PointId>,
}

/// A restore into this server.
#[derive(Clone, Debug)]
pub(crate) struct RestoreOrder {
    /// The location as it was given.
    pub place: BackupPlace,
    /// The location.
    pub options: LocationOptions,
    /// The point; the newest without it.
    pub point: Option<PointId>,
    /// The tables.
    pub choice: TableChoice,
}

/// The options of a location in a request.
///
/// # Errors
/// If the location's text can't be read.
pub fn location_options(place: &BackupPlace) -> Result<LocationOptions, BackupTaskError> {
    let location: LocationText = match place.location.parse() {
        Ok(location) => location,
        Err(error) => return Err(BackupTaskError::Wrong(format!("{error}"))),
    };
    let path = |text: Option<&String>| text.map(PathBuf::from);
    Ok(LocationOptions {
        location,
        ca: path(place.location_ca.as_ref()),
        credentials: path(place.credentials.as_ref()),
        allow_http: place.allow_http,
        key_file: path(place.key_file.as_ref()),
        compression: match place.compression {
            Some(BackupCompression::None) => ChunkCompression::None,
            Some(BackupCompression::Zstd) | None => ChunkCompression::Zstd,
        },
    })
}

/// The id of a point in a request.
///
/// # Errors
/// If it is none.
pub(crate) fn point_id(text: Option<&str>) -> Result<Option<PointId>, BackupTaskError> {
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error: backup::LocationTextError| BackupTaskError::Wrong(error.to_string()))
}

impl BackupOrder {
    /// The order of a request.
    ///
    /// # Errors
    /// If it can't be carried out.
    pub(crate) fn of(request: &BackupRequest) -> Result<BackupOrder, BackupTaskError> {
        let (place, options) = checked(request.place())?;
        let backups = RunTimes::of(request.interval_s, request.cron.as_deref())?;
        let drills = RunTimes::of(request.drill_interval_s, request.drill_cron.as_deref())?;
        let schedule = match (backups, drills) {
            (Some(backups), drills) => Some(ScheduleOrder { backups, drills }),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(BackupTaskError::Wrong(
                    "times of drills without times of backups: drills belong to a schedule; a single one is `annulus \
                     backup drill`"
                        .to_owned(),
                ));
            }
        };
        if request.retention == Some(0) {
            return Err(BackupTaskError::Wrong(
                "a retention of 0 would delete the point that was just made: it is at least 1"
                    .to_owned(),
            ));
        }
        let has_drills = schedule.as_ref().is_some_and(|made| made.drills.is_some());
        Ok(BackupOrder {
            options,
            place,
            retention: request.retention,
            take_over: request.take_over,
            full_check: request.full_check,
            digests: request.digests || has_drills,
            schedule,
        })
    }
}

impl DrillOrder {
    /// The order of a request.
    ///
    /// # Errors
    /// If it can't be carried out.
    pub(crate) fn of(request: &DrillRequest) -> Result<DrillOrder, BackupTaskError> {
        let (place, options) = checked(request.place())?;
        Ok(DrillOrder {
            options,
            place,
            point: point_id(request.point.as_deref())?,
        })
    }
}

impl RestoreOrder {
    /// The order of a request.
    ///
    /// # Errors
    /// If it can't be carried out.
    pub(crate) fn of(request: RestoreRequest) -> Result<RestoreOrder, BackupTaskError> {
        let (place, options) = checked(request.place())?;
        Ok(RestoreOrder {
            options,
            place,
            point: point_id(request.point.as_deref())?,
            choice: TableChoice::new(request.keyspace, request.table, request.to_keyspace)?,
        })
    }
}

/// A location of a request, by the one text that it has, with its options.
fn checked(place: BackupPlace) -> Result<(BackupPlace, LocationOptions), BackupTaskError> {
    if place.max_mib_per_second == Some(0) {
        return Err(BackupTaskError::Wrong(
            "max_mib_per_second is 0: it is at least 1, or left out".to_owned(),
        ));
    }
    let options = location_options(&place)?;
    let place = BackupPlace {
        location: options.location.to_string(),
        ..place
    };
    Ok((place, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> BackupRequest {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_request_becomes_an_order() {
        let order = BackupOrder::of(&request(
            r#"{"location":"file:///b/one","retention":7,"interval_s":86400,"drill_cron":"0 4 * * SUN",
                "compression":"none","key_file":"/k"}"#,
        ))
        .unwrap();
        assert_eq!(order.options.location.to_string(), "file:///b/one");
        assert_eq!(order.options.compression, ChunkCompression::None);
        assert_eq!(order.options.key_file, Some(PathBuf::from("/k")));
        assert_eq!(order.retention, Some(7));
        assert!(order.digests, "a drill compares them");
        let schedule = order.schedule.unwrap();
        assert_eq!(schedule.backups, RunTimes::IntervalS(86_400));
        assert!(schedule.drills.is_some());
        let plain = BackupOrder::of(&request(r#"{"location":"file:///b"}"#)).unwrap();
        assert!(plain.schedule.is_none() && !plain.digests);
        assert_eq!(plain.options.compression, ChunkCompression::Zstd);
    }

    #[test]
    fn requests_that_can_t_be_carried_out_are_refused() {
        for (text, named) in [
            (r#"{"location":"ftp:x"}"#, "ftp:x"),
            (r#"{"location":"file:///b","retention":0}"#, "at least 1"),
            (
                r#"{"location":"file:///b","interval_s":60,"cron":"* * * * *"}"#,
                "one of them",
            ),
            (
                r#"{"location":"file:///b","drill_interval_s":60}"#,
                "belong to a schedule",
            ),
            (
                r#"{"location":"file:///b","max_mib_per_second":0}"#,
                "max_mib_per_second",
            ),
        ] {
            let error = BackupOrder::of(&request(text)).unwrap_err();
            assert!(matches!(error, BackupTaskError::Wrong(_)), "{text}");
            assert!(error.to_string().contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn a_restore_of_a_table_names_its_keyspace() {
        let of = |text: &str| RestoreOrder::of(serde_json::from_str(text).unwrap());
        assert!(of(r#"{"location":"file:///b","table":"t"}"#).is_err());
        assert!(of(r#"{"location":"file:///b","to_keyspace":"n"}"#).is_err());
        let wrong_point = of(r#"{"location":"file:///b","point":"yesterday"}"#);
        assert!(wrong_point.is_err());
        let whole = of(r#"{"location":"file:///b","keyspace":"k","to_keyspace":"n"}"#).unwrap();
        assert_eq!(whole.choice.keyspace_here("k"), "n");
    }
}
