//! The file of a segment that is used in place.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ann::FileMap;
use parking_lot::Mutex;
use stable_deref_trait::StableDeref;
use tantivy::directory::OwnedBytes;

use super::container::{self, ContainedFile, ContainerCheck};
use super::directory::SegmentDirectory;
use crate::TextFileError;
use crate::snapshot_directory::SnapshotFolder;

/// Files that are no longer than this are verified when they are opened, larger ones later.
const VERIFIED_AT_OPEN: u64 = 8 << 20;
/// Contained files that are no longer than this are verified at once in any case: they lead to the
/// others.
const SMALL_BYTES: u64 = 64 << 10;
/// Bytes that are copied at a time.
const COPIED_BYTES: usize = 1 << 20;

/// A container that is mapped, and how far it was verified.
pub(crate) struct StoredFile {
    map: Arc<FileMap>,
    name: String,
    bytes: u64,
    /// The directory that has it. A later snapshot links the file, and is then its directory.
    folder: Mutex<Arc<SnapshotFolder>>,
    is_verified: AtomicBool,
    verified_bytes: AtomicU64,
    check: Mutex<Option<ContainerCheck>>,
}

/// The bytes of a mapped file, for tantivy.
struct MappedBytes(Arc<FileMap>);

impl Deref for MappedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

// SAFETY: the bytes are where the system mapped the file, for as long as the map lives, wherever
// the handle is moved.
unsafe impl StableDeref for MappedBytes {}

impl StoredFile {
    /// Maps a container. Of a large one that was not written just now (`is_sound`), only what leads
    /// to the rest is verified, and the files of `needed`.
    pub fn open(
        folder: &Arc<SnapshotFolder>,
        name: &str,
        needed: &[&str],
        is_sound: bool,
    ) -> Result<(StoredFile, SegmentDirectory), TextFileError> {
        let (file, bytes) = folder.open_file(name)?;
        let path = folder.path_of(name);
        let entries = container::read_header(&file, bytes, &path)?;
        let map = FileMap::new(&file, bytes as usize, name)
            .map_err(TextFileError::system("map", &path))?;
        let map = Arc::new(map);
        let all = OwnedBytes::new(MappedBytes(Arc::clone(&map)));
        let is_small = bytes <= VERIFIED_AT_OPEN;
        let directory = SegmentDirectory::default();
        for entry in &entries {
            let length = entry.range.end - entry.range.start;
            let part = all.slice(entry.range.start as usize..entry.range.end as usize);
            let is_needed = is_small
                || length <= SMALL_BYTES
                || needed
                    .iter()
                    .any(|needed| entry.name.as_os_str() == *needed);
            if !is_sound && is_needed && !container::is_sound(entry, part.as_slice()) {
                let what = format!("{} in it is not as it was written", entry.name.display());
                return Err(TextFileError::damaged(&path, &what));
            }
            directory.put(entry.name.as_path(), part);
        }
        if map.is_unreadable() {
            return Err(TextFileError::damaged(&path, "it can't be read to its end"));
        }
        let is_verified = is_sound || is_small;
        let stored = StoredFile {
            map,
            name: name.to_owned(),
            bytes: total(&entries),
            folder: Mutex::new(Arc::clone(folder)),
            is_verified: AtomicBool::new(is_verified),
            verified_bytes: AtomicU64::new(0),
            check: Mutex::new((!is_verified).then(|| ContainerCheck::new(entries))),
        };
        Ok((stored, directory))
    }

    /// Bytes of all files in it.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The name, with the directory for messages.
    pub fn described(&self) -> String {
        let folder = self.folder.lock();
        folder.path_of(&self.name).display().to_string()
    }

    /// Whether bytes could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.map.is_unreadable()
    }

    pub fn is_verified(&self) -> bool {
        self.is_verified.load(Ordering::Acquire)
    }

    /// The number of bytes that were verified; all, if that was done at once.
    pub fn verified_bytes(&self) -> u64 {
        match self.is_verified() {
            true => self.bytes,
            false => self.verified_bytes.load(Ordering::Acquire),
        }
    }

    /// Verifies the next piece. Returns whether all is done.
    pub fn verify_piece(&self) -> Result<bool, TextFileError> {
        let mut check = self.check.lock();
        let Some(pieces) = &mut *check else {
            return Ok(true);
        };
        let folder = Arc::clone(&self.folder.lock());
        let path = folder.path_of(&self.name);
        let bytes = match folder.open_file(&self.name) {
            Ok((file, _)) => pieces.step(&file, &path)?,
            // Its owner may have removed the directory; the map is as good as ever.
            Err(_) => pieces.step_by(&path, |buffer, at| {
                let mapped = self.map.bytes().get(at as usize..);
                let mapped = mapped.and_then(|bytes| bytes.get(..buffer.len()));
                match mapped {
                    Some(bytes) if !self.map.is_unreadable() => buffer.copy_from_slice(bytes),
                    _ => return Err(TextFileError::damaged(&path, "it can't be read")),
                }
                Ok(())
            })?,
        };
        self.verified_bytes.fetch_add(bytes, Ordering::AcqRel);
        let is_done = pieces.is_done();
        if is_done {
            *check = None;
            self.is_verified.store(true, Ordering::Release);
        }
        Ok(is_done)
    }

    /// Gives the file its name in another directory, if that is `name` and it can be done.
    pub fn link(&self, name: &str, to: &SnapshotFolder) -> bool {
        self.name == name && self.folder.lock().link_file(name, to).is_ok()
    }

    /// Writes a copy of the file, byte for byte: with the checksums that it has, which are those of
    /// its content if that is sound. `passed` is called with the bytes of each piece, and ends it
    /// with false.
    pub fn copy(
        &self,
        folder: &SnapshotFolder,
        name: &str,
        passed: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), TextFileError> {
        let file = folder.create_file(name)?;
        let mut offset = 0;
        for piece in self.map.bytes().chunks(COPIED_BYTES) {
            file.put(piece, offset)?;
            offset += piece.len() as u64;
            if !passed(piece.len() as u64) {
                return Err(TextFileError::stopped());
            }
        }
        if self.map.is_unreadable() {
            let path = folder.path_of(&self.name);
            return Err(TextFileError::damaged(&path, "it can't be read any more"));
        }
        file.sync()
    }

    /// Notes that the file is in another directory, too, which will outlive the one before.
    pub fn set_folder(&self, folder: &Arc<SnapshotFolder>) {
        *self.folder.lock() = Arc::clone(folder);
    }
}

fn total(entries: &[ContainedFile]) -> u64 {
    let lengths = entries
        .iter()
        .map(|entry| entry.range.end - entry.range.start);
    lengths.sum()
}
