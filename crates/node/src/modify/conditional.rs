//! Execution of writes with conditions: one statement, or a batch of which at least one statement
//! has a condition.
//!
//! All of them are on one partition. They are applied together if all conditions hold, and later
//! than anything the conditions saw, whatever timestamps the client gives.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use client_memory::MemoryAccount;
use cql::error::CqlError;
use query::bind::StatementClock;
use schema::{Column, ColumnId, Table};
use storage::mutation::{
    AtomicWrite, PartitionMutation, RowCondition, WriteCondition, WriteOutcome,
};
use storage::read::{PartitionSelection, ReadRequest, Row};
use value::CqlType;

use super::condition::{PreparedCondition, RowTests};
use super::plan::{MutationPlan, WriteKind};
use super::submission::{WriteDeadline, hand_over};
use super::target::WriteExtent;
use crate::database::CqlDatabase;
use crate::guardrails::check_values;
use crate::select::column_location::{ColumnContent, ColumnLocation, ValueShape, put_bytes};
use crate::statement::{
    BoundValue, ColumnSpec, ExecutionOutcome, ExecutionParameters, ExecutionResult, ResultRows,
    answer_memory_error, storage_error,
};

/// The name of the column that says whether a conditional write was applied.
const APPLIED: &str = "[applied]";

/// Writes with conditions, with their values.
pub(super) struct LightweightTransaction {
    table: Arc<Table>,
    is_batch: bool,
    partition_key: Option<Vec<Bytes>>,
    /// The tests of each row, by its clustering key.
    rows: HashMap<Vec<Bytes>, (ConditionKind, RowTests)>,
    mutations: Vec<PartitionMutation>,
    /// Whether a condition is on the existence of a row, so that the answer shows whole rows.
    shows_all: bool,
    /// The columns of the other conditions, in the order in which the answer shows them.
    shown: Vec<Column>,
    writes_statics: bool,
    /// Whether all conditions are on the static row, of a table that has one.
    are_of_statics: bool,
}

/// A kind of condition. Those on one row must be of the same kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConditionKind {
    Exists,
    NotExists,
    Columns,
}

/// Checks that these statements can be applied together under their conditions.
///
/// # Errors
/// Statements on several tables.
pub(super) fn check_together<'w>(
    writes: impl Iterator<Item = &'w MutationPlan>,
) -> Result<(), CqlError> {
    let mut tables = writes.map(|write| write.table.id);
    let first = tables.next();
    match tables.all(|table| Some(table) == first) {
        true => Ok(()),
        false => Err(CqlError::invalid(
            "Batch with conditions cannot span multiple tables",
        )),
    }
}

impl LightweightTransaction {
    /// Begins without any statement. `is_batch` says whether the rows of the answer name their
    /// keys.
    pub fn new(table: &Arc<Table>, is_batch: bool) -> LightweightTransaction {
        LightweightTransaction {
            table: Arc::clone(table),
            is_batch,
            partition_key: None,
            rows: HashMap::new(),
            mutations: Vec::new(),
            shows_all: false,
            shown: Vec::new(),
            writes_statics: false,
            are_of_statics: false,
        }
    }

    /// Adds a statement with its values. Its changes take `timestamp`, in microseconds since the
    /// epoch, or a later one.
    ///
    /// # Errors
    /// Values that don't fit their places, more than one partition, and conditions that exclude
    /// each other.
    pub fn add(
        &mut self,
        write: &MutationPlan,
        values: &[BoundValue],
        clock: &StatementClock,
        timestamp: i64,
    ) -> Result<(), CqlError> {
        let using = write.using_values(values, clock)?;
        let expanded = write.expanded(values, clock)?;
        let (plan, values) = match &expanded {
            Some((plan, values)) => (plan, &values[..]),
            None => (write, values),
        };
        self.take_partition(write, plan.target.partition_keys(values, clock)?)?;
        let extent = plan.target.extent(&self.table, values, clock)?;
        let of_statics =
            extent == WriteExtent::Partition && !self.table.clustering_key().is_empty();
        self.writes_statics |= !plan.static_operations.is_empty();
        if let Some(condition) = &write.condition {
            let clustering = match extent {
                WriteExtent::Rows(mut rows) if rows.len() == 1 => rows.remove(0),
                WriteExtent::Partition => Vec::new(),
                WriteExtent::Rows(_) | WriteExtent::Ranges(_) => {
                    return Err(no_in(write, "clustering key columns"));
                }
            };
            self.take_condition(condition, clustering, of_statics, values, clock)?;
        }
        let mutations = plan.mutations_of(values, clock, timestamp, using.ttl_s)?;
        self.mutations.extend(mutations);
        Ok(())
    }

    fn take_partition(
        &mut self,
        write: &MutationPlan,
        mut keys: Vec<Vec<Bytes>>,
    ) -> Result<(), CqlError> {
        if keys.len() > 1 {
            return Err(match self.is_batch {
                true => several_partitions(),
                false => no_in(write, "partition key"),
            });
        }
        let key = keys.pop().unwrap_or_default();
        match &self.partition_key {
            Some(earlier) if *earlier != key => Err(several_partitions()),
            _ => {
                self.partition_key = Some(key);
                Ok(())
            }
        }
    }

    fn take_condition(
        &mut self,
        condition: &PreparedCondition,
        clustering: Vec<Bytes>,
        of_statics: bool,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<(), CqlError> {
        let kind = match condition {
            PreparedCondition::Exists => ConditionKind::Exists,
            PreparedCondition::NotExists => ConditionKind::NotExists,
            PreparedCondition::Columns(_) => ConditionKind::Columns,
        };
        self.shows_all |= kind != ConditionKind::Columns;
        let (regular, statics): (Vec<_>, Vec<_>) = condition
            .columns()
            .iter()
            .partition(|condition| !condition.is_static());
        for condition in regular.into_iter().chain(statics) {
            if !self
                .shown
                .iter()
                .any(|shown| shown.id == condition.column.id)
            {
                self.shown.push(condition.column.clone());
            }
        }
        let predicates = condition.predicates(of_statics, values, clock)?;
        if let Some(tests) = predicates.of_row {
            self.take_row(kind, clustering, tests)?;
        }
        if let Some(tests) = predicates.of_statics {
            self.take_row(kind, Vec::new(), tests)?;
        }
        Ok(())
    }

    fn take_row(
        &mut self,
        kind: ConditionKind,
        clustering: Vec<Bytes>,
        tests: RowTests,
    ) -> Result<(), CqlError> {
        let (standing, known) = match self.rows.entry(clustering) {
            Entry::Vacant(vacant) => {
                vacant.insert((kind, tests));
                return Ok(());
            }
            Entry::Occupied(known) => known.into_mut(),
        };
        if *standing != kind {
            let exists_alone =
                *standing != ConditionKind::Columns && kind != ConditionKind::Columns;
            return Err(CqlError::invalid(match exists_alone {
                true => "Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row",
                false => "Cannot mix IF conditions and IF [NOT] EXISTS for the same row",
            }));
        }
        known.add(tests);
        Ok(())
    }

    /// Applies the writes if the conditions hold. The answer is charged to the memory of the
    /// parameters. `own` is the time that the statement gives itself.
    ///
    /// # Errors
    /// Failures of the storage, writes that do not begin in time, and no room for the answer.
    pub async fn execute(
        mut self,
        database: &CqlDatabase,
        parameters: &ExecutionParameters,
        own: Option<Duration>,
    ) -> Result<ExecutionResult, CqlError> {
        let partition_key = self.partition_key.clone().unwrap_or_default();
        let mutations = std::mem::take(&mut self.mutations);
        let mut warnings = Vec::new();
        check_values(
            database.system.guardrails(),
            &database.storage.catalog(),
            &mutations,
            &mut warnings,
        )?;
        let rows = std::mem::take(&mut self.rows);
        self.are_of_statics = rows.keys().all(Vec::is_empty);
        let rows = rows
            .into_iter()
            .map(|(clustering, (_, tests))| RowCondition {
                clustering,
                predicate: tests.into_predicate(),
            });
        let write = AtomicWrite {
            mutations,
            condition: Some(WriteCondition {
                table: self.table.id,
                partition_key,
                rows: rows.collect(),
                columns: self.read_columns(),
            }),
        };
        traces::note(|| "Checking the conditions and committing in one step".to_owned());
        let write_type = "CAS";
        let limit = WriteDeadline { own, write_type };
        let outcome = hand_over(database, write, parameters, limit).await?;
        traces::note(|| match outcome {
            WriteOutcome::Applied => {
                "The conditions hold, and the commit is acknowledged".to_owned()
            }
            WriteOutcome::NotApplied { .. } => "A condition does not hold".to_owned(),
        });
        let answer = match outcome {
            WriteOutcome::Applied => self.answer(true, &[], &[], &parameters.memory),
            WriteOutcome::NotApplied { standing } => self.refused(database, standing, parameters),
        };
        answer.map(|answer| ExecutionResult { warnings, ..answer })
    }

    /// The columns that the conditions look at and the answer shows; `None` for all.
    fn read_columns(&self) -> Option<HashSet<ColumnId>> {
        let reads_all = self.shows_all || self.writes_statics;
        (!reads_all).then(|| self.shown.iter().map(|column| column.id).collect())
    }

    /// The answer if a condition failed. It shows the rows that the conditions were checked
    /// against.
    fn refused(
        &self,
        database: &CqlDatabase,
        standing: Vec<Row>,
        parameters: &ExecutionParameters,
    ) -> Result<ExecutionResult, CqlError> {
        let has_clustering = !self.table.clustering_key().is_empty();
        let rows = match has_clustering && self.are_of_statics {
            true => self.with_first_row(database, standing, parameters.client_now_s)?,
            false => standing,
        };
        // A static row without the requested row is shown only if it has something of what
        // Cassandra reads: the columns of the conditions, or all where one is written.
        let is_read = |id: ColumnId| self.writes_statics || self.shown.iter().any(|c| c.id == id);
        let is_row = |row: &Row| {
            let mut statics = row.partition.static_cells.iter();
            row.clustering.is_some() || statics.any(|(id, _)| is_read(*id))
        };
        let rows: Vec<Row> = rows.into_iter().filter(is_row).collect();
        let columns = match self.shows_all {
            true => self.table.columns_in_select_order(),
            false => {
                let keys = self.table.partition_key().into_iter();
                let keys = keys.chain(self.table.clustering_key());
                let keys = keys.filter(|_| self.is_batch);
                keys.chain(&self.shown).collect()
            }
        };
        self.answer(false, &columns, &rows, &parameters.memory)
    }

    /// If all conditions are on static columns, shows the static row together with the first row of
    /// the partition, as Cassandra does.
    fn with_first_row(
        &self,
        database: &CqlDatabase,
        mut standing: Vec<Row>,
        told_s: Option<i64>,
    ) -> Result<Vec<Row>, CqlError> {
        let request = ReadRequest {
            table: self.table.id,
            partitions: PartitionSelection::One(self.partition_key.clone().unwrap_or_default()),
            slices: Vec::new(),
            reversed: false,
            resume_after: None,
            static_only_rows: false,
        };
        let view = database.storage.view_at(request.table, told_s);
        let rows = view.and_then(|view| view.read(&request));
        let mut rows = rows.map_err(storage_error)?;
        let Some(first) = rows.next().transpose().map_err(storage_error)? else {
            return Ok(standing);
        };
        match standing.first_mut() {
            // The static cells are those that the condition saw.
            Some(row) => row.clustering = first.clustering,
            None => standing.push(Row {
                cells: Vec::new(),
                ..first
            }),
        }
        Ok(standing)
    }

    /// The answer: `[applied]`, and these columns of the rows if there are any.
    fn answer(
        &self,
        applied: bool,
        columns: &[&Column],
        rows: &[Row],
        memory: &MemoryAccount,
    ) -> Result<ExecutionResult, CqlError> {
        let keyspace: Arc<str> = self.table.keyspace.as_str().into();
        let table: Arc<str> = self.table.name.as_str().into();
        let spec = |name: &str, cql_type: &CqlType| ColumnSpec {
            keyspace: keyspace.clone(),
            table: table.clone(),
            name: name.into(),
            cql_type: cql_type.clone(),
        };
        let mut specs = vec![spec(APPLIED, &CqlType::Boolean)];
        let mut body = BytesMut::new();
        let mut charge = memory.charge();
        for row in rows {
            put_bytes(&mut body, &[u8::from(applied)]);
            for column in columns {
                let content: ColumnContent<'_> = ColumnLocation::of(column).content(row);
                content.put(ValueShape::of(&column.cql_type), &mut body);
            }
            charge
                .resize(body.len())
                .map_err(|_| answer_memory_error(body.len()))?;
        }
        match rows.is_empty() {
            true => put_bytes(&mut body, &[u8::from(applied)]),
            false => specs.extend(columns.iter().map(|c| spec(&c.name, &c.cql_type))),
        }
        Ok(ExecutionResult {
            outcome: ExecutionOutcome::Rows(ResultRows {
                columns: specs.into(),
                body,
                count: rows.len().max(1) as u32,
                paging_state: None,
                charge: Some(charge),
            }),
            warnings: Vec::new(),
        })
    }
}

fn several_partitions() -> CqlError {
    CqlError::invalid("Batch with conditions cannot span multiple partitions")
}

fn no_in(write: &MutationPlan, what: &str) -> CqlError {
    let statements = match write.kind {
        WriteKind::DeleteCells | WriteKind::DeleteRows => "deletions",
        WriteKind::Insert { .. } | WriteKind::Update => "updates",
    };
    CqlError::invalid(format!(
        "IN on the {what} is not supported with conditional {statements}"
    ))
}
