//! A comparison of a secondary index with its table, a number of keys at a time.
//!
//! It goes over the rows first, for entries that they lack, and then over the entries, for those of
//! values that their rows do not have. Each step sees one moment, and holds no snapshot longer. A
//! write changes a row and its entries together, so what differs at one moment is a fault. It may
//! be mended or written over until somebody does something about it, so only the committer, which
//! looks again, changes anything ([`crate::commit`]).

use std::cell::Cell;
use std::ops::Bound;

use bytes::Bytes;
use uuid::Uuid;

use crate::StorageError;
use crate::entries::{self, SuspectKey};
use crate::key::ROW;
use crate::reader::TableView;

/// The keys that a step passes at most.
const KEYS_A_STEP: usize = 1_000;
/// Bytes of keys and values after which a step ends.
const BYTES_A_STEP: usize = 1 << 20;

/// A comparison of a secondary index with its table.
pub(super) struct IndexComparison {
    index: Uuid,
    pass: ComparedSide,
    /// The last key that was passed; empty at the beginning of a pass.
    after: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparedSide {
    Rows,
    Entries,
}

/// The outcome of one step of a comparison.
#[derive(Debug, Default)]
pub(super) struct ComparedKeys {
    /// The number of keys that were passed.
    pub keys: u64,
    /// The rows among them, dead ones included.
    pub rows: u64,
    /// The entries among them.
    pub entries: u64,
    /// Those with faults.
    pub suspects: Vec<SuspectKey>,
    /// Whether all is compared.
    pub is_done: bool,
}

impl IndexComparison {
    /// A comparison that begins with the first row.
    pub(super) fn new(index: Uuid) -> IndexComparison {
        IndexComparison {
            index,
            pass: ComparedSide::Rows,
            after: Bytes::new(),
        }
    }

    /// Takes a step. Does blocking file reads.
    pub(super) fn step(&mut self, view: &TableView) -> Result<ComparedKeys, StorageError> {
        let context = view.context();
        let (engine, snapshot) = (&context.engine, &context.snapshot);
        let (table, now_s) = (&context.table, context.now_s);
        let index = table.index(self.index)?;
        let space = match self.pass {
            ComparedSide::Rows => table.space,
            ComparedSide::Entries => index.space,
        };
        let range = (Bound::Excluded(self.after.to_vec()), Bound::Unbounded);
        let mut compared = ComparedKeys::default();
        let bytes = Cell::new(0);
        let get = |space, key: &[u8]| {
            let value = engine.get_at(snapshot, space, key)?;
            bytes.update(|bytes| bytes + value.as_ref().map_or(0, Bytes::len));
            Ok(value)
        };
        for stored in engine.scan_at(snapshot, space, range)? {
            let (key, value) = stored?;
            bytes.update(|bytes| bytes + key.len() + value.len());
            self.after = key.clone();
            compared.keys += 1;
            if self.pass == ComparedSide::Rows {
                let kind = table.keys.split(&key).map(|parts| parts.kind);
                compared.rows += u64::from(kind == Some(ROW));
                let entry = |entry: &[u8]| get(index.space, entry);
                if !entries::of_row(table, index, (&key, value), now_s, entry)?.is_empty() {
                    compared.suspects.push(SuspectKey::Row(key));
                }
            } else {
                compared.entries += 1;
                let row = |row: &[u8]| get(table.space, row);
                let fault = entries::of_entry(table, index, (key.clone(), &value), now_s, row)?;
                compared
                    .suspects
                    .extend(fault.map(|_| SuspectKey::Entry(key)));
            }
            if compared.keys >= KEYS_A_STEP as u64 || bytes.get() > BYTES_A_STEP {
                return Ok(compared);
            }
        }
        compared.is_done = self.pass == ComparedSide::Entries;
        (self.pass, self.after) = (ComparedSide::Entries, Bytes::new());
        Ok(compared)
    }
}
