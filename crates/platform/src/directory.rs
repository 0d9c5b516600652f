//! A directory that is held open, in which the files of a snapshot are made.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, linkat, openat};

use crate::files::{self, FileStep};

/// A directory that is held open. The owner of a snapshot publishes it by renaming its directory,
/// so that a path is worth nothing afterwards. The handle leads to the same directory wherever it
/// goes.
#[derive(Debug)]
pub struct OpenDirectory {
    /// The path when the directory was opened, for messages.
    path: PathBuf,
    handle: File,
}

impl OpenDirectory {
    /// Opens the directory at a path.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(path: &Path) -> io::Result<OpenDirectory> {
        Ok(OpenDirectory {
            path: path.to_owned(),
            handle: File::open(path)?,
        })
    }

    /// The path when the directory was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path that a file had when the directory was opened.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(openat(&self.handle, name, flags, Mode::empty())?.into())
    }

    /// Makes a file that is not there yet, for writing.
    ///
    /// # Errors
    /// The error of the system, of kind `AlreadyExists` if the file is there.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        files::step(FileStep::Make, &self.path_of(name))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        Ok(openat(&self.handle, name, flags, mode)?.into())
    }

    /// Gives a file of this directory the same name in another one.
    ///
    /// # Errors
    /// The error of the system, as that of a file system without links.
    pub fn link_file(&self, name: &str, to: &OpenDirectory) -> io::Result<()> {
        files::step(FileStep::Make, &to.path_of(name))?;
        Ok(linkat(
            &self.handle,
            name,
            &to.handle,
            name,
            AtFlags::empty(),
        )?)
    }

    /// Waits until the names of the directory's files are on the disk.
    ///
    /// # Errors
    /// The error of the system.
    pub fn sync(&self) -> io::Result<()> {
        files::sync(&self.handle, &self.path)
    }
}

#[cfg(not(miri))]
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_directory_that_is_renamed_is_still_the_same() {
        let parent = tempfile::tempdir().unwrap();
        let path = |name: &str| parent.path().join(name);
        fs::create_dir(path("before")).unwrap();
        fs::create_dir(path("next")).unwrap();
        fs::write(path("before").join("vectors"), "vectors").unwrap();
        let directory = OpenDirectory::open(&path("before")).unwrap();
        fs::rename(path("before"), path("after")).unwrap();
        directory
            .link_file("vectors", &OpenDirectory::open(&path("next")).unwrap())
            .unwrap();
        assert_eq!(fs::read(path("next").join("vectors")).unwrap(), b"vectors");
    }
}
