//! The guardrails of batches without conditions. A batch on one partition is no matter, as in
//! Cassandra.

use std::collections::{BTreeSet, HashSet};

use bytes::Bytes;
use cql::error::CqlError;
use schema::Catalog;
use storage::mutation::PartitionMutation;

use super::{Guardrail, Guardrails, ThresholdViolation, ValueLocation, ViolationMessage, warn};

/// Looks at the size of a batch, and at its partitions if it is not logged.
///
/// # Errors
/// If the batch is above the threshold for refusals.
pub(crate) fn check_batch(
    guardrails: &Guardrails,
    catalog: &Catalog,
    is_logged: bool,
    mutations: &[PartitionMutation],
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    let first = mutations.first().map(|first| &first.partition_key);
    if mutations
        .iter()
        .all(|one| Some(&one.partition_key) == first)
    {
        return Ok(());
    }
    let sizes = mutations.iter().map(PartitionMutation::size);
    let bytes = sizes.sum::<usize>() as u64;
    let partitions = match is_logged {
        true => 0,
        false => partitions(mutations),
    };
    let is_violated = |guardrail, value: u64| {
        let limits = guardrails.limits(guardrail);
        [limits.warn, limits.fail]
            .into_iter()
            .flatten()
            .any(|threshold| value > threshold)
    };
    if !is_violated(Guardrail::BatchSize, bytes)
        && !is_violated(Guardrail::UnloggedBatchPartitions, partitions)
    {
        return Ok(());
    }
    let tables = BatchTables::of(catalog, mutations);
    let judged = guardrails.judge(Guardrail::BatchSize, bytes, tables.place(), |violation| {
        tables.too_large(bytes, violation)
    });
    match judged {
        None => {}
        Some(ViolationMessage::Warned(warning)) => warn(warnings, warning),
        Some(ViolationMessage::Refused(_)) => return Err(CqlError::invalid("Batch too large")),
    }
    let guardrail = Guardrail::UnloggedBatchPartitions;
    let judged = guardrails.judge(guardrail, partitions, tables.place(), |_| {
        tables.too_many(partitions)
    });
    if let Some(ViolationMessage::Warned(warning)) = judged {
        warn(warnings, warning);
    }
    Ok(())
}

/// The number of partition keys.
fn partitions(mutations: &[PartitionMutation]) -> u64 {
    let keys = mutations.iter().map(|one| &one.partition_key[..]);
    keys.collect::<HashSet<&[Bytes]>>().len() as u64
}

/// The tables of a batch, by keyspace and name.
struct BatchTables<'a>(BTreeSet<(&'a str, &'a str)>);

impl<'a> BatchTables<'a> {
    fn of(catalog: &'a Catalog, mutations: &[PartitionMutation]) -> BatchTables<'a> {
        let tables = mutations
            .iter()
            .filter_map(|one| catalog.table_by_id(one.table));
        let names = tables.map(|table| (&*table.keyspace, &*table.name));
        BatchTables(names.collect())
    }

    /// The place of a batch on one table.
    fn place(&self) -> ValueLocation<'a> {
        match self.0.first() {
            Some((keyspace, table)) if self.0.len() == 1 => ValueLocation {
                keyspace,
                table,
                ..ValueLocation::default()
            },
            _ => ValueLocation::default(),
        }
    }

    fn names(&self) -> String {
        let names = self.0.iter();
        let names: Vec<String> = names
            .map(|(keyspace, table)| format!("{keyspace}.{table}"))
            .collect();
        format!("[{}]", names.join(", "))
    }

    fn too_large(&self, bytes: u64, violation: ThresholdViolation) -> String {
        let ThresholdViolation {
            is_failure,
            threshold,
        } = violation;
        let over = bytes - threshold;
        let setting = match is_failure {
            true => " (see batch_size_fail_threshold)",
            false => "",
        };
        format!(
            "Batch for {} is of size {bytes}, exceeding specified threshold of {threshold} by {over}.{setting}",
            self.names()
        )
    }

    fn too_many(&self, partitions: u64) -> String {
        let s = if self.0.len() == 1 { "" } else { "s" };
        format!(
            "Unlogged batch covering {partitions} partitions detected against table{s} {}. You should use a logged \
             batch for atomicity, or asynchronous writes for performance.",
            self.names()
        )
    }
}
