//! The directory of a snapshot, held open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use platform::OpenDirectory;
use platform::files::{self, FileStep};

use crate::TextFileError;

/// A directory that is held open, whose errors are those of an index's files.
#[derive(Debug)]
pub(crate) struct SnapshotFolder(OpenDirectory);

impl SnapshotFolder {
    pub fn open(path: &Path) -> Result<SnapshotFolder, TextFileError> {
        let opened = OpenDirectory::open(path).map(SnapshotFolder);
        opened.map_err(TextFileError::system("open", path))
    }

    pub fn path_of(&self, name: &str) -> PathBuf {
        self.0.path_of(name)
    }

    /// Opens a file for reading, and returns its length as well.
    pub fn open_file(&self, name: &str) -> Result<(File, u64), TextFileError> {
        let open = || -> io::Result<(File, u64)> {
            let file = self.0.open_file(name)?;
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
        self.0.link_file(name, &to.0)
    }

    /// Begins a file that is not there yet.
    pub fn create_file(&self, name: &str) -> Result<NewSnapshotFile, TextFileError> {
        let path = self.path_of(name);
        let made = self.0.create_file(name);
        let file = made.map_err(TextFileError::system("make", &path))?;
        Ok(NewSnapshotFile { path, file })
    }

    /// Waits until the names of the directory's files are on the disk.
    pub fn sync(&self) -> Result<(), TextFileError> {
        let synced = self.0.sync();
        synced.map_err(TextFileError::system("write", self.0.path()))
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
