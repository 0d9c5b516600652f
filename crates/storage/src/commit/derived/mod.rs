//! Derived rows: the rows of other tables that a write brings about, which commit with it.
//!
//! A kind of derived rows is a module here: the CDC log ([`log`]), and the entries of secondary
//! indexes ([`entries`]). The entries follow from the stored records before and after the write.
//! The log takes two steps, as another kind that goes by the changes would:
//!
//! 1. Of each change it says which states of the changed row it needs: the live cells before the
//!    write, those after it, or none. Each state is read once, whatever kinds need it ([`states`]).
//! 2. It makes its rows of the table's definition, the changes and these states.
//!
//! So a write that no kind needs to look at reads nothing here.

mod entries;
mod log;
mod states;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use bytes::Bytes;
use log::BatchSink;
use states::{ChangedRow, RequiredColumns, RowStates};

use super::apply::CommitTime;
use super::overlay::WriteOverlay;
use super::resolve::ResolvedMutation;
use crate::StorageError;
use crate::cdc::{CdcGate, WriteOrigin};
use crate::engine::EntryBatch;
use crate::layout::ResolvedSchema;
use crate::mutation::PartitionChange;

pub(super) use log::RaisedLogTimes;

/// The derivation of rows from one write, begun before the write is applied and finished after it.
pub(super) struct RowDerivation<'w> {
    mutations: &'w [ResolvedMutation<'w>],
    origin: WriteOrigin,
    states: RowStates<'w>,
}

/// The rows derived from one write.
pub(super) struct DerivedRows {
    /// The encoded rows.
    pub batch: EntryBatch,
    /// The logs among their tables.
    pub grown: RaisedLogTimes,
}

impl DerivedRows {
    /// Bytes of the rows.
    pub(super) fn bytes(&self) -> usize {
        let entries = self.batch.iter();
        let entry = entries.map(|(_, key, value)| key.len() + value.as_ref().map_or(0, Bytes::len));
        entry.sum()
    }
}

impl<'w> RowDerivation<'w> {
    /// Reads the rows as they are before the write, as far as a kind of derived rows needs them.
    pub(super) fn begin(
        mutations: &'w [ResolvedMutation<'w>],
        origin: WriteOrigin,
        overlay: &WriteOverlay<'_>,
        moment: CommitTime,
    ) -> Result<RowDerivation<'w>, StorageError> {
        // A deletion of more than a row makes its pre-images show all columns.
        let changes = || {
            let all = mutations
                .iter()
                .map(|of| of.changes.iter().map(move |change| (of, change)));
            all.flatten()
        };
        let deletes_more = changes().any(|(_, change)| {
            matches!(
                change,
                PartitionChange::DeletePartition { .. } | PartitionChange::DeleteRange { .. }
            )
        });
        let mut needed: Vec<(&ResolvedMutation<'w>, ChangedRow<'w>, RequiredColumns)> = Vec::new();
        let mut places = HashMap::new();
        for (mutation, change) in changes() {
            if let Some(row) = ChangedRow::of(mutation.table, change)
                && let Some(wanted) = log::needs(mutation.table, change).before
            {
                let wanted = if deletes_more {
                    RequiredColumns::All
                } else {
                    wanted
                };
                let place = (mutation.table.space, &mutation.partition[..], row);
                match places.entry(place) {
                    Entry::Vacant(vacant) => {
                        vacant.insert(needed.len());
                        needed.push((mutation, row, wanted));
                    }
                    Entry::Occupied(known) => needed[*known.get()].2.add(wanted),
                }
            }
        }
        let mut states = RowStates::default();
        for (mutation, row, wanted) in needed {
            states
                .before
                .read(mutation, row, &wanted, overlay, moment)?;
        }
        Ok(RowDerivation {
            mutations,
            origin,
            states,
        })
    }

    /// Reads the rows as they are after the write, and makes the derived rows.
    pub(super) fn finish(
        mut self,
        schema: &ResolvedSchema,
        gate: &CdcGate,
        overlay: &mut WriteOverlay<'_>,
        moment: CommitTime,
    ) -> Result<DerivedRows, StorageError> {
        for mutation in self.mutations {
            for change in &mutation.changes {
                if let Some(row) = ChangedRow::of(mutation.table, change)
                    && log::needs(mutation.table, change).after
                {
                    self.states.after.read(
                        mutation,
                        row,
                        &RequiredColumns::All,
                        overlay,
                        moment,
                    )?;
                }
            }
        }
        overlay.derive_entries(schema)?;
        let mut batch = EntryBatch::new();
        let mut grown = RaisedLogTimes::new();
        for group in log::groups(self.mutations) {
            let into = BatchSink {
                batch: &mut batch,
                expiring: &mut overlay.write.expiring,
            };
            grown.extend(group.derive(&self.states, self.origin, schema, gate, moment, into)?);
        }
        Ok(DerivedRows { batch, grown })
    }
}
