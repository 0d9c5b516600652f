//! The rows of the cluster, read on the client's connection, and the answer that is made of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::{ColumnsMetadata, DecodedRows, Response, ResponseContext};
use futures::stream::{self, StreamExt, TryStreamExt};
use query::search::{ReadRows, SearchWarning, SearchedRows, VectorOrdering};
use query::{TopScored, key_values};
use store_api::{ClientError, KeyValue, NearestRows};

use super::execution::{AnnExecution, ReadBy, add_to, unreadable};
use super::prepared::prepare_read;
use super::reader::ReadPermissionCache;
use super::row::Row;
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

/// The rows of the cluster, and the answer that is made of them.
pub(super) struct ClusterRows<'a> {
    execution: &'a AnnExecution<'a>,
    by: ReadBy<'a>,
    node: &'a NodeRequestSender,
    /// The reader of answers without rows; `None` if there may be none.
    reader: Option<&'a ReadPermissionCache>,
    /// The warnings of the search and of all reads, and the id of one trace.
    context: ResponseContext,
    /// The shape of the rows that are read by keys; known once one was read.
    shape: Option<ReadRowShape<'a>>,
    /// The rows that were read so far, by their keys; `None` for those that are deleted.
    read: HashMap<Key, Option<Row>>,
    answer: Vec<Row>,
    /// The shape of the answer's rows, if they were not read by keys.
    answered: Option<ReadRowShape<'a>>,
}

impl<'a> ClusterRows<'a> {
    pub(super) fn of(
        execution: &'a AnnExecution<'a>,
        by: ReadBy<'a>,
        node: &'a NodeRequestSender,
        reader: Option<&'a ReadPermissionCache>,
    ) -> ClusterRows<'a> {
        ClusterRows {
            execution,
            by,
            node,
            reader,
            context: ResponseContext::default(),
            shape: None,
            read: HashMap::new(),
            answer: Vec::new(),
            answered: None,
        }
    }

    /// The answer to the client. If no row was read, the columns are not known yet, so the
    /// statement is prepared on the cluster, which returns them.
    ///
    /// # Errors
    /// Those of the cluster.
    pub(super) async fn into_answer(
        mut self,
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
        Ok(self
            .execution
            .encoded(&self.answer, columns, layout, self.context))
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
    type Row = Row;
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
    }

    /// The index has learned of a new vector from the change log, and does not tell of it.
    fn open(&mut self) -> Result<bool, ClientRequestError> {
        Ok(false)
    }

    fn known(&self, key: &Key) -> Option<bool> {
        let row = self.read.get(key)?.as_ref();
        Some(row.is_some_and(|row| self.is_match(row)))
    }

    async fn read(&mut self, keys: Vec<Key>) -> Result<ReadRows<Key, Row>, ClientRequestError> {
        let unread = keys.iter().filter(|key| !self.read.contains_key(*key));
        let unread: Vec<Key> = unread.cloned().collect();
        if !unread.is_empty() {
            self.ask(unread).await?;
        }
        let rows = keys.iter().map(|key| self.read.get(key)?.clone());
        Ok(ReadRows {
            rows: rows.collect(),
            unread: Vec::new(),
        })
    }

    fn is_match(&self, row: &Row) -> bool {
        let shape = self.shape.as_ref();
        shape.is_some_and(|shape| self.execution.is_wanted(row, &shape.layout))
    }

    fn vector<'r>(&self, row: &'r Row) -> Option<&'r [u8]> {
        let vector = self.shape.as_ref()?.layout.vector?;
        row.get(vector)?.as_deref()
    }

    fn put(&mut self, row: Row) -> Result<(), ClientRequestError> {
        self.answer.push(row);
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
        let mut nearest: TopScored<Row> = TopScored::new(span.end);
        let mut paging_state = None;
        let mut known = None;
        loop {
            let request = execution.page(PAGE_ROWS, paging_state);
            let (said, response) = self.node.ask(&request, false).await?;
            add_to(&mut self.context, said);
            let page = rows_of(response)?;
            let columns = page.metadata.unwrap_or_default();
            if *known.get_or_insert_with(|| columns.clone()) != columns {
                return Err(altered());
            }
            let layout = execution.plan.scan.layout(&columns)?;
            let mut rows = page.rows;
            rows.retain(|row| execution.is_wanted(row, &layout));
            for row in rows {
                let stored = layout.vector.and_then(|vector| row.get(vector)?.as_ref());
                if let Some(stored) = stored {
                    let metric = ordering.candidates.metric;
                    nearest.push(metric.score(&ordering.vector, stored), row);
                }
            }
            paging_state = page.paging_state;
            if paging_state.is_none() {
                self.answered = Some(ReadRowShape {
                    columns: Cow::Owned(columns),
                    layout: Cow::Owned(layout),
                });
                break;
            }
        }
        self.answer = nearest.into_best().skip(span.start).collect();
        Ok(())
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
        self.answer = rows;
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
