//! Execution of plans along their access paths: point reads on the async thread, larger reads in
//! steps on threads that may block, each in a turn. A point read that meets a large record goes on
//! there, too. Between two steps a read holds no large rows.

use std::sync::Arc;
use std::time::Duration;

use cpu_scheduler::CpuScheduler;
use cql::error::CqlError;
use query::bind::StatementClock;
use query::values::EvaluationInputs;
use schema::{ColumnKind, Table};
use storage::read::{ClusteringBound, ClusteringSlice, Row};
use tokio::time::Instant;

use super::access::PartitionAccess;
use super::blocking::on_blocking_thread;
use super::clustering::{self, RowSlices};
use super::collector::{PageProgress, RowCollector};
use super::cursor::{QueryCursor, StepBudget};
use super::guarded::ReadGuardrails;
use super::order::ClusteringOrder;
use super::page::ResultPage;
use super::paging::PagingState;
use super::partition_query::PartitionQuery;
use super::partitions::{self, WantedPartitions};
use super::plan::ResolvedSelect;
use super::read_limits::{ReadLimits, page_limit};
use super::source::{PartitionSequence, RowSource, TableSource};
use super::{log, memory_table, page_start};
use crate::database::CqlDatabase;
use crate::statement::{ExecutionOutcome, ExecutionParameters, ExecutionResult, ResultRows};
use crate::system::RequestedRows;

/// The amounts of work that a query does at a time.
#[derive(Clone, Copy, Debug)]
struct QueryBudgets {
    /// The work on the async thread. To hand over a point read to another thread would cost more.
    inline: StepBudget,
    /// The work of one visit to a blocking thread. A query that was given up runs on for no longer.
    chunk: StepBudget,
    /// The time after which a page ends, even if it is empty, so that a filter that few rows pass
    /// does not run into the client's timeout.
    page_time_max: Duration,
    /// The rows that an aggregate reads as one internal page, which has a limit of its own.
    internal_page: u64,
}

const PACE: QueryBudgets = QueryBudgets {
    inline: StepBudget {
        rows: 64,
        time: Duration::from_micros(500),
        takes_large: false,
    },
    chunk: StepBudget {
        rows: 1 << 14,
        time: Duration::from_millis(20),
        takes_large: true,
    },
    page_time_max: Duration::from_secs(4),
    internal_page: 10_000,
};

/// Reads rows along the access path of a plan, and returns one page.
///
/// # Errors
/// As [`super::execute()`].
pub(super) async fn execute(
    database: &CqlDatabase,
    plan: &Arc<ResolvedSelect>,
    order: &ClusteringOrder,
    parameters: ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    execute_at(PACE, database, plan, order, parameters).await
}

async fn execute_at(
    pace: QueryBudgets,
    database: &CqlDatabase,
    plan: &Arc<ResolvedSelect>,
    order: &ClusteringOrder,
    parameters: ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let clock =
        StatementClock::start(database.storage.clock()).with_client_now(parameters.client_now_s);
    let values = EvaluationInputs {
        bound: &parameters.values,
        clock: &clock,
    };
    let table = &plan.selected.table;
    let mut warnings = warnings(plan);
    let guard = ReadGuardrails {
        guardrails: database.system.guardrails(),
        plan,
        parameters: &parameters,
    };
    // The block drops all but the cursor before the await that follows: the future would hold the
    // rest as well.
    let (mut cursor, progress, limit) = {
        let (mut partitions, mut slices) = reads(plan, values)?;
        // A reader of a log never comes back to a window, so no row may be added to it after this
        // read.
        if table.log_of.is_some() && partitions != WantedPartitions::Nothing {
            let settled = Box::pin(log::settle(&database.storage, slices, &clock)).await?;
            if settled.is_none() {
                partitions = WantedPartitions::Nothing;
            }
            slices = settled.unwrap_or_default();
        }
        note_reads(plan, &partitions, &slices);
        let wanted = wanted(table, &partitions, &slices);
        let reader = reader(database, plan, wanted, &parameters)?;
        let names_partitions = matches!(partitions, WantedPartitions::Keys(_));
        // Rows of a system table are in memory, and named partitions are mostly few: another thread
        // would cost more. A query that turns out to be long goes there after this step.
        let is_quick = matches!(reader, TableSource::Memory(_)) || names_partitions;
        // A query that a guardrail refuses must read nothing, and the first step of the cursor
        // reads rows.
        guard.check_question(&partitions, &slices, &mut warnings)?;
        let question = question(plan, order, slices);
        let cursor = page_start::cursor(
            plan,
            order,
            reader,
            question,
            partitions,
            &parameters,
            values,
        );
        let mut cursor = Box::new(cursor?);
        let progress = match is_quick || cursor.source.is_quick_lookup() {
            true => cursor.step(pace.inline),
            false => Ok(PageProgress::Unfinished),
        };
        let limit = page_limit(database, plan, names_partitions, &parameters, values)?;
        (cursor, progress.map_err(|error| guard.noted(error))?, limit)
    };
    if progress == PageProgress::Unfinished {
        let patience = ReadLimits::new(plan, &parameters, limit);
        let turns = database.storage.cpu_scheduler();
        let ran = Box::pin(run_blocking(turns, cursor, pace, patience)).await;
        cursor = ran.map_err(|error| guard.noted(error))?;
    }
    // Taken now, as `finish` consumes the cursor.
    let read = cursor.read();
    let finished = match cursor.sorts() {
        true => {
            on_blocking_thread(database.storage.cpu_scheduler(), move || cursor.finish()).await?
        }
        false => cursor.finish(),
    };
    let (page, state) = finished?;
    let rows = rows(plan, page, state);
    guard.check_read(read, rows.body.len(), &mut warnings)?;
    Ok(ExecutionResult {
        outcome: ExecutionOutcome::Rows(rows),
        warnings,
    })
}

fn rows(plan: &ResolvedSelect, page: ResultPage, state: Option<PagingState>) -> ResultRows {
    let count = page.count;
    let (body, charge) = page.into_body();
    traces::note(|| format!("Returning {count} rows of {} bytes", body.len()));
    ResultRows {
        columns: plan.projection.columns.clone(),
        body,
        count,
        charge: Some(charge),
        paging_state: state.map(|state| state.encode(plan.selected.table.id)),
    }
}

/// Notes in a trace the access path, and the partitions and slices that it leads to.
fn note_reads(plan: &ResolvedSelect, partitions: &WantedPartitions, slices: &[ClusteringSlice]) {
    traces::note(|| {
        let decided = plan.to_string();
        let decided: Vec<&str> = decided.lines().collect();
        format!("Decided: {}", decided.join("; "))
    });
    traces::note(|| {
        let table = &plan.selected.table;
        let name = format!("{}.{}", table.keyspace, table.name);
        let slices = match slices.len() {
            0 => String::new(),
            count => format!(", {count} slices of each"),
        };
        match partitions {
            WantedPartitions::Nothing => "Nothing to read, as no key can match".to_owned(),
            WantedPartitions::Keys(keys) if keys.len() == 1 => {
                format!("Executing single-partition query on {name}{slices}")
            }
            WantedPartitions::Keys(keys) => {
                format!("Reading {} partitions of {name}{slices}", keys.len())
            }
            WantedPartitions::Tokens(..) => format!("Reading a range of tokens of {name}{slices}"),
        }
    });
}

/// A walk over all rows that the access path of a plan leads to.
pub(super) struct AccessWalk<'a> {
    database: &'a CqlDatabase,
    parameters: &'a ExecutionParameters,
    plan: Arc<ResolvedSelect>,
    /// The time that a page may take.
    limit: Option<Duration>,
    /// The query under way; `None` once it has ended.
    cursor: Option<Box<QueryCursor>>,
}

impl<'a> AccessWalk<'a> {
    /// Begins a walk, whose rows a collector without pages gets.
    ///
    /// # Errors
    /// As [`super::execute()`].
    pub(super) fn begin(
        database: &'a CqlDatabase,
        collector: RowCollector,
        parameters: &'a ExecutionParameters,
        values: EvaluationInputs<'_>,
    ) -> Result<AccessWalk<'a>, CqlError> {
        let plan = collector.plan.clone();
        let (partitions, slices) = reads(&plan, values)?;
        note_reads(&plan, &partitions, &slices);
        let wanted = wanted(&plan.selected.table, &partitions, &slices);
        let reader = reader(database, &plan, wanted, parameters)?;
        // The rows are ranked by their values, so they may come in any order.
        let question = question(&plan, &ClusteringOrder::default(), slices);
        let is_named = partitions.named().is_some();
        let limit = page_limit(database, &plan, is_named, parameters, values)?;
        let rows = PartitionSequence::new(reader, question, partitions, 0, None);
        Ok(AccessWalk {
            database,
            parameters,
            limit,
            cursor: Some(Box::new(QueryCursor::new(
                RowSource::Sequence(rows),
                collector,
            ))),
            plan,
        })
    }

    /// Goes on until the collector has all rows, or can take no more of them for now.
    async fn go_on(&mut self) -> Result<Option<Box<QueryCursor>>, CqlError> {
        let Some(cursor) = self.cursor.take() else {
            return Ok(None);
        };
        let patience = ReadLimits::new(&self.plan, self.parameters, self.limit);
        let turns = self.database.storage.cpu_scheduler();
        let cursor = run_blocking(turns, cursor, PACE, patience).await?;
        Ok(Some(cursor))
    }

    /// Gives the collector all rows.
    ///
    /// # Errors
    /// As [`super::execute()`].
    pub(super) async fn collect_all(mut self) -> Result<Option<RowCollector>, CqlError> {
        let cursor = self.go_on().await?;
        Ok(cursor.map(|cursor| cursor.into_collector()))
    }

    /// The next rows that the collector batches; `None` at the end.
    ///
    /// # Errors
    /// As [`super::execute()`].
    pub(super) async fn next_batch(&mut self) -> Result<Option<Vec<Row>>, CqlError> {
        let Some(mut cursor) = self.go_on().await? else {
            return Ok(None);
        };
        let rows = cursor.collector.take_batch();
        match cursor.is_at_end {
            true => drop(cursor.into_collector()),
            false => self.cursor = Some(cursor),
        }
        Ok(Some(rows))
    }
}

/// The partitions that the access path of a plan leads to, and the slices to read of them; none for
/// all rows.
fn reads(
    plan: &ResolvedSelect,
    values: EvaluationInputs<'_>,
) -> Result<(WantedPartitions, Vec<ClusteringSlice>), CqlError> {
    let table = &plan.selected.table;
    let partitions = partitions::wanted_partitions(&plan.access.partitions, values)?;
    let count = partitions.named().unwrap_or(1);
    Ok(
        match clustering::slices(table, &plan.access.clustering, values, count)? {
            RowSlices::All => (partitions, Vec::new()),
            RowSlices::Some(slices) => (partitions, slices),
            RowSlices::Nothing => (WantedPartitions::Nothing, Vec::new()),
        },
    )
}

async fn run_blocking(
    turns: &CpuScheduler,
    mut cursor: Box<QueryCursor>,
    pace: QueryBudgets,
    mut patience: ReadLimits<'_>,
) -> Result<Box<QueryCursor>, CqlError> {
    let started = Instant::now();
    let page_time = patience.page_time(pace.page_time_max);
    let takes_together = cursor.collector.takes_together();
    let internal_page = takes_together.then_some(pace.internal_page);
    // It may have to wait for a turn.
    cursor.let_go()?;
    loop {
        let step = move || {
            let progress = cursor.step(pace.chunk);
            // In the same visit, as the wait for the next turn may be long.
            let let_go = cursor.let_go();
            let progress = progress.and_then(|progress| let_go.map(|()| progress));
            (cursor, progress)
        };
        let (back, progress) = on_blocking_thread(turns, step).await?;
        cursor = back;
        // The page ends early where it can. The rows of an aggregate and of a merge can't be paged,
        // so they go on until their own limit.
        if progress? == PageProgress::Finished
            || started.elapsed() > page_time && cursor.end_page_early()
        {
            return Ok(cursor);
        }
        patience.check(cursor.rows_read, internal_page)?;
    }
}

/// The keyspace and the table whose description a query wants, if it reads a table that describes
/// the schema and names them in its key.
fn wanted<'a>(
    table: &Table,
    partitions: &'a WantedPartitions,
    slices: &'a [ClusteringSlice],
) -> RequestedRows<'a> {
    let names_first = |columns: &[&schema::Column], name| {
        columns.first().is_some_and(|column| column.name == name)
    };
    // The rows of a system table are made for each query, so only those that it can want are made.
    let key = match partitions {
        WantedPartitions::Keys(keys) => match keys.as_slice() {
            [key] => Some(key.as_slice()),
            _ => None,
        },
        _ => None,
    };
    let keyspace = key
        .filter(|_| names_first(&table.partition_key(), "keyspace_name"))
        .and_then(|key| std::str::from_utf8(key.first()?).ok());
    if keyspace.is_none() || !names_first(&table.clustering_key(), "table_name") {
        return RequestedRows {
            keyspace,
            table: None,
            key,
        };
    }
    let one = |slice: &'a ClusteringSlice| match (&slice.start, &slice.end) {
        (ClusteringBound::Inclusive(start), ClusteringBound::Inclusive(end)) => {
            start.first().filter(|first| Some(*first) == end.first())
        }
        _ => None,
    };
    let first = slices.first().and_then(one);
    // An IN has a slice for each of its values, which may name several tables.
    let is_of_one = slices.iter().all(|slice| one(slice) == first);
    RequestedRows {
        keyspace,
        table: first
            .filter(|_| is_of_one)
            .and_then(|name| std::str::from_utf8(name).ok()),
        key,
    }
}

/// Makes the reader of a plan's table. A system table gets the rows that are `wanted`.
pub(super) fn reader(
    database: &CqlDatabase,
    plan: &ResolvedSelect,
    wanted: RequestedRows<'_>,
    parameters: &ExecutionParameters,
) -> Result<TableSource, CqlError> {
    let table = &plan.selected.table;
    if plan.selected.is_system {
        let address = parameters.server_address;
        let rows = database.system.rows(
            (&database.storage, &database.stores),
            table,
            wanted,
            address,
        )?;
        let made = memory_table::MemoryTable::new(table.clone(), rows, &parameters.memory)?;
        Ok(TableSource::Memory(made))
    } else {
        let guard = ReadGuardrails {
            guardrails: database.system.guardrails(),
            plan,
            parameters,
        };
        Ok(TableSource::Stored {
            storage: database.storage.clone(),
            client_now_s: parameters.client_now_s,
            tombstones_max: guard.tombstones_max(),
        })
    }
}

fn question(
    plan: &ResolvedSelect,
    order: &ClusteringOrder,
    slices: Vec<ClusteringSlice>,
) -> PartitionQuery {
    let table = &plan.selected.table;
    let (mut clustering, mut has_static) = (0, false);
    for column in &table.columns {
        match column.kind {
            ColumnKind::Clustering { .. } => clustering += 1,
            ColumnKind::Static => has_static = true,
            ColumnKind::PartitionKey { .. } | ColumnKind::Regular => {}
        }
    }
    PartitionQuery {
        table: table.id,
        is_of_whole_keys: plan.access.clustering.gives_whole_keys(clustering),
        static_only_rows: has_static && plan.access.wants_static_only,
        reversed: order.reversed,
        slices,
    }
}

fn warnings(plan: &ResolvedSelect) -> Vec<String> {
    let is_aggregation = plan.grouping.is_some() || !plan.projection.aggregates.is_empty();
    if !is_aggregation || plan.selected.is_system {
        return Vec::new();
    }
    match &plan.access.partitions {
        PartitionAccess::Tokens(_) => {
            vec!["Aggregation query used without partition key".to_owned()]
        }
        partitions if !partitions.is_one_partition() => {
            vec!["Aggregation query used on multiple partition keys (IN restriction)".to_owned()]
        }
        PartitionAccess::Keys(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
