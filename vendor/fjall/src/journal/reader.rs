// Copyright (c) 2024-present, fjall-rs
// This source code is licensed under both the Apache 2.0 and MIT License
// (found in the LICENSE-* files in the repository)

use super::entry::Entry;
use std::{
    fs::{File, OpenOptions},
    io::{BufReader, Read, Seek},
    path::{Path, PathBuf},
};

/// ANNULUS 6: bytes that are read from the file at a time
const BUFFER_BYTES: usize = 64 * 1_024;

/// ANNULUS 6: a file whose position is counted, as asking for it costs a system call, and the bytes of
/// the present entry, as they are in the file
pub(crate) struct EntryInput {
    file: BufReader<File>,
    position: u64,
    entry: Vec<u8>,
}

impl Read for EntryInput {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buf)?;
        self.taken(buf.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn read_exact(&mut self, buf: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact(buf)?;
        self.taken(buf);
        Ok(())
    }
}

impl EntryInput {
    fn taken(&mut self, bytes: &[u8]) {
        self.position += bytes.len() as u64;
        self.entry.extend_from_slice(bytes);
    }
}

/// Reads and emits through the entries in a journal file, but doesn't
/// check the validity of batches
///
/// Will truncate the file to the last valid position to prevent corrupt
/// bytes at the end of the file, which would jeopardize future writes into the file.
#[expect(clippy::module_name_repetitions)]
pub struct JournalReader {
    pub(crate) path: PathBuf,
    pub(crate) reader: EntryInput,
    pub(crate) last_valid_pos: u64,
}

impl JournalReader {
    pub fn new<P: AsRef<Path>>(path: P) -> crate::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;

        Ok(Self {
            path: path.as_ref().into(),
            reader: EntryInput {
                file: BufReader::with_capacity(BUFFER_BYTES, file),
                position: 0,
                entry: Vec::new(),
            },
            last_valid_pos: 0,
        })
    }

    fn truncate_file(&mut self, pos: u64) -> crate::Result<()> {
        log::debug!("truncating journal to {pos}");
        self.reader.file.get_mut().set_len(pos)?;
        self.reader.file.get_mut().sync_all()?;
        Ok(())
    }

    fn maybe_truncate_file_to_last_valid_pos(&mut self) -> crate::Result<()> {
        let stream_pos = self.reader.file.stream_position()?;

        if stream_pos > self.last_valid_pos {
            self.truncate_file(self.last_valid_pos)?;
        }

        Ok(())
    }

    /// ANNULUS 6: the bytes of the entry that was read last, over which checksums are made
    pub(crate) fn entry_bytes(&self) -> &[u8] {
        &self.reader.entry
    }
}

impl Iterator for JournalReader {
    type Item = crate::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        self.reader.entry.clear();
        match Entry::decode_from(&mut self.reader) {
            Ok(item) => {
                self.last_valid_pos = self.reader.position;
                Some(Ok(item))
            }
            Err(e) => {
                if let crate::Error::Io(e) = e {
                    match e.kind() {
                        std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::Other => {
                            fail_iter!(self.maybe_truncate_file_to_last_valid_pos());
                            None
                        }
                        _ => Some(Err(crate::Error::Io(e))),
                    }
                } else {
                    fail_iter!(self.maybe_truncate_file_to_last_valid_pos());
                    None
                }
            }
        }
    }
}
