//! Batches: several writes that are applied as one.
//!
//! One node holds all partitions. So a logged and an unlogged batch are the same here: one atomic
//! write of the storage.

use std::time::Duration;

use cql::ast::{BatchEntry, TextBatch, TextBatchKind};
use cql::error::CqlError;
use query::bind::{PrepareContext, StatementClock};

use super::conditional::{self, LightweightTransaction};
use super::counters;
use super::plan::{BatchPlan, DmlPlan, ModifyPlan, MutationPlan};
use super::submission::WriteDeadline;
use super::using::{UsingPlan, write_timestamp};
use crate::database::CqlDatabase;
use crate::guardrails::check_batch;
use crate::statement::{BoundValue, ExecutionParameters, ExecutionResult, consistency};

/// Prepares `BEGIN BATCH ... APPLY BATCH`.
pub(super) fn prepare(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    batch: &TextBatch,
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
        .collect::<Result<Vec<MutationPlan>, _>>()?;
    counters::check_batch(batch.kind, writes.iter())?;
    if using.timestamp.is_some() {
        check_timestamps(&writes)?;
    }
    if is_conditional(writes.iter()) {
        conditional::check_together(writes.iter())?;
    }
    Ok(BatchPlan {
        kind: batch.kind,
        using,
        writes,
    })
}

/// Executes `BEGIN BATCH ... APPLY BATCH`.
///
/// # Errors
/// The errors of its writes.
pub(super) async fn execute_text_batch(
    database: &CqlDatabase,
    batch: &BatchPlan,
    parameters: &ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let clock = StatementClock::start(database.storage.clock()).of_batch();
    let own = batch.using.timestamp(&parameters.values, &clock)?;
    let own_limit = batch.using.limit(&parameters.values, &clock)?;
    let values = &parameters.values;
    let entries = batch.writes.iter().map(|write| (write, &values[..]));
    let batch = BoundWrites {
        is_logged: batch.kind == TextBatchKind::Logged,
        entries: entries.collect(),
        own,
        own_limit,
    };
    execute_entries(database, batch, parameters, &clock).await
}

/// Executes a batch of the native protocol. Its statements are prepared one by one, each with its
/// own values, and take effect together or not at all. `parameters` are those of the batch.
///
/// A statement's own `USING TIMESTAMP` goes before the timestamp of the request.
///
/// # Errors
/// An entry that is no INSERT, UPDATE or DELETE; and the errors of a single write.
pub async fn execute_batch(
    database: &CqlDatabase,
    kind: TextBatchKind,
    entries: Vec<(&ModifyPlan, Vec<BoundValue>)>,
    parameters: &ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let clock = StatementClock::start(database.storage.clock()).of_batch();
    let writes = entries.iter().map(|(plan, values)| match &plan.work {
        DmlPlan::Write(write) => Ok((&**write, &values[..])),
        _ => Err(CqlError::invalid(
            "Invalid statement in batch: only UPDATE, INSERT and DELETE statements are allowed.",
        )),
    });
    let writes = writes.collect::<Result<Vec<_>, _>>()?;
    counters::check_batch(kind, writes.iter().map(|(write, _)| *write))?;
    let batch = BoundWrites {
        is_logged: kind == TextBatchKind::Logged,
        entries: writes,
        own: None,
        own_limit: None,
    };
    execute_entries(database, batch, parameters, &clock).await
}

/// The statements of a batch, each with its values.
struct BoundWrites<'a> {
    is_logged: bool,
    entries: Vec<(&'a MutationPlan, &'a [BoundValue])>,
    /// The timestamp that the batch itself gives, in microseconds since the epoch.
    own: Option<i64>,
    /// The time that the batch itself gives.
    own_limit: Option<Duration>,
}

/// Executes the statements of a batch.
async fn execute_entries(
    database: &CqlDatabase,
    batch: BoundWrites<'_>,
    parameters: &ExecutionParameters,
    clock: &StatementClock,
) -> Result<ExecutionResult, CqlError> {
    let BoundWrites {
        is_logged,
        entries,
        own,
        own_limit,
    } = batch;
    let given = own.or(parameters.timestamp_micros);
    let writes = || entries.iter().map(|(write, _)| *write);
    if let Some((first, _)) = entries.first()
        && is_conditional(writes())
    {
        conditional::check_together(writes())?;
        consistency::check_conditional(parameters)?;
        let mut conditional = LightweightTransaction::new(&first.table, true);
        let timestamp = clock.next_write_micros();
        for (write, values) in entries {
            conditional.add(write, values, clock, timestamp)?;
        }
        return conditional.execute(database, parameters, own_limit).await;
    }
    let is_counter = entries.iter().any(|(write, _)| write.table.is_counter());
    let limit = WriteDeadline {
        own: own_limit,
        write_type: match (is_counter, is_logged) {
            (true, _) => "COUNTER",
            (false, true) => "BATCH",
            (false, false) => "UNLOGGED_BATCH",
        },
    };
    let timestamp = write_timestamp(given, clock)?;
    let mut mutations = Vec::new();
    for (write, values) in entries {
        mutations.extend(write.mutations(values, clock, timestamp)?);
    }
    let mut warnings = Vec::new();
    check_batch(
        database.system.guardrails(),
        &database.storage.catalog(),
        is_logged,
        &mutations,
        &mut warnings,
    )?;
    super::execute::apply(database, mutations, parameters, limit, warnings).await
}

fn is_conditional<'w>(mut writes: impl Iterator<Item = &'w MutationPlan>) -> bool {
    writes.any(|write| write.condition.is_some())
}

/// Refuses statements that have a timestamp or a condition, or are on counters, in a batch that has
/// a timestamp.
fn check_timestamps(writes: &[MutationPlan]) -> Result<(), CqlError> {
    if is_conditional(writes.iter()) {
        return Err(CqlError::invalid(
            "Cannot provide custom timestamp for conditional BATCH",
        ));
    }
    if writes.iter().any(|write| write.table.is_counter()) {
        return Err(CqlError::invalid(
            "Cannot provide custom timestamp for a BATCH containing counters",
        ));
    }
    match writes.iter().any(|write| write.using.timestamp.is_some()) {
        true => Err(CqlError::invalid(
            "Timestamp must be set either on BATCH or individual statements",
        )),
        false => Ok(()),
    }
}
