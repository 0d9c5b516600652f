//! Rows by similarity: asks the index service for neighbours and reads their rows.
//!
//! The index service names the keys of the nearest rows, and the rows are read here. So an answer
//! never holds a stale row. A row that has been deleted or has lost its vector, or that WHERE
//! leaves out, is passed over, and the next neighbours take its place ([`query::refill`]). If an
//! index keeps its vectors quantized and `rescoring` is on, the candidates are put in order again
//! by their stored vectors.
//!
//! A row may get another vector between the two. If anything was written meanwhile, `ranks`
//! compares the scores that the index service in the same process has told with those of the
//! vectors that were read, and puts the rows in the order of these. A row that is farther away than
//! all that were named is made up for as one that is gone.
//!
//! The index service gets the relations of WHERE as a filter, as far as it keeps their columns. The
//! rows are checked for all of them. Where that leaves too few of all the neighbours that one
//! answer can name, the rows of the access path are read instead, and ranked by their stored
//! vectors. The same is done from the start where the access path names few rows, and where the
//! index has had no room for some rows of the table.
//!
//! Rows are read in turns (`blocking`), and those that were read and not used yet are charged to
//! the client's memory.
//!
//! If the index keeps all that WHERE and the selection need, the index service in the same process
//! answers alone at the consistency of one replica (`covered_page`). It knows every
//! acknowledged write, so its values are those of the rows.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use client_memory::{Account, Charge};
use cql::error::CqlError;
use futures::stream::{self, StreamExt};
use index::Metric;
use query::bind::StatementClock;
use query::refill::Refill;
use query::values::Values;
use query::{Nearest, asks_one_replica, bounds, condition, key_values, limit, refused};
use schema::{Column, ColumnKind};
use storage::read::{Cell, LiveCell, Next, Partition, Position, Row, View};
use store_api::types::{self, AnnRequest, Restriction};
use store_api::{ClientError, KeyValue, Neighbours};
use tokio::time::Instant;
use turns::Turns;
use value::token::routing_key;

use super::access::PartitionAccess;
use super::blocking::on_blocking_thread;
use super::collector::{Collector, Output, Progress, Ranking};
use super::execute::collect_all;
use super::filter::{self, Filter};
use super::held::{LARGE_BYTES, charge_rows};
use super::nearest::NearestOrder;
use super::page::Page;
use super::paging::PagingState;
use super::plan::Resolved;
use super::ranks::Ranks;
use crate::answer::{Answer, Outcome, Rows};
use crate::database::Database;
use crate::failure::storage_error;
use crate::parameters::Parameters;

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

/// A row that the index service has named.
struct Named {
    key: Key,
    /// The similarity score of the row, as the index has it.
    score: f32,
}

/// Finds the nearest rows of a plan, and returns them as one page.
///
/// # Errors
/// A LIMIT or vector that is not allowed, and failures of the index service and of the storage.
pub(super) async fn execute(
    database: &Database,
    plan: &Arc<Resolved>,
    order: &NearestOrder,
    parameters: Parameters,
) -> Result<Answer, CqlError> {
    let clock = StatementClock::start(database.storage.clock()).told(parameters.told_s);
    let values = Values {
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
    let search = Search {
        database,
        plan,
        order,
        parameters: &parameters,
        clock: &clock,
        terms,
        filters,
        vector,
        limit,
    };
    let page = search.whole_page().await?;
    let mut warnings = Vec::new();
    if bounds::is_cut_short(parameters.page_size, limit) {
        warnings.push(bounds::PAGING_WARNING.to_owned());
    }
    let count = page.count;
    let (body, charge) = page.into_body();
    Ok(Answer {
        outcome: Outcome::Rows(Rows {
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
struct Search<'a> {
    database: &'a Database,
    plan: &'a Arc<Resolved>,
    order: &'a NearestOrder,
    parameters: &'a Parameters,
    clock: &'a StatementClock,
    /// The values of the terms in the selection; `None` for null.
    terms: Vec<Option<Bytes>>,
    /// The filters that a row must pass, all of them.
    filters: Vec<Filter>,
    /// The vector to look for, serialised.
    vector: Bytes,
    limit: usize,
}

impl Search<'_> {
    /// The page of the nearest rows: LIMIT of them, or all that match.
    async fn whole_page(&self) -> Result<Page, CqlError> {
        let restrictions = self.restrictions();
        let is_whole_filter = restrictions.len() == self.filters.len();
        if self.reads_few_rows(is_whole_filter) {
            traces::note(|| "The access path leads to few rows, so they are all ranked".to_owned());
            return self.scanned_page().await;
        }
        let filter = condition::search_filter(restrictions);
        if is_whole_filter && let Some(page) = self.covered_page(filter.as_ref()).await? {
            return Ok(page);
        }
        let mut requested = self.order.candidates.wanted(self.limit);
        loop {
            let before = self.database.storage.last_commit();
            let Some(named) = self.candidates(requested, filter.clone()).await? else {
                return self.scanned_page().await;
            };
            let count = named.len();
            let (page, alive) = self.page(named, before).await?;
            match Refill::after(self.limit, requested, count, alive) {
                Refill::Whole => return Ok(page),
                Refill::Short => {
                    let why = "The index can't name enough rows that match, so all are ranked";
                    traces::note(|| why.to_owned());
                    return self.scanned_page().await;
                }
                // To read the same rows again costs little beside the search, as they are in memory
                // now.
                Refill::Ask(more) => {
                    traces::note(|| {
                        format!("Too few rows match: refilling with {more} candidates")
                    });
                    requested = more;
                }
            }
        }
    }

    /// The page of the nearest rows by what the index keeps of them. `filter` has all relations.
    /// `None` if rows have to be read.
    async fn covered_page(&self, filter: Option<&types::Filter>) -> Result<Option<Page>, CqlError> {
        let is_of_one = asks_one_replica(self.parameters.consistency);
        let Some(columns) = self.order.covered.as_ref().filter(|_| is_of_one) else {
            return Ok(None);
        };
        // The index knows no other present than this machine's.
        if !self.database.stores.are_local() || self.parameters.told_s.is_some() {
            return Ok(None);
        }
        let names = columns.iter().map(|column| column.name.clone());
        let search = AnnRequest {
            filter: filter.cloned(),
            return_columns: Some(names.collect()),
            ..self.search(self.order.candidates.wanted(self.limit))
        };
        let neighbours = match self.ask(search).await {
            Ok(neighbours) => neighbours,
            // The values may be too many bytes for one answer. Rows are read one after another.
            Err(ClientError::Status { .. }) => return Ok(None),
            Err(error) => return Err(refused(error)),
        };
        if neighbours.is_short {
            note_short();
            return self.scanned_page().await.map(Some);
        }
        traces::note(|| {
            let named = neighbours.keys.len();
            format!("The index named {named} rows with their values, so no rows are read")
        });
        let mut collector = self.collector();
        for (at, key) in neighbours.keys.iter().enumerate() {
            let values = neighbours.column_values.iter().map(|values| values.get(at));
            let row = covered_row(self.plan, self.order, key, columns.iter().zip(values));
            let row = row.ok_or_else(|| refused(ClientError::InvalidBinary))?;
            if collector.take(0, row)? == Progress::Finished {
                break;
            }
        }
        let (page, _) = collector.finish(false)?;
        Ok(Some(page))
    }

    /// The relations that the index can search by.
    fn restrictions(&self) -> Vec<Restriction> {
        let order = self.order;
        let partition_key = order.key_columns[..order.partition_columns].iter();
        let partition_key: Vec<String> = partition_key.map(|column| column.name.clone()).collect();
        condition::restrictions(&order.conditions, &self.filters, |filter, relation| {
            filter.restriction(relation, &partition_key)
        })
    }

    /// Whether the access path leads to few rows: it gives whole primary keys, or whole partitions
    /// within which the index can't search by every relation.
    fn reads_few_rows(&self, is_whole_filter: bool) -> bool {
        let clustering_columns = self.order.key_columns.len() - self.order.partition_columns;
        let access = &self.plan.access;
        matches!(access.partitions, PartitionAccess::Keys(_))
            && (!is_whole_filter || access.clustering.gives_whole_keys(clustering_columns))
    }

    /// Reads all rows of the access path and ranks them by their vectors.
    async fn scanned_page(&self) -> Result<Page, CqlError> {
        let keyspace = &self.plan.selected.table.keyspace;
        let stores = &self.database.stores;
        stores.ranked_rows(keyspace, &self.order.index.name);
        let values = Values {
            bound: &self.parameters.values,
            clock: self.clock,
        };
        let collector = self.ranking(self.order.candidates.metric);
        collect_all(self.database, collector, self.parameters, values).await
    }

    /// Asks the index service for the `wanted` nearest rows. The nearest come first. `None` if the
    /// index has had no room for some rows of the table.
    async fn candidates(
        &self,
        wanted: usize,
        filter: Option<types::Filter>,
    ) -> Result<Option<Vec<Named>>, CqlError> {
        let search = AnnRequest {
            filter,
            ..self.search(wanted)
        };
        let neighbours = self.ask(search).await.map_err(refused)?;
        if neighbours.is_short {
            note_short();
            return Ok(None);
        }
        traces::note(|| format!("The index named {} rows", neighbours.keys.len()));
        let named = neighbours.keys.iter().zip(neighbours.similarity_scores);
        let named = named.map(|(key, score)| {
            let key = read_key(self.order, key);
            let key = key.ok_or_else(|| refused(ClientError::InvalidJson))?;
            Ok(Named { key, score })
        });
        named.collect::<Result<_, _>>().map(Some)
    }

    /// A search for the `wanted` nearest rows.
    fn search(&self, wanted: usize) -> AnnRequest {
        AnnRequest {
            exact: self.order.options.exact,
            ..AnnRequest::new(bounds::elements(&self.vector), wanted)
        }
    }

    /// Asks the index service.
    async fn ask(&self, search: AnnRequest) -> Result<Neighbours, ClientError> {
        let (keyspace, order) = (&self.plan.selected.table.keyspace, self.order);
        let names = order.key_columns.iter().map(|column| column.name.as_str());
        let names: Vec<&str> = names.collect();
        traces::note(|| {
            let filter = search.filter.as_ref();
            let restrictions = filter.map_or(0, |filter| filter.restrictions.len());
            let exact = if search.exact { ", exact" } else { "" };
            format!(
                "Asking index {keyspace}.{} for {} candidates (k = {}, restrictions = {restrictions}{exact})",
                order.index.name, search.limit, self.limit
            )
        });
        let stores = &self.database.stores;
        stores
            .ann(keyspace, &order.index.name, search, &names)
            .await
    }

    /// Reads the rows of these neighbours, up to LIMIT, into a page. `before` is the last commit
    /// before they were asked for. The second value is the number of rows for which no others are
    /// needed.
    async fn page(
        &self,
        named: Vec<Named>,
        before: Option<u64>,
    ) -> Result<(Page, usize), CqlError> {
        let storage = &self.database.storage;
        let view = storage.view_at(self.plan.selected.table.id, self.parameters.told_s);
        let view = view.map_err(storage_error)?;
        let has_changed = before.is_none() || before != storage.last_commit();
        let reach = named.last().map(|last| last.score);
        let mut collector = self.collector();
        let is_told_exactly = self.order.candidates.is_exact && self.database.stores.are_local();
        // To compare the vectors takes longer than to read rows.
        let mut ranks = (is_told_exactly && has_changed).then(|| Ranks::new(self.limit));
        let reading = Reading {
            view,
            turns: storage.turns().clone(),
            memory: self.parameters.memory.clone(),
            holds_rows: ranks.is_some() || self.order.candidates.rescoring.is_some(),
        };
        let mut take = |row: Row, told: f32| {
            // A row without a vector is no neighbour any more.
            let Some(vector) = self.order.place.value(&row) else {
                return Ok(Progress::Unfinished);
            };
            if !collector.passes(&row) {
                return Ok(Progress::Unfinished);
            }
            let Some(ranks) = &mut ranks else {
                return collector.take(0, row);
            };
            let score = self.order.candidates.metric.score(&self.vector, vector);
            Ok(ranks.take(row, score, told))
        };
        let (mut read, mut checked) = (0_usize, 0_usize);
        let mut counted = |row: Option<Row>, told: f32| {
            read += 1;
            row.map_or(Ok(Progress::Unfinished), |row| {
                checked += 1;
                take(row, told)
            })
        };
        let _held = each_row(reading, named, &mut counted).await?;
        traces::note(|| {
            let gone = read - checked;
            format!(
                "Read {read} rows by their keys, of which {gone} are gone; checked the others for all of WHERE"
            )
        });
        let alive = ranks.as_ref().map(|ranks| ranks.within(reach));
        for row in ranks.into_iter().flat_map(Ranks::into_best) {
            collector.take(0, row)?;
        }
        let (page, _) = collector.finish(false)?;
        let alive = alive.unwrap_or(page.count as usize);
        Ok((page, alive))
    }

    /// An empty collector of the answer's rows. Without rescoring they come in the order of the
    /// keys, and LIMIT of them are enough; else all are taken, and the best are the answer.
    fn collector(&self) -> Collector {
        match self.order.candidates.rescoring {
            None => {
                let page = Page::new(None, &self.parameters.memory);
                self.collector_of(Output::Page(page), Some(self.limit as u32))
            }
            Some(metric) => self.ranking(metric),
        }
    }

    /// An empty collector of the nearest rows by their stored vectors.
    fn ranking(&self, metric: Metric) -> Collector {
        let ranking = Ranking {
            nearest: Nearest::new(self.limit),
            metric,
            vector: self.vector.clone(),
            place: self.order.place,
        };
        self.collector_of(Output::Ranking(ranking), None)
    }

    fn collector_of(&self, output: Output, remaining: Option<u32>) -> Collector {
        Collector {
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

/// Traces why the rows are read in place of the index.
fn note_short() {
    traces::note(|| "The index has had no room for some rows, so all are ranked".to_owned());
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
    plan: &Resolved,
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
            // Nobody asks for its times.
            timestamp: 0,
            expiry: None,
        };
        let of_kind = match column.kind {
            ColumnKind::Static => &mut static_cells,
            _ => &mut cells,
        };
        of_kind.push((column.id, Cell::Simple(cell)));
    }
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
        position: Position(Bytes::new()),
    })
}

/// The means to read rows.
#[derive(Clone)]
struct Reading {
    view: View,
    turns: Turns,
    memory: Account,
    /// Whether those who take the rows hold them to the end.
    holds_rows: bool,
}

/// The rows of some of those that were named, in their order.
struct Chunk {
    rows: Vec<(Option<Row>, f32)>,
    /// Those that were not read any more, as the rows before them are large.
    rest: Vec<Named>,
    /// The memory that the rows are charged for.
    charge: Charge,
}

/// Reads the rows that were named, and gives them to `take` in their order, each with its score,
/// until it has enough. A row that is gone is `None`. Returns the charges of the rows that are
/// still held.
async fn each_row(
    reading: Reading,
    named: Vec<Named>,
    take: &mut (dyn FnMut(Option<Row>, f32) -> Result<Progress, CqlError> + Send),
) -> Result<Vec<Charge>, CqlError> {
    let mut charges = Vec::new();
    let mut named = named.into_iter();
    let started = Instant::now();
    let mut first = None;
    while started.elapsed() < INLINE_TIME {
        let Some(Named { key, score }) = named.next() else {
            return Ok(charges);
        };
        let row = match read_row(&reading.view, &key, LARGE_BYTES)? {
            Next::Row(row) => Some(row),
            Next::Nothing => None,
            Next::Large => {
                first = Some(Named { key, score });
                break;
            }
        };
        if take(row, score)? == Progress::Finished {
            return Ok(charges);
        }
    }
    let mut named = first.into_iter().chain(named);
    let chunks = std::iter::from_fn(|| {
        let chunk: Vec<Named> = named.by_ref().take(CHUNK_ROWS).collect();
        (!chunk.is_empty()).then_some(chunk)
    });
    let mut rows = stream::iter(chunks)
        .map(|chunk| read_chunk(&reading, chunk))
        .buffered(CHUNKS_AT_ONCE);
    while let Some(chunk) = rows.next().await {
        let mut chunk = chunk?;
        loop {
            let charge = chunk.charge;
            if reading.holds_rows {
                charges.push(charge);
            }
            for (row, score) in chunk.rows {
                if take(row, score)? == Progress::Finished {
                    return Ok(charges);
                }
            }
            if chunk.rest.is_empty() {
                break;
            }
            chunk = read_chunk(&reading, chunk.rest).await?;
        }
    }
    Ok(charges)
}

/// Reads rows on a blocking thread, in a turn.
async fn read_chunk(reading: &Reading, named: Vec<Named>) -> Result<Chunk, CqlError> {
    let Reading {
        view,
        turns,
        memory,
        ..
    } = reading.clone();
    let work = move || -> Result<Chunk, CqlError> {
        let mut named = named.into_iter();
        let mut charge = memory.charge();
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while bytes < CHUNK_BYTES
            && let Some(Named { key, score }) = named.next()
        {
            let row = match read_row(&view, &key, usize::MAX)? {
                Next::Row(row) => Some(row),
                Next::Nothing | Next::Large => None,
            };
            bytes += row.as_ref().map_or(0, Row::memory_bytes);
            rows.push((row, score));
        }
        charge_rows(&mut charge, bytes)?;
        let rest = named.collect();
        Ok(Chunk { rows, rest, charge })
    };
    on_blocking_thread(&turns, work).await?
}

fn read_row(
    view: &View,
    (partition, clustering): &Key,
    record_bytes_max: usize,
) -> Result<Next, CqlError> {
    let looked_up = view.row_within(partition, clustering, record_bytes_max);
    looked_up.map_err(storage_error)
}
