//! Backups, restores, drills and local snapshots.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::TaskStatus;

/// The compression of the pieces of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackupCompression {
    /// None.
    None,
    /// Zstandard.
    Zstd,
}

/// A location of backups, and how it is opened. Paths are those of the process that opens it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupPlace {
    /// The location: `s3:BUCKET/PREFIX`, `gcs:...`, `azure:...` or `file:///DIR`.
    pub location: String,
    /// A file with the authorities that sign the location's certificate, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location_ca: Option<String>,
    /// A file of credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
    /// Whether an endpoint beyond this machine may be used without TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_http: bool,
    /// A file with the key of encryption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
    /// The compression; Zstandard if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<BackupCompression>,
    /// The most MiB that are transferred in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_mib_per_second: Option<u64>,
}

/// Declares a request about a location: the fields of a [`BackupPlace`], then its own. Serde can't
/// refuse unknown keys of a flattened struct.
macro_rules! place_request {
    (
        $(#[$of_struct:meta])*
        pub struct $name:ident {
            $(
                $(#[$of_field:meta])*
                pub $field:ident: $type:ty,
            )*
        }
    ) => {
        $(#[$of_struct])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            /// The location: `s3:BUCKET/PREFIX`, `gcs:...`, `azure:...` or `file:///DIR`.
            pub location: String,
            /// A file of the server with the authorities that sign the location's certificate.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub location_ca: Option<String>,
            /// A file of the server with credentials, NAME=VALUE lines.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub credentials: Option<String>,
            /// Whether an endpoint beyond the server's machine may be used without TLS.
            #[serde(default, skip_serializing_if = "std::ops::Not::not")]
            pub allow_http: bool,
            /// A file of the server with the key of encryption.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub key_file: Option<String>,
            /// The compression; Zstandard if it is not given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub compression: Option<BackupCompression>,
            /// The most MiB that are transferred in a second.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub max_mib_per_second: Option<u64>,
            $(
                $(#[$of_field])*
                pub $field: $type,
            )*
        }

        impl $name {
            /// A request about this location, without anything else.
            pub fn of(place: BackupPlace) -> $name {
                $name {
                    location: place.location,
                    location_ca: place.location_ca,
                    credentials: place.credentials,
                    allow_http: place.allow_http,
                    key_file: place.key_file,
                    compression: place.compression,
                    max_mib_per_second: place.max_mib_per_second,
                    ..$name::default()
                }
            }

            /// The location.
            pub fn place(&self) -> BackupPlace {
                BackupPlace {
                    location: self.location.clone(),
                    location_ca: self.location_ca.clone(),
                    credentials: self.credentials.clone(),
                    allow_http: self.allow_http,
                    key_file: self.key_file.clone(),
                    compression: self.compression,
                    max_mib_per_second: self.max_mib_per_second,
                }
            }
        }
    };
}

place_request! {
    /// `POST /api/v1/backups`.
    pub struct BackupRequest {
        /// The number of newest points that remain in the location, at least 1; all if it is not
        /// given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub retention: Option<usize>,
        /// Seconds from one backup to the next. It makes or replaces the schedule of the location.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub interval_s: Option<u64>,
        /// The times of backups as a crontab line of five fields, in UTC. Instead of `interval_s`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub cron: Option<String>,
        /// Seconds from one drill to the next. It belongs to the schedule.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub drill_interval_s: Option<u64>,
        /// The times of drills as a crontab line. Instead of `drill_interval_s`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub drill_cron: Option<String>,
        /// Whether nothing is sent, and the answer is what a backup would send.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub dry_run: bool,
        /// Whether a location that belongs to another server is taken over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub take_over: bool,
        /// Whether all files are read, those too that seem not to have changed, and their chunks in
        /// the location, so that damaged ones are sent again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub full_check: bool,
        /// Whether all rows are read, and their number and digest are written into the point, by
        /// which a drill compares. A schedule with drills always does it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        pub digests: bool,
    }
}

place_request! {
    /// `POST /api/v1/restores`.
    pub struct RestoreRequest {
        /// The id of the point; the newest if it is not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub point: Option<String>,
        /// The keyspace to restore; all if it is not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub keyspace: Option<String>,
        /// The table to restore, of that keyspace; all if it is not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub table: Option<String>,
        /// Another name for that keyspace, so that it is restored next to the present one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub to_keyspace: Option<String>,
    }
}

place_request! {
    /// `POST /api/v1/drills`.
    pub struct DrillRequest {
        /// The id of the point; the newest if it is not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub point: Option<String>,
    }
}

/// `POST /api/v1/snapshots`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LocalSnapshotRequest {
    /// The directory that is made: an absolute path on the file system of the data directory.
    pub directory: String,
}

/// The plan of a backup, by `dry_run`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupPreview {
    /// Number of files of the point.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that the location lacks, before compression.
    pub bytes_to_send: u64,
    /// Number of objects that the location lacks.
    pub objects_to_send: u64,
    /// The points that retention would delete.
    pub points_to_delete: Vec<String>,
}

/// The schedule of a location.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BackupScheduleStatus {
    /// The id of the schedule.
    pub id: String,
    /// The location.
    pub location: String,
    /// Seconds from one backup to the next, if that is how it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<u64>,
    /// The crontab line, if that is how it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The number of points that remain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<usize>,
    /// Seconds from one drill to the next, if that is how drills run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drill_interval_s: Option<u64>,
    /// The crontab line of drills, if that is how they run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drill_cron: Option<String>,
    /// The time of the next backup, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_time: Option<String>,
    /// The time of the next drill, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_drill_time: Option<String>,
}

/// The last results at a location.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct BackupLocationStatus {
    /// The location.
    pub location: String,
    /// The time at which the last backup began, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_attempt_time: Option<String>,
    /// The time at which the last backup was complete, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_success_time: Option<String>,
    /// The last point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_point: Option<String>,
    /// The error of the last backup, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The seconds that the last complete backup took.
    pub duration_s: f64,
    /// Bytes that the last complete backup sent.
    pub sent_bytes: u64,
    /// Objects that the last complete backup sent.
    pub sent_objects: u64,
    /// Number of points in the location after it.
    pub points: u64,
    /// Number of failed backups since the server started.
    pub failures: u64,
    /// The time of the last drill, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_drill_time: Option<String>,
    /// The time of the last drill that found no difference, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_drill_success_time: Option<String>,
    /// Whether the last drill found no difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drill_ok: Option<bool>,
    /// The reason why the last drill failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drill_error: Option<String>,
    /// Number of failed drills since the server started.
    pub drill_failures: u64,
}

/// `GET /api/v1/backups`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct BackupsStatus {
    /// The backup, restore or drill that runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<TaskStatus>,
    /// The schedules.
    pub schedules: Vec<BackupScheduleStatus>,
    /// The last results, by location.
    pub locations: Vec<BackupLocationStatus>,
    /// The things that this server's backups leave out, and what has to hold them; absent if there
    /// are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaves_out: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_flat_and_refuses_unknown_keys() {
        let text = r#"{"location":"s3:b/p","retention":7,"interval_s":60,"allow_http":true}"#;
        let request: BackupRequest = serde_json::from_str(text).unwrap();
        assert_eq!(request.retention, Some(7));
        assert!(request.place().allow_http && !request.dry_run);
        let again = BackupRequest {
            retention: Some(7),
            interval_s: Some(60),
            ..BackupRequest::of(request.place())
        };
        assert_eq!(again, request);
        let spelt_wrong = r#"{"location":"s3:b/p","retension":7}"#;
        assert!(serde_json::from_str::<BackupRequest>(spelt_wrong).is_err());
        assert!(serde_json::from_str::<RestoreRequest>(r#"{"point":"x"}"#).is_err());
    }

    #[test]
    fn options_that_are_not_given_are_not_sent() {
        let place = BackupPlace {
            location: "file:///b".to_owned(),
            ..BackupPlace::default()
        };
        let text = serde_json::to_string(&DrillRequest::of(place)).unwrap();
        assert_eq!(text, r#"{"location":"file:///b"}"#);
    }
}
