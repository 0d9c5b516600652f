//! The committer's reads see the changes of its batch so far, laid over the state of the engine.
//!
//! Each write has an overlay of its own over the batch's. The batch takes it in if the write
//! succeeds.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use schema::TableId;

use super::pending_ranges::PendingRanges;
use super::sweep::DeletionSweep;
use crate::StorageError;
use crate::engine::{Engine, EntryBatch, ResidentChange, SpaceId};
use crate::key::{self, HEADER, ROW};
use crate::layout::{ResolvedSchema, TableSchema};
use crate::record::{self, RowRecord};

#[derive(Default)]
pub(super) struct UncommittedChanges {
    /// The changed records by whole key; an empty record removes the key.
    records: HashMap<SpaceId, HashMap<Vec<u8>, RowRecord>>,
    pub(super) ranges: PendingRanges,
    /// Tables that got data with a time to live.
    pub(super) expiring: HashSet<TableId>,
    /// The changed entries of secondary indexes by whole key; `None` removes the key.
    entries: HashMap<SpaceId, HashMap<Vec<u8>, Option<Bytes>>>,
    /// The keys of the entries of the times at which changed rows expire, whether they changed or
    /// not, by the space of the entries.
    pub(super) times: HashMap<SpaceId, Vec<Vec<u8>>>,
    /// The sweeps of new deletions of partitions and ranges.
    pub(super) sweeps: Vec<DeletionSweep>,
    /// Bytes of the changed records and entries, as they are written.
    bytes: usize,
}

impl UncommittedChanges {
    fn record(&self, space: SpaceId, key: &[u8]) -> Option<&RowRecord> {
        self.records.get(&space)?.get(key)
    }

    /// The changed records with their keys.
    pub(super) fn changed_records(&self) -> impl Iterator<Item = (SpaceId, &[u8], &RowRecord)> {
        let spaces = self.records.iter();
        spaces.flat_map(|(space, records)| {
            let records = records.iter();
            records.map(|(key, record)| (*space, &key[..], record))
        })
    }

    /// Bytes of the changed records and entries, as they are written.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Puts an entry of a secondary index, or removes it.
    pub(super) fn put_entry(&mut self, space: SpaceId, key: Vec<u8>, value: Option<Bytes>) {
        self.bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
        self.entries.entry(space).or_default().insert(key, value);
    }

    /// Notes the entry of the time at which a changed row expires.
    pub(super) fn note_time(&mut self, space: SpaceId, key: Vec<u8>) {
        self.times.entry(space).or_default().push(key);
    }

    /// The bytes by which the changes grow the tables in memory, after those of a batch if there is
    /// one.
    pub(super) fn resident_growth(
        &self,
        engine: &Engine,
        schema: &ResolvedSchema,
        batch: Option<&UncommittedChanges>,
    ) -> Result<i64, StorageError> {
        let is_resident = |space: SpaceId| {
            let table = schema.table(space.table());
            table.is_ok_and(|table| table.table.is_in_memory())
        };
        let length =
            |record: &RowRecord| (!record.is_empty()).then(|| record::encode(record).len());
        let records = self.changed_records();
        let records = records.filter(|(space, ..)| is_resident(*space));
        let records = records.map(|(space, key, record)| ResidentChange {
            space,
            key: key.into(),
            before: batch.and_then(|batch| batch.record(space, key)).map(length),
            value: length(record),
        });
        let ranges = self
            .ranges
            .changed(is_resident, batch.map(|of| &of.ranges))?;
        Ok(engine.resident_growth(records.chain(ranges)))
    }

    /// Takes in the changes of a write.
    pub(super) fn absorb(&mut self, write: UncommittedChanges) {
        self.bytes += write.bytes;
        for (space, records) in write.records {
            let known = self.records.entry(space).or_default();
            for (key, record) in records {
                let bytes = key.len() + record.bytes();
                self.bytes += bytes;
                if let Some(replaced) = known.insert(key, record) {
                    self.bytes = self.bytes.saturating_sub(replaced.bytes());
                }
            }
        }
        for (space, entries) in write.entries {
            self.entries.entry(space).or_default().extend(entries);
        }
        for (space, keys) in write.times {
            self.times.entry(space).or_default().extend(keys);
        }
        self.ranges.absorb(write.ranges);
        self.expiring.extend(write.expiring);
        self.sweeps.extend(write.sweeps);
    }

    /// The batch that carries the changes out.
    pub(super) fn into_batch(self) -> Result<EntryBatch, StorageError> {
        let mut batch = EntryBatch::new();
        for (space, records) in self.records {
            for (key, record) in records {
                let value = (!record.is_empty()).then(|| record::encode(&record));
                batch.push((space, key.into(), value));
            }
        }
        for (space, entries) in self.entries {
            let entries = entries.into_iter();
            batch.extend(entries.map(|(key, value)| (space, key.into(), value)));
        }
        self.ranges.write_to(&mut batch)?;
        Ok(batch)
    }
}

/// The view of one write: its own changes, over those of the batch, over the engine.
pub(super) struct WriteOverlay<'a> {
    pub(super) engine: &'a Engine,
    pub(super) batch: &'a UncommittedChanges,
    pub(super) write: UncommittedChanges,
    /// The records of the engine that the write has read: each is read once.
    read: RefCell<HashMap<SpaceId, HashMap<Vec<u8>, RowRecord>>>,
    /// Bytes of the records in `read`, and their number.
    read_bytes: Cell<usize>,
    read_records: Cell<usize>,
    /// The most that `read_bytes` may be, unless only one record is read.
    read_bytes_max: usize,
}

impl<'a> WriteOverlay<'a> {
    pub(super) fn new(engine: &'a Engine, batch: &'a UncommittedChanges) -> WriteOverlay<'a> {
        WriteOverlay::bounded(engine, batch, usize::MAX)
    }

    /// A view for a write that may look at so many bytes of stored records.
    pub(super) fn bounded(
        engine: &'a Engine,
        batch: &'a UncommittedChanges,
        read_bytes_max: usize,
    ) -> WriteOverlay<'a> {
        WriteOverlay {
            engine,
            batch,
            write: UncommittedChanges::default(),
            read: RefCell::default(),
            read_bytes: Cell::new(0),
            read_records: Cell::new(0),
            read_bytes_max,
        }
    }

    fn count_read(&self, bytes: usize) -> Result<(), StorageError> {
        let all = self.read_bytes.get() + bytes;
        self.read_bytes.set(all);
        self.read_records.update(|before| before + 1);
        // A single record passes whatever its size, or a row that has become too large could never
        // be deleted.
        if all > self.read_bytes_max && self.read_records.get() > 1 {
            return Err(StorageError::Invalid(format!(
                "The rows that a write changes or looks at hold more than {} MiB: make smaller \
                 batches",
                self.read_bytes_max >> 20
            )));
        }
        Ok(())
    }

    /// The record under a key; an empty one if there is none.
    fn get(&self, space: SpaceId, key: &[u8]) -> Result<RowRecord, StorageError> {
        match self.write.record(space, key) {
            Some(record) => Ok(record.clone()),
            None => self.before(space, key),
        }
    }

    /// The record under a key before the write; an empty one if there is none.
    pub(super) fn before(&self, space: SpaceId, key: &[u8]) -> Result<RowRecord, StorageError> {
        if let Some(record) = self.batch.record(space, key) {
            return Ok(record.clone());
        }
        let mut read = self.read.borrow_mut();
        let records = read.entry(space).or_default();
        if let Some(record) = records.get(key) {
            return Ok(record.clone());
        }
        let record = match self.engine.get(space, key)? {
            Some(bytes) => {
                self.count_read(bytes.len())?;
                record::decode_packed(bytes)?
            }
            None => RowRecord::default(),
        };
        records.insert(key.to_vec(), record.clone());
        Ok(record)
    }

    pub(super) fn put(&mut self, space: SpaceId, key: Vec<u8>, mut record: RowRecord) {
        record::pack(&mut record);
        self.write
            .records
            .entry(space)
            .or_default()
            .insert(key, record);
    }

    /// The head of a partition; an empty one where the table has none.
    pub(super) fn head(
        &self,
        table: &TableSchema,
        partition: &[u8],
    ) -> Result<RowRecord, StorageError> {
        if !table.has_heads() {
            return Ok(RowRecord::default());
        }
        self.get(table.space, &key::join(partition, HEADER, &[])?)
    }

    pub(super) fn put_head(
        &mut self,
        table: &TableSchema,
        partition: &[u8],
        head: RowRecord,
    ) -> Result<(), StorageError> {
        self.put(table.space, key::join(partition, HEADER, &[])?, head);
        Ok(())
    }

    pub(super) fn row(
        &self,
        table: &TableSchema,
        partition: &[u8],
        suffix: &[u8],
    ) -> Result<RowRecord, StorageError> {
        self.get(table.space, &key::join(partition, ROW, suffix)?)
    }

    /// The greatest timestamp of a deletion that covers a row from outside; `i64::MIN` for none.
    pub(super) fn deleted_to(
        &self,
        table: &TableSchema,
        partition: &[u8],
        head: &RowRecord,
        suffix: &[u8],
    ) -> Result<i64, StorageError> {
        let mut deleted_to = head
            .deletion
            .map_or(i64::MIN, |deletion| deletion.timestamp);
        if head.has_ranges
            && let Some(range) = self.range_over(table, partition, suffix)?
        {
            deleted_to = deleted_to.max(range.deletion.timestamp);
        }
        Ok(deleted_to)
    }
}

/// Adds a record to the batch under a key that is known to be new.
pub(super) fn put_encoded(
    batch: &mut EntryBatch,
    space: SpaceId,
    key: Vec<u8>,
    record: &RowRecord,
) {
    batch.push((space, Bytes::from(key), Some(record::encode(record))));
}
