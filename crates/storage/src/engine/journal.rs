//! Cuts a torn end off the engine's journal before the engine reads it.
//!
//! When the power fails while a batch is being synced, any of its pages may be on the disk and any
//! not. The batch was not acknowledged, so it is to vanish; but fjall, which drops a batch that ends
//! too early, refuses to open with one whose middle is missing. Only the newest journal can be torn: the
//! others were synced whole before it was begun.
//!
//! ```text
//! journal   batches, then zeros or the end of the file
//! batch     01, number of items (4), sequence number (8)
//!           items: 02, kind (1), compression (1), space (8), key length (2), value length (4),
//!             stored length (4), key, stored value; or 04, space (8)
//!           03, xxh3 of the items (8), "FJL\x03"
//! ```
//!
//! All numbers are little-endian.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const TRAILER: &[u8; 4] = b"FJL\x03";

/// Cuts the newest journal of a database behind its last whole batch. Gives the number of bytes
/// that were cut off, 0 if there were none but zeros.
pub(super) fn cut_torn_end(database: &Path) -> io::Result<u64> {
    let Some(path) = newest_journal(database)? else {
        return Ok(0);
    };
    let file = File::open(&path)?;
    let length = file.metadata()?.len();
    let mut reader = JournalReader {
        input: BufReader::with_capacity(1 << 16, file),
        position: 0,
        length,
    };
    let mut end = 0;
    while reader.batch()?.is_some() {
        end = reader.position;
    }
    let torn = torn_bytes(&path, end)?;
    if torn > 0 {
        let file = OpenOptions::new().write(true).open(&path)?;
        file.set_len(end)?;
        file.sync_all()?;
    }
    Ok(torn)
}

fn newest_journal(database: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest: Option<(u64, PathBuf)> = None;
    let entries = match fs::read_dir(database) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".jnl"))
            .and_then(|number| number.parse().ok());
        if let Some(number) = number
            && newest.as_ref().is_none_or(|(other, _)| *other < number)
        {
            newest = Some((number, path));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

/// The bytes from `end` to the last one that is not zero.
fn torn_bytes(path: &Path, end: u64) -> io::Result<u64> {
    use std::io::{Seek, SeekFrom};
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(end))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    let mut buffer = [0; 1 << 14];
    let (mut read, mut torn) = (0, 0);
    loop {
        let count = reader.read(&mut buffer)?;
        if count == 0 {
            return Ok(torn);
        }
        if let Some(last) = buffer[..count].iter().rposition(|byte| *byte != 0) {
            torn = read + last as u64 + 1;
        }
        read += count as u64;
    }
}

struct JournalReader {
    input: BufReader<File>,
    position: u64,
    length: u64,
}

impl JournalReader {
    /// Reads a whole batch; `None` if there is none.
    fn batch(&mut self) -> io::Result<Option<()>> {
        match self.try_batch() {
            Ok(()) => Ok(Some(())),
            Err(Stop::Torn) => Ok(None),
            Err(Stop::Io(error)) => Err(error),
        }
    }

    fn try_batch(&mut self) -> Result<(), Stop> {
        let [START] = self.take::<1>()? else {
            return Err(Stop::Torn);
        };
        let items = u32::from_le_bytes(self.take()?);
        let _sequence = self.take::<8>()?;
        let mut hash = Xxh3::new();
        for _ in 0..items {
            self.item(&mut hash)?;
        }
        let [END] = self.take::<1>()? else {
            return Err(Stop::Torn);
        };
        let checksum = u64::from_le_bytes(self.take()?);
        if self.take::<4>()? == *TRAILER && hash.digest() == checksum {
            Ok(())
        } else {
            Err(Stop::Torn)
        }
    }

    fn item(&mut self, hash: &mut Xxh3) -> Result<(), Stop> {
        let tag = self.take::<1>()?;
        hash.update(&tag);
        match tag {
            [ITEM] => {
                let head = self.take::<20>()?;
                hash.update(&head);
                let key = u64::from(u16::from_le_bytes([head[10], head[11]]));
                let stored = u32::from_le_bytes([head[16], head[17], head[18], head[19]]);
                self.hash_bytes(key + u64::from(stored), hash)
            }
            [CLEAR] => {
                hash.update(&self.take::<8>()?);
                Ok(())
            }
            _ => Err(Stop::Torn),
        }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(Stop::from)?;
        self.position += N as u64;
        Ok(bytes)
    }

    fn hash_bytes(&mut self, count: u64, hash: &mut Xxh3) -> Result<(), Stop> {
        if count > self.length - self.position {
            return Err(Stop::Torn);
        }
        let mut left = count;
        let mut buffer = [0; 1 << 13];
        while left > 0 {
            let part = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
            self.input.read_exact(&mut buffer[..part])?;
            hash.update(&buffer[..part]);
            left -= part as u64;
        }
        self.position += count;
        Ok(())
    }
}

enum Stop {
    Torn,
    Io(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Stop::Torn,
            _ => Stop::Io(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use fjall::{KeyspaceCreateOptions, PersistMode};

    use super::*;

    const BATCHES: u8 = 4;
    const VALUE_BYTES: usize = 9_000;

    /// A database with a few batches in its journal, and the length of the journal's content.
    fn filled() -> (tempfile::TempDir, PathBuf, u64) {
        let directory = tempfile::tempdir().unwrap();
        let database = fjall::Database::builder(directory.path())
            .journal_compression(fjall::CompressionType::None)
            .open()
            .unwrap();
        let space = database
            .keyspace("s", KeyspaceCreateOptions::default)
            .unwrap();
        for number in 0..BATCHES {
            let mut batch = database.batch().durability(Some(PersistMode::SyncData));
            for part in 0..2 {
                batch.insert(&space, [number, part], vec![number + 1; VALUE_BYTES]);
            }
            batch.remove(&space, [number, 9]);
            batch.commit().unwrap();
        }
        drop((space, database));
        let path = newest_journal(directory.path()).unwrap().unwrap();
        let length = torn_bytes(&path, 0).unwrap();
        (directory, path, length)
    }

    fn batches_in(directory: &Path) -> usize {
        let database = fjall::Database::builder(directory).open().unwrap();
        let space = database
            .keyspace("s", KeyspaceCreateOptions::default)
            .unwrap();
        let count = space.len().unwrap();
        assert_eq!(count % 2, 0, "batches are whole");
        count / 2
    }

    #[test]
    fn a_whole_journal_is_left_alone() {
        let (directory, _, _) = filled();
        assert_eq!(cut_torn_end(directory.path()).unwrap(), 0);
        assert_eq!(batches_in(directory.path()), usize::from(BATCHES));
    }

    #[test]
    fn a_batch_with_a_hole_is_cut_off() {
        use std::os::unix::fs::FileExt;
        let (directory, path, length) = filled();
        let file = OpenOptions::new().write(true).open(path).unwrap();
        // In the midst of the last batch: its start and its end stay.
        file.write_all_at(&[0; 4096], length - 6_000).unwrap();
        assert!(
            fjall::Database::builder(directory.path()).open().is_err(),
            "fjall alone can't read it, which is what this module is for"
        );
        assert!(cut_torn_end(directory.path()).unwrap() > 0);
        assert_eq!(batches_in(directory.path()), usize::from(BATCHES) - 1);
    }

    #[test]
    fn a_journal_cut_anywhere_keeps_its_whole_batches() {
        let (_directory, path, length) = filled();
        let content = fs::read(&path).unwrap();
        let mut whole = 0;
        for cut in (0..=length as usize).step_by(997) {
            let copy = tempfile::tempdir().unwrap();
            fs::write(copy.path().join("0.jnl"), &content[..cut]).unwrap();
            cut_torn_end(copy.path()).unwrap();
            let kept = fs::read(copy.path().join("0.jnl")).unwrap();
            assert!(content.starts_with(&kept) && kept.len() <= cut);
            assert!(kept.len() >= whole, "a longer journal keeps no less");
            whole = kept.len();
        }
        assert!(whole > 3 * VALUE_BYTES * 2);
    }
}
