//! The sizes of partitions.
//!
//! A write can't tell how large its partition becomes, and nothing counts a partition as a whole.
//! So a walk goes over the keys of all tables now and then, in pieces, with pauses between them
//! that leave nine tenths of a processor to others. It takes longer with more rows, and never more
//! at a time.
//!
//! As in Cassandra, nothing is refused: the rows are there already. Above the threshold for
//! failures the line of the log is an error.

use std::sync::Arc;
use std::time::Duration;

use cpu_scheduler::WorkClass;
use platform::aside;
use schema::Table;
use storage::{PartitionSize, PartitionWalk, SizedPartition, Storage, StorageError, WalkStep};
use tasks::{Task, TaskRegistry, TaskScope, TaskSpec};
use tokio::time::Instant;
use value::Value;

use super::{Guardrail, Guardrails, LargeDataKind, ThresholdViolation, ValueLocation};

/// Keys that are passed at a time.
const ENTRIES_A_STEP: usize = 1_000;

/// The pause after a piece of work, as a multiple of the time that it took.
const PAUSE_SHARE: u32 = 9;

/// The time before the first walk if no guardrail needs it.
const FIRST_AFTER: Duration = Duration::from_hours(1);

/// The largest ratio of rows in memory to rows on the disk that is reckoned with.
const COMPRESSION_MOST: u64 = 8;

/// The guardrails of partitions, each with its value.
const OF_PARTITIONS: [(Guardrail, Measure); 3] = [
    (Guardrail::PartitionSize, |size| size.bytes),
    (Guardrail::PartitionRows, |size| size.rows),
    (Guardrail::PartitionTombstones, |size| size.tombstones),
];

type Measure = fn(&PartitionSize) -> u64;

/// Walks over the partitions of all tables of users.
pub struct PartitionWalks {
    /// The storage of the tables.
    pub storage: Storage,
    /// The guardrails, which note partitions above a threshold.
    pub guardrails: Arc<Guardrails>,
    /// The list on which each walk is a task.
    pub tasks: TaskRegistry,
    /// The time from the end of a walk to the next one.
    pub interval: Duration,
}

impl PartitionWalks {
    /// Walks again and again, from now on. Ends at once if there is no threshold on partitions. If
    /// only the log has one, the walk comes later, and only while the storage is that large.
    pub async fn run(self) {
        let mut of_partitions = OF_PARTITIONS.iter();
        let has_threshold =
            of_partitions.any(|(guardrail, _)| self.guardrails.limits(*guardrail).is_set());
        let large_bytes = self.guardrails.large_data.limits().partition_bytes;
        if !has_threshold && large_bytes == 0 {
            return;
        }
        if !has_threshold {
            tokio::time::sleep(FIRST_AFTER.min(self.interval)).await;
        }
        loop {
            if has_threshold || self.may_be_large(large_bytes) {
                self.walk().await;
            }
            tokio::time::sleep(self.interval).await;
        }
    }

    /// Whether a partition may have more bytes than this. Rows on the disk are compressed.
    fn may_be_large(&self, bytes: u64) -> bool {
        let on_disk = self.storage.statistics().disk_bytes;
        on_disk.saturating_mul(COMPRESSION_MOST) > bytes
    }

    /// Walks over all tables once.
    async fn walk(&self) {
        let task = self.tasks.start(TaskSpec {
            kind: "partitions",
            scope: TaskScope::default(),
            units: "keys",
            total: None,
            counters: &["tables", "partitions", "large"],
            abortable: true,
        });
        let mut failed = None;
        for table in self.tables() {
            match self.walk_table(&table, &task).await {
                Ok(()) => task.count("tables", 1),
                // The table was dropped meanwhile.
                Err(StorageError::NoSuchTable(_)) => {}
                Err(error) => {
                    tracing::warn!(
                        keyspace = table.keyspace,
                        table = table.name,
                        %error,
                        "the sizes of the partitions could not be read"
                    );
                    failed = Some(error);
                }
            }
            if task.abort_requested() {
                task.stopped();
                return;
            }
        }
        match failed {
            Some(error) => task.failed(error),
            None => task.done(),
        }
    }

    /// The tables of users. Change logs are left out, as users don't shape their partitions.
    fn tables(&self) -> Vec<Arc<Table>> {
        let catalog = self.storage.catalog();
        let tables = catalog.keyspaces.values().flat_map(|of| of.tables.values());
        let tables = tables.filter(|table| table.log_of.is_none());
        tables.cloned().collect()
    }

    async fn walk_table(&self, table: &Arc<Table>, task: &Task) -> Result<(), StorageError> {
        let limits = self.guardrails.limits(Guardrail::PartitionTombstones);
        let mut walk = PartitionWalk::new(limits.is_set());
        while !task.abort_requested() {
            let (storage, guardrails) = (self.storage.clone(), Arc::clone(&self.guardrails));
            let id = table.id;
            let work = move || {
                let _turn = storage
                    .cpu_scheduler()
                    .acquire_blocking(WorkClass::Background);
                let began = Instant::now();
                let view = storage.view_at(id, None)?;
                let is_large = |size: &PartitionSize| guardrails.is_large(size);
                let step = view.walk(&mut walk, ENTRIES_A_STEP, is_large)?;
                Ok((walk, step, began.elapsed()))
            };
            let done = aside(work).await;
            let done = done.map_err(|error| StorageError::Io(error.to_string()))?;
            let (step, took): (WalkStep, Duration);
            (walk, step, took) = done?;
            task.add(step.entries);
            task.count("partitions", step.partitions);
            task.count("large", step.wanted.len() as u64);
            for partition in &step.wanted {
                self.guardrails.note_partition(table, partition);
            }
            if step.is_done {
                break;
            }
            tokio::time::sleep(took * PAUSE_SHARE).await;
        }
        Ok(())
    }
}

impl Guardrails {
    /// Whether the size of a partition is above a threshold.
    fn is_large(&self, size: &PartitionSize) -> bool {
        self.is_logged_as_large(size)
            || OF_PARTITIONS.iter().any(|(guardrail, measure)| {
                let limits = self.limits(*guardrail);
                let least = limits.warn.or(limits.fail);
                least.is_some_and(|least| measure(size) > least)
            })
    }

    /// Whether the log has a line about a partition of this size.
    fn is_logged_as_large(&self, size: &PartitionSize) -> bool {
        let limit = self.large_data.limits().partition_bytes;
        limit > 0 && size.bytes > limit
    }

    /// Notes a partition that is above a threshold.
    fn note_partition(&self, table: &Table, partition: &SizedPartition) {
        if self.is_logged_as_large(&partition.size) {
            let place = ValueLocation {
                keyspace: &table.keyspace,
                table: &table.name,
                ..ValueLocation::default()
            };
            let limit = self.large_data.limits().partition_bytes;
            let large = &self.large_data;
            large.note(LargeDataKind::Partition, partition.size.bytes, limit, place);
        }
        let key = key_text(table, partition);
        let place = ValueLocation {
            keyspace: &table.keyspace,
            table: &table.name,
            partition: &key,
            ..ValueLocation::default()
        };
        for (guardrail, measure) in OF_PARTITIONS {
            let value = measure(&partition.size);
            let message = |violation: ThresholdViolation| {
                let amount = match guardrail {
                    Guardrail::PartitionSize => format!("size {value}"),
                    Guardrail::PartitionRows => format!("{value} rows"),
                    _ => format!("{value} tombstones"),
                };
                format!(
                    "Guardrail {} violated: Partition {}.{}:{key} has {amount}, this exceeds the {} threshold of {}.",
                    guardrail.name(),
                    table.keyspace,
                    table.name,
                    violation.word(),
                    violation.threshold
                )
            };
            self.judge(guardrail, value, place, message);
        }
    }
}

/// The key of a partition as constants of CQL, its beginning if it is long.
fn key_text(table: &Table, partition: &SizedPartition) -> String {
    const CHARS_MAX: usize = 200;
    let key = table.partition_key().into_iter().zip(&partition.key);
    let values: Vec<String> = key
        .map(
            |(column, bytes)| match Value::deserialize(&column.cql_type, bytes) {
                Ok(value) => value.to_literal(),
                Err(_) => Value::Blob(bytes.clone()).to_literal(),
            },
        )
        .collect();
    values.join(", ").chars().take(CHARS_MAX).collect()
}
