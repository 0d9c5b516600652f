//! The directory of a snapshot, held open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use platform::files::{self, FileStep};
use rustix::fs::{AtFlags, Mode, OFlags, linkat, openat};

use crate::TextFileError;

/// A directory that is held open: its owner publishes a snapshot by renaming it, and the handle
/// leads to the same directory wherever it goes.
#[derive(Debug)]
pub(crate) struct SnapshotFolder {
    /// The path when the directory was opened, for messages.
    path: PathBuf,
    handle: File,
}

impl SnapshotFolder {
    pub fn open(path: &Path) -> Result<SnapshotFolder, TextFileError> {
        let handle = File::open(path).map_err(TextFileError::system("open", path))?;
        Ok(SnapshotFolder {
            path: path.to_owned(),
            handle,
        })
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a file for reading, and returns its length as well.
    pub fn open_file(&self, name: &str) -> Result<(File, u64), TextFileError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let open = || -> io::Result<(File, u64)> {
            let file: File = openat(&self.handle, name, flags, Mode::empty())?.into();
            let bytes = file.metadata()?.len();
            Ok((file, bytes))
        };
        open().map_err(TextFileError::system("open", &self.path_of(name)))
    }

    /// Reads a file of at most `most` bytes.
    pub fn read_file(&self, name: &str, most: u64) -> Result<Vec<u8>, TextFileError> {
        let (file, bytes) = self.open_file(name)?;
        let path = self.path_of(name);
        if bytes > most {
            return Err(TextFileError::damaged(&path, "it is too long"));
        }
        let mut content = vec![0; bytes as usize];
        file.read_exact_at(&mut content, 0)
            .map_err(TextFileError::system("read", &path))?;
        Ok(content)
    }

    /// Gives a file of this directory the same name in another one.
    pub fn link_file(&self, name: &str, to: &SnapshotFolder) -> io::Result<()> {
        files::step(FileStep::Make, &to.path_of(name))?;
        Ok(linkat(
            &self.handle,
            name,
            &to.handle,
            name,
            AtFlags::empty(),
        )?)
    }

    /// Begins a file that is not there yet.
    pub fn create_file(&self, name: &str) -> Result<NewSnapshotFile, TextFileError> {
        let path = self.path_of(name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o666);
        let made = files::step(FileStep::Make, &path)
            .and_then(|()| Ok(openat(&self.handle, name, flags, mode)?));
        let handle = made.map_err(TextFileError::system("make", &path))?;
        Ok(NewSnapshotFile {
            path,
            file: handle.into(),
        })
    }

    /// Waits until the names of the directory's files are on the disk.
    pub fn sync(&self) -> Result<(), TextFileError> {
        files::sync(&self.handle, &self.path).map_err(TextFileError::system("write", &self.path))
    }
}

/// A file that is being written.
pub(crate) struct NewSnapshotFile {
    path: PathBuf,
    file: File,
}

impl NewSnapshotFile {
    /// Writes bytes at an offset.
    pub fn put(&self, bytes: &[u8], offset: u64) -> Result<(), TextFileError> {
        files::step(FileStep::Write, &self.path)
            .and_then(|()| self.file.write_all_at(bytes, offset))
            .map_err(TextFileError::system("write", &self.path))
    }

    /// Waits until the file is on the disk.
    pub fn sync(&self) -> Result<(), TextFileError> {
        files::sync(&self.file, &self.path).map_err(TextFileError::system("write", &self.path))
    }
}
