//! Reads and writes files of frames. Each frame has a length, a kind and a checksum, which covers
//! its number in the file.
//!
//! ```text
//! bytes    contents
//! 4        length of the payload, at most 2^24
//! 4        kind
//! length   payload
//! 16       XXH3-128, low half first, of: number of the frame in the file (u64), length, kind,
//!          payload
//! ```
//!
//! Numbers are little-endian. The last frame is of kind 0 and has no payload; nothing may follow.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use platform::files::{self, FileStep};
use xxhash_rust::xxh3::Xxh3;

use super::fault::PersistenceError;

/// The kind of the last frame.
const END: u32 = 0;

/// The most bytes of a payload. Writers stay far below.
const PAYLOAD_MAX: u32 = 1 << 24;

fn checksum(number: u64, head: &[u8; 8], payload: &[u8]) -> [u8; 16] {
    let mut state = Xxh3::new();
    state.update(&number.to_le_bytes());
    state.update(head);
    state.update(payload);
    state.digest128().to_le_bytes()
}

fn head(payload: &[u8], kind: u32) -> [u8; 8] {
    let length = u32::try_from(payload.len()).expect("a frame below the limit");
    assert!(length <= PAYLOAD_MAX);
    let mut head = [0; 8];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..].copy_from_slice(&kind.to_le_bytes());
    head
}

/// Writes a file of frames.
pub(super) struct FrameWriter {
    path: PathBuf,
    file: BufWriter<File>,
    number: u64,
}

impl FrameWriter {
    /// Makes a file; fails if it exists.
    pub(super) fn create(path: &Path) -> Result<FrameWriter, PersistenceError> {
        let file = files::step(FileStep::Make, path)
            .and_then(|()| File::create_new(path))
            .map_err(PersistenceError::io("make", path))?;
        Ok(FrameWriter {
            path: path.to_owned(),
            file: BufWriter::new(file),
            number: 0,
        })
    }

    /// Adds a frame. Kinds begin with 1.
    pub(super) fn put(&mut self, kind: u32, payload: &[u8]) -> Result<(), PersistenceError> {
        let head = head(payload, kind);
        let checksum = checksum(self.number, &head, payload);
        self.number += 1;
        files::step(FileStep::Write, &self.path)
            .and_then(|()| self.file.write_all(&head))
            .and_then(|()| self.file.write_all(payload))
            .and_then(|()| self.file.write_all(&checksum))
            .map_err(PersistenceError::io("write", &self.path))
    }

    /// Ends the file and waits until it is on the disk.
    pub(super) fn finish(mut self) -> Result<(), PersistenceError> {
        self.put(END, &[])?;
        self.file
            .flush()
            .and_then(|()| files::sync(self.file.get_ref(), &self.path))
            .map_err(PersistenceError::io("write", &self.path))
    }
}

/// Reads a file of frames. Returns sound frames only.
pub(super) struct FrameReader {
    path: PathBuf,
    file: BufReader<File>,
    number: u64,
    offset: u64,
    ended: bool,
}

impl FrameReader {
    /// Opens a file, to be read from its first frame.
    pub(super) fn open(path: &Path) -> Result<FrameReader, PersistenceError> {
        let file = files::step(FileStep::Read, path)
            .and_then(|()| File::open(path))
            .map_err(PersistenceError::io("open", path))?;
        Ok(FrameReader {
            path: path.to_owned(),
            file: BufReader::new(file),
            number: 0,
            offset: 0,
            ended: false,
        })
    }

    /// Returns the kind and the payload of the next frame; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Vec<u8>)>, PersistenceError> {
        if self.ended {
            return Ok(None);
        }
        let mut head = [0; 8];
        self.read(&mut head)?;
        let [length, kind] = [0, 4].map(|at| {
            let bytes = [head[at], head[at + 1], head[at + 2], head[at + 3]];
            u32::from_le_bytes(bytes)
        });
        if length > PAYLOAD_MAX {
            return Err(self.damaged("no frame is that long"));
        }
        let mut payload = vec![0; length as usize];
        self.read(&mut payload)?;
        let mut expected = [0; 16];
        self.read(&mut expected)?;
        if checksum(self.number, &head, &payload) != expected {
            return Err(self.damaged("its bytes have another checksum than when they were written"));
        }
        self.number += 1;
        self.offset += (head.len() + payload.len() + expected.len()) as u64;
        if kind != END {
            return Ok(Some((kind, payload)));
        }
        self.ended = true;
        let mut more = [0];
        match self.file.read(&mut more) {
            Ok(0) => Ok(None),
            Ok(_) => Err(self.damaged("something follows the end")),
            Err(error) => Err(PersistenceError::io("read", &self.path)(error)),
        }
    }

    /// A fault at the frame that was read last or could not be read.
    pub(super) fn damaged(&self, what: &'static str) -> PersistenceError {
        PersistenceError::damaged(&self.path, self.offset, what)
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), PersistenceError> {
        self.file
            .read_exact(bytes)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::UnexpectedEof => self.damaged("the file ends"),
                _ => PersistenceError::io("read", &self.path)(error),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(path: &Path) -> Result<Vec<(u32, Vec<u8>)>, PersistenceError> {
        let mut reader = FrameReader::open(path)?;
        std::iter::from_fn(|| reader.next().transpose()).collect()
    }

    #[test]
    fn only_written_frames_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let mut writer = FrameWriter::create(&path).unwrap();
        let written = [(1, b"one".to_vec()), (2, vec![]), (1, vec![7; 300])];
        for (kind, payload) in &written {
            writer.put(*kind, payload).unwrap();
        }
        writer.finish().unwrap();
        assert!(FrameWriter::create(&path).is_err(), "it is there already");
        assert_eq!(frames(&path).unwrap(), written);

        let sound = std::fs::read(&path).unwrap();
        let refused = |bytes: &[u8], what: &str| {
            std::fs::write(&path, bytes).unwrap();
            let error = frames(&path).expect_err(what).to_string();
            assert!(error.contains("rows is damaged near byte"), "{error}");
        };
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x10;
            refused(&bytes, &format!("byte {at} was flipped"));
        }
        for length in 0..sound.len() {
            refused(&sound[..length], &format!("cut at {length}"));
        }
        refused(&[&sound[..], &[0]].concat(), "a byte too many");
        let first = 8 + 3 + 16;
        let swapped = [
            &sound[first..first + 24],
            &sound[..first],
            &sound[first + 24..],
        ];
        refused(&swapped.concat(), "frames have changed places");
    }
}
