//! Batches: several writes that are applied as one.
//!
//! One node holds all partitions. So a logged and an unlogged batch are the same here: one atomic
//! write of the storage.

use cql::ast::{Batch, BatchEntry, BatchKind};
use cql::error::CqlError;
use query::bind::{PrepareContext, StatementClock};

use super::counters;
use super::plan::{BatchPlan, ModifyPlan, Work, WritePlan};
use super::using::{UsingPlan, write_timestamp};
use crate::answer::Answer;
use crate::database::Database;
use crate::parameters::Parameters;

/// Prepares `BEGIN BATCH ... APPLY BATCH`.
pub(super) fn prepare(
    database: &Database,
    keyspace: Option<&str>,
    batch: &Batch,
    ctx: &mut PrepareContext,
) -> Result<BatchPlan, CqlError> {
    if batch.using.ttl.is_some() {
        return Err(CqlError::invalid(
            "Global TTL on the BATCH statement is not supported.",
        ));
    }
    // A marker in the USING clause of the batch belongs to no table. Its spec names this instead.
    ctx.keyspace = "[batch]".into();
    ctx.table = "[batch]".into();
    let using = UsingPlan::prepare(&batch.using, ctx)?;
    let writes = batch
        .statements
        .iter()
        .map(|entry| match entry {
            BatchEntry::Insert(insert) => super::prepare_insert(database, keyspace, insert, ctx),
            BatchEntry::Update(update) => super::prepare_update(database, keyspace, update, ctx),
            BatchEntry::Delete(delete) => super::prepare_delete(database, keyspace, delete, ctx),
        })
        .collect::<Result<Vec<WritePlan>, _>>()?;
    counters::check_batch(batch.kind, writes.iter())?;
    if using.timestamp.is_some() && writes.iter().any(|write| write.table.is_counter()) {
        return Err(CqlError::invalid(
            "Cannot provide custom timestamp for a BATCH containing counters",
        ));
    }
    for write in &writes {
        check_entry(write)?;
        if using.timestamp.is_some() && write.using.timestamp.is_some() {
            return Err(CqlError::invalid(
                "Timestamp must be set either on BATCH or individual statements",
            ));
        }
    }
    Ok(BatchPlan { using, writes })
}

/// Executes a batch of the native protocol. Its statements are prepared one by one, each with its
/// own values, and take effect together or not at all.
///
/// `batch_timestamp` is the timestamp of the request, in microseconds since the epoch. A
/// statement's own `USING TIMESTAMP` goes before it.
///
/// # Errors
/// An entry that is no INSERT, UPDATE or DELETE, or has a condition; and the errors of a single
/// write.
pub async fn execute_batch(
    database: &Database,
    kind: BatchKind,
    entries: Vec<(&ModifyPlan, Parameters)>,
    batch_timestamp: Option<i64>,
) -> Result<Answer, CqlError> {
    let mut writes = Vec::with_capacity(entries.len());
    for (plan, parameters) in &entries {
        let Work::Write(write) = &plan.work else {
            return Err(CqlError::invalid(
                "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are \
                 allowed.",
            ));
        };
        check_entry(write)?;
        writes.push((&**write, parameters));
    }
    counters::check_batch(kind, writes.iter().map(|(write, _)| *write))?;
    let mut mutations = Vec::new();
    let clock = StatementClock::start(database.storage.clock());
    let timestamp = write_timestamp(batch_timestamp, &clock)?;
    for (write, parameters) in writes {
        mutations.extend(write.mutations(parameters, &clock, timestamp)?);
    }
    super::execute::apply(database, mutations).await
}

fn check_entry(write: &WritePlan) -> Result<(), CqlError> {
    if write.condition.is_some() {
        return Err(CqlError::invalid(
            "Conditional statements (IF NOT EXISTS) are not supported yet in a BATCH",
        ));
    }
    Ok(())
}
