//! Forgetting: expired and deleted cells, rows and ranges go once no read sees them any more and
//! they have been dead for the table's `gc_grace_seconds`.
//!
//! Rows are trimmed when they are written anyway, and when the engine rewrites its files; there
//! whatever happens must be seen by no read, as the engine pays no regard to snapshots.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use schema::TableId;

use crate::active_reads::OldestRead;
use crate::engine::{CompactionFilterFn, EntryLocation, EntryValue, EntryVerdict, SpaceId};
use crate::key::term::StoredEntry;
use crate::key::{RANGE, ROW};
use crate::layout::{ResolvedSchema, TableSchemas};
use crate::ranges;
use crate::record::{self, RowRecord};

/// The rules by which compactions of the engine drop records.
pub(crate) struct PurgeRules {
    horizon: Arc<OldestRead>,
    tables: ArcSwap<TableSchemas>,
    /// Tables in which anything was ever written with a time to live. In others large values need
    /// not be read to know that they stay.
    expiring: RwLock<HashSet<TableId>>,
}

impl PurgeRules {
    pub(crate) fn new(horizon: Arc<OldestRead>) -> Arc<PurgeRules> {
        Arc::new(PurgeRules {
            horizon,
            tables: ArcSwap::default(),
            expiring: RwLock::default(),
        })
    }

    pub(crate) fn set_schema(&self, schema: &ResolvedSchema) {
        self.tables.store(Arc::clone(schema.by_id()));
    }

    pub(crate) fn is_expiring(&self, table: TableId) -> bool {
        self.expiring
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&table)
    }

    pub(crate) fn set_expiring(&self, tables: impl IntoIterator<Item = TableId>) {
        self.expiring
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(tables);
    }

    /// The function that decides about the records of one compaction; `None` if the space belongs
    /// to no table, or if it is in memory and only its files are rewritten: what they have and the
    /// memory has not, or the other way round, would make rows go or come at the next start.
    pub(crate) fn compaction_filter(
        &self,
        space: SpaceId,
        of: EntryLocation,
    ) -> Option<CompactionFilterFn> {
        let tables = self.tables.load();
        let mut indexes = tables.values().flat_map(|table| &table.indexes);
        if indexes.any(|index| index.space == space) {
            return Some(self.entries_filter());
        }
        let table = tables.get(&space.table());
        let table = Arc::clone(table.filter(|table| table.space == space)?);
        if table.table.is_in_memory() && of == EntryLocation::Files {
            return None;
        }
        let is_expiring = self.is_expiring(table.table.id);
        let before_s = self.horizon.unread_through_s() - i64::from(table.table.gc_grace_s);
        Some(Box::new(move |key: &[u8], stored: &EntryValue<'_>| {
            if stored.is_separated() && !is_expiring {
                return EntryVerdict::Keep;
            }
            let kind = table.keys.split(key).map(|parts| parts.kind);
            let (Some(kind), Some(value)) = (kind, stored.value()) else {
                return EntryVerdict::Keep;
            };
            if kind == RANGE {
                return if ranges::is_forgettable(&value, before_s) {
                    EntryVerdict::Remove
                } else {
                    EntryVerdict::Keep
                };
            }
            // A record that can't be read stays, so that its next reader reports it.
            let Ok(mut record) = record::decode(value) else {
                return EntryVerdict::Keep;
            };
            if !trim(&mut record, kind, before_s) {
                EntryVerdict::Keep
            } else if record.is_empty() {
                EntryVerdict::Remove
            } else {
                EntryVerdict::Replace(record::encode(&record))
            }
        }))
    }

    /// The function that drops the entries of expired values, which no read looks for any more.
    fn entries_filter(&self) -> CompactionFilterFn {
        let seen_by_none_s = self.horizon.unread_through_s();
        Box::new(move |_: &[u8], stored: &EntryValue<'_>| {
            let value = stored.value();
            let entry = value.and_then(|value| StoredEntry::read(&value));
            match entry.is_some_and(|entry| entry.is_expired(seen_by_none_s)) {
                true => EntryVerdict::Remove,
                false => EntryVerdict::Keep,
            }
        })
    }
}

/// Whether there was anything to forget.
fn trim(record: &mut RowRecord, kind: u8, before_s: i64) -> bool {
    if kind == ROW {
        record.forget(before_s)
    } else {
        record.forget_of_head(before_s)
    }
}
