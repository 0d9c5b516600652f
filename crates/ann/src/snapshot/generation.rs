//! The directory of a generation, and its segments, which the next one may keep.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use platform::files::{self, FileStep};
use rustix::fs::{AtFlags, Mode, OFlags, linkat, openat};

use super::{SnapshotError, VectorSegment};

/// A directory that is held open. Its owner publishes a generation by renaming it, so its path is
/// worth nothing afterwards. The open handle leads to the same directory wherever it goes.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    /// The path when the directory was opened, for messages.
    path: PathBuf,
    handle: File,
}

impl OpenDirectory {
    pub(super) fn open(path: &Path) -> Result<OpenDirectory, SnapshotError> {
        let handle = File::open(path).map_err(SnapshotError::io("open", path))?;
        Ok(OpenDirectory {
            path: path.to_owned(),
            handle,
        })
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a file for reading.
    pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(openat(&self.handle, name, flags, Mode::empty())?.into())
    }

    /// Makes a file that is not there yet, for writing.
    pub(super) fn create_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        Ok(openat(&self.handle, name, flags, mode)?.into())
    }

    /// Gives a file of this directory the same name in another one.
    pub(super) fn link_file(&self, name: &str, to: &OpenDirectory) -> io::Result<()> {
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
    pub(super) fn sync(&self) -> Result<(), SnapshotError> {
        files::sync(&self.handle, &self.path).map_err(SnapshotError::io("write", &self.path))
    }
}

/// A generation that was written or opened, of which the next one may keep segments.
#[derive(Debug)]
pub(crate) struct SavedGeneration {
    pub(super) directory: OpenDirectory,
    pub(super) segments: Vec<VectorSegment>,
}

impl SavedGeneration {
    /// The files of full vectors.
    #[cfg(test)]
    pub(super) fn segments(&self) -> &[VectorSegment] {
        &self.segments
    }
}

/// Makes `name` in `new` a file with the bytes of that in `old`, by `link`. If that fails, as on
/// file systems without links and to a directory on another one, it makes a copy, which is on the
/// disk before this returns.
pub(super) fn link_or_copy(
    link: impl FnOnce(&OpenDirectory, &str, &OpenDirectory) -> io::Result<()>,
    old: &OpenDirectory,
    name: &str,
    new: &OpenDirectory,
) -> io::Result<()> {
    match link(old, name, new) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        Err(_) => {
            let mut from = old.open_file(name)?;
            let mut to = new.create_file(name)?;
            io::copy(&mut from, &mut to)?;
            files::sync(&to, &new.path_of(name))
        }
    }
}

#[cfg(not(miri))]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_linked_is_copied() {
        let parent = tempfile::tempdir().unwrap();
        let directory = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            OpenDirectory::open(&path).unwrap()
        };
        let [old, linked, copied] = ["old", "linked", "copied"].map(directory);
        fs::write(old.path_of("vectors"), "vectors").unwrap();
        let inode =
            |directory: &OpenDirectory| fs::metadata(directory.path_of("vectors")).unwrap().ino();

        link_or_copy(OpenDirectory::link_file, &old, "vectors", &linked).unwrap();
        assert_eq!(inode(&linked), inode(&old));

        let no_links = |_: &OpenDirectory, _: &str, _: &OpenDirectory| {
            Err(io::ErrorKind::CrossesDevices.into())
        };
        link_or_copy(no_links, &old, "vectors", &copied).unwrap();
        assert_ne!(inode(&copied), inode(&old));
        assert_eq!(fs::read(copied.path_of("vectors")).unwrap(), b"vectors");

        link_or_copy(no_links, &old, "missing", &copied).unwrap_err();
        let error = link_or_copy(OpenDirectory::link_file, &old, "vectors", &copied);
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

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
