//! Rows by similarity: the search for neighbours over the rows of the storage.
//!
//! The index service names the keys of the nearest rows, and the rows are read here. So an answer
//! never holds a stale row. The loop is that of [`query::search`]; this module has the rows.
//!
//! A row may get another vector between the two. If anything was written meanwhile, the scores that
//! the index in the same process has given are compared with those of the vectors that were read,
//! and the rows come in the order of these.
//!
//! The rows of the access path are read and ranked by their stored vectors, without the index,
//! where there are few of them, where the index has had no room for some rows of the table, and
//! where it can't name enough rows that satisfy WHERE.
//!
//! If the index keeps all that WHERE and the selection need, the index service in the same process
//! answers without rows at the consistency of one replica. It knows every acknowledged write, so
//! its values are those of the rows.
//!
//! Rows are read in turns (`blocking`), and those that were read and not used yet are charged to
//! the client's memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client_memory::{MemoryAccount, MemoryCharge};
use cpu_scheduler::CpuScheduler;
use cql::error::CqlError;
use futures::stream::{self, StreamExt};
use query::bind::StatementClock;
use query::search::{
    self, RanksRows, ReadRows, RowSearch, SearchCursor, SearchFreshness, SearchPredicate,
    SearchWarning, SearchedRows, ServedIndexes, VectorOrdering,
};
use query::values::EvaluationInputs;
use query::{TopScored, bounds, condition, key_values, limit, reads_one_replica, refused};
use schema::{Column, ColumnKind};
use storage::TableView;
use storage::read::{Cell, LiveCell, NextRow, Partition, Row, RowPosition};
use store_api::{ClientError, KeyValue, NearestRows};
use tokio::time::Instant;
use value::token::routing_key;

use super::access::PartitionAccess;
use super::blocking::on_blocking_thread;
use super::collector::{RowCollector, RowSink, VectorRanking};
use super::execute::collect_all;
use super::filter::{self, ResidualFilter};
use super::nearest::NearestOrder;
use super::page::ResultPage;
use super::paging::PagingState;
use super::plan::ResolvedSelect;
use super::retained_rows::{LARGE_BYTES, charge_rows};
use crate::database::CqlDatabase;
use crate::statement::{
    ExecutionOutcome, ExecutionParameters, ExecutionResult, ResultRows, storage_error,
};

/// The time for which rows are read on the async thread. To hand over a few reads to another thread
/// would cost more.
const INLINE_TIME: Duration = Duration::from_millis(1);
/// The number of rows that are read in one visit to a blocking thread.
const CHUNK_ROWS: usize = 64;
/// The bytes of rows after which a visit to a blocking thread ends. The rest takes another visit.
const CHUNK_BYTES: usize = 1 << 20;
/// The most visits at the same time for one query.
const CHUNKS_AT_ONCE: usize = 4;

/// A primary key: the serialised values of the partition key and of the clustering key.
type Key = (Vec<Bytes>, Vec<Bytes>);

/// Finds the nearest rows of a plan, and returns them as one page.
///
/// # Errors
/// A LIMIT or vector that is not allowed, and failures of the index service and of the storage.
pub(super) async fn execute(
    database: &CqlDatabase,
    plan: &Arc<ResolvedSelect>,
    order: &NearestOrder,
    parameters: ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let clock =
        StatementClock::start(database.storage.clock()).with_client_now(parameters.client_now_s);
    let values = EvaluationInputs {
        bound: &parameters.values,
        clock: &clock,
    };
    let limit = bounds::checked_limit(limit::evaluate(plan.limit.as_ref(), values)?)?;
    let vector = order.vector.evaluate(values)?;
    order
        .vector
        .check_length(&vector, order.candidates.metric)?;
    let terms = values.selection(&plan.projection.terms)?;
    let conditions = order.conditions.iter();
    let relations = conditions.map(|condition| &condition.relation);
    let filters = filter::bind_all(relations, values)?;
    let execution = NearestExecution {
        database,
        plan,
        order,
        parameters: &parameters,
        clock: &clock,
        terms,
        filters,
        limit,
    };
    let key_columns = order.key_columns.iter();
    let indexes = ServedIndexes {
        stores: &database.stores,
        key_columns: key_columns.map(|column| column.name.as_str()).collect(),
    };
    let search = execution.search(vector);
    let mut rows = ViewRows::of(&execution);
    search::run(&search, &indexes, &mut rows).await?;
    let page = rows.into_page()?;
    let mut warnings = Vec::new();
    if bounds::is_cut_short(parameters.page_size, limit) {
        warnings.push(bounds::PAGING_WARNING.to_owned());
    }
    let count = page.count;
    let (body, charge) = page.into_body();
    Ok(ExecutionResult {
        outcome: ExecutionOutcome::Rows(ResultRows {
            columns: plan.projection.columns.clone(),
            body,
            count,
            paging_state: None,
            charge: Some(charge),
        }),
        warnings,
    })
}

/// One execution of a query for neighbours.
struct NearestExecution<'a> {
    database: &'a CqlDatabase,
    plan: &'a Arc<ResolvedSelect>,
    order: &'a NearestOrder,
    parameters: &'a ExecutionParameters,
    clock: &'a StatementClock,
    /// The values of the terms in the selection; `None` for null.
    terms: Vec<Option<Bytes>>,
    /// The filters that a row must pass, all of them.
    filters: Vec<ResidualFilter>,
    limit: usize,
}

impl NearestExecution<'_> {
    /// The search for the rows nearest to a vector, which is serialised.
    fn search(&self, vector: Bytes) -> RowSearch<'_> {
        let order = self.order;
        let partition_key = order.key_columns[..order.partition_columns].iter();
        let partition_key: Vec<String> = partition_key.map(|column| column.name.clone()).collect();
        let predicates = condition::predicates(&order.conditions, &self.filters, |filter, of| {
            Some(SearchPredicate {
                predicate: filter.predicate(of, &partition_key)?,
                // The index service itself leaves out conditions on columns that it is to keep but
                // does not yet.
                is_named: true,
            })
        });
        let covered = order
            .covered
            .as_ref()
            .filter(|_| self.may_do_without_rows());
        let names = |columns: &Vec<Column>| {
            let names = columns.iter().map(|column| column.name.clone());
            names.collect()
        };
        RowSearch {
            orderings: vec![VectorOrdering {
                keyspace: &self.plan.selected.table.keyspace,
                index: &order.index.name,
                vector,
                candidates: &order.candidates,
                exact: order.options.exact,
            }],
            predicates,
            conditions: self.filters.len(),
            limit: self.limit,
            cursor: SearchCursor::default(),
            freshness: SearchFreshness::default(),
            returned: covered.map(names),
            ranks_rows: RanksRows::Always,
        }
    }

    /// Whether an index may answer by its values. It knows no other present than this
    /// machine's.
    fn may_do_without_rows(&self) -> bool {
        reads_one_replica(self.parameters.consistency)
            && self.database.stores.are_local()
            && self.parameters.client_now_s.is_none()
    }

    /// An empty collector of the answer's rows, of which LIMIT are enough.
    fn page(&self) -> RowCollector {
        let page = ResultPage::new(None, &self.parameters.memory);
        self.collector(RowSink::Page(page), Some(self.limit as u32))
    }

    fn collector(&self, output: RowSink, remaining: Option<u32>) -> RowCollector {
        RowCollector {
            plan: self.plan.clone(),
            clock: self.clock.clone(),
            terms: self.terms.clone(),
            filters: self.filters.clone(),
            output,
            memory: self.parameters.memory.clone(),
            held: self.parameters.memory.charge(),
            returned_by_slot: Vec::new(),
            per_partition_max: None,
            partitions: None,
            state: PagingState {
                remaining,
                ..PagingState::default()
            },
            has_moved: false,
        }
    }
}

/// The rows of the storage, and the page that is made of them.
struct ViewRows<'a> {
    execution: &'a NearestExecution<'a>,
    /// The last commit before an index was queried; `None` if one was under way.
    before: Option<u64>,
    /// The rows as they were after that; `None` before.
    view: Option<TableView>,
    /// The time until which rows are read on the async thread, unless one is large.
    inline_until: Instant,
    /// Whether rows are so large that a visit to a blocking thread ends before its last row. Then
    /// there is one visit at a time, as others would read rows ahead that are held meanwhile.
    are_large: bool,
    /// Whether rows are held until all are read, as they are put in order.
    holds_rows: bool,
    /// The memory that the rows which are held are charged for.
    held: Vec<MemoryCharge>,
    /// The collector of the rows of the answer.
    collector: RowCollector,
    /// The page of all rows, if they were ranked.
    ranked: Option<ResultPage>,
}

impl<'a> ViewRows<'a> {
    fn of(execution: &'a NearestExecution<'a>) -> ViewRows<'a> {
        ViewRows {
            execution,
            before: None,
            view: None,
            inline_until: Instant::now(),
            are_large: false,
            holds_rows: false,
            held: Vec::new(),
            collector: execution.page(),
            ranked: None,
        }
    }

    /// The rows of the table as they are now.
    fn view_now(&self) -> Result<TableView, CqlError> {
        let NearestExecution {
            database,
            plan,
            parameters,
            ..
        } = self.execution;
        let table = plan.selected.table.id;
        let view = database.storage.view_at(table, parameters.client_now_s);
        view.map_err(storage_error)
    }

    /// The means to read rows as they were after an index was queried.
    fn reading(&self) -> Result<RowReadContext, CqlError> {
        let NearestExecution {
            database,
            parameters,
            ..
        } = self.execution;
        Ok(RowReadContext {
            view: match &self.view {
                Some(view) => view.clone(),
                None => self.view_now()?,
            },
            turns: database.storage.cpu_scheduler().clone(),
            memory: parameters.memory.clone(),
        })
    }

    /// Reads the rows of the first keys on the async thread, and takes these keys away, until a row
    /// is large or the time for it is over.
    fn read_inline(
        &mut self,
        view: &TableView,
        keys: &mut VecDeque<Key>,
    ) -> Result<Vec<Option<Row>>, CqlError> {
        let mut rows = Vec::with_capacity(keys.len());
        while Instant::now() < self.inline_until
            && let Some(key) = keys.front()
        {
            rows.push(match read_row(view, key, LARGE_BYTES)? {
                NextRow::Row(row) => Some(row),
                NextRow::Nothing => None,
                NextRow::Large => {
                    // Rows of a table are mostly alike, so the others go to a blocking thread at
                    // once.
                    self.inline_until = Instant::now();
                    break;
                }
            });
            keys.pop_front();
        }
        Ok(rows)
    }

    /// Reads the rows of the first of these keys on blocking threads, and appends them to `rows`.
    /// Returns the keys that are left, as the rows before them are large.
    async fn read_chunks(
        &mut self,
        reading: &RowReadContext,
        keys: Vec<Key>,
        rows: &mut Vec<Option<Row>>,
    ) -> Result<Vec<Key>, CqlError> {
        let keys: Arc<[Key]> = keys.into();
        let at_once = if self.are_large { 1 } else { CHUNKS_AT_ONCE };
        let begins = (0..keys.len()).step_by(CHUNK_ROWS).take(at_once);
        let mut chunks = stream::iter(begins)
            .map(|begin| read_chunk(reading, &keys, begin))
            .buffered(CHUNKS_AT_ONCE);
        let mut read = 0;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            let is_cut = chunk.rows.len() < CHUNK_ROWS;
            read += chunk.rows.len();
            rows.extend(chunk.rows);
            self.held.push(chunk.charge);
            // Rows between this chunk and the next are missing, so what the next ones have read is
            // dropped.
            if is_cut && read < keys.len() {
                self.are_large = true;
                break;
            }
        }
        Ok(keys.get(read..).unwrap_or_default().to_vec())
    }

    fn into_page(self) -> Result<ResultPage, CqlError> {
        match self.ranked {
            Some(page) => Ok(page),
            None => self.collector.finish(false).map(|(page, _)| page),
        }
    }
}

impl SearchedRows for ViewRows<'_> {
    type Key = Key;
    type Row = Row;
    type Error = CqlError;

    const KEYS_AT_ONCE: usize = CHUNK_ROWS * CHUNKS_AT_ONCE;

    fn key(&self, sent: &[KeyValue]) -> Option<Key> {
        read_key(self.execution.order, sent)
    }

    fn begin(&mut self) {
        // Before an index is searched, so that each commit from here on counts as a change.
        self.before = self.execution.database.storage.last_commit();
        self.view = None;
        self.held.clear();
        self.collector = self.execution.page();
    }

    fn open(&mut self) -> Result<bool, CqlError> {
        self.view = Some(self.view_now()?);
        self.inline_until = Instant::now() + INLINE_TIME;
        let NearestExecution {
            database, order, ..
        } = self.execution;
        // The last commit is read after the view is taken: one between the two is in the view.
        let has_changed = self.before.is_none() || self.before != database.storage.last_commit();
        // Scores of quantized vectors differ from those of the stored ones in any case.
        let is_told_exactly = order.candidates.is_exact && database.stores.are_local();
        let may_differ = has_changed && is_told_exactly;
        self.holds_rows = may_differ || order.candidates.rescoring.is_some();
        Ok(may_differ)
    }

    async fn read(&mut self, keys: Vec<Key>) -> Result<ReadRows<Key, Row>, CqlError> {
        if !self.holds_rows {
            // The rows that were read before are put.
            self.held.clear();
        }
        let reading = self.reading()?;
        let mut keys = VecDeque::from(keys);
        let mut rows = self.read_inline(&reading.view, &mut keys)?;
        let mut unread = Vec::from(keys);
        if !unread.is_empty() {
            let reading_chunks = self.read_chunks(&reading, unread, &mut rows);
            unread = Box::pin(reading_chunks).await?;
        }
        Ok(ReadRows { rows, unread })
    }

    fn is_match(&self, row: &Row) -> bool {
        // A row without a vector is no neighbour any more.
        self.vector(row).is_some() && self.collector.passes(row)
    }

    fn vector<'r>(&self, row: &'r Row) -> Option<&'r [u8]> {
        let vector = self.execution.order.place.value(row)?;
        Some(&vector[..])
    }

    fn put(&mut self, row: Row) -> Result<(), CqlError> {
        self.collector.take(0, row)?;
        Ok(())
    }

    /// Whether the access path leads to few rows: it gives whole primary keys, or whole partitions
    /// within which the index can't search by every relation.
    fn are_few(&self, is_whole: bool) -> bool {
        let NearestExecution { plan, order, .. } = self.execution;
        let clustering_columns = order.key_columns.len() - order.partition_columns;
        let access = &plan.access;
        matches!(access.partitions, PartitionAccess::Keys(_))
            && (!is_whole || access.clustering.gives_whole_keys(clustering_columns))
    }

    async fn rank_all(
        &mut self,
        ordering: &VectorOrdering<'_>,
        span: Range<usize>,
    ) -> Result<(), CqlError> {
        let execution = self.execution;
        let ranking = VectorRanking {
            nearest: TopScored::new(span.end),
            metric: ordering.candidates.metric,
            vector: ordering.vector.clone(),
            place: execution.order.place,
            passed: span.start,
        };
        // Without a limit: the nearest row may be the last one that is read.
        let collector = execution.collector(RowSink::Ranking(ranking), None);
        let values = EvaluationInputs {
            bound: &execution.parameters.values,
            clock: execution.clock,
        };
        let page = collect_all(execution.database, collector, execution.parameters, values);
        self.ranked = Some(page.await?);
        Ok(())
    }

    async fn permit(&mut self) -> Result<(), CqlError> {
        Ok(())
    }

    fn put_values(&mut self, found: &NearestRows, span: Range<usize>) -> Result<bool, CqlError> {
        let NearestExecution { plan, order, .. } = self.execution;
        let columns = order.covered.as_deref().unwrap_or_default();
        let keys = found.keys.iter().enumerate();
        for (at, key) in keys.take(span.end).skip(span.start) {
            let values = found.column_values.iter().map(|values| values.get(at));
            let row = covered_row(plan, order, key, columns.iter().zip(values));
            let Some(row) = row else {
                return Ok(false);
            };
            self.collector.take(0, row)?;
        }
        Ok(true)
    }

    /// The node ranks rows in place of an answer that may lack some.
    fn warn(&mut self, _: SearchWarning) {}

    fn search_failed(&self, error: ClientError) -> CqlError {
        refused(error)
    }
}

fn read_key(order: &NearestOrder, key: &[KeyValue]) -> Option<Key> {
    let types = order.key_columns.iter();
    let mut values = key_values(types.map(|column| Some(&column.cql_type)), key)?;
    let clustering = values.split_off(order.partition_columns);
    Some((values, clustering))
}

/// A row made of what the index keeps of it; `None` if a value is not as CQL serialises it. A
/// column without a value is null.
fn covered_row<'a>(
    plan: &ResolvedSelect,
    order: &NearestOrder,
    key: &[KeyValue],
    values: impl Iterator<Item = (&'a Column, Option<&'a Option<KeyValue>>)>,
) -> Option<Row> {
    let (partition, clustering) = read_key(order, key)?;
    let mut static_cells = Vec::new();
    let mut cells = Vec::new();
    for (column, value) in values {
        let value = match value? {
            Some(KeyValue::Cql(value)) => value.clone(),
            Some(KeyValue::Json(_)) => return None,
            None => continue,
        };
        let cell = LiveCell {
            value,
            // A selection of times is read from rows.
            timestamp: 0,
            expiry: None,
        };
        let of_kind = match column.kind {
            ColumnKind::Static => &mut static_cells,
            _ => &mut cells,
        };
        of_kind.push((column.id, Cell::Simple(cell)));
    }
    // Rows have their cells in the order of the columns' ids.
    static_cells.sort_by_key(|(column, _)| *column);
    cells.sort_by_key(|(column, _)| *column);
    let partitioner = plan.selected.table.partitioner;
    Some(Row {
        partition: Arc::new(Partition {
            token: partitioner.token(&routing_key(&partition)),
            key: partition,
            static_cells,
        }),
        clustering: Some(clustering),
        cells,
        // The answer has one page.
        position: RowPosition(Bytes::new()),
    })
}

/// The means to read rows.
#[derive(Clone)]
struct RowReadContext {
    view: TableView,
    turns: CpuScheduler,
    memory: MemoryAccount,
}

/// The rows of some keys, in the order of these. A row that is deleted is `None`.
struct RowChunk {
    rows: Vec<Option<Row>>,
    /// The memory that the rows are charged for.
    charge: MemoryCharge,
}

/// Reads the rows of the keys from one on, on a blocking thread and in a turn: those of a chunk, or
/// fewer if they are large.
async fn read_chunk(
    reading: &RowReadContext,
    keys: &Arc<[Key]>,
    begin: usize,
) -> Result<RowChunk, CqlError> {
    let RowReadContext {
        view,
        turns,
        memory,
    } = reading.clone();
    let keys = Arc::clone(keys);
    let work = move || -> Result<RowChunk, CqlError> {
        let mut keys = keys.iter().skip(begin).take(CHUNK_ROWS);
        let mut charge = memory.charge();
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while bytes < CHUNK_BYTES
            && let Some(key) = keys.next()
        {
            let row = match read_row(&view, key, usize::MAX)? {
                NextRow::Row(row) => Some(row),
                NextRow::Nothing | NextRow::Large => None,
            };
            bytes += row.as_ref().map_or(0, Row::memory_bytes);
            rows.push(row);
        }
        charge_rows(&mut charge, bytes)?;
        Ok(RowChunk { rows, charge })
    };
    on_blocking_thread(&turns, work).await?
}

fn read_row(
    view: &TableView,
    (partition, clustering): &Key,
    record_bytes_max: usize,
) -> Result<NextRow, CqlError> {
    let looked_up = view.row_within(partition, clustering, record_bytes_max);
    looked_up.map_err(storage_error)
}
