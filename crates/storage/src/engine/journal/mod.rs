//! Judges the journals of fjall before fjall reads them.
//!
//! fjall drops a batch that is not whole and all that follows it, and cuts the file there, without
//! a word. So all batches are checked before it opens:
//!
//! - A batch that was being written when the process or the power went is cut off. It was not
//!   acknowledged.
//! - A broken batch is *damage* if a whole batch after it says in its [record](BatchRecord) that
//!   the broken one was synced, if it is in an older journal, which was synced whole before the
//!   next was begun, or if it has the form of a whole write (`tear.rs`).
//! - The head of a batch is in no checksum. Its number of items must agree with what follows. Its
//!   sequence number must rise from batch to batch, through all journals, and be at or shortly
//!   above the number in the record.
//! - The number in a record is one more than the last, so a missing batch or journal is noticed
//!   too.
//!
//! Damage is refused: the start fails, and [`recover`](fn@crate::recover) cuts when the operator
//! says so. Batches of former versions have no record, so only their order and form are judged.
//!
//! ```text
//! DIR/N.jnl  batches, then zeros or the end of the file; new batches go to the highest N
//! batch      01, number of items (4), sequence number (8)
//!            items: 02, kind (1), compression (1), space (8), key length (2), value length (4),
//!              stored length (4), key, stored value; or 04, space (8)
//!            03, xxh3 of the items (8), "FJL\x03"
//! ```
//!
//! All numbers are little-endian.

mod batch;
#[cfg(test)]
mod flip_tests;
mod record;
mod survey;
mod tear;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

pub(crate) use batch::EntryChange;
use batch::ParseOutcome;
pub(crate) use record::{BatchRecord, RECORD_KEY};
pub(crate) use survey::{CorruptBatch, CorruptionCause, survey};

use super::directory::sync_folder;

/// Cuts a journal off at an offset.
fn cut(path: &Path, offset: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(offset)?;
    file.sync_all()
}

/// The journals that were judged and can be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplayableJournals {
    /// The number of the last batch; 0 if there is none.
    pub last_number: u64,
    /// The bytes of all batches.
    pub bytes: u64,
}

/// The bytes that the journals take on the disk. They begin with the batches.
pub(super) fn bytes_on_disk(database: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    const BLOCK_BYTES: u64 = 512;
    let mut bytes = 0;
    for path in survey::journals(database)? {
        let file = fs::metadata(path)?;
        bytes += file.len().min(file.blocks() * BLOCK_BYTES);
    }
    Ok(bytes)
}

/// The paths of all journals, the oldest first.
pub(super) fn paths(database: &Path) -> io::Result<Vec<PathBuf>> {
    survey::journals(database)
}

/// The beginning of a journal: its whole batches up to some number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JournalPrefix {
    /// The offset after the last of these batches.
    pub end: u64,
    /// The number of the last of these batches that has a record.
    pub last_number: Option<u64>,
}

/// Reads a journal, which may be written to, up to the last batch whose number is not above
/// `through`.
pub(super) fn prefix_of(journal: &File, through: u64) -> io::Result<JournalPrefix> {
    let length = journal.metadata()?.len();
    let input = BufReader::with_capacity(1 << 16, journal);
    let mut batches = batch::ParsedBatches::new(input, 0, length);
    let mut prefix = JournalPrefix {
        end: 0,
        last_number: None,
    };
    while let ParseOutcome::Whole(batch) = batches.next(&mut |_| {})? {
        match batch.record {
            Some(record) if record.number > through => break,
            Some(record) => prefix.last_number = Some(record.number),
            None => {}
        }
        prefix.end = batch.end;
    }
    Ok(prefix)
}

/// Judges the journals and cuts off a batch that was being written when the storage stopped.
/// Returns the damage, if there is any, which is left as it is. `read` gets the bytes of each
/// batch.
pub(crate) fn prepare(
    database: &Path,
    read: &mut dyn FnMut(u64),
) -> io::Result<Result<ReplayableJournals, CorruptBatch>> {
    let survey = survey::survey_with_progress(database, read)?;
    if let Some(damage) = survey.damage {
        return Ok(Err(damage));
    }
    if let Some(torn) = survey.torn {
        cut(&torn.path, torn.offset)?;
        tracing::warn!(
            bytes = torn.bytes,
            "dropped a batch that was not whole when the storage stopped"
        );
    }
    Ok(Ok(ReplayableJournals {
        last_number: survey.last_number,
        bytes: survey.bytes,
    }))
}

/// Cuts off the batches that were refused to their writers but are whole in a journal: those with a
/// number above the last acknowledged one. Returns whether there was any.
pub(super) fn cut_refused(database: &Path, acknowledged: u64) -> io::Result<bool> {
    let journals = survey::journals(database)?;
    for (index, path) in journals.iter().enumerate() {
        let mut batches = survey::open(path)?;
        while let ParseOutcome::Whole(batch) = batches.next(&mut |_| {})? {
            if batch
                .record
                .is_some_and(|record| record.number > acknowledged)
            {
                for later in &journals[index + 1..] {
                    cut(later, 0)?;
                }
                cut(path, batch.offset)?;
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Empties all journals. Called once their batches have been written out to tables.
pub(super) fn empty(database: &Path) -> io::Result<()> {
    let mut journals = survey::journals(database)?;
    let newest = journals.pop();
    for path in journals {
        fs::remove_file(path)?;
    }
    if let Some(path) = newest {
        cut(&path, 0)?;
    }
    sync_folder(database)
}

/// Visits the items of all whole batches. `visit` gets `true` for batches at or after the damage,
/// the time of the batch in microseconds (0 if unknown), and the item.
pub(crate) fn read_all(
    database: &Path,
    damage: &CorruptBatch,
    visit: &mut dyn FnMut(bool, i64, EntryChange<'_>),
) -> io::Result<()> {
    let mut is_behind = false;
    for path in survey::journals(database)? {
        let content = survey::content_from(&path, 0)?;
        let split = if path == damage.path {
            (damage.offset as usize).min(content.len())
        } else if is_behind {
            0
        } else {
            content.len()
        };
        let mut each = |lost: bool, part: &[u8], offset: u64| {
            let mut time = 0;
            let mut show = |item: EntryChange<'_>| {
                if item.key == RECORD_KEY
                    && let Some(record) = item.value.and_then(BatchRecord::decode)
                {
                    time = record.time_micros;
                }
                visit(lost, time, item);
            };
            survey::scan(part, offset, &mut show, &mut |_| {})
        };
        each(false, &content[..split], 0)?;
        each(true, &content[split..], split as u64)?;
        is_behind |= path == damage.path;
    }
    Ok(())
}

/// Cuts the journals at the damage, and keeps what is cut in a file next to each. Returns these
/// files.
pub(crate) fn cut_at(database: &Path, damage: &CorruptBatch) -> io::Result<Vec<PathBuf>> {
    let mut kept = Vec::new();
    let mut is_behind = false;
    for path in survey::journals(database)? {
        let offset = match (path == damage.path, is_behind) {
            (true, _) => damage.offset,
            (false, true) => 0,
            (false, false) => continue,
        };
        is_behind = true;
        let content = survey::content_from(&path, offset)?;
        if content.is_empty() {
            continue;
        }
        kept.push(keep(&path, offset, &content)?);
        cut(&path, offset)?;
    }
    Ok(kept)
}

/// Writes the part to be cut to `N.jnl.cut-at-OFFSET`, with a further number if that file exists
/// already.
fn keep(path: &Path, offset: u64, content: &[u8]) -> io::Result<PathBuf> {
    use std::io::Write;
    let mut attempt = 0_u32;
    loop {
        let suffix = match attempt {
            0 => format!("jnl.cut-at-{offset}"),
            more => format!("jnl.cut-at-{offset}.{more}"),
        };
        let target = path.with_extension(suffix);
        match OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&target)
        {
            Ok(mut file) => {
                file.write_all(content)?;
                file.sync_all()?;
                if let Some(folder) = target.parent() {
                    sync_folder(folder)?;
                }
                return Ok(target);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            Err(error) => return Err(error),
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
        let path = survey::journals(directory.path()).unwrap().pop().unwrap();
        let length = survey::content_from(&path, 0).unwrap().len() as u64;
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
    fn an_intact_journal_is_unchanged() {
        let (directory, _, length) = filled();
        assert!(survey(directory.path()).unwrap().torn.is_none());
        let mut read = 0;
        let prepared = prepare(directory.path(), &mut |bytes| read += bytes);
        let prepared = prepared.unwrap().unwrap();
        assert_eq!((prepared.last_number, prepared.bytes), (0, length));
        assert_eq!(read, length);
        assert_eq!(batches_in(directory.path()), usize::from(BATCHES));
    }

    #[test]
    fn a_batch_with_a_hole_is_cut_off() {
        use std::os::unix::fs::FileExt;
        let (directory, path, length) = filled();
        let file = OpenOptions::new().write(true).open(path).unwrap();
        // This is in the middle of the last batch, whose start and end stay.
        file.write_all_at(&[0; 4096], length - 6_000).unwrap();
        assert!(
            fjall::Database::builder(directory.path()).open().is_err(),
            "fjall alone can't read it, which is what this module is for"
        );
        assert!(survey(directory.path()).unwrap().torn.is_some());
        prepare(directory.path(), &mut |_| {}).unwrap().unwrap();
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
            prepare(copy.path(), &mut |_| {}).unwrap().unwrap();
            let kept = fs::read(copy.path().join("0.jnl")).unwrap();
            assert!(content.starts_with(&kept) && kept.len() <= cut);
            assert!(kept.len() >= whole, "a longer journal keeps no less");
            whole = kept.len();
        }
        assert!(whole > 3 * VALUE_BYTES * 2);
    }
}
