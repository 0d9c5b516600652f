//! Files and directories of backups in the data directory.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::BackupTaskError;

/// Replaces a file by another in one step, and waits until it is on the disk.
///
/// # Errors
/// If the file can't be written. Then it is as it was.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    match path.parent() {
        Some(parent) => sync_directory(parent),
        None => Ok(()),
    }
}

/// Removes a file, if it is there, and waits until this is on the disk.
///
/// # Errors
/// If it can't be removed.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    match (fs::remove_file(path), path.parent()) {
        (Err(error), _) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        (Ok(()), Some(parent)) => sync_directory(parent),
        (removed, _) => removed,
    }
}

/// Waits until the names in a directory are on the disk.
///
/// # Errors
/// The error of the system.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Makes a directory, which only its owner may enter, with its parents.
///
/// # Errors
/// If it can't be made.
pub(crate) fn make_directory(path: &Path) -> Result<(), BackupTaskError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| BackupTaskError::file(path, error))
}

/// Removes a directory with all that is in it, if it is there.
///
/// # Errors
/// If it can't be removed.
pub(crate) fn remove_directory(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a directory is missing or has nothing in it.
///
/// # Errors
/// If it can't be read, or is no directory.
pub(crate) fn is_missing_or_empty(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// A place for a directory of one piece of work. What is there is removed with it.
#[derive(Debug)]
pub(crate) struct ScratchDirectory {
    path: PathBuf,
    /// Whether it stays.
    is_left: AtomicBool,
}

impl ScratchDirectory {
    /// The place below a parent, which is made if it is missing. What was at the place is removed.
    ///
    /// # Errors
    /// If the parent can't be made, or something at the place can't be removed.
    pub(crate) fn below(parent: &Path, name: &str) -> Result<ScratchDirectory, BackupTaskError> {
        make_directory(parent)?;
        let path = parent.join(name);
        remove_directory(&path).map_err(|error| BackupTaskError::file(&path, error))?;
        Ok(ScratchDirectory {
            path,
            is_left: AtomicBool::new(false),
        })
    }

    /// Makes a directory in a parent that is there, under a name that nothing has.
    ///
    /// # Errors
    /// If it can't be made, or something has the name.
    pub(crate) fn made_in(parent: &Path, name: &str) -> Result<ScratchDirectory, BackupTaskError> {
        let path = parent.join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| BackupTaskError::file(&path, error))?;
        Ok(ScratchDirectory {
            path,
            is_left: AtomicBool::new(false),
        })
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Lets it stay, for the next start.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Relaxed);
    }

    /// Lets it be removed again.
    pub(crate) fn release(&self) {
        self.is_left.store(false, Ordering::Relaxed);
    }

    /// Removes it now, without holding up other tasks.
    pub(crate) async fn remove(self) {
        // Dropping removes it. If the task is lost with its thread, the next start does.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if *self.is_left.get_mut() {
            return;
        }
        if let Err(error) = remove_directory(&self.path) {
            let path = self.path.display();
            tracing::warn!(%error, %path, "a directory of a backup is left; the next start removes it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("schedules.json");
        replace(&path, b"1").unwrap();
        replace(&path, b"22").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"22");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        remove_file(&path).unwrap();
        assert!(!path.exists());
        // Once more changes nothing.
        remove_file(&path).unwrap();
        assert!(remove_file(directory.path()).is_err());
    }

    #[test]
    fn a_scratch_directory_goes_with_what_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("a").join("one");
        fs::create_dir_all(left.join("left")).unwrap();
        let scratch = ScratchDirectory::below(&parent.path().join("a"), "one").unwrap();
        assert!(!left.exists());
        fs::create_dir_all(scratch.path().join("db")).unwrap();
        assert!(!is_missing_or_empty(&left).unwrap());
        drop(scratch);
        assert!(is_missing_or_empty(&left).unwrap());
        let stays = ScratchDirectory::below(&parent.path().join("a"), "one").unwrap();
        fs::create_dir_all(stays.path().join("db")).unwrap();
        stays.leave();
        drop(stays);
        assert!(left.join("db").exists());
        let goes = ScratchDirectory::below(&parent.path().join("a"), "one").unwrap();
        fs::create_dir_all(goes.path().join("db")).unwrap();
        goes.leave();
        goes.release();
        drop(goes);
        assert!(!left.exists());
    }

    #[test]
    fn a_new_scratch_directory_touches_nothing_that_is_there() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("letter"), "of others").unwrap();
        assert!(ScratchDirectory::made_in(parent.path(), "letter").is_err());
        assert!(ScratchDirectory::made_in(&parent.path().join("missing"), "new").is_err());
        let made = ScratchDirectory::made_in(parent.path(), "new").unwrap();
        assert!(made.path().is_dir());
        drop(made);
        let text = fs::read_to_string(parent.path().join("letter")).unwrap();
        assert_eq!(text, "of others");
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
