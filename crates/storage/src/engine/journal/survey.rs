//! Walks through all journals, and judges the place at which they are not whole.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::batch::{EntryChange, ITEM, ParseOutcome, ParsedBatch, ParsedBatches, START};
use super::record::BatchRecord;
use super::tear;

/// The result of a walk through the journals.
#[derive(Debug, Default)]
pub(crate) struct InspectedJournals {
    /// The number of journals.
    pub journals: u64,
    /// The number of the last batch with a record; 0 if there is none.
    pub last_number: u64,
    /// The bytes of all whole batches up to the damage, if there is any.
    pub bytes: u64,
    /// A write that was cut off, if there is one.
    pub torn: Option<TornTail>,
    /// The first damage, if there is any.
    pub damage: Option<CorruptBatch>,
}

/// The end of the newest journal, from the offset at which it is not whole.
#[derive(Debug)]
pub(crate) struct TornTail {
    pub path: PathBuf,
    pub offset: u64,
    pub bytes: u64,
}

/// A place of a journal that is not as it was written.
#[derive(Clone, Debug)]
pub(crate) struct CorruptBatch {
    pub path: PathBuf,
    pub offset: u64,
    pub cause: CorruptionCause,
    /// Whole batches after the one at the offset.
    pub batches_after: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CorruptionCause {
    /// There is no whole batch.
    Broken,
    /// The sequence number does not rise, or is not the batch's own.
    Sequence,
    /// A batch before this one is missing.
    Missing,
}

/// The numbers of the last batch, which those of the next must follow.
#[derive(Default)]
struct LastBatchNumbers {
    sequence: Option<u64>,
    number: Option<u64>,
}

impl LastBatchNumbers {
    fn take(&mut self, batch: &ParsedBatch) -> Result<(), CorruptionCause> {
        let rises = self.sequence.is_none_or(|last| batch.sequence > last);
        let is_own = batch
            .record
            .is_none_or(|record| record.allows(batch.sequence));
        if !rises || !is_own {
            return Err(CorruptionCause::Sequence);
        }
        if let Some(BatchRecord { number, .. }) = batch.record {
            if self.number.is_some_and(|last| number != last + 1) {
                return Err(CorruptionCause::Missing);
            }
            self.number = Some(number);
        }
        self.sequence = Some(batch.sequence);
        Ok(())
    }
}

/// Walks through the journals.
pub(crate) fn survey(database: &Path) -> io::Result<InspectedJournals> {
    survey_with_progress(database, &mut |_| {})
}

/// As [`survey`]; `read` gets the bytes of each whole batch.
pub(super) fn survey_with_progress(
    database: &Path,
    read: &mut dyn FnMut(u64),
) -> io::Result<InspectedJournals> {
    let journals = journals(database)?;
    let mut order = LastBatchNumbers::default();
    let mut survey = InspectedJournals {
        journals: journals.len() as u64,
        ..InspectedJournals::default()
    };
    for (index, path) in journals.iter().enumerate() {
        let later = &journals[index + 1..];
        let bytes = &mut survey.bytes;
        let mut read = |batch| {
            *bytes += batch;
            read(batch);
        };
        if let Some(stop) = walk(path, &mut order, &mut read)? {
            judge(path, later, &order, &stop, &mut survey)?;
            break;
        }
    }
    survey.last_number = order.number.unwrap_or(0);
    Ok(survey)
}

/// The place at which a journal does not go on.
struct ReadableEnd {
    offset: u64,
    /// `None` if there is no whole batch.
    cause: Option<CorruptionCause>,
    wrong_trailer: bool,
}

fn walk(
    path: &Path,
    order: &mut LastBatchNumbers,
    read: &mut dyn FnMut(u64),
) -> io::Result<Option<ReadableEnd>> {
    let mut batches = open(path)?;
    let mut end = 0;
    let mut wrong_trailer = false;
    loop {
        match batches.next(&mut |_| {})? {
            ParseOutcome::Whole(batch) => {
                if let Err(cause) = order.take(&batch) {
                    return Ok(Some(ReadableEnd {
                        offset: batch.offset,
                        cause: Some(cause),
                        wrong_trailer: false,
                    }));
                }
                read(batch.end - end);
                end = batch.end;
            }
            ParseOutcome::End => break,
            ParseOutcome::Broken {
                wrong_trailer: wrong,
            } => {
                wrong_trailer = wrong;
                break;
            }
        }
    }
    let torn = content_bytes(path, end)?;
    Ok((torn > 0).then_some(ReadableEnd {
        offset: end,
        cause: None,
        wrong_trailer,
    }))
}

fn judge(
    path: &Path,
    later: &[PathBuf],
    order: &LastBatchNumbers,
    stop: &ReadableEnd,
    survey: &mut InspectedJournals,
) -> io::Result<()> {
    let mut behind = Vec::new();
    let is_first_whole = stop.cause.is_some();
    let rest = content_from(path, stop.offset)?;
    scan(&rest, stop.offset, &mut |_| {}, &mut |batch| {
        if !(is_first_whole && batch.offset == stop.offset) {
            behind.push(batch.record);
        }
    })?;
    for path in later {
        let content = content_from(path, 0)?;
        scan(&content, 0, &mut |_| {}, &mut |batch| {
            behind.push(batch.record);
        })?;
    }
    let is_damage = stop.cause.is_some()
        // A journal is synced whole before the next one is begun.
        || !later.is_empty()
        || proves_damage(order, &behind)
        || (behind.is_empty() && !tear::may_be_torn(&rest, stop.offset, stop.wrong_trailer));
    if is_damage {
        survey.damage = Some(CorruptBatch {
            path: path.to_path_buf(),
            offset: stop.offset,
            cause: stop.cause.unwrap_or(CorruptionCause::Broken),
            batches_after: behind.len() as u64,
        });
    } else {
        survey.torn = Some(TornTail {
            path: path.to_path_buf(),
            offset: stop.offset,
            bytes: rest.len() as u64,
        });
    }
    Ok(())
}

/// Whether a batch after the broken one says that the broken one was synced.
fn proves_damage(order: &LastBatchNumbers, behind: &[Option<BatchRecord>]) -> bool {
    let mut records = behind.iter().flatten();
    let Some(first) = records.clone().next() else {
        return false;
    };
    let broken = order
        .number
        .map_or_else(|| first.number.saturating_sub(1), |last| last + 1);
    records.any(|record| record.synced_through >= broken)
}

/// Finds all whole batches of `content`, which begins at `offset` of its file.
pub(super) fn scan(
    content: &[u8],
    offset: u64,
    visit: &mut dyn FnMut(EntryChange<'_>),
    take: &mut dyn FnMut(ParsedBatch),
) -> io::Result<()> {
    let mut at = 0;
    while let Some(skipped) = content[at..].windows(14).position(looks_like_a_batch) {
        at += skipped;
        let length = offset + content.len() as u64;
        let mut batches = ParsedBatches::new(&content[at..], offset + at as u64, length);
        // Read twice, as `visit` would get items before it is known whether the batch is whole.
        match batches.next(&mut |_| {})? {
            ParseOutcome::Whole(batch) => {
                ParsedBatches::new(&content[at..], batch.offset, length).next(visit)?;
                at = (batch.end - offset) as usize;
                take(batch);
            }
            _ => at += 1,
        }
    }
    Ok(())
}

fn looks_like_a_batch(bytes: &[u8]) -> bool {
    bytes[0] == START && bytes[13] == ITEM && bytes[1..5] != [0; 4]
}

/// All journals, the oldest first.
pub(super) fn journals(database: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(database) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let number: Option<u64> = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".jnl"))
            .and_then(|number| number.parse().ok());
        if let Some(number) = number {
            found.push((number, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

pub(super) fn open(path: &Path) -> io::Result<ParsedBatches<BufReader<File>>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok(ParsedBatches::new(
        BufReader::with_capacity(1 << 16, file),
        0,
        length,
    ))
}

/// The bytes from an offset to the last one that is not zero.
fn content_bytes(path: &Path, offset: u64) -> io::Result<u64> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut buffer = vec![0; 1 << 16];
    let (mut read, mut content) = (0, 0);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(content);
        }
        if let Some(last) = buffer[..count].iter().rposition(|byte| *byte != 0) {
            content = read + last as u64 + 1;
        }
        read += count as u64;
    }
}

pub(super) fn content_from(path: &Path, offset: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut content = Vec::new();
    file.take(content_bytes(path, offset)?)
        .read_to_end(&mut content)?;
    Ok(content)
}
