//! The bounds of what requests over HTTP may name: locations, and directories and files of this
//! machine.

use std::path::{Component, Path};

use backup::{LocationOptions, LocationText};

use crate::BackupTaskError;

/// The bounds of what requests may name.
#[derive(Clone, Debug, Default)]
pub struct RequestBounds {
    /// Whether each client beyond this machine has to show its right, by a login or a token. Where
    /// none has, the files and directories of this machine are for clients on it alone.
    pub clients_log_in: bool,
    /// The locations that may be named, with all below them; empty for any. Local snapshots count
    /// as directories, `file:///DIR`.
    pub locations: Vec<LocationText>,
}

impl RequestBounds {
    /// Checks the location of a request with its files. `is_near` says that the client is on this
    /// machine.
    ///
    /// # Errors
    /// If it is out of bounds.
    pub(crate) fn check_location(
        &self,
        options: &LocationOptions,
        is_near: bool,
    ) -> Result<(), BackupTaskError> {
        let names_files = [&options.ca, &options.credentials, &options.key_file];
        let names_files = names_files.iter().any(|file| file.is_some());
        if options.location.is_file() || names_files {
            self.check_client(is_near)?;
        }
        self.check_text(&options.location.to_string())
    }

    /// Checks the directory of a local snapshot, as [`RequestBounds::check_location`].
    ///
    /// # Errors
    /// If it is out of bounds.
    pub(crate) fn check_directory(
        &self,
        directory: &Path,
        is_near: bool,
    ) -> Result<(), BackupTaskError> {
        self.check_client(is_near)?;
        self.check_text(&format!("file://{}", directory.display()))
    }

    fn check_client(&self, is_near: bool) -> Result<(), BackupTaskError> {
        if is_near || self.clients_log_in {
            return Ok(());
        }
        Err(BackupTaskError::Forbidden(
            "clients of this server need no login, so only those on its own machine may name its files and directories: \
             file: locations, snapshots, key_file, location_ca and credentials. Send the request from there, or start \
             the server with --login"
                .to_owned(),
        ))
    }

    fn check_text(&self, location: &str) -> Result<(), BackupTaskError> {
        if self.locations.is_empty() {
            return Ok(());
        }
        // Names between slashes are compared, not characters.
        let location = Path::new(location);
        let goes_up = location.components().any(|it| it == Component::ParentDir);
        let mut known = self.locations.iter().map(LocationText::to_string);
        if !goes_up && known.any(|known| location.starts_with(known)) {
            return Ok(());
        }
        let known: Vec<String> = self.locations.iter().map(LocationText::to_string).collect();
        Err(BackupTaskError::Forbidden(format!(
            "{} is none of the locations that requests may name, nor below one: {} (--backup-locations)",
            location.display(),
            known.join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use store_api::types::BackupPlace;

    use super::*;
    use crate::order::location_options;

    fn options(location: &str, key_file: Option<&str>) -> LocationOptions {
        let place = BackupPlace {
            location: location.to_owned(),
            key_file: key_file.map(str::to_owned),
            ..BackupPlace::default()
        };
        location_options(&place).unwrap()
    }

    #[test]
    fn without_logins_files_are_for_clients_on_the_machine() {
        let open = RequestBounds::default();
        let closed = RequestBounds {
            clients_log_in: true,
            ..RequestBounds::default()
        };
        for named in [
            options("file:///b", None),
            options("s3:bucket/a", Some("/etc/shadow")),
        ] {
            let error = open.check_location(&named, false).unwrap_err();
            assert!(matches!(error, BackupTaskError::Forbidden(_)));
            assert!(error.to_string().contains("--login"), "{error}");
            assert!(open.check_location(&named, true).is_ok());
            assert!(closed.check_location(&named, false).is_ok());
        }
        assert!(open.check_directory(Path::new("/b"), false).is_err());
        assert!(open.check_directory(Path::new("/b"), true).is_ok());
        let remote = options("s3:bucket/a", None);
        assert!(open.check_location(&remote, false).is_ok());
    }

    #[test]
    fn requests_name_the_locations_of_the_operator_and_those_below() {
        let locations = ["file:///backups", "s3:bucket/shop"];
        let bounds = RequestBounds {
            clients_log_in: true,
            locations: locations
                .map(|text| text.parse::<LocationText>().unwrap())
                .to_vec(),
        };
        for (location, is_right) in [
            ("file:///backups", true),
            ("file:///backups/one/", true),
            ("file:/backups/one", true),
            ("file:///backups/../etc", false),
            ("file:///backups-of-others", false),
            ("s3:bucket/shop/one", true),
            ("s3:bucket", false),
            ("s3:bucket/shopping", false),
            ("gcs:bucket/shop", false),
        ] {
            let checked = bounds.check_location(&options(location, None), true);
            assert_eq!(checked.is_ok(), is_right, "{location}");
        }
        assert!(
            bounds
                .check_directory(Path::new("/backups/a"), true)
                .is_ok()
        );
        let error = bounds.check_directory(Path::new("/var/a"), true);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("file:///backups, s3:bucket/shop"), "{error}");
    }
}
