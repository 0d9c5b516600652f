//! The rows of the cluster, read on the client's connection, and the answer that is made of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::{ColumnsMetadata, DecodedRows, Response, ResponseContext};
use futures::stream::{self, StreamExt, TryStreamExt};
use query::search::{
    ReadRows, ScannedRows, SearchHit, SearchWarning, SearchedRows, ValueOf, VectorOrdering,
};
use query::{TopScored, key_values};
use store_api::{ClientError, IndexServices, KeyValue, NearestRows};

use super::computed;
use super::computed_item::BoundItem;
use super::execution::{AnnExecution, ClientAnswer, ReadBy, add_to, unreadable};
use super::freshness::FreshSearches;
use super::prepared::prepare_read;
use super::reader::ReadPermissionCache;
use super::row::{AnswerRow, Row};
use crate::key_read::{Key, ReadRowLayout};
use crate::node_requests::{ClientRequestError, NodeRequestSender};

/// The number of reads of one query that are on their way at once.
const READS_AT_ONCE: usize = 64;
/// The number of rows that are read at a time where all of them are.
const PAGE_ROWS: u32 = 1_000;

/// The columns and the layout of rows.
#[derive(Clone)]
struct ReadRowShape<'a> {
    columns: Cow<'a, ColumnsMetadata>,
    layout: Cow<'a, ReadRowLayout>,
}

/// A row that was read, with the way in which it was.
#[derive(Clone)]
pub(super) struct ClusterRow {
    cells: Row,
    /// Whether it was read with all rows, and not by its key.
    is_scanned: bool,
}

/// A reading of all rows under way.
#[derive(Default)]
struct WholeTableScan<'a> {
    /// The shape of the rows; known once a page was read.
    shape: Option<ReadRowShape<'a>>,
    /// The end of the last page.
    paging_state: Option<Bytes>,
    /// Whether all rows were read.
    is_over: bool,
}

/// The rows of the cluster, and the answer that is made of them.
pub(super) struct ClusterRows<'a> {
    execution: &'a AnnExecution<'a>,
    by: ReadBy<'a>,
    node: &'a NodeRequestSender,
    stores: &'a IndexServices,
    /// The reader of answers without rows; `None` if there may be none.
    reader: Option<&'a ReadPermissionCache>,
    /// The warnings of the search and of all reads, and the id of one trace.
    context: ResponseContext,
    /// The shape of the rows that are read by keys; known once one was read.
    shape: Option<ReadRowShape<'a>>,
    /// The rows that were read so far, by their keys; `None` for those that are deleted.
    read: HashMap<Key, Option<Row>>,
    scan: WholeTableScan<'a>,
    answer: Vec<AnswerRow>,
    /// The shape of the answer's rows, if they were not read by keys.
    answered: Option<ReadRowShape<'a>>,
}

impl<'a> ClusterRows<'a> {
    pub(super) fn of(
        execution: &'a AnnExecution<'a>,
        by: ReadBy<'a>,
        node: &'a NodeRequestSender,
        searches: &'a FreshSearches,
    ) -> ClusterRows<'a> {
        ClusterRows {
            execution,
            by,
            node,
            stores: &searches.stores,
            reader: searches.reader(),
            context: ResponseContext::default(),
            shape: None,
            read: HashMap::new(),
            scan: WholeTableScan::default(),
            answer: Vec::new(),
            answered: None,
        }
    }

    /// The answer to the client, after which another page comes if there is a paging state for it.
    /// If no row was read, the columns are not known yet, so the statement is prepared on the
    /// cluster, which returns them.
    ///
    /// # Errors
    /// Those of the cluster, and of the index service where it makes values of the rows' texts.
    pub(super) async fn into_answer(
        mut self,
        next: Option<Bytes>,
    ) -> Result<(ResponseContext, Response), ClientRequestError> {
        let shape = match (self.answered.take().or(self.shape.take()), self.by) {
            (Some(shape), _) => shape,
            (None, ReadBy::Id(_)) => self.shape_of(ColumnsMetadata::default())?,
            (None, ReadBy::Text) => {
                let AnnExecution { plan, traced, .. } = self.execution;
                let (said, read) = prepare_read(plan, self.node, *traced).await?;
                add_to(&mut self.context, said);
                self.shape_of(read.result.unwrap_or_default())?
            }
        };
        let ReadRowShape { columns, layout } = &shape;
        let mut rows = std::mem::take(&mut self.answer);
        let filled = computed::fill_texts(self.execution, self.stores, layout, &mut rows).await;
        filled.map_err(|error| self.search_failed(error))?;
        let answer = ClientAnswer {
            rows: &rows,
            read: columns.columns.get(..layout.shown).unwrap_or_default(),
            next,
        };
        Ok(self.execution.encoded(&answer, self.context))
    }

    /// The answer to a client that counts rows.
    pub(super) fn into_count(self, count: u64) -> (ResponseContext, Response) {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let row = AnswerRow {
            read: Row::new(),
            computed: vec![Some(Bytes::copy_from_slice(&count.to_be_bytes()))],
        };
        let answer = ClientAnswer {
            rows: &[row],
            read: &[],
            next: None,
        };
        self.execution.encoded(&answer, self.context)
    }

    /// Reads the rows of keys, and puts those that satisfy all of WHERE, words included. Returns
    /// their number.
    ///
    /// # Errors
    /// Those of the cluster and of the index service.
    pub(super) async fn put_matching(
        &mut self,
        keys: Vec<Key>,
    ) -> Result<usize, ClientRequestError> {
        let rows = self.read(keys).await?.rows.into_iter().flatten();
        let rows: Vec<ClusterRow> = rows.filter(|row| self.is_match(row)).collect();
        let count = rows.len();
        for row in rows {
            self.put(row, &[])?;
        }
        Ok(count)
    }

    /// Drops the rows that were read and put so far, with the memory that they take.
    pub(super) fn forget(&mut self) {
        self.answer.clear();
        self.read.clear();
        drop(self.node.take_reserved_memory());
    }

    /// Drops those of the rows of `keys` whose texts do not match all words of WHERE. The index may
    /// have named them before their texts changed.
    async fn check_words(&mut self, keys: Vec<Key>) -> Result<(), ClientRequestError> {
        let (mut there, mut rows) = (Vec::new(), Vec::new());
        for key in keys {
            if let Some(Some(cells)) = self.read.get(&key) {
                rows.push(ClusterRow {
                    cells: cells.clone(),
                    is_scanned: false,
                });
                there.push(key);
            }
        }
        let are_matches = self.matching(&rows).await?;
        for (key, is_match) in there.into_iter().zip(are_matches) {
            if !is_match {
                self.read.insert(key, None);
            }
        }
        Ok(())
    }

    /// Whether the texts of rows match all words of WHERE.
    async fn matching(&self, rows: &[ClusterRow]) -> Result<Vec<bool>, ClientRequestError> {
        let mut are_matches = vec![true; rows.len()];
        for (at, words) in self.execution.words.iter().enumerate() {
            let texts = rows.iter();
            let texts = texts.map(|row| self.value(row, ValueOf::Condition(at)).cloned());
            let mut scores = Vec::with_capacity(rows.len());
            for texts in computed::batches(texts) {
                let index = &words.condition.index;
                let tenant = self.execution.tenant(index);
                let query = words.query.clone();
                let scored =
                    self.stores
                        .score_texts(&index.keyspace, &index.name, query, tenant, texts);
                scores.extend(scored.await.map_err(|error| self.search_failed(error))?);
            }
            if scores.len() != rows.len() {
                return Err(self.search_failed(ClientError::InvalidJson));
            }
            for (is_match, score) in are_matches.iter_mut().zip(scores) {
                *is_match &= score.is_some();
            }
        }
        Ok(are_matches)
    }

    /// The layout of a row.
    fn layout(&self, row: &ClusterRow) -> Option<&ReadRowLayout> {
        let shape = match row.is_scanned {
            true => self.scan.shape.as_ref(),
            false => self.shape.as_ref(),
        };
        shape.map(|shape| &*shape.layout)
    }

    /// The place of a column in [`ReadRowLayout::searched`].
    fn place(&self, of: ValueOf) -> Option<usize> {
        match of {
            ValueOf::Search(search) => self.execution.searched(search),
            ValueOf::Condition(at) => Some(self.execution.words.get(at)?.condition.searched),
        }
    }

    /// Reads the next page of all rows. `None` at their end.
    async fn next_page(&mut self) -> Result<Option<Vec<Row>>, ClientRequestError> {
        if self.scan.is_over {
            return Ok(None);
        }
        let execution = self.execution;
        let request = execution.page(PAGE_ROWS, self.scan.paging_state.take());
        let (said, response) = self.node.ask(&request, false).await?;
        add_to(&mut self.context, said);
        let page = rows_of(response)?;
        let columns = page.metadata.unwrap_or_default();
        match &self.scan.shape {
            Some(shape) if *shape.columns != columns => return Err(altered()),
            Some(_) => {}
            None => {
                self.scan.shape = Some(ReadRowShape {
                    layout: Cow::Owned(execution.plan.scan.layout(&columns)?),
                    columns: Cow::Owned(columns),
                });
            }
        }
        self.scan.paging_state = page.paging_state;
        self.scan.is_over = self.scan.paging_state.is_none();
        Ok(Some(page.rows))
    }

    /// The shape of rows that are read by keys and have these columns. If the query was prepared,
    /// it knows its own.
    fn shape_of(&self, columns: ColumnsMetadata) -> Result<ReadRowShape<'a>, CqlError> {
        Ok(match self.by {
            ReadBy::Id(statement) => ReadRowShape {
                columns: Cow::Borrowed(&statement.columns),
                layout: Cow::Borrowed(&statement.layout),
            },
            ReadBy::Text => ReadRowShape {
                layout: Cow::Owned(self.execution.plan.read.layout(&columns)?),
                columns: Cow::Owned(columns),
            },
        })
    }

    /// Reads the rows of some keys, and remembers them.
    async fn ask(&mut self, keys: Vec<Key>) -> Result<(), ClientRequestError> {
        let (execution, by, node) = (self.execution, self.by, self.node);
        let reads = execution.plan.read.values(&keys, &execution.selection);
        let requests = reads
            .into_iter()
            .map(|values| execution.request(by, values));
        // An answer can name only one trace.
        let untraced = self.context.tracing_id.is_none();
        let mut answers = stream::iter(requests.enumerate())
            .map(|(number, request)| async move {
                let traced = execution.traced && untraced && number == 0;
                node.ask(&request, traced).await
            })
            .buffered(READS_AT_ONCE);
        let mut read = Vec::with_capacity(keys.len());
        while let Some((said, response)) = answers.try_next().await? {
            add_to(&mut self.context, said);
            let rows = rows_of(response)?;
            if self.shape.is_none() {
                self.shape = Some(self.shape_of(rows.metadata.unwrap_or_default())?);
            }
            read.extend(rows.rows);
        }
        drop(answers);
        if let Some(ReadRowShape { columns, layout }) = &self.shape {
            if read.iter().any(|row| row.len() != columns.columns.len()) {
                return Err(altered());
            }
            for row in read {
                let key = layout.key.iter().map(|column| row[*column].clone());
                if let Some(key) = key.collect::<Option<Key>>() {
                    self.read.insert(key, Some(row));
                }
            }
        }
        for key in keys {
            self.read.entry(key).or_insert(None);
        }
        Ok(())
    }
}

impl SearchedRows for ClusterRows<'_> {
    type Key = Key;
    type Row = ClusterRow;
    type Error = ClientRequestError;

    /// The cluster reads many at once.
    const KEYS_AT_ONCE: usize = usize::MAX;

    fn key(&self, sent: &[KeyValue]) -> Option<Key> {
        let columns = self.execution.plan.table.primary_key();
        key_values(columns.iter().map(|column| column.cql_type.as_ref()), sent)
    }

    fn begin(&mut self) {
        self.answer.clear();
        self.answered = None;
        self.scan = WholeTableScan::default();
    }

    /// The index has learned of a new value from the change log, and does not tell of it.
    fn open(&mut self, _holds: bool) -> Result<bool, ClientRequestError> {
        Ok(false)
    }

    fn known(&self, key: &Key) -> Option<bool> {
        let row = self.read.get(key)?.as_ref();
        let layout = &self.shape.as_ref()?.layout;
        Some(row.is_some_and(|row| self.execution.is_wanted(row, layout)))
    }

    async fn read(
        &mut self,
        keys: Vec<Key>,
    ) -> Result<ReadRows<Key, ClusterRow>, ClientRequestError> {
        let unread = keys.iter();
        let unread = unread.filter(|key| !self.read.contains_key(*key));
        let unread: Vec<Key> = unread.cloned().collect();
        if !unread.is_empty() {
            self.ask(unread.clone()).await?;
            if self.execution.checks_words() {
                self.check_words(unread).await?;
            }
        }
        let rows = keys.iter().map(|key| {
            Some(ClusterRow {
                cells: self.read.get(key)?.clone()?,
                is_scanned: false,
            })
        });
        Ok(ReadRows {
            rows: rows.collect(),
            unread: Vec::new(),
        })
    }

    fn is_match(&self, row: &ClusterRow) -> bool {
        let layout = self.layout(row);
        layout.is_some_and(|layout| self.execution.is_wanted(&row.cells, layout))
    }

    fn reads_value(&self, of: ValueOf) -> bool {
        let place = self.place(of);
        place.is_some_and(|place| self.execution.plan.read.reads(place))
    }

    fn value<'r>(&self, row: &'r ClusterRow, of: ValueOf) -> Option<&'r Bytes> {
        let column = *self.layout(row)?.searched.get(self.place(of)?)?;
        row.cells.get(column?)?.as_ref()
    }

    fn put(&mut self, row: ClusterRow, hits: &[SearchHit]) -> Result<(), ClientRequestError> {
        let computed = self.execution.computed.iter();
        self.answer.push(AnswerRow {
            read: row.cells,
            computed: computed
                .map(|item: &BoundItem<'_>| item.cell(hits))
                .collect(),
        });
        Ok(())
    }

    /// The cluster finds its own access paths.
    fn are_few(&self, _: bool) -> bool {
        false
    }

    async fn rank_all(
        &mut self,
        ordering: &VectorOrdering<'_>,
        span: Range<usize>,
    ) -> Result<(), ClientRequestError> {
        let execution = self.execution;
        let mut nearest: TopScored<(f32, Row)> = TopScored::new(span.end);
        self.scan = WholeTableScan::default();
        while let Some(mut rows) = self.next_page().await? {
            let Some(ReadRowShape { layout, .. }) = &self.scan.shape else {
                break;
            };
            rows.retain(|row| execution.is_wanted(row, layout));
            let place = execution.searched(0);
            let column = place.and_then(|place| *layout.searched.get(place)?);
            for row in rows {
                let stored = column.and_then(|column| row.get(column)?.as_ref());
                if let Some(stored) = stored {
                    let metric = ordering.candidates.metric;
                    let score = metric.score(&ordering.vector, stored);
                    nearest.push(score, (score, row));
                }
            }
        }
        let best: Vec<(f32, Row)> = nearest.into_best().collect();
        for (at, (score, cells)) in best.into_iter().enumerate().skip(span.start) {
            let hit = SearchHit {
                score: Some(score),
                rank: u32::try_from(at + 1).ok(),
            };
            let row = ClusterRow {
                cells,
                is_scanned: true,
            };
            self.put(row, &[hit])?;
        }
        self.answered = self.scan.shape.clone();
        Ok(())
    }

    async fn scan(&mut self) -> ScannedRows<Self> {
        let Some(rows) = self.next_page().await? else {
            return Ok(None);
        };
        let Some(ReadRowShape { layout, .. }) = &self.scan.shape else {
            return Ok(None);
        };
        let execution = self.execution;
        let rows = rows
            .into_iter()
            .filter(|row| execution.is_wanted(row, layout));
        let rows = rows.filter_map(|cells| {
            let key = layout.key.iter().map(|column| cells[*column].clone());
            let key = key.collect::<Option<Key>>()?;
            let is_scanned = true;
            Some((key, ClusterRow { cells, is_scanned }))
        });
        Ok(Some(rows.collect()))
    }

    async fn permit(&mut self) -> Result<(), ClientRequestError> {
        let AnnExecution {
            plan, parameters, ..
        } = self.execution;
        match self.reader {
            Some(reader) => {
                let consistency = parameters.consistency;
                reader.check(&plan.table, consistency, self.node).await
            }
            None => Ok(()),
        }
    }

    fn put_values(
        &mut self,
        found: &NearestRows,
        _: &[SearchHit],
        span: Range<usize>,
    ) -> Result<bool, ClientRequestError> {
        let (Some(covered), Some(reader)) = (&self.execution.plan.covered, self.reader) else {
            return Ok(false);
        };
        let Some(rows) = covered.rows(found, span) else {
            return Ok(false);
        };
        let bytes = rows.iter().flatten().flatten().map(Bytes::len).sum();
        reader.answered(bytes, self.node)?;
        let shown = covered.columns.columns.len();
        self.answered = Some(ReadRowShape {
            columns: Cow::Borrowed(&covered.columns),
            layout: Cow::Owned(ReadRowLayout::of_shown(shown)),
        });
        let rows = rows.into_iter().map(|read| AnswerRow {
            read,
            computed: Row::new(),
        });
        self.answer = rows.collect();
        Ok(true)
    }

    fn warn(&mut self, warning: SearchWarning) {
        self.context.warnings.push(warning.text().to_owned());
    }

    fn search_failed(&self, error: ClientError) -> ClientRequestError {
        self.execution.search_failed(error).into()
    }
}

/// The rows of a response of the cluster.
fn rows_of(response: Response) -> Result<DecodedRows, CqlError> {
    let Response::Rows(rows) = response else {
        return Err(CqlError::server(
            "Cassandra answered a read with something else than rows",
        ));
    };
    rows.decode().map_err(|error| unreadable(&error))
}

fn altered() -> ClientRequestError {
    ClientRequestError::Cql(CqlError::server(
        "the table was altered while its rows were read: try again",
    ))
}
