//! What a batch has changed so far, over what the engine holds: reads of the committer see both.
//!
//! Each write gets its own overlay over the batch's, which takes it in if the write succeeds.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::sweep::Sweep;
use crate::StorageError;
use crate::catalog::TableId;
use crate::engine::{Batch, Engine, SpaceId};
use crate::key::{self, HEADER, RANGE, ROW};
use crate::ranges::RangeDeletions;
use crate::record::{self, Record};
use crate::schema::TableSchema;

#[derive(Default)]
pub(super) struct Changes {
    /// By whole key; an empty record removes the key.
    records: HashMap<SpaceId, HashMap<Vec<u8>, Record>>,
    /// By partition.
    ranges: HashMap<(SpaceId, Vec<u8>), RangeDeletions>,
    /// Tables that got anything with a time to live.
    pub(super) expiring: HashSet<TableId>,
    /// What deletions of partitions and ranges leave to be removed.
    pub(super) sweeps: Vec<Sweep>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.ranges.is_empty()
    }

    fn record(&self, space: SpaceId, key: &[u8]) -> Option<&Record> {
        self.records.get(&space)?.get(key)
    }

    /// Takes in what a write changed.
    pub(super) fn absorb(&mut self, write: Changes) {
        for (space, records) in write.records {
            self.records.entry(space).or_default().extend(records);
        }
        self.ranges.extend(write.ranges);
        self.expiring.extend(write.expiring);
        self.sweeps.extend(write.sweeps);
    }

    /// The batch that carries the changes out.
    pub(super) fn into_batch(self, engine: &Engine) -> Result<Batch, StorageError> {
        let mut batch = Batch::new();
        for (space, records) in self.records {
            for (key, record) in records {
                let value = (!record.is_empty()).then(|| record::encode(&record));
                batch.push((space, key.into(), value));
            }
        }
        for ((space, partition), ranges) in self.ranges {
            let stored = stored_ranges(engine, space, &partition)?;
            for (start, _) in stored.entries() {
                if ranges.value_at(start).is_none() {
                    batch.push((space, key::join(&partition, RANGE, start)?.into(), None));
                }
            }
            for (start, value) in ranges.entries() {
                if stored.value_at(start).as_ref() != Some(&value) {
                    let key = key::join(&partition, RANGE, start)?;
                    batch.push((space, key.into(), Some(value)));
                }
            }
        }
        Ok(batch)
    }
}

/// The view of one write.
pub(super) struct Overlay<'a> {
    engine: &'a Engine,
    batch: &'a Changes,
    pub(super) write: Changes,
}

impl<'a> Overlay<'a> {
    pub(super) fn new(engine: &'a Engine, batch: &'a Changes) -> Overlay<'a> {
        Overlay {
            engine,
            batch,
            write: Changes::default(),
        }
    }

    /// The record under a key; an empty one if there is none.
    fn get(&self, space: SpaceId, key: &[u8]) -> Result<Record, StorageError> {
        let pending = self
            .write
            .record(space, key)
            .or_else(|| self.batch.record(space, key));
        if let Some(record) = pending {
            return Ok(record.clone());
        }
        match self.engine.get(space, key)? {
            Some(bytes) => record::decode(bytes),
            None => Ok(Record::default()),
        }
    }

    pub(super) fn put(&mut self, space: SpaceId, key: Vec<u8>, record: Record) {
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
    ) -> Result<Record, StorageError> {
        if !table.has_heads() {
            return Ok(Record::default());
        }
        self.get(table.space, &key::join(partition, HEADER, &[])?)
    }

    pub(super) fn put_head(
        &mut self,
        table: &TableSchema,
        partition: &[u8],
        head: Record,
    ) -> Result<(), StorageError> {
        self.put(table.space, key::join(partition, HEADER, &[])?, head);
        Ok(())
    }

    pub(super) fn row(
        &self,
        table: &TableSchema,
        partition: &[u8],
        suffix: &[u8],
    ) -> Result<Record, StorageError> {
        self.get(table.space, &key::join(partition, ROW, suffix)?)
    }

    pub(super) fn ranges(
        &self,
        table: &TableSchema,
        partition: &[u8],
    ) -> Result<RangeDeletions, StorageError> {
        let id = (table.space, partition.to_vec());
        let pending = self
            .write
            .ranges
            .get(&id)
            .or_else(|| self.batch.ranges.get(&id));
        match pending {
            Some(ranges) => Ok(ranges.clone()),
            None => stored_ranges(self.engine, table.space, partition),
        }
    }

    pub(super) fn put_ranges(
        &mut self,
        table: &TableSchema,
        partition: &[u8],
        ranges: RangeDeletions,
    ) {
        self.write
            .ranges
            .insert((table.space, partition.to_vec()), ranges);
    }

    /// The greatest timestamp of a deletion that covers a row from outside; `i64::MIN` for none.
    pub(super) fn deleted_to(
        &self,
        table: &TableSchema,
        partition: &[u8],
        head: &Record,
        suffix: &[u8],
    ) -> Result<i64, StorageError> {
        let mut deleted_to = head
            .deletion
            .map_or(i64::MIN, |deletion| deletion.timestamp);
        if head.has_ranges
            && let Some(deletion) = self.ranges(table, partition)?.covering(suffix)
        {
            deleted_to = deleted_to.max(deletion.timestamp);
        }
        Ok(deleted_to)
    }
}

fn stored_ranges(
    engine: &Engine,
    space: SpaceId,
    partition: &[u8],
) -> Result<RangeDeletions, StorageError> {
    RangeDeletions::read(engine, &engine.snapshot()?, space, partition)
}

/// Used where a key and its value are known to be new.
pub(super) fn put_encoded(batch: &mut Batch, space: SpaceId, key: Vec<u8>, record: &Record) {
    batch.push((space, Bytes::from(key), Some(record::encode(record))));
}
