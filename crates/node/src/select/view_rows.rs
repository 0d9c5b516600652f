//! The rows of the storage for a search: a view of them, as it is after an index was queried.
//!
//! A row may get another vector or text between the two. If anything was written meanwhile, the
//! scores that the indexes in the same process have given are compared with those of the values
//! that were read, and the rows come in the order of these.
//!
//! The rows of the access path are read and ranked by their stored values, without the index,
//! where there are few of them, where the index has had no room for some rows of the table, and
//! where it can't name enough rows that satisfy WHERE.
//!
//! Rows are read in turns (`blocking`), and those that were read and not used yet are charged to
//! the client's memory. Where the selection shows places in texts, the rows of the answer are held
//! until the index service has found these.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client_memory::{MemoryAccount, MemoryCharge};
use cpu_scheduler::CpuScheduler;
use cql::error::CqlError;
use futures::stream::{self, StreamExt};
use query::search::{ReadRows, SearchHit, SearchWarning, SearchedRows, ValueOf, VectorOrdering};
use query::{TopScored, key_values, refused};
use schema::{Column, ColumnKind};
use storage::TableView;
use storage::read::{Cell, LiveCell, NextRow, Partition, Row, RowPosition};
use store_api::{ClientError, ColumnsPredicate, KeyValue, NearestRows};
use tokio::time::Instant;
use value::token::routing_key;

use super::access::PartitionAccess;
use super::blocking::on_blocking_thread;
use super::collector::{CollectedBatch, RowCollector, RowSink, VectorRanking};
use super::execute::AccessWalk;
use super::hits::RowWithHits;
use super::page::ResultPage;
use super::plan::ResolvedSelect;
use super::retained_rows::{LARGE_BYTES, charge_rows};
use super::search_execution::SearchExecution;
use super::searches::SearchOrder;
use crate::statement::storage_error;

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
pub(super) type Key = (Vec<Bytes>, Vec<Bytes>);

/// The rows of the storage, and the page that is made of them.
pub(super) struct ViewRows<'a> {
    execution: &'a SearchExecution<'a>,
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
    /// The rows of the answer, if the selection shows of their texts.
    pending: Vec<RowWithHits>,
    /// The walk along the access path, once it has begun.
    walk: Option<AccessWalk<'a>>,
    /// The collector of the rows of the answer.
    pub collector: RowCollector,
}

impl<'a> ViewRows<'a> {
    pub(super) fn of(execution: &'a SearchExecution<'a>) -> ViewRows<'a> {
        ViewRows {
            execution,
            before: None,
            view: None,
            inline_until: Instant::now(),
            are_large: false,
            holds_rows: false,
            held: Vec::new(),
            pending: Vec::new(),
            walk: None,
            collector: execution.page(),
        }
    }

    /// Takes notice of the time, before an index is searched.
    pub(super) fn look(&mut self) {
        // Before an index is searched, so that each commit from here on counts as a change.
        self.before = self.execution.database.storage.last_commit();
        self.view = None;
        self.held.clear();
    }

    /// The rows of the table as they are now.
    fn view_now(&self) -> Result<TableView, CqlError> {
        let SearchExecution {
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
        let SearchExecution {
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

    pub(super) async fn into_page(mut self) -> Result<ResultPage, CqlError> {
        let mut pending = std::mem::take(&mut self.pending);
        if !pending.is_empty() {
            let execution = self.execution;
            let predicates = execution.predicates().into_iter();
            let predicates: Vec<ColumnsPredicate> = predicates.map(|one| one.predicate).collect();
            let stores = &execution.database.stores;
            let completed = execution.slots.complete(stores, &predicates, &mut pending);
            Box::pin(completed).await?;
            for RowWithHits { row, hits } in pending {
                self.collector.hits = hits;
                self.collector.take(0, row)?;
            }
        }
        self.collector.finish(false).map(|(page, _)| page)
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
        self.look();
        self.pending.clear();
        self.walk = None;
        self.collector = self.execution.page();
    }

    fn open(&mut self, holds: bool) -> Result<bool, CqlError> {
        self.view = Some(self.view_now()?);
        self.inline_until = Instant::now() + INLINE_TIME;
        let database = self.execution.database;
        // The last commit is read after the view is taken: one between the two is in the view.
        let has_changed = self.before.is_none() || self.before != database.storage.last_commit();
        let may_differ = has_changed && database.stores.are_local();
        self.holds_rows = holds || may_differ || self.execution.slots.need_texts();
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
        // A row without a vector or text is none of the one search any more.
        let is_there = !self.execution.is_single() || self.value(row, ValueOf::Search(0)).is_some();
        is_there && self.collector.passes(row)
    }

    fn value<'r>(&self, row: &'r Row, of: ValueOf) -> Option<&'r Bytes> {
        let execution = self.execution;
        let target = match of {
            ValueOf::Search(at) => {
                let (call, _) = execution.searches.searches.get(at)?;
                execution.order.targets.get(*call)?
            }
            ValueOf::Condition(at) => execution.words.get(at)?.0,
        };
        target.place.value(row)
    }

    fn put(&mut self, row: Row, hits: &[SearchHit]) -> Result<(), CqlError> {
        let slots = &self.execution.slots;
        let hits = slots.values(hits);
        if slots.need_texts() {
            self.pending.push(RowWithHits { row, hits });
            return Ok(());
        }
        self.collector.hits = hits;
        self.collector.take(0, row)?;
        Ok(())
    }

    /// Whether the access path leads to few rows: it gives whole primary keys, or whole partitions
    /// within which the index can't search by every relation.
    fn are_few(&self, is_whole: bool) -> bool {
        let SearchExecution { plan, order, .. } = self.execution;
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
        let Some(place) = execution.order.targets.first().map(|target| target.place) else {
            return Ok(());
        };
        let ranking = VectorRanking {
            nearest: TopScored::new(span.end),
            metric: ordering.candidates.metric,
            vector: ordering.vector.clone(),
            place,
        };
        // Without a limit: the nearest row may be the last one that is read.
        let collector = execution.collector(RowSink::Ranking(ranking), None);
        let (database, parameters) = (execution.database, execution.parameters);
        let walk = AccessWalk::begin(database, collector, parameters, execution.values())?;
        let Some(collector) = walk.collect_all().await? else {
            return Ok(());
        };
        let (rows, charge) = collector.into_ranked();
        self.held.push(charge);
        for (at, (row, score)) in rows.into_iter().enumerate().skip(span.start) {
            self.put(row, &[SearchHit::at(at, score)])?;
        }
        Ok(())
    }

    async fn scan(&mut self) -> Result<Option<Vec<(Key, Row)>>, CqlError> {
        let execution = self.execution;
        let walk = match &mut self.walk {
            Some(walk) => walk,
            none => {
                let collector =
                    execution.collector(RowSink::Batch(CollectedBatch::default()), None);
                let (database, parameters) = (execution.database, execution.parameters);
                none.insert(AccessWalk::begin(
                    database,
                    collector,
                    parameters,
                    execution.values(),
                )?)
            }
        };
        let Some(rows) = walk.next_batch().await? else {
            return Ok(None);
        };
        // A partition of static columns only has no key by which a row is read.
        let keyed = rows.into_iter().filter_map(|row| {
            let clustering = row.clustering.clone()?;
            Some(((row.partition.key.clone(), clustering), row))
        });
        Ok(Some(keyed.collect()))
    }

    async fn permit(&mut self) -> Result<(), CqlError> {
        Ok(())
    }

    fn put_values(
        &mut self,
        found: &NearestRows,
        hits: &[SearchHit],
        span: Range<usize>,
    ) -> Result<bool, CqlError> {
        let SearchExecution { plan, order, .. } = self.execution;
        let columns = order.covered.as_deref().unwrap_or_default();
        let hits_each = hits.len() / found.keys.len().max(1);
        let keys = found.keys.iter().enumerate();
        for (at, key) in keys.take(span.end).skip(span.start) {
            let values = found.column_values.iter().map(|values| values.get(at));
            let row = covered_row(plan, order, key, columns.iter().zip(values));
            let Some(row) = row else {
                return Ok(false);
            };
            let of_row = hits.get(at * hits_each..(at + 1) * hits_each);
            self.put(row, of_row.unwrap_or_default())?;
        }
        Ok(true)
    }

    /// The node ranks rows in place of an answer that may lack some.
    fn warn(&mut self, _: SearchWarning) {}

    fn search_failed(&self, error: ClientError) -> CqlError {
        refused(error)
    }
}

fn read_key(order: &SearchOrder, key: &[KeyValue]) -> Option<Key> {
    let types = order.key_columns.iter();
    let mut values = key_values(types.map(|column| Some(&column.cql_type)), key)?;
    let clustering = values.split_off(order.partition_columns);
    Some((values, clustering))
}

/// A row made of what the index keeps of it; `None` if a value is not as CQL serialises it. A
/// column without a value is null.
fn covered_row<'a>(
    plan: &ResolvedSelect,
    order: &SearchOrder,
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
        // No value of the answer is of the marker.
        marker: None,
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
