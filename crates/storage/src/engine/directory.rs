//! The data directory, with its marker and its lock.
//!
//! ```text
//! DIR/annulus-storage   "annulus storage <format version>\n"; while the directory is being made,
//!                       "annulus storage <format version> being made\n"
//! DIR/lock              locked for as long as the directory is open
//! DIR/acknowledged      only while refused writes may be in a journal (`refused`)
//! DIR/db/               the engine's files
//! ```

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::StorageError;

/// The version of everything in the directory: marker, keys, records. The catalog has one of its
/// own.
const FORMAT_VERSION: u32 = 1;
const MARKER: &str = "annulus-storage";
const MARKER_DRAFT: &str = "annulus-storage.new";
const LOCK: &str = "lock";
pub(super) const DATABASE: &str = "db";
const BEING_MADE: &str = "being made";
/// Bytes that are written and synced to see whether the disk takes writes again.
const PROBE_BYTES: usize = 1 << 20;
const PROBE_FILE: &str = "probe";

/// A data directory of Annulus that this process has locked.
#[derive(Debug)]
pub(crate) struct LockedDirectory {
    path: PathBuf,
    lock: File,
}

impl LockedDirectory {
    /// Opens or makes a directory. The second value says whether it is new or was never finished.
    /// Then its database is empty, and [`LockedDirectory::mark_made`] is to be called once it holds
    /// data.
    pub(crate) fn open(path: &Path) -> Result<(LockedDirectory, bool), StorageError> {
        let failed = |what: &str, error: io::Error| {
            StorageError::Io(format!("can't {what} {}: {error}", path.display()))
        };
        create_private(path).map_err(|error| failed("create", error))?;
        let is_marked = read_marker(path).map_err(|error| failed("read", error))?;
        if is_marked.is_none() && holds_something(path).map_err(|error| failed("read", error))? {
            return Err(StorageError::Io(format!(
                "{} holds other files and is no data directory of Annulus: choose an empty one",
                path.display()
            )));
        }
        let lock = lock(path)?;
        // The marker is read again, as another process may have made the directory meanwhile.
        let marker = read_marker(path).map_err(|error| failed("read", error))?;
        let is_new = match marker {
            Some(text) => parse_marker(path, &text)?,
            None => true,
        };
        make_private(path);
        let directory = LockedDirectory {
            path: path.to_path_buf(),
            lock,
        };
        if is_new {
            directory
                .begin()
                .map_err(|error| failed("prepare", error))?;
        }
        Ok((directory, is_new))
    }

    /// Locks a directory that holds data. Changes nothing in it.
    pub(crate) fn open_existing(path: &Path) -> Result<LockedDirectory, StorageError> {
        let marker = read_marker(path)
            .map_err(|error| StorageError::Io(format!("can't read {}: {error}", path.display())))?;
        let is_unfinished = match marker {
            Some(text) => parse_marker(path, &text)?,
            None => true,
        };
        if is_unfinished {
            return Err(StorageError::Io(format!(
                "{} is no data directory of Annulus",
                path.display()
            )));
        }
        Ok(LockedDirectory {
            path: path.to_path_buf(),
            lock: lock(path)?,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn unlock(&self) {
        // After an error the directory stays locked until this process ends.
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, "the data directory could not be unlocked");
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    fn begin(&self) -> io::Result<()> {
        write_marker(
            &self.path,
            &format!("annulus storage {FORMAT_VERSION} {BEING_MADE}\n"),
        )?;
        match fs::remove_dir_all(self.database()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::create_dir_all(self.database())?;
        sync_folder(&self.path)?;
        match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
            _ => Ok(()),
        }
    }

    /// Marks the directory as one that holds data from now on.
    pub(crate) fn mark_made(&self) -> Result<(), StorageError> {
        mark_made(&self.path).map_err(|error| {
            StorageError::Io(format!("can't write {}: {error}", self.path.display()))
        })
    }
}

/// Marks a directory as one that holds data from now on.
pub(super) fn mark_made(path: &Path) -> io::Result<()> {
    write_marker(path, &format!("annulus storage {FORMAT_VERSION}\n"))
}

fn write_marker(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.join(MARKER_DRAFT);
    let mut file = File::create(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path.join(MARKER))?;
    sync_folder(path)
}

/// The mode of the directory: only its owner has access, as its rows are not encrypted.
const PRIVATE: u32 = 0o700;

/// Makes a directory that only its owner can look into.
fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE).create(path)
}

/// Makes a directory that does not exist yet, which only its owner can look into.
pub(super) fn create_new_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE).create(path)
}

/// Shuts other users out of a directory that was there before.
fn make_private(path: &Path) {
    let is_open = |meta: &Metadata| meta.permissions().mode() & 0o777 != PRIVATE;
    let shut = match fs::metadata(path) {
        Ok(meta) if is_open(&meta) => fs::set_permissions(path, Permissions::from_mode(PRIVATE)),
        other => other.map(drop),
    };
    if let Err(error) = shut {
        let path = path.display();
        tracing::warn!(%error, %path, "others may be able to read the data directory: give it mode 0700");
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Fails unless a file can be written and synced in the directory.
pub(super) fn probe_disk(directory: &Path) -> io::Result<()> {
    let path = directory.join(PROBE_FILE);
    let written = File::create(&path).and_then(|mut file| {
        file.write_all(&vec![0; PROBE_BYTES])?;
        file.sync_all()
    });
    let removed = fs::remove_file(&path);
    written.and(removed)
}

fn read_marker(path: &Path) -> io::Result<Option<String>> {
    match fs::read(path.join(MARKER)) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn holds_something(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if name != LOCK && name != MARKER_DRAFT {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Checks the marker's text. Returns whether the directory was never finished.
fn parse_marker(path: &Path, text: &str) -> Result<bool, StorageError> {
    let foreign = || {
        StorageError::Corrupt(format!(
            "{} is not one of Annulus: {MARKER} says {:?}",
            path.display(),
            text.trim_end()
        ))
    };
    let rest = text.strip_prefix("annulus storage ").ok_or_else(foreign)?;
    let (version, state) = rest
        .trim_end()
        .split_once(' ')
        .unwrap_or((rest.trim_end(), ""));
    let version: u32 = version.parse().map_err(|_| foreign())?;
    if version > FORMAT_VERSION {
        return Err(StorageError::NewerFormat(format!(
            "{} was written by a newer version of Annulus (storage format {version}, this one \
             knows up to {FORMAT_VERSION}): use that version",
            path.display()
        )));
    }
    Ok(state == BEING_MADE)
}

fn lock(path: &Path) -> Result<File, StorageError> {
    let failed =
        |error: io::Error| StorageError::Io(format!("can't lock {}: {error}", path.display()));
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join(LOCK))
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StorageError::Locked(format!(
            "{} is in use by another process",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}
