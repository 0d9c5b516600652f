//! Digests of local files that were read before, so that a file that hasn't changed isn't read
//! again; and sizes of the objects of chunks, so that one that was cut off is noticed. In doubt
//! the memory is dropped: it saves work, and decides nothing that a digest doesn't.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clock::{Clock, SystemClock};
use serde::{Deserialize, Serialize};

use crate::chunk::{CHUNK_BYTES, OBJECT_BYTES_MIN};
use crate::error::BackupError;
use crate::files::{self, FileStamp, SourceFile};
use crate::key::ChunkDigest;
use crate::point::ChunkRef;

/// The name of the file.
const NAME: &str = "known.json";

const FORMAT: u64 = 1;

/// A file changed this recently may change again and have the same time.
const SETTLED: Duration = Duration::from_secs(2);

#[derive(Clone, Serialize, Deserialize)]
struct KnownFile {
    stamp: FileStamp,
    chunks: Vec<ChunkRef>,
}

#[derive(Serialize, Deserialize)]
struct KnownText {
    format: u64,
    /// The id of the key that digests were made with.
    key_id: Option<String>,
    /// Bytes of a chunk at most.
    chunk_bytes: u64,
    files: BTreeMap<String, KnownFile>,
    /// Bytes of the objects of chunks, as stored.
    #[serde(default)]
    stored: BTreeMap<ChunkDigest, u64>,
}

/// The memory of files.
pub struct KnownFiles {
    file: PathBuf,
    old: BTreeMap<String, KnownFile>,
    new: KnownText,
}

impl KnownFiles {
    /// Reads the memory of a location's state.
    pub fn read(state: &Path, key_id: Option<&str>) -> KnownFiles {
        let file = state.join(NAME);
        let text = files::read(&file).ok().flatten();
        let text = text.and_then(|text| serde_json::from_slice::<KnownText>(&text).ok());
        let text = text.filter(|text| {
            text.format == FORMAT
                && text.key_id.as_deref() == key_id
                && text.chunk_bytes == CHUNK_BYTES
        });
        let (old, stored) = text
            .map(|text| (text.files, text.stored))
            .unwrap_or_default();
        KnownFiles {
            file,
            old,
            new: KnownText {
                format: FORMAT,
                key_id: key_id.map(str::to_owned),
                chunk_bytes: CHUNK_BYTES,
                files: BTreeMap::new(),
                stored,
            },
        }
    }

    /// The chunks of a file that hasn't changed since it was read.
    pub fn chunks(&self, file: &SourceFile) -> Option<Vec<ChunkRef>> {
        let known = self.old.get(&file.path)?;
        let sum: u64 = known.chunks.iter().map(|chunk| chunk.bytes).sum();
        let is_same = known.stamp == file.stamp && sum == file.stamp.bytes;
        is_same.then(|| known.chunks.clone())
    }

    /// Remembers the chunks of a file.
    pub fn remember(&mut self, file: &SourceFile, chunks: &[ChunkRef]) {
        let now = clock::seconds(SystemClock.now_micros());
        let settled = i64::try_from(SETTLED.as_secs()).unwrap_or(i64::MAX);
        if file.stamp.seconds > now.saturating_sub(settled) {
            return;
        }
        let known = KnownFile {
            stamp: file.stamp,
            chunks: chunks.to_vec(),
        };
        self.new.files.insert(file.path.clone(), known);
    }

    /// Remembers the size of a chunk's object, as stored.
    pub fn remember_stored(&mut self, digest: ChunkDigest, bytes: u64) {
        self.new.stored.insert(digest, bytes);
    }

    /// Whether a chunk's object may be whole, by its size in a list.
    pub fn may_be_whole(&self, digest: &ChunkDigest, listed: u64) -> bool {
        match self.new.stored.get(digest) {
            Some(stored) => *stored == listed,
            None => listed >= OBJECT_BYTES_MIN,
        }
    }

    /// Forgets the sizes of all objects but those that a location lists.
    pub fn forget_stored_but(&mut self, listed: &HashMap<ChunkDigest, u64>) {
        let stored = &mut self.new.stored;
        stored.retain(|digest, _| listed.contains_key(digest));
    }

    /// The file of the memory and its new text. Files that were not seen again are forgotten if all
    /// have been seen.
    pub fn text(&mut self, are_all_seen: bool) -> Result<(PathBuf, Vec<u8>), BackupError> {
        if !are_all_seen {
            for (path, known) in &self.old {
                let files = &mut self.new.files;
                files.entry(path.clone()).or_insert_with(|| known.clone());
            }
        }
        let text = serde_json::to_vec(&self.new);
        let text = text.map_err(|error| BackupError::Thread(error.to_string()))?;
        Ok((self.file.clone(), text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::sha256;

    fn file(seconds: i64) -> SourceFile {
        SourceFile {
            path: "a".to_owned(),
            full: PathBuf::from("/a"),
            stamp: FileStamp {
                bytes: 3,
                seconds,
                nanos: 0,
                inode: 7,
            },
        }
    }

    fn write(mut known: KnownFiles, are_all_seen: bool) {
        let (file, text) = known.text(are_all_seen).unwrap();
        files::replace(&file, &text).unwrap();
    }

    fn chunks() -> Vec<ChunkRef> {
        vec![ChunkRef {
            digest: sha256(b"abc"),
            bytes: 3,
        }]
    }

    #[test]
    fn files_are_known_until_they_change() {
        let folder = tempfile::tempdir().unwrap();
        let mut known = KnownFiles::read(folder.path(), None);
        known.remember(&file(1_000), &chunks());
        write(known, true);
        let known = KnownFiles::read(folder.path(), None);
        assert_eq!(known.chunks(&file(1_000)), Some(chunks()));
        assert_eq!(known.chunks(&file(1_001)), None);
        let mut longer = file(1_000);
        longer.stamp.bytes = 4;
        assert_eq!(known.chunks(&longer), None);
        let of_key = KnownFiles::read(folder.path(), Some("key"));
        assert_eq!(of_key.chunks(&file(1_000)), None);
    }

    #[test]
    fn an_object_of_another_size_than_stored_is_not_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut known = KnownFiles::read(folder.path(), None);
        let (one, other) = (sha256(b"one"), sha256(b"other"));
        known.remember_stored(one, 100);
        known.remember_stored(other, 100);
        known.forget_stored_but(&HashMap::from([(one, 99)]));
        write(known, true);
        let known = KnownFiles::read(folder.path(), None);
        assert!(known.may_be_whole(&one, 100) && !known.may_be_whole(&one, 99));
        assert!(known.may_be_whole(&other, 99) && !known.may_be_whole(&other, 9));
    }

    #[test]
    fn a_memory_that_is_damaged_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(NAME), "{\"format\":1,").unwrap();
        let known = KnownFiles::read(folder.path(), None);
        assert_eq!(known.chunks(&file(1_000)), None);
    }

    #[test]
    fn files_that_may_change_within_their_time_are_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let mut known = KnownFiles::read(folder.path(), None);
        let now = clock::seconds(SystemClock.now_micros());
        known.remember(&file(now), &chunks());
        write(known, true);
        let known = KnownFiles::read(folder.path(), None);
        assert_eq!(known.chunks(&file(now)), None);
    }

    #[test]
    fn a_backup_that_was_stopped_forgets_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut known = KnownFiles::read(folder.path(), None);
        known.remember(&file(1_000), &chunks());
        write(known, true);
        let stopped = KnownFiles::read(folder.path(), None);
        write(stopped, false);
        let known = KnownFiles::read(folder.path(), None);
        assert_eq!(known.chunks(&file(1_000)), Some(chunks()));
    }
}
