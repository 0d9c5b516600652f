//! The file that holds all files of a segment.
//!
//! A header with the names, places and checksums of the files and a checksum of its own, and after
//! it the files, each from a multiple of 16 bytes on. The header is written last, so a file that
//! was never finished has none. All numbers are little-endian:
//!
//! | field | bytes |
//! | --- | ---: |
//! | `ANNTEXTS` | 8 |
//! | version: 1 | 4 |
//! | length of the header | 4 |
//! | length of the whole file | 8 |
//! | number of files | 4 |
//! | for each: length of its name, name, offset, length, XXH3-128 | 2, n, 8, 8, 16 |
//! | XXH3-128 of all before | 16 |

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tantivy::directory::OwnedBytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::TextFileError;
use crate::byte_reader::ByteReader;
use crate::snapshot_directory::SnapshotFolder;

const MAGIC: &[u8; 8] = b"ANNTEXTS";
const VERSION: u32 = 1;
/// Bytes before the entries.
const FIXED_BYTES: usize = 28;
/// Bytes of an entry without its name.
const ENTRY_BYTES: usize = 34;
const CHECKSUM_BYTES: usize = 16;
/// More bytes than a header ever has: a segment has about ten files.
const HEADER_BYTES_MAX: u64 = 1 << 16;
/// Files begin at multiples of this.
const ALIGNMENT: u64 = 16;
/// Bytes that are written or verified at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A file in a container.
#[derive(Clone, Debug)]
pub(crate) struct ContainedFile {
    pub name: PathBuf,
    pub range: Range<u64>,
    checksum: u128,
}

/// Writes a container and waits for the disk. `passed` is called with the bytes of each piece, and
/// ends it with false.
pub(crate) fn write(
    folder: &SnapshotFolder,
    name: &str,
    contained: &[(PathBuf, OwnedBytes)],
    passed: &mut dyn FnMut(u64) -> bool,
) -> Result<(), TextFileError> {
    let names = contained.iter().map(|(name, _)| name.as_os_str().len());
    let header_bytes = FIXED_BYTES + CHECKSUM_BYTES;
    let header_bytes = names.fold(header_bytes, |sum, name| sum + ENTRY_BYTES + name);
    let file = folder.create_file(name)?;
    let mut offset = header_bytes as u64;
    let mut entries = Vec::new();
    for (name, bytes) in contained {
        offset = offset.next_multiple_of(ALIGNMENT);
        let begin = offset;
        let mut hasher = Xxh3::new();
        for piece in bytes.as_slice().chunks(PIECE_BYTES) {
            hasher.update(piece);
            file.put(piece, offset)?;
            offset += piece.len() as u64;
            if !passed(piece.len() as u64) {
                return Err(TextFileError::stopped());
            }
        }
        entries.push(ContainedFile {
            name: name.clone(),
            range: begin..offset,
            checksum: hasher.digest128(),
        });
    }
    file.put(&header(&entries, header_bytes, offset), 0)?;
    file.sync()
}

/// The bytes of a header.
fn header(entries: &[ContainedFile], header_bytes: usize, file_bytes: u64) -> Vec<u8> {
    let mut header = Vec::with_capacity(header_bytes);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&(header_bytes as u32).to_le_bytes());
    header.extend_from_slice(&file_bytes.to_le_bytes());
    header.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    for entry in entries {
        let name = entry.name.as_os_str().as_encoded_bytes();
        header.extend_from_slice(&(name.len() as u16).to_le_bytes());
        header.extend_from_slice(name);
        header.extend_from_slice(&entry.range.start.to_le_bytes());
        header.extend_from_slice(&(entry.range.end - entry.range.start).to_le_bytes());
        header.extend_from_slice(&entry.checksum.to_le_bytes());
    }
    let checksum = xxh3_128(&header);
    header.extend_from_slice(&checksum.to_le_bytes());
    header
}

/// Reads the header of a container, whose length the caller knows.
pub(crate) fn read_header(
    file: &File,
    file_bytes: u64,
    path: &Path,
) -> Result<Vec<ContainedFile>, TextFileError> {
    let mut bytes = vec![0; file_bytes.min(HEADER_BYTES_MAX) as usize];
    file.read_exact_at(&mut bytes, 0)
        .map_err(TextFileError::system("read", path))?;
    let mut fixed = ByteReader::new(&bytes);
    if fixed.take(MAGIC.len()) != Some(MAGIC.as_slice()) {
        return Err(TextFileError::damaged(path, "it is no finished segment"));
    }
    if fixed.u32() != Some(VERSION) {
        return Err(TextFileError::Unusable(format!(
            "{} is of another version of the format; build the index anew",
            path.display()
        )));
    }
    let entries = decode(&bytes, file_bytes);
    entries.ok_or_else(|| TextFileError::damaged(path, "its header is not as it was written"))
}

fn decode(bytes: &[u8], file_bytes: u64) -> Option<Vec<ContainedFile>> {
    let mut reader = ByteReader::new(bytes);
    reader.take(MAGIC.len() + size_of_val(&VERSION))?;
    let header_bytes = reader.u32()? as usize;
    let bytes = bytes.get(..header_bytes)?;
    let body = header_bytes.checked_sub(CHECKSUM_BYTES)?;
    let (body, checksum) = bytes.split_at(body);
    if xxh3_128(body).to_le_bytes() != checksum || reader.u64()? != file_bytes {
        return None;
    }
    let mut entries = Vec::new();
    for _ in 0..reader.u32()? {
        let name = reader.u16()? as usize;
        let name = std::str::from_utf8(reader.take(name)?).ok()?;
        let (start, length) = (reader.u64()?, reader.u64()?);
        let end = start.checked_add(length)?;
        entries.push(ContainedFile {
            name: name.into(),
            range: start..end,
            checksum: reader.u128()?,
        });
        if end > file_bytes {
            return None;
        }
    }
    Some(entries)
}

/// Compares bytes with what was written of a file.
pub(crate) fn is_sound(entry: &ContainedFile, bytes: &[u8]) -> bool {
    xxh3_128(bytes) == entry.checksum
}

/// The verification of a container, piece by piece.
pub(crate) struct ContainerCheck {
    entries: Vec<ContainedFile>,
    /// The file that is being verified.
    entry: usize,
    /// The bytes of it that were read.
    done: u64,
    hasher: Xxh3,
    buffer: Vec<u8>,
}

impl ContainerCheck {
    pub fn new(entries: Vec<ContainedFile>) -> ContainerCheck {
        ContainerCheck {
            entries,
            entry: 0,
            done: 0,
            hasher: Xxh3::new(),
            buffer: Vec::new(),
        }
    }

    /// Whether all was verified.
    pub fn is_done(&self) -> bool {
        self.entry == self.entries.len()
    }

    /// Verifies the next piece, and returns its number of bytes. The file is read by calls and not
    /// through a map, so that a defective disk is an error.
    pub fn step(&mut self, file: &File, path: &Path) -> Result<u64, TextFileError> {
        self.step_by(path, |buffer, at| {
            file.read_exact_at(buffer, at)
                .map_err(TextFileError::system("read", path))
        })
    }

    /// Verifies the next piece, which `read` puts into the buffer from an offset of the file on.
    pub fn step_by(
        &mut self,
        path: &Path,
        read: impl FnOnce(&mut [u8], u64) -> Result<(), TextFileError>,
    ) -> Result<u64, TextFileError> {
        let Some(entry) = self.entries.get(self.entry) else {
            return Ok(0);
        };
        let at = entry.range.start + self.done;
        let bytes = (entry.range.end - at).min(PIECE_BYTES as u64);
        self.buffer.resize(bytes as usize, 0);
        read(&mut self.buffer, at)?;
        self.hasher.update(&self.buffer);
        self.done += bytes;
        if entry.range.start + self.done == entry.range.end {
            if self.hasher.digest128() != entry.checksum {
                let what = format!("{} in it is not as it was written", entry.name.display());
                return Err(TextFileError::damaged(path, &what));
            }
            self.hasher.reset();
            (self.entry, self.done) = (self.entry + 1, 0);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_read_as_it_was_written_and_each_damage_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let folder = SnapshotFolder::open(directory.path()).unwrap();
        let files = [
            ("meta", vec![1; 5]),
            ("empty", Vec::new()),
            ("postings", vec![7; 40]),
        ];
        let files = files.map(|(name, bytes)| (PathBuf::from(name), OwnedBytes::new(bytes)));
        write(&folder, "segment-1", &files, &mut |_| true).unwrap();
        let path = directory.path().join("segment-1");
        let sound = std::fs::read(&path).unwrap();

        let check = || -> Result<u64, TextFileError> {
            let (file, bytes) = folder.open_file("segment-1")?;
            let entries = read_header(&file, bytes, &path)?;
            let mut check = ContainerCheck::new(entries);
            let mut sum = 0;
            while !check.is_done() {
                sum += check.step(&file, &path)?;
            }
            Ok(sum)
        };
        assert_eq!(check(), Ok(45));
        let (file, bytes) = folder.open_file("segment-1").unwrap();
        let entries = read_header(&file, bytes, &path).unwrap();
        let covered = |at: usize| {
            let within = |entry: &ContainedFile| entry.range.contains(&(at as u64));
            at < entries[0].range.start as usize || entries.iter().any(within)
        };
        let header = FIXED_BYTES + CHECKSUM_BYTES + 3 * ENTRY_BYTES + "metaemptypostings".len();
        for at in (0..sound.len()).filter(|at| *at < header || (*at > header + 15 && covered(*at)))
        {
            let mut damaged = sound.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert!(check().is_err(), "byte {at}");
        }
        std::fs::write(&path, &sound[..sound.len() - 1]).unwrap();
        assert!(check().is_err());
    }
}
