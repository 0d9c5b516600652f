//! Reads and writes the file `rows` of a generation, which has the keys of the index and the state
//! of its rows.
//!
//! It is a [file of frames](super::frames). The first frame is of kind 1. Then frames of the other
//! kinds follow, any number of each in any order:
//!
//! ```text
//! kind  payload
//! 1     number of the generation (u64), seed of the vectors' hashes (u64)
//! 2     rows: id (u32), hash of the vector (u64), write time in microseconds (i64), expiry in
//!       seconds or 0 (u32), length of the key (u32), key
//! 3     ids that belong to no row, whatever frames of kind 2 say (u32 each)
//! 4     keys of rows to be read again: length (u32), key
//! 5     values of filter columns, of rows that come before: id (u32), time in seconds at which
//!       the row has to be read again or 0 (u32); for each column the length (u32) and the value,
//!       or 2^32 - 1 for null
//! ```

use std::path::Path;

use bytes::Bytes;
use filter_columns::{FilterColumns, IdSet};
use value::CqlType;

use super::fault::PersistenceError;
use super::frames::{FrameReader, FrameWriter};
use crate::items::{RestoredRows, SavedRow, SavedRows};
use crate::keys::{KeySchema, KeyTable, PrimaryKey};

const HEADER: u32 = 1;
const ROWS: u32 = 2;
const TOUCHED: u32 = 3;
const UNREAD: u32 = 4;
const FILTERS: u32 = 5;

/// The length that means a null.
const NULL: u32 = u32::MAX;

/// The bytes of a row in addition to its key.
const ROW_BYTES: usize = 28;

/// About the number of bytes in a frame.
const FRAME_BYTES: usize = 1 << 20;

/// Writes the file.
pub(crate) struct RowsWriter {
    frames: FrameWriter,
}

impl RowsWriter {
    /// Makes the file of a generation; fails if it exists. `hash_seed` is the seed of the vectors'
    /// hashes.
    pub(crate) fn create(
        path: &Path,
        generation: u64,
        hash_seed: u64,
    ) -> Result<RowsWriter, PersistenceError> {
        let mut frames = FrameWriter::create(path)?;
        let header = [generation.to_le_bytes(), hash_seed.to_le_bytes()].concat();
        frames.put(HEADER, &header)?;
        Ok(RowsWriter { frames })
    }

    /// Adds rows, [encoded](put_row).
    pub(crate) fn put_rows(&mut self, encoded: &[u8]) -> Result<(), PersistenceError> {
        self.frames.put(ROWS, encoded)
    }

    /// Appends values of filter columns in the form of [`put_filters`]. Their rows come before.
    pub(crate) fn put_filters(&mut self, encoded: &[u8]) -> Result<(), PersistenceError> {
        self.frames.put(FILTERS, encoded)
    }

    /// Adds the rows that don't count and those to be read again. Ends the file and waits until it
    /// is on the disk.
    pub(crate) fn finish(mut self, rows: &SavedRows) -> Result<(), PersistenceError> {
        for ids in rows.touched.chunks(FRAME_BYTES / size_of::<u32>()) {
            let ids: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            self.frames.put(TOUCHED, &ids)?;
        }
        let mut payload = Vec::new();
        for key in &rows.unread {
            put_key(&mut payload, key.as_bytes());
            if payload.len() >= FRAME_BYTES {
                self.frames.put(UNREAD, &payload)?;
                payload.clear();
            }
        }
        if !payload.is_empty() {
            self.frames.put(UNREAD, &payload)?;
        }
        self.frames.finish()
    }
}

/// The number of bytes that the rows of these keys take as they are [encoded](put_row).
pub(crate) fn encoded_bytes(keys: &KeyTable) -> u64 {
    (ROW_BYTES * keys.len() + keys.encoded_bytes()) as u64
}

/// Adds a row to the payload of a frame.
pub(crate) fn put_row(payload: &mut Vec<u8>, row: SavedRow, key: &[u8]) {
    payload.extend(row.id.to_le_bytes());
    payload.extend(row.value_hash.to_le_bytes());
    payload.extend(row.written_us.to_le_bytes());
    payload.extend(row.expires_s.to_le_bytes());
    put_key(payload, key);
}

/// Appends the values of the filter columns of a row to a payload of such values.
pub(crate) fn put_filters(payload: &mut Vec<u8>, row: SavedRow, filters: &FilterColumns) {
    payload.extend(row.id.to_le_bytes());
    payload.extend(row.changes_s.to_le_bytes());
    for column in 0..filters.types().len() {
        match filters.value(column, row.id) {
            Some(value) => put_key(payload, &value),
            None => payload.extend(NULL.to_le_bytes()),
        }
    }
}

fn put_key(payload: &mut Vec<u8>, key: &[u8]) {
    // A key has a few columns of at most 64 KiB, so its length fits.
    payload.extend((key.len() as u32).to_le_bytes());
    payload.extend(key);
}

/// Reads the file. `held` are the ids whose vectors the index holds. Rows that have expired by
/// `now_s`, seconds since the epoch, are to be read again.
pub(crate) fn read(
    path: &Path,
    generation: u64,
    schema: &KeySchema,
    filters: Vec<CqlType>,
    held: &IdSet,
    now_s: u32,
) -> Result<RestoredRows, PersistenceError> {
    let columns = filters.len();
    // The file is read twice, as frames at its end say which rows count.
    let mut touched = IdSet::default();
    let mut unread = Vec::new();
    let hash_seed = each_frame(path, generation, |kind, payload| match kind {
        TOUCHED => payload.u32().map(|id| {
            touched.insert(id);
        }),
        UNREAD => payload.key(schema).map(|key| unread.push(key)),
        ROWS => payload.row(schema).map(drop),
        FILTERS => payload.filters(columns).map(drop),
        _ => None,
    })?;
    let mut restored = RestoredRows::new(schema, filters, hash_seed, now_s);
    each_frame(path, generation, |kind, payload| {
        if kind == FILTERS {
            let (id, changes_s, values) = payload.filters(columns)?;
            let sound = touched.contains(id) || restored.put_filters(id, changes_s, &values);
            return sound.then_some(());
        }
        if kind != ROWS {
            payload.0 = &[];
            return Some(());
        }
        let (row, key) = payload.row(schema)?;
        let counts = !touched.contains(row.id);
        let sound = !counts || (held.contains(row.id) && restored.put(row, key));
        sound.then_some(())
    })?;
    unread.into_iter().for_each(|key| restored.put_unread(key));
    Ok(restored)
}

/// Passes the payload of every frame after the header to `take`, until `take` has consumed it.
/// Returns the seed of the hashes. `take` returns `None` if the payload can't be right.
fn each_frame(
    path: &Path,
    generation: u64,
    mut take: impl FnMut(u32, &mut UnreadPayload<'_>) -> Option<()>,
) -> Result<u64, PersistenceError> {
    let mut frames = FrameReader::open(path)?;
    let Some((HEADER, header)) = frames.next()? else {
        return Err(frames.damaged("it has no header"));
    };
    let mut header = UnreadPayload(&header);
    let numbers = header.u64().zip(header.u64());
    let Some((_, hash_seed)) = numbers.filter(|(number, _)| *number == generation) else {
        return Err(frames.damaged("it is of another generation"));
    };
    while let Some((kind, payload)) = frames.next()? {
        let mut payload = UnreadPayload(&payload);
        while !payload.0.is_empty() {
            if take(kind, &mut payload).is_none() {
                return Err(frames.damaged(
                    "a frame does not hold what its kind says, or names a row twice, or one without a vector",
                ));
            }
        }
    }
    Ok(hash_seed)
}

/// The part of a payload that is not yet read.
struct UnreadPayload<'a>(&'a [u8]);

impl UnreadPayload<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn key(&mut self, schema: &KeySchema) -> Option<PrimaryKey> {
        let length = self.u32()? as usize;
        let (key, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        schema.saved_key(key)
    }

    /// An id, the time at which its row has to be read again, and the values of its filter columns.
    fn filters(&mut self, columns: usize) -> Option<(u32, u32, Vec<Option<Bytes>>)> {
        let (id, changes_s) = (self.u32()?, self.u32()?);
        let values = (0..columns).map(|_| match self.u32()? {
            NULL => Some(None),
            length => {
                let (value, rest) = self.0.split_at_checked(length as usize)?;
                self.0 = rest;
                Some(Some(Bytes::copy_from_slice(value)))
            }
        });
        Some((id, changes_s, values.collect::<Option<_>>()?))
    }

    fn row(&mut self, schema: &KeySchema) -> Option<(SavedRow, PrimaryKey)> {
        let mut row = SavedRow {
            id: self.u32()?,
            value_hash: self.u64()?,
            written_us: self.take().map(i64::from_le_bytes)?,
            expires_s: self.u32()?,
            changes_s: 0,
        };
        // Only values of filter columns make another time of it.
        row.changes_s = row.expires_s;
        Some((row, self.key(schema)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::text_schema;

    fn row(id: u32) -> SavedRow {
        SavedRow {
            id,
            value_hash: u64::from(id) << 40,
            written_us: -7,
            expires_s: 0,
            changes_s: 0,
        }
    }

    fn held(ids: impl IntoIterator<Item = u32>) -> IdSet {
        let mut held = IdSet::default();
        ids.into_iter().for_each(|id| {
            held.insert(id);
        });
        held
    }

    #[test]
    fn rows_go_in_and_come_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let schema = text_schema(1, 1);
        let key = |name: &str| schema.encode([name.as_bytes(), b"c".as_slice()]);
        let mut writer = RowsWriter::create(&path, 3, 99).unwrap();
        let mut payload = Vec::new();
        for (id, name) in [(0, "a"), (2, "b"), (5, "c")] {
            put_row(&mut payload, row(id), key(name).as_bytes());
        }
        writer.put_rows(&payload).unwrap();
        let saved = SavedRows {
            touched: vec![2],
            unread: vec![key("x"), key("b")],
        };
        writer.finish(&saved).unwrap();

        let restored = read(&path, 3, &schema, Vec::new(), &held([0, 5, 9]), 0).unwrap();
        let (items, keys, unread) = restored.finish();
        let of_row = payload.len() as u64 / 3;
        assert_eq!(
            encoded_bytes(&keys),
            2 * of_row,
            "rows 0 and 5, whose keys are as long"
        );
        assert_eq!(unread.missing, [key("x"), key("b")]);
        assert_eq!(items.hash_seed(), 99);
        let mut rows = Vec::new();
        items.saved_rows(&keys, 0, 100, |row, key| rows.push((row, key.to_vec())));
        let expected = [(0, "a"), (5, "c")];
        let expected = expected.map(|(id, name)| (row(id), key(name).as_bytes().to_vec()));
        assert_eq!(rows, expected);

        let refused = |generation, held| {
            let refused = read(&path, generation, &schema, Vec::new(), &held, 0).map(|_| ());
            refused.unwrap_err().to_string()
        };
        assert!(refused(4, held([0, 5])).contains("another generation"));
        assert!(refused(3, held([0])).contains("one without a vector"));
        let other = text_schema(1, 2);
        let error = read(&path, 3, &other, Vec::new(), &held([0, 5]), 0).map(|_| ());
        let error = error.unwrap_err().to_string();
        assert!(error.contains("what its kind says"), "{error}");
    }
}
