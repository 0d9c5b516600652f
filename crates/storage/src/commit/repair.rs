//! Mends entries of secondary indexes that a comparison with the table found at fault
//! ([`crate::repair`]).
//!
//! The comparison only gives hints, as rows may have been written since. So the rows and entries
//! are read again, on the one thread that writes, and mended in one batch. No write comes between.

use std::cell::Cell;

use bytes::Bytes;
use schema::TableId;
use uuid::Uuid;

use super::Committer;
use crate::StorageError;
use crate::engine::EntryBatch;
use crate::entries::{self, IndexFault, SuspectKey};

/// Rows and entries of a secondary index that are to be looked at again.
pub(crate) struct IndexRepairRequest {
    pub table: TableId,
    /// The index, by its version.
    pub index: Uuid,
    pub suspects: Vec<SuspectKey>,
}

/// Bytes of rows after which no more suspects are looked at, as other writes wait.
const BYTES_AT_A_TIME: usize = 1 << 20;

/// The numbers of entries that were mended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexRepairOutcome {
    /// The suspects that were looked at: the first ones.
    pub looked_at: usize,
    /// Those that were not there.
    pub added: u64,
    /// Those that had another value.
    pub repaired: u64,
    /// Those whose row does not have the value.
    pub removed: u64,
}

impl Committer {
    pub(super) fn repair(
        &self,
        mending: &IndexRepairRequest,
    ) -> Result<IndexRepairOutcome, StorageError> {
        self.shared.check_writable()?;
        let schema = self.shared.schema();
        let table = schema.table(mending.table)?;
        let index = table.index(mending.index)?;
        let engine = &self.shared.engine;
        let moment = self.moment();
        let mut faults = Vec::new();
        let mut mended = IndexRepairOutcome::default();
        let bytes = Cell::new(0);
        let count = |record: Option<Bytes>| {
            bytes.update(|bytes| bytes + record.as_ref().map_or(0, Bytes::len));
            record
        };
        for suspect in &mending.suspects {
            if bytes.get() > BYTES_AT_A_TIME {
                break;
            }
            mended.looked_at += 1;
            match suspect {
                SuspectKey::Row(key) => {
                    if let Some(record) = count(engine.get(table.space, key)?) {
                        let entry = |entry: &[u8]| engine.get(index.space, entry);
                        let row = (&key[..], record);
                        faults.extend(entries::of_row(table, index, row, moment.now_s, entry)?);
                    }
                }
                SuspectKey::Entry(key) => {
                    if let Some(value) = engine.get(index.space, key)? {
                        let row = |row: &[u8]| Ok(count(engine.get(table.space, row)?));
                        let entry = (key.clone(), &value[..]);
                        faults.extend(entries::of_entry(table, index, entry, moment.now_s, row)?);
                    }
                }
            }
        }
        for fault in &faults {
            *match fault {
                IndexFault::Missing(..) => &mut mended.added,
                IndexFault::Differs(..) => &mut mended.repaired,
                IndexFault::Stale(_) => &mut mended.removed,
            } += 1;
        }
        let batch: EntryBatch = faults
            .into_iter()
            .map(|fault| fault.repair(index.space))
            .collect();
        if batch.is_empty() {
            return Ok(mended);
        }
        let committed = engine.commit(batch, self.sync(), moment.now_micros);
        committed.map_err(|error| {
            self.shared.note_write_failure(&error);
            self.shared.explain(&error)
        })?;
        Ok(mended)
    }
}
