//! The frame of the files `index` and `documents`: a mark at the begin, a checksum at the end.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use crate::TextFileError;
use crate::byte_reader::ByteReader;
use crate::snapshot_directory::SnapshotFolder;

const VERSION: u32 = 1;
const CHECKSUM_BYTES: usize = 16;
/// Bytes that are written at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A kind of file.
#[derive(Clone, Copy)]
pub(super) struct FileKind {
    pub name: &'static str,
    pub magic: &'static [u8; 8],
    /// More bytes than such a file ever has.
    pub bytes_max: u64,
}

impl FileKind {
    /// The begin of a file.
    pub fn begin(&self) -> Vec<u8> {
        let mut bytes = self.magic.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes
    }

    /// Writes a file that begins so, waits for the disk, and calls `passed` with the bytes of each
    /// piece; false ends it.
    pub fn write(
        &self,
        folder: &SnapshotFolder,
        mut bytes: Vec<u8>,
        passed: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), TextFileError> {
        let checksum = xxh3_128(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        let file = folder.create_file(self.name)?;
        let mut offset = 0;
        for piece in bytes.chunks(PIECE_BYTES) {
            file.put(piece, offset)?;
            offset += piece.len() as u64;
            if !passed(piece.len() as u64) {
                return Err(TextFileError::stopped());
            }
        }
        file.sync()
    }

    /// Reads a file, checks it, and returns what `decode` makes of all after its begin. All of that
    /// must be read.
    pub fn read<T>(
        &self,
        folder: &SnapshotFolder,
        decode: impl FnOnce(&mut ByteReader<'_>) -> Option<T>,
    ) -> Result<(T, u64), TextFileError> {
        let path = folder.path_of(self.name);
        let bytes = folder.read_file(self.name, self.bytes_max)?;
        let content = self.content(&bytes, &path)?;
        let mut reader = ByteReader::new(content);
        let decoded = decode(&mut reader).filter(|_| reader.is_at_end());
        let decoded =
            decoded.ok_or_else(|| TextFileError::damaged(&path, "its content makes no sense"))?;
        Ok((decoded, bytes.len() as u64))
    }

    fn content<'a>(&self, bytes: &'a [u8], path: &Path) -> Result<&'a [u8], TextFileError> {
        let mut reader = ByteReader::new(bytes);
        if reader.take(self.magic.len()) != Some(self.magic.as_slice()) {
            return Err(TextFileError::damaged(path, "it is no such file"));
        }
        if reader.u32() != Some(VERSION) {
            return Err(TextFileError::Unusable(format!(
                "{} is of another version of the format; build the index anew",
                path.display()
            )));
        }
        let body = bytes.len().checked_sub(CHECKSUM_BYTES);
        let parts = body.and_then(|body| bytes.split_at_checked(body));
        let begin = self.magic.len() + size_of_val(&VERSION);
        match parts {
            Some((body, checksum)) if xxh3_128(body).to_le_bytes() == checksum => {
                Ok(body.get(begin..).unwrap_or_default())
            }
            _ => Err(TextFileError::damaged(path, "it is not as it was written")),
        }
    }
}
