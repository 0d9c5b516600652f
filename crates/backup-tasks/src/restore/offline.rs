//! Restores into a directory of its own, without a server.

use std::fs;
use std::path::{Path, PathBuf};

use backup::{
    BackupLocation, FileSelection, LocationAccess, LocationOptions, PointId, PointKind,
    TransferPace, TransferProgress,
};
use uuid::Uuid;

use crate::BackupTaskError;
use crate::digests::lost;
use crate::files::{is_missing_or_empty, sync_directory};

/// A directory that was restored.
#[derive(Clone, Debug)]
pub struct RestoredDirectory {
    /// The point.
    pub point: PointId,
    /// The kind of the point.
    pub kind: PointKind,
    /// Number of files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The new identity of the server; `None` for the state of an index service.
    pub host_id: Option<Uuid>,
}

/// Restores a whole point into a directory that is missing or empty. It appears there only when
/// every byte was checked; until then it is next to it, under the name with `.restoring`, where a
/// restore that was interrupted goes on.
///
/// The restored server gets an identity of its own, so that it and the first one never share a
/// location of backups.
///
/// # Errors
/// If the directory has something in it, or the point can't be read, or the disk is full.
pub async fn restore_directory(
    options: &LocationOptions,
    point: Option<&PointId>,
    target: &Path,
    progress: &dyn TransferProgress,
    pace: &dyn TransferPace,
) -> Result<RestoredDirectory, BackupTaskError> {
    let is_free = is_missing_or_empty(target);
    if !is_free.map_err(|error| BackupTaskError::file(target, error))? {
        return Err(BackupTaskError::Wrong(format!(
            "{} has something in it: name a directory that is missing or empty",
            target.display()
        )));
    }
    let location = BackupLocation::open(options, LocationAccess::Read).await?;
    let point = location.point(point).await?;
    let restoring = restoring(target)?;
    let report = location
        .download(&point, &FileSelection::All, &restoring, progress, pace)
        .await?;
    let directory = restoring.clone();
    let host_id = match point.kind {
        PointKind::GatewayState => None,
        PointKind::Database => {
            let renewed = tokio::task::spawn_blocking(move || storage::renew_identity(&directory));
            Some(renewed.await.map_err(lost)??)
        }
    };
    appear(&restoring, target).map_err(|error| BackupTaskError::file(target, error))?;
    Ok(RestoredDirectory {
        point: point.id,
        kind: point.kind,
        files: report.files,
        bytes: report.bytes,
        host_id,
    })
}

/// The place of a directory while it is restored.
fn restoring(target: &Path) -> Result<PathBuf, BackupTaskError> {
    let Some(name) = target.file_name() else {
        return Err(BackupTaskError::Wrong(format!(
            "{} is no place for a data directory",
            target.display()
        )));
    };
    let name = format!("{}.restoring", name.to_string_lossy());
    let place = target.with_file_name(name);
    if let Some(parent) = place.parent().filter(|it| !it.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(|error| BackupTaskError::file(parent, error))?;
    }
    Ok(place)
}

/// Gives a directory its name.
fn appear(restoring: &Path, target: &Path) -> std::io::Result<()> {
    if target.exists() {
        fs::remove_dir(target)?;
    }
    fs::rename(restoring, target)?;
    match target.parent().filter(|it| !it.as_os_str().is_empty()) {
        Some(parent) => sync_directory(parent),
        None => sync_directory(Path::new(".")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_appears_whole_where_an_empty_one_was() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("new").join("data");
        let place = restoring(&target).unwrap();
        assert_eq!(place, parent.path().join("new").join("data.restoring"));
        fs::create_dir_all(place.join("db")).unwrap();
        fs::create_dir_all(&target).unwrap();
        appear(&place, &target).unwrap();
        assert!(target.join("db").exists() && !place.exists());
        assert!(restoring(Path::new("/")).is_err());
    }
}
