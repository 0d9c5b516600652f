//! Reads the batches of a journal, one after the other.

use std::io::{self, Read};

use xxhash_rust::xxh3::Xxh3;

use super::record::{BatchRecord, RECORD_KEY};

pub(super) const START: u8 = 1;
pub(super) const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
pub(super) const TRAILER: &[u8; 4] = b"FJL\x03";
/// fjall's number for a stored value. Other numbers remove a key.
const VALUE: u8 = 0;

/// A whole batch.
#[derive(Clone, Debug)]
pub(super) struct ParsedBatch {
    pub offset: u64,
    /// The offset after the batch.
    pub end: u64,
    pub sequence: u64,
    /// `None` if the batch is from a version of Annulus that knew no records.
    pub record: Option<BatchRecord>,
}

/// A change in a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryChange<'a> {
    /// The engine's number of the space.
    pub space: u64,
    pub key: &'a [u8],
    /// `None` if the key is removed.
    pub value: Option<&'a [u8]>,
}

/// The result of reading at an offset.
#[derive(Debug)]
pub(super) enum ParseOutcome {
    Whole(ParsedBatch),
    /// There is a zero or the end of the file, so no batch follows.
    End,
    /// There is no whole batch. `wrong_trailer` says that items and checksum agree, and that only
    /// the trailer after them is wrong, without being cut off.
    Broken {
        wrong_trailer: bool,
    },
}

pub(super) struct ParsedBatches<R> {
    input: R,
    position: u64,
    length: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

enum UnreadableBatch {
    Broken,
    WrongTrailer,
    Io(io::Error),
}

impl From<io::Error> for UnreadableBatch {
    fn from(error: io::Error) -> UnreadableBatch {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => UnreadableBatch::Broken,
            _ => UnreadableBatch::Io(error),
        }
    }
}

impl<R: Read> ParsedBatches<R> {
    /// Reads batches from `input`, which is at `position` of a file of `length` bytes.
    pub(super) fn new(input: R, position: u64, length: u64) -> ParsedBatches<R> {
        ParsedBatches {
            input,
            position,
            length,
            key: Vec::new(),
            value: Vec::new(),
        }
    }

    /// Reads a batch. `visit` gets its items before it is known whether the batch is whole.
    pub(super) fn next(
        &mut self,
        visit: &mut dyn FnMut(EntryChange<'_>),
    ) -> io::Result<ParseOutcome> {
        let offset = self.position;
        let tag = match self.take::<1>() {
            Ok([tag]) => tag,
            Err(UnreadableBatch::Io(error)) => return Err(error),
            Err(_) => return Ok(ParseOutcome::End),
        };
        if tag == 0 {
            return Ok(ParseOutcome::End);
        }
        match self.after_tag(tag, offset, visit) {
            Ok(batch) => Ok(ParseOutcome::Whole(batch)),
            Err(UnreadableBatch::Broken) => Ok(ParseOutcome::Broken {
                wrong_trailer: false,
            }),
            Err(UnreadableBatch::WrongTrailer) => Ok(ParseOutcome::Broken {
                wrong_trailer: true,
            }),
            Err(UnreadableBatch::Io(error)) => Err(error),
        }
    }

    fn after_tag(
        &mut self,
        tag: u8,
        offset: u64,
        visit: &mut dyn FnMut(EntryChange<'_>),
    ) -> Result<ParsedBatch, UnreadableBatch> {
        if tag != START {
            return Err(UnreadableBatch::Broken);
        }
        let items = u32::from_le_bytes(self.take()?);
        let sequence = u64::from_le_bytes(self.take()?);
        let mut hash = Xxh3::new();
        let mut record = None;
        for number in 0..items {
            self.item(&mut hash)?;
            let Some(item) = self.shown() else { continue };
            // Only the first item can be the record; the key of a row may have the same bytes.
            if number == 0 && item.key == RECORD_KEY {
                record = item.value.and_then(BatchRecord::decode);
            }
            visit(item);
        }
        let [END] = self.take::<1>()? else {
            return Err(UnreadableBatch::Broken);
        };
        let checksum = u64::from_le_bytes(self.take()?);
        if hash.digest() != checksum {
            return Err(UnreadableBatch::Broken);
        }
        let trailer = self.take::<4>()?;
        if trailer != *TRAILER {
            // A journal has zeros after its last batch, so a trailer with zeros was being written.
            return Err(if trailer.contains(&0) {
                UnreadableBatch::Broken
            } else {
                UnreadableBatch::WrongTrailer
            });
        }
        Ok(ParsedBatch {
            offset,
            end: self.position,
            sequence,
            record,
        })
    }

    /// Reads an item into `self.key` and `self.value`. Its kind, compression and space come before
    /// the key.
    fn item(&mut self, hash: &mut Xxh3) -> Result<(), UnreadableBatch> {
        let tag = self.take::<1>()?;
        hash.update(&tag);
        self.key.clear();
        match tag {
            [ITEM] => {
                let head = self.take::<20>()?;
                hash.update(&head);
                let key = u64::from(u16::from_le_bytes([head[10], head[11]]));
                let stored =
                    u64::from(u32::from_le_bytes([head[16], head[17], head[18], head[19]]));
                // Damaged lengths must not make the reader take memory that the file could never
                // fill.
                if key + stored > self.length - self.position {
                    return Err(UnreadableBatch::Broken);
                }
                self.key.extend_from_slice(&head[..10]);
                read_into(&mut self.input, &mut self.key, key)?;
                self.value.clear();
                read_into(&mut self.input, &mut self.value, stored)?;
                self.position += key + stored;
                hash.update(&self.key[10..]);
                hash.update(&self.value);
                Ok(())
            }
            [CLEAR] => {
                hash.update(&self.take::<8>()?);
                Ok(())
            }
            _ => Err(UnreadableBatch::Broken),
        }
    }

    fn shown(&self) -> Option<EntryChange<'_>> {
        let (head, key) = self.key.split_at_checked(10)?;
        Some(EntryChange {
            space: u64::from_le_bytes(*head[2..].first_chunk()?),
            key,
            value: (head[0] == VALUE).then_some(&self.value),
        })
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], UnreadableBatch> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        self.position += N as u64;
        Ok(bytes)
    }
}

/// Appends bytes of the input to a buffer. `count` must be at most what the file can hold still.
fn read_into(
    input: &mut impl Read,
    buffer: &mut Vec<u8>,
    count: u64,
) -> Result<(), UnreadableBatch> {
    let begin = buffer.len();
    buffer.resize(begin + count as usize, 0);
    input.read_exact(&mut buffer[begin..])?;
    Ok(())
}
