//! The room that a restored directory needs on the disk of a running server.

use std::path::Path;

use crate::BackupTaskError;

/// The room that stays free for the server itself. With less than 64 MiB the storage takes no more
/// writes; the rest is for those that come during a download.
const RESERVE_BYTES: u64 = 256 << 20;

/// Checks that so many bytes find room below a directory, and the server's own writes besides. The
/// directory need not be there yet.
///
/// # Errors
/// If they don't. Nothing is written.
pub(crate) fn check_room(directory: &Path, bytes: u64) -> Result<(), BackupTaskError> {
    let existing = directory.ancestors().find(|path| path.exists());
    let existing = existing.unwrap_or(Path::new("."));
    let volume = rustix::fs::statvfs(existing);
    let volume = volume.map_err(|error| BackupTaskError::file(existing, error.into()))?;
    let free = volume.f_bavail.saturating_mul(volume.f_frsize);
    check_free(existing, bytes, free)
}

fn check_free(directory: &Path, bytes: u64, free: u64) -> Result<(), BackupTaskError> {
    let needed = bytes.saturating_add(RESERVE_BYTES);
    if needed <= free {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    Err(BackupTaskError::NoRoom(format!(
        "the disk of {} has {} MiB free, and this needs {} MiB: {} MiB for the files of the point, and {} MiB for the \
         server's own writes. Nothing was fetched; make room, or restore on another machine (`annulus restore --data DIR`)",
        directory.display(),
        mib(free),
        mib(needed),
        mib(bytes),
        mib(RESERVE_BYTES)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_needs_its_bytes_and_the_reserve() {
        let directory = Path::new("/data/drills");
        assert!(check_free(directory, 10, RESERVE_BYTES + 10).is_ok());
        let error = check_free(directory, 10, RESERVE_BYTES + 9).unwrap_err();
        assert!(matches!(error, BackupTaskError::NoRoom(_)));
        let error = error.to_string();
        assert!(error.contains("/data/drills"), "{error}");
        assert!(error.contains("needs 257 MiB"), "{error}");
        assert!(check_free(directory, u64::MAX, u64::MAX - 1).is_err());
    }

    #[test]
    fn a_directory_that_is_missing_is_on_the_disk_of_its_parent() {
        let parent = tempfile::tempdir().unwrap();
        let error = check_room(&parent.path().join("a/b"), u64::MAX).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains(&parent.path().display().to_string()),
            "{error}"
        );
        assert!(!parent.path().join("a").exists());
    }
}
