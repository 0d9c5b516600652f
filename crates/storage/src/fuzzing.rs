//! Entry points of the fuzz targets: any bytes as a stored record, and as journals.
//!
//! Checksums keep almost every change of a journal from being read any further. So a journal is
//! read twice: as it is, and with checksums that are right.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use crate::engine::journal::{cut_at, prepare, read_all, survey};
use crate::record;

/// Reads bytes as the value of a row's key.
///
/// A value that can be read, and is then written, reads as the same value again.
///
/// # Panics
/// If that does not hold.
pub fn record(bytes: &[u8]) {
    if let Ok(read) = record::decode(Bytes::copy_from_slice(bytes)) {
        let again = record::decode(record::encode(&read));
        assert_eq!(again.ok(), Some(read));
    }
}

/// Reads bytes as the journals of a database: as one journal, and as two that follow each other.
///
/// A start takes the journals, and finds them whole when it looks again; or it refuses them, and
/// finds no fault in what is left after they were cut.
///
/// # Panics
/// If that does not hold, or no temporary file can be written.
pub fn journals(bytes: &[u8]) {
    let mended = with_right_checksums(bytes);
    for content in [bytes, &mended.bytes] {
        start_with(&[content]);
    }
    let (older, newer) = mended.bytes.split_at(mended.first_end);
    start_with(&[older, newer]);
}

fn start_with(journals: &[&[u8]]) {
    let directory = in_memory();
    let path = directory.path();
    for (number, content) in journals.iter().enumerate() {
        fs::write(path.join(format!("{number}.jnl")), content).expect("a temporary file");
    }
    match prepare(path, &mut |_| {}).expect("the files can be read") {
        Ok(prepared) => assert_whole(path, Some(prepared.last_number)),
        Err(damage) => {
            let visited = read_all(path, &damage, &mut |_, _, _| {});
            visited.expect("the files can be read");
            cut_at(path, &damage).expect("the files can be cut");
            assert_whole(path, None);
        }
    }
}

fn assert_whole(path: &Path, last_number: Option<u64>) {
    let again = survey(path).expect("the files can be read");
    assert!(again.torn.is_none() && again.damage.is_none(), "{again:?}");
    assert!(last_number.is_none_or(|number| number == again.last_number));
}

/// A journal whose batches have the checksums that they need.
struct ChecksummedJournal {
    bytes: Vec<u8>,
    /// The end of the first batch; 0 if there is none.
    first_end: usize,
}

fn with_right_checksums(bytes: &[u8]) -> ChecksummedJournal {
    let mut bytes = bytes.to_vec();
    let mut first_end = 0;
    let mut at = 0;
    while let Some((items, end)) = items_of_batch(&bytes, at) {
        let checksum = xxh3_64(&bytes[items..end]).to_le_bytes();
        let Some(place) = bytes[end + 1..].first_chunk_mut() else {
            break;
        };
        *place = checksum;
        // The end of the items, its tag, the checksum, and the trailer.
        at = end + 1 + checksum.len() + 4;
        if first_end == 0 {
            first_end = at.min(bytes.len());
        }
    }
    ChecksummedJournal { bytes, first_end }
}

/// The offsets of the items of a batch and of the tag after them, as the module `journal` draws
/// them.
fn items_of_batch(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let batch = bytes.get(at..)?;
    let [1, count @ ..] = *batch.first_chunk::<5>()? else {
        return None;
    };
    let items = at + 1 + 4 + 8;
    let mut end = items;
    for _ in 0..u32::from_le_bytes(count) {
        let item = bytes.get(end..)?;
        end += match item.first()? {
            2 => {
                let head = item.first_chunk::<21>()?;
                let key = u16::from_le_bytes([head[11], head[12]]);
                let stored = u32::from_le_bytes([head[17], head[18], head[19], head[20]]);
                head.len() + usize::from(key) + stored as usize
            }
            4 => 9,
            _ => return None,
        };
    }
    (*bytes.get(end)? == 3).then_some((items, end))
}

/// A temporary directory, in memory where the system has a place for that.
fn in_memory() -> tempfile::TempDir {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    directory.expect("a temporary directory")
}
