//! Execution of writes: turns a plan and its values into mutations of the storage, and their
//! outcome into an answer.

use cql::error::CqlError;
use index::CandidateRule;
use query::bind::{PrepareContext, StatementClock};
use storage::mutation::{
    AtomicWrite, CellChange, CellOperation, PartitionChange, PartitionMutation,
};
use value::finite_vector;

use super::conditional::LightweightTransaction;
use super::insert;
use super::operation::ColumnOperation;
use super::plan::{MutationPlan, WriteKind};
use super::submission::{WriteDeadline, hand_over};
use super::target::{MAX_KEYS, WriteExtent, too_many_keys};
use super::using::write_timestamp;
use crate::database::CqlDatabase;
use crate::guardrails::check_values;
use crate::statement::{BoundValue, ExecutionParameters, ExecutionResult};

impl MutationPlan {
    /// The changes that the statement makes. `timestamp`, in microseconds since the epoch, applies
    /// unless the statement gives one itself.
    ///
    /// # Errors
    /// Values that don't fit their places, and too many keys.
    pub fn mutations(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
        timestamp: i64,
    ) -> Result<Vec<PartitionMutation>, CqlError> {
        let using = self.using_values(values, clock)?;
        let timestamp = match self.table.is_counter() {
            // Whatever the client's clock says: see `super::counters`.
            true => clock.next_write_micros(),
            false => using.timestamp.unwrap_or(timestamp),
        };
        match self.expanded(values, clock)? {
            Some((plan, values)) => plan.mutations_of(&values, clock, timestamp, using.ttl_s),
            None => self.mutations_of(values, clock, timestamp, using.ttl_s),
        }
    }

    /// The values of the USING clause.
    ///
    /// # Errors
    /// Values that don't fit.
    pub fn using_values(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<UsingValues, CqlError> {
        Ok(UsingValues {
            timestamp: self.using.timestamp(values, clock)?,
            ttl_s: match self.kind {
                WriteKind::DeleteCells | WriteKind::DeleteRows => None,
                _ => self.using.ttl_s(&self.table, values, clock)?,
            },
        })
    }

    /// The plan of an INSERT JSON with its columns, and the values of its bind markers; `None` for
    /// every other statement, whose plan has them.
    ///
    /// # Errors
    /// An object that does not fit the table.
    pub fn expanded(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Option<(MutationPlan, Vec<BoundValue>)>, CqlError> {
        let Some(json) = &self.json else {
            return Ok(None);
        };
        let (statement, values) = json.expanded(&self.table, values, clock)?;
        let (keyspace, name) = (&self.table.keyspace, &self.table.name);
        let mut ctx = PrepareContext::new(keyspace, name, values.len());
        let plan = insert::prepare(self.table.clone(), &statement, &mut ctx)?;
        Ok(Some((plan, values)))
    }

    /// The changes with the USING clause evaluated: `timestamp` in microseconds since the epoch,
    /// and the time to live in seconds.
    ///
    /// # Errors
    /// Values that don't fit their places, and too many keys.
    pub fn mutations_of(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
        timestamp: i64,
        ttl_s: Option<u32>,
    ) -> Result<Vec<PartitionMutation>, CqlError> {
        let keys = self.target.partition_keys(values, clock)?;
        let extent = self.target.extent(&self.table, values, clock)?;
        let changes = self.changes(extent, values, clock, timestamp, ttl_s)?;
        let count = keys.len().saturating_mul(changes.len());
        if count > MAX_KEYS {
            return Err(too_many_keys(count));
        }
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        Ok(keys
            .into_iter()
            .map(|partition_key| PartitionMutation {
                table: self.table.id,
                partition_key,
                changes: changes.clone(),
            })
            .collect())
    }

    /// The changes that the statement makes to each partition.
    fn changes(
        &self,
        extent: WriteExtent,
        values: &[BoundValue],
        clock: &StatementClock,
        timestamp: i64,
        ttl_s: Option<u32>,
    ) -> Result<Vec<PartitionChange>, CqlError> {
        if self.kind == WriteKind::DeleteRows {
            return Ok(deletions(extent, timestamp));
        }
        let mut changes = Vec::new();
        let static_cells = self.cells(&self.static_operations, values, clock)?;
        if !static_cells.is_empty() {
            changes.push(PartitionChange::Static {
                cells: static_cells,
                timestamp,
                ttl_s,
            });
        }
        let marker = self.kind == WriteKind::Insert { static_only: false };
        let cells = self.cells(&self.row_operations, values, clock)?;
        if let WriteExtent::Rows(rows) = extent
            && (marker || !cells.is_empty())
        {
            changes.extend(rows.into_iter().map(|clustering| PartitionChange::Row {
                clustering,
                cells: cells.clone(),
                timestamp,
                ttl_s,
                marker,
            }));
        }
        Ok(changes)
    }

    fn cells(
        &self,
        operations: &[ColumnOperation],
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Vec<CellChange>, CqlError> {
        let mut cells = Vec::with_capacity(operations.len());
        for operation in operations {
            if let Some(cell) = operation.evaluate(values, clock)? {
                self.check_indexed(operation, &cell)?;
                cells.push(cell);
            }
        }
        Ok(cells)
    }

    /// Refuses a vector that an index of its column can't hold: one with an element that is NaN or
    /// infinite, or one that is too long.
    fn check_indexed(
        &self,
        operation: &ColumnOperation,
        cell: &CellChange,
    ) -> Result<(), CqlError> {
        let CellOperation::Set(vector) = &cell.change else {
            return Ok(());
        };
        let invalid = |reason: String| {
            CqlError::invalid(format!("Invalid value for {}: {reason}", operation.name))
        };
        // A full-text index takes every text.
        for index in self.table.vector_indexes_on(&operation.name) {
            finite_vector(vector).map_err(|error| invalid(error.0))?;
            let options = CandidateRule::of(|name| index.options.get(name).map(String::as_str));
            let checked = options.metric.check_serialised_length(vector);
            checked.map_err(|error| invalid(error.to_string()))?;
        }
        Ok(())
    }
}

/// The values of a USING clause.
pub(super) struct UsingValues {
    /// The write timestamp, in microseconds since the epoch, if the statement gives one.
    timestamp: Option<i64>,
    /// The time to live, in seconds; `None` for ever.
    pub ttl_s: Option<u32>,
}

/// Executes one write that has a condition.
pub(super) async fn execute_conditional(
    database: &CqlDatabase,
    write: &MutationPlan,
    parameters: &ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let clock = StatementClock::start(database.storage.clock());
    // The client's timestamp is ignored, as the write must be later than what the condition saw.
    let timestamp = clock.next_write_micros();
    let mut conditional = LightweightTransaction::new(&write.table, false);
    conditional.add(write, &parameters.values, &clock, timestamp)?;
    let own = write.using.limit(&parameters.values, &clock)?;
    conditional.execute(database, parameters, own).await
}

/// Executes one write that has no condition.
pub(super) async fn execute_write(
    database: &CqlDatabase,
    write: &MutationPlan,
    parameters: &ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let clock = StatementClock::start(database.storage.clock());
    let timestamp = write_timestamp(parameters.timestamp_micros, &clock)?;
    let mutations = write.mutations(&parameters.values, &clock, timestamp)?;
    let limit = WriteDeadline {
        own: write.using.limit(&parameters.values, &clock)?,
        write_type: match write.table.is_counter() {
            true => "COUNTER",
            false => "SIMPLE",
        },
    };
    apply(database, mutations, parameters, limit, Vec::new()).await
}

/// Writes the mutations as one. Does nothing if there are none. The answer has these warnings, and
/// those of guardrails.
///
/// # Errors
/// Failures of the storage, a write that does not begin in time, and values above a threshold for
/// refusals.
pub(super) async fn apply(
    database: &CqlDatabase,
    mutations: Vec<PartitionMutation>,
    parameters: &ExecutionParameters,
    limit: WriteDeadline,
    mut warnings: Vec<String>,
) -> Result<ExecutionResult, CqlError> {
    let guardrails = database.system.guardrails();
    check_values(
        guardrails,
        &database.storage.catalog(),
        &mutations,
        &mut warnings,
    )?;
    if !mutations.is_empty() {
        traces::note(|| format!("Committing changes to {} partitions", mutations.len()));
        let write = AtomicWrite {
            mutations,
            condition: None,
        };
        hand_over(database, write, parameters, limit).await?;
        traces::note(|| "The commit is acknowledged".to_owned());
    }
    Ok(ExecutionResult {
        warnings,
        ..super::void()
    })
}

fn deletions(extent: WriteExtent, timestamp: i64) -> Vec<PartitionChange> {
    match extent {
        WriteExtent::Partition => vec![PartitionChange::DeletePartition { timestamp }],
        WriteExtent::Rows(rows) => rows
            .into_iter()
            // In a table without clustering columns a partition has one row, so to delete either is
            // the same. Cassandra deletes the partition.
            .map(|clustering| match clustering.is_empty() {
                true => PartitionChange::DeletePartition { timestamp },
                false => PartitionChange::DeleteRow {
                    clustering,
                    timestamp,
                },
            })
            .collect(),
        WriteExtent::Ranges(ranges) => ranges
            .into_iter()
            .map(|range| PartitionChange::DeleteRange {
                start: range.start,
                end: range.end,
                timestamp,
            })
            .collect(),
    }
}
