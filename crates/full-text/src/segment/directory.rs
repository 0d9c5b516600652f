//! The files of a segment, as tantivy sees them: names of pieces of memory, or of a mapped file.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, OwnedBytes, TerminatingWrite, WatchCallback,
    WatchHandle, WritePtr,
};

use crate::pace;

/// Bytes between two looks at the pace of the work.
const PACE_BYTES: usize = 64 << 10;

/// The files by their names. Clones are the same directory.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentDirectory(Arc<RwLock<BTreeMap<PathBuf, OwnedBytes>>>);

impl SegmentDirectory {
    /// Sets the bytes of a file.
    pub fn put(&self, name: impl Into<PathBuf>, bytes: OwnedBytes) {
        self.0.write().insert(name.into(), bytes);
    }

    pub fn get(&self, name: impl AsRef<Path>) -> Option<OwnedBytes> {
        self.0.read().get(name.as_ref()).cloned()
    }

    /// The names and bytes of all files, in the order of the names.
    pub fn files(&self) -> Vec<(PathBuf, OwnedBytes)> {
        let files = self.0.read();
        let files = files.iter();
        files
            .map(|(name, bytes)| (name.clone(), bytes.clone()))
            .collect()
    }

    fn missing(path: &Path) -> OpenReadError {
        OpenReadError::FileDoesNotExist(path.to_owned())
    }
}

impl Directory for SegmentDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let bytes = self.get(path).ok_or_else(|| Self::missing(path))?;
        Ok(Arc::new(bytes))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        match self.0.write().remove(path) {
            Some(_) => Ok(()),
            None => Err(DeleteError::FileDoesNotExist(path.to_owned())),
        }
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        Ok(self.0.read().contains_key(path))
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        if self.0.read().contains_key(path) {
            return Err(OpenWriteError::FileAlreadyExists(path.to_owned()));
        }
        go_on().map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        Ok(WritePtr::new(Box::new(SegmentFileWriter {
            path: path.to_owned(),
            directory: self.clone(),
            bytes: Vec::new(),
            unpaced: 0,
        })))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let bytes = self.get(path).ok_or_else(|| Self::missing(path))?;
        Ok(bytes.as_slice().to_vec())
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.put(path, OwnedBytes::new(data.to_vec()));
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, _: &Lock) -> Result<DirectoryLock, LockError> {
        // A directory has one user: who makes a segment, and afterwards who searches it.
        Ok(DirectoryLock::from(Box::new(())))
    }

    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

/// Looks at the pace of the work on this thread, and fails if that is to end.
fn go_on() -> io::Result<()> {
    match pace::goes_on() {
        true => Ok(()),
        false => Err(io::Error::other("the work on a segment was stopped")),
    }
}

/// A file that is being written, in memory.
struct SegmentFileWriter {
    path: PathBuf,
    directory: SegmentDirectory,
    bytes: Vec<u8>,
    /// The number of bytes since the last look at the pace.
    unpaced: usize,
}

impl Write for SegmentFileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unpaced += bytes.len();
        if self.unpaced >= PACE_BYTES {
            self.unpaced = 0;
            go_on()?;
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for SegmentFileWriter {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.shrink_to_fit();
        self.directory
            .put(self.path.as_path(), OwnedBytes::new(bytes));
        Ok(())
    }
}
