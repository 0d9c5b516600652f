//! Prepares one write: checks its condition, and makes its changes and its derived rows. So it does
//! with the deletion of a row that has expired, which is a write of the storage's own.

use super::apply::{Moment, RowChanges};
use super::condition::{self, Checked};
use super::counters::Additions;
use super::derived::{Derivation, DerivedRows, Grown};
use super::lists::Lists;
use super::overlay::{Changes, Overlay};
use super::resolve::{ResolvedMutation, resolve};
use crate::StorageError;
use crate::cdc::{CdcGate, Origin};
use crate::engine::{Batch, Engine};
use crate::layout::Schema;
use crate::mutation::{Write, WriteOutcome};

/// The parts that a write adds to its batch, with its outcome.
pub(super) struct Prepared {
    pub outcome: WriteOutcome,
    /// Bytes of rows in the outcome.
    pub held: usize,
    pub changes: Changes,
    pub derived: DerivedRows,
}

/// Prepares a write. It may look at so many bytes of stored rows.
pub(super) fn prepare(
    engine: &Engine,
    schema: &Schema,
    gate: &CdcGate,
    batch: &Changes,
    write: Write,
    moment: Moment,
    rows_bytes: usize,
) -> Result<Prepared, StorageError> {
    let overlay = Overlay::bounded(engine, batch, rows_bytes);
    let floor = match &write.condition {
        Some(condition) => match condition::check(&overlay, schema, condition, &write, moment)? {
            Checked::Holds { floor } => Some(floor),
            Checked::Fails { standing, held } => {
                return Ok(Prepared {
                    outcome: WriteOutcome::NotApplied { standing },
                    held,
                    changes: Changes::default(),
                    derived: DerivedRows {
                        batch: Batch::new(),
                        grown: Grown::new(),
                    },
                });
            }
        },
        None => None,
    };
    let mut lists = Lists::default();
    let mutations = write
        .mutations
        .into_iter()
        .map(|mutation| resolve(&overlay, schema, mutation, floor, moment, &mut lists))
        .collect::<Result<Vec<_>, _>>()?;
    carry_out(overlay, schema, gate, &mutations, Origin::Client, moment)
}

/// Prepares the deletion of a row that has expired.
pub(super) fn prepare_expiry(
    engine: &Engine,
    schema: &Schema,
    gate: &CdcGate,
    batch: &Changes,
    deletion: ResolvedMutation<'_>,
    moment: Moment,
) -> Result<Prepared, StorageError> {
    let overlay = Overlay::new(engine, batch);
    carry_out(overlay, schema, gate, &[deletion], Origin::Expiry, moment)
}

fn carry_out(
    mut overlay: Overlay<'_>,
    schema: &Schema,
    gate: &CdcGate,
    mutations: &[ResolvedMutation<'_>],
    origin: Origin,
    moment: Moment,
) -> Result<Prepared, StorageError> {
    let derivation = Derivation::begin(mutations, origin, &overlay, moment)?;
    let mut rows = RowChanges::default();
    let mut additions = Additions::default();
    for mutation in mutations {
        let (table, partition) = (mutation.table, &mutation.partition[..]);
        for change in &mutation.changes {
            match table.is_counter {
                true => additions.take(&mut overlay, table, partition, change, moment)?,
                false => rows.take(&mut overlay, table, partition, change, moment)?,
            }
        }
    }
    additions.carry_out(&mut overlay, moment)?;
    rows.apply(&mut overlay, moment)?;
    let derived = derivation.finish(schema, gate, &mut overlay, moment)?;
    Ok(Prepared {
        outcome: WriteOutcome::Applied,
        held: 0,
        changes: overlay.write,
        derived,
    })
}
