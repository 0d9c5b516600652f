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
use log::Target;
use states::{ChangedRow, RowStates, Wanted};

use super::apply::Moment;
use super::overlay::Overlay;
use super::resolve::ResolvedMutation;
use crate::StorageError;
use crate::cdc::{CdcGate, Origin};
use crate::engine::Batch;
use crate::layout::Schema;
use crate::mutation::Change;

pub(super) use log::Grown;

/// The derivation of rows from one write, begun before the write is applied and finished after it.
pub(super) struct Derivation<'w> {
    mutations: &'w [ResolvedMutation<'w>],
    origin: Origin,
    states: RowStates<'w>,
}

/// The rows derived from one write.
pub(super) struct DerivedRows {
    /// The encoded rows.
    pub batch: Batch,
    /// The logs among their tables.
    pub grown: Grown,
}

impl DerivedRows {
    /// Bytes of the rows.
    pub(super) fn bytes(&self) -> usize {
        let entries = self.batch.iter();
        let entry = entries.map(|(_, key, value)| key.len() + value.as_ref().map_or(0, Bytes::len));
        entry.sum()
    }
}

impl<'w> Derivation<'w> {
    /// Reads the rows as they are before the write, as far as a kind of derived rows needs them.
    pub(super) fn begin(
        mutations: &'w [ResolvedMutation<'w>],
        origin: Origin,
        overlay: &Overlay<'_>,
        moment: Moment,
    ) -> Result<Derivation<'w>, StorageError> {
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
                Change::DeletePartition { .. } | Change::DeleteRange { .. }
            )
        });
        let mut needed: Vec<(&ResolvedMutation<'w>, ChangedRow<'w>, Wanted)> = Vec::new();
        let mut places = HashMap::new();
        for (mutation, change) in changes() {
            if let Some(row) = ChangedRow::of(mutation.table, change)
                && let Some(wanted) = log::needs(mutation.table, change).before
            {
                let wanted = if deletes_more { Wanted::All } else { wanted };
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
        Ok(Derivation {
            mutations,
            origin,
            states,
        })
    }

    /// Reads the rows as they are after the write, and makes the derived rows.
    pub(super) fn finish(
        mut self,
        schema: &Schema,
        gate: &CdcGate,
        overlay: &mut Overlay<'_>,
        moment: Moment,
    ) -> Result<DerivedRows, StorageError> {
        for mutation in self.mutations {
            for change in &mutation.changes {
                if let Some(row) = ChangedRow::of(mutation.table, change)
                    && log::needs(mutation.table, change).after
                {
                    self.states
                        .after
                        .read(mutation, row, &Wanted::All, overlay, moment)?;
                }
            }
        }
        overlay.derive_entries(schema)?;
        let mut batch = Batch::new();
        let mut grown = Grown::new();
        for group in log::groups(self.mutations) {
            let into = Target {
                batch: &mut batch,
                expiring: &mut overlay.write.expiring,
            };
            grown.extend(group.derive(&self.states, self.origin, schema, gate, moment, into)?);
        }
        Ok(DerivedRows { batch, grown })
    }
}
