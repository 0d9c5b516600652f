//! Prepares one write: checks its condition, and makes its changes and its derived rows. So it does
//! with the deletion of a row that has expired, which is a write of the storage's own.

use super::apply::{CommitTime, RowChanges};
use super::condition::{self, CheckOutcome};
use super::counters::PendingAdditions;
use super::derived::{DerivedRows, RaisedLogTimes, RowDerivation};
use super::lists::LoadedLists;
use super::overlay::{UncommittedChanges, WriteOverlay};
use super::resolve::{ResolvedMutation, resolve};
use crate::StorageError;
use crate::cdc::{CdcGate, WriteOrigin};
use crate::engine::{Engine, EntryBatch};
use crate::layout::ResolvedSchema;
use crate::mutation::{AtomicWrite, WriteOutcome};

/// The parts that a write adds to its batch, with its outcome.
pub(super) struct AppliedWrite {
    pub outcome: WriteOutcome,
    /// Bytes of rows in the outcome.
    pub held: usize,
    pub changes: UncommittedChanges,
    pub derived: DerivedRows,
}

/// Prepares a write. It may look at so many bytes of stored rows.
pub(super) fn prepare(
    engine: &Engine,
    schema: &ResolvedSchema,
    gate: &CdcGate,
    batch: &UncommittedChanges,
    write: AtomicWrite,
    moment: CommitTime,
    rows_bytes: usize,
) -> Result<AppliedWrite, StorageError> {
    let overlay = WriteOverlay::bounded(engine, batch, rows_bytes);
    let floor = match &write.condition {
        Some(condition) => match condition::check(&overlay, schema, condition, &write, moment)? {
            CheckOutcome::Holds { floor } => Some(floor),
            CheckOutcome::Fails { standing, held } => {
                return Ok(AppliedWrite {
                    outcome: WriteOutcome::NotApplied { standing },
                    held,
                    changes: UncommittedChanges::default(),
                    derived: DerivedRows {
                        batch: EntryBatch::new(),
                        grown: RaisedLogTimes::new(),
                    },
                });
            }
        },
        None => None,
    };
    let mut lists = LoadedLists::default();
    let mutations = write
        .mutations
        .into_iter()
        .map(|mutation| resolve(&overlay, schema, mutation, floor, moment, &mut lists))
        .collect::<Result<Vec<_>, _>>()?;
    carry_out(
        overlay,
        schema,
        gate,
        &mutations,
        WriteOrigin::Client,
        moment,
    )
}

/// Prepares the deletion of a row that has expired.
pub(super) fn prepare_expiry(
    engine: &Engine,
    schema: &ResolvedSchema,
    gate: &CdcGate,
    batch: &UncommittedChanges,
    deletion: ResolvedMutation<'_>,
    moment: CommitTime,
) -> Result<AppliedWrite, StorageError> {
    let overlay = WriteOverlay::new(engine, batch);
    carry_out(
        overlay,
        schema,
        gate,
        &[deletion],
        WriteOrigin::Expiry,
        moment,
    )
}

fn carry_out(
    mut overlay: WriteOverlay<'_>,
    schema: &ResolvedSchema,
    gate: &CdcGate,
    mutations: &[ResolvedMutation<'_>],
    origin: WriteOrigin,
    moment: CommitTime,
) -> Result<AppliedWrite, StorageError> {
    // First of all, as it reads rows as they are before the write.
    let derivation = RowDerivation::begin(mutations, origin, &overlay, moment)?;
    let mut rows = RowChanges::default();
    let mut additions = PendingAdditions::default();
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
    Ok(AppliedWrite {
        outcome: WriteOutcome::Applied,
        held: 0,
        changes: overlay.write,
        derived,
    })
}
