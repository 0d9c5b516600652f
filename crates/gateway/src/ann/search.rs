//! Carries out a nearest-neighbour query: asks for neighbours, reads their rows, and makes the
//! answer.

use std::borrow::Cow;

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{Metadata, QueryParameters, Response, ResponseContext};
use futures::stream::{self, StreamExt, TryStreamExt};
use query::refill::{self, Refill};

use super::execution::{NO_ROOM_WARNING, Named, ReadBy, Search, add_to, unreadable};
use super::freshness::{STALE_WARNING, Searches};
use super::key_read::{Key, Layout};
use super::prepared::prepare_read;
use super::rows::{self, ReadRows, Row};
use super::{AnnPlan, AnnStatement, scan, without_rows};
use crate::inquiry::{Failure, Inquirer};

/// The number of reads of one query that are on their way at once.
const READS_AT_ONCE: usize = 64;

/// Executes a prepared query. `id` is the id by which the client knows it.
///
/// # Errors
/// If values don't fit, or the index service or the cluster does not answer or answers with an
/// error. If the cluster has forgotten its statement, or its columns have changed, the client is
/// told to prepare the query again.
pub(crate) async fn execute(
    statement: &AnnStatement,
    id: Bytes,
    expected: Option<Bytes>,
    parameters: QueryParameters,
    node: &Inquirer,
    searches: &Searches,
    traced: bool,
) -> Result<(ResponseContext, Response), Failure> {
    let names = &statement.variables.columns;
    let name = |position: usize| names.get(position).map(|spec| &*spec.name);
    let new_columns = expected
        .filter(|expected| *expected != statement.columns_id)
        .map(|_| statement.columns_id.clone());
    let skips_metadata = parameters.skip_metadata && new_columns.is_none();
    let search = Search {
        skips_metadata,
        new_columns,
        ..Search::new(&statement.plan, parameters, name, traced)?
    };
    match search.answer(ReadBy::Id(statement), node, searches).await {
        Err(failure) if failure.is_unprepared(node.compression()) => Err(Failure::Cql(
            CqlError::new(ErrorKind::Unprepared { id }, "prepare the query again"),
        )),
        answered => answered,
    }
}

/// Executes a query that came as text.
///
/// # Errors
/// As for [`execute`].
pub(crate) async fn query(
    plan: &AnnPlan,
    parameters: QueryParameters,
    node: &Inquirer,
    searches: &Searches,
    traced: bool,
) -> Result<(ResponseContext, Response), Failure> {
    let name = |position: usize| plan.markers.get(position)?.as_deref();
    let search = Search::new(plan, parameters, name, traced)?;
    search.answer(ReadBy::Text, node, searches).await
}

impl Search<'_> {
    async fn answer(
        &self,
        by: ReadBy<'_>,
        node: &Inquirer,
        searches: &Searches,
    ) -> Result<(ResponseContext, Response), Failure> {
        if let Some(answer) = without_rows::answer(self, node, searches).await? {
            return Ok(answer);
        }
        let mut reading = Reading {
            search: self,
            by,
            node,
            context: ResponseContext::default(),
            shape: None,
            rows: ReadRows::default(),
        };
        let mut wanted = self.plan.candidates.wanted(self.limit);
        let mut searches = searches.of_query(self.plan.table.id);
        let (rows, is_short) = loop {
            let Named {
                keys,
                is_stale,
                is_short,
            } = self.candidates(&mut searches, wanted).await?;
            if is_stale {
                reading.context.warnings.push(STALE_WARNING.to_owned());
            }
            let rows = reading.rows(&keys).await?;
            match Refill::after(self.limit, wanted, keys.len(), rows.len()) {
                Refill::Whole => break (rows, is_short),
                Refill::Short if !self.filters.is_empty() => {
                    return scan::answer(self, reading.context, node).await;
                }
                Refill::Short => {
                    let warning = refill::SHORT_WARNING.to_owned();
                    reading.context.warnings.push(warning);
                    break (rows, is_short);
                }
                Refill::Ask(more) => wanted = more,
            }
        };
        if is_short {
            reading.context.warnings.push(NO_ROOM_WARNING.to_owned());
        }
        let shape = reading.shape().await?;
        Ok(self.encoded(&rows, &shape.columns, &shape.layout, reading.context))
    }
}

/// The columns and the layout of the rows that are read.
#[derive(Clone)]
struct Shape<'a> {
    columns: Cow<'a, Metadata>,
    layout: Cow<'a, Layout>,
}

/// The reading of the rows of one execution.
struct Reading<'a> {
    search: &'a Search<'a>,
    by: ReadBy<'a>,
    node: &'a Inquirer,
    /// The warnings of all reads, and the id of one trace.
    context: ResponseContext,
    /// The shape of the rows; known once something was read.
    shape: Option<Shape<'a>>,
    /// The rows that were read so far, by their keys.
    rows: ReadRows,
}

impl<'a> Reading<'a> {
    /// Reads the rows of `keys` as far as they are needed. Returns the rows of the answer in its
    /// order: LIMIT of them, or fewer if there are not so many.
    async fn rows(&mut self, keys: &[Key]) -> Result<Vec<Row>, Failure> {
        let Search { plan, limit, .. } = self.search;
        let rescoring = plan.candidates.rescoring;
        // More rows than LIMIT help only if they are scored again.
        let enough = rescoring.map_or(*limit, |_| usize::MAX);
        loop {
            let unread = self.rows.unread(keys, enough);
            if unread.is_empty() {
                break;
            }
            self.read(&unread).await?;
        }
        let rows = self.rows.in_order(keys, enough);
        Ok(match (rescoring, &self.shape) {
            (Some(similarity), Some(shape)) => {
                rows::rescored(rows, similarity, &self.search.vector, &shape.layout, *limit)
            }
            _ => rows,
        })
    }

    /// Reads the rows of some keys, and adds them to `rows`.
    async fn read(&mut self, keys: &[Key]) -> Result<(), Failure> {
        let (search, by, node) = (self.search, &self.by, self.node);
        let reads = search.plan.read.values(keys, &search.selection);
        let requests = reads.into_iter().map(|values| search.request(by, values));
        // An answer can name only one trace.
        let untraced = self.context.tracing_id.is_none();
        let mut answers = stream::iter(requests.enumerate())
            .map(|(number, request)| async move {
                let traced = search.traced && untraced && number == 0;
                node.ask(&request, traced).await
            })
            .buffered(READS_AT_ONCE);
        let mut read = Vec::with_capacity(keys.len());
        while let Some((said, response)) = answers.try_next().await? {
            add_to(&mut self.context, said);
            let Response::Rows(rows) = response else {
                return Err(Failure::Cql(CqlError::server(
                    "Cassandra answered a read with something else than rows",
                )));
            };
            let rows = rows.decode().map_err(|error| unreadable(&error))?;
            if self.shape.is_none() {
                let columns = Cow::Owned(rows.metadata.unwrap_or_default());
                self.shape = Some(shape(search, by, columns)?);
            }
            read.extend(rows.rows);
        }
        drop(answers);
        if let Some(shape) = &self.shape {
            let columns = shape.columns.columns.len();
            if read.iter().any(|row| row.len() != columns) {
                return Err(Failure::Cql(CqlError::server(
                    "the table was altered while its rows were read: try again",
                )));
            }
            let is_wanted = |row: &Row| search.is_wanted(row, &shape.layout);
            self.rows.add(keys, read, &shape.layout, is_wanted);
        }
        Ok(())
    }

    /// The shape of the rows. If no row was read, the cluster is asked to prepare the statement.
    async fn shape(&mut self) -> Result<Shape<'a>, Failure> {
        if let Some(shape) = &self.shape {
            return Ok(shape.clone());
        }
        if let ReadBy::Id(_) = self.by {
            return Ok(shape(self.search, &self.by, Cow::default())?);
        }
        // Without a neighbour no row was read, so the columns are not known yet.
        let (said, read) = prepare_read(self.search.plan, self.node, self.search.traced).await?;
        add_to(&mut self.context, said);
        let columns = Cow::Owned(read.result.unwrap_or_default());
        Ok(shape(self.search, &self.by, columns)?)
    }
}

/// The shape of rows with these columns. If the query was prepared, its own columns are used.
fn shape<'a>(
    search: &Search<'a>,
    by: &ReadBy<'a>,
    columns: Cow<'a, Metadata>,
) -> Result<Shape<'a>, CqlError> {
    Ok(match by {
        ReadBy::Id(statement) => Shape {
            columns: Cow::Borrowed(&statement.columns),
            layout: Cow::Borrowed(&statement.layout),
        },
        ReadBy::Text => Shape {
            layout: Cow::Owned(search.plan.read.layout(&columns)?),
            columns,
        },
    })
}
