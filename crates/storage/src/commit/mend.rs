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
use crate::engine::Batch;
use crate::entries::{self, Fault, Suspect};

/// Rows and entries of a secondary index that are to be looked at again.
pub(crate) struct Mending {
    pub table: TableId,
    /// The index, by its version.
    pub index: Uuid,
    pub suspects: Vec<Suspect>,
}

/// Bytes of rows after which no more suspects are looked at, as other writes wait.
const BYTES_AT_A_TIME: usize = 1 << 20;

/// The numbers of entries that were mended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mended {
    /// The suspects that were looked at: the first ones.
    pub looked_at: usize,
    /// Those that were not there.
    pub added: u64,
    /// Those that had another value.
    pub mended: u64,
    /// Those whose row does not have the value.
    pub removed: u64,
}

impl Committer {
    pub(super) fn mend(&self, mending: &Mending) -> Result<Mended, StorageError> {
        self.shared.check_writable()?;
        let schema = self.shared.schema();
        let table = schema.table(mending.table)?;
        let index = table.index(mending.index)?;
        let engine = &self.shared.engine;
        let moment = self.moment();
        let mut faults = Vec::new();
        let mut mended = Mended::default();
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
                Suspect::Row(key) => {
                    if let Some(record) = count(engine.get(table.space, key)?) {
                        let entry = |entry: &[u8]| engine.get(index.space, entry);
                        let row = (&key[..], record);
                        faults.extend(entries::of_row(table, index, row, moment.now_s, entry)?);
                    }
                }
                Suspect::Entry(key) => {
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
                Fault::Lacks(..) => &mut mended.added,
                Fault::Differs(..) => &mut mended.mended,
                Fault::IsStale(_) => &mut mended.removed,
            } += 1;
        }
        let batch: Batch = faults
            .into_iter()
            .map(|fault| fault.mend(index.space))
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
