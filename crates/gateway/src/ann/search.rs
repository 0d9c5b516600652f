//! Carries out a nearest-neighbour query: asks for neighbours, reads their rows, and makes the
//! answer.

use std::borrow::Cow;

use bytes::Bytes;
use clock::{Clock, SystemClock};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BoundValue, Metadata, QueryParameters, Request, Response, ResponseContext, Values,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use query::refill::{self, Refill};
use query::{bounds, key_values, refused};
use store_api::types::AnnRequest;
use store_api::{ClientError, KeyValue, Stores};
use value::timeuuid;

use super::key_read::{Key, Layout};
use super::prepared::prepare_read;
use super::rows::{self, ReadRows, Row};
use super::{AnnPlan, AnnStatement};
use crate::catalog::VectorIndex;
use crate::inquiry::{Failure, Inquirer};

/// The number of reads of one query that are on their way at once.
const READS_AT_ONCE: usize = 64;

/// The age up to which an index counts as new, so that an index service may not know it yet. Index
/// services look at the schema every second, and one that was away may be late. Microseconds.
const NEW_FOR_MICROS: i64 = 30_000_000;

/// One execution of a query.
struct Search<'a> {
    plan: &'a AnnPlan,
    /// The vector to search for, serialised.
    vector: Bytes,
    /// The number of rows to return at most.
    limit: usize,
    /// The values of the markers in the selection.
    selection: Vec<BoundValue>,
    /// The parameters of the client's request, without the values.
    parameters: QueryParameters,
    /// Whether the client wants a trace.
    traced: bool,
}

/// The form in which the cluster is asked for rows.
enum ReadBy<'a> {
    /// QUERY with the text of the statement.
    Text,
    /// EXECUTE of the prepared statement.
    Id(&'a AnnStatement),
}

/// Executes a prepared query. `id` is the id by which the client knows it.
///
/// # Errors
/// If values don't fit, or the index service or the cluster does not answer or answers with an
/// error. If the cluster has forgotten its statement, or its columns have changed, the client is
/// told to prepare the query again.
pub(crate) async fn execute(
    statement: &AnnStatement,
    id: Bytes,
    parameters: QueryParameters,
    node: &Inquirer,
    stores: &Stores,
    traced: bool,
) -> Result<(ResponseContext, Response), Failure> {
    let names = &statement.variables.columns;
    let name = |position: usize| names.get(position).map(|spec| &*spec.name);
    let search = Search::new(&statement.plan, parameters, name, traced)?;
    match search.answer(ReadBy::Id(statement), node, stores).await {
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
    stores: &Stores,
    traced: bool,
) -> Result<(ResponseContext, Response), Failure> {
    let name = |position: usize| plan.markers.get(position)?.as_deref();
    let search = Search::new(plan, parameters, name, traced)?;
    search.answer(ReadBy::Text, node, stores).await
}

impl<'a> Search<'a> {
    fn new<'n>(
        plan: &'a AnnPlan,
        mut parameters: QueryParameters,
        name: impl Fn(usize) -> Option<&'n str>,
        traced: bool,
    ) -> Result<Search<'a>, CqlError> {
        let values = std::mem::replace(&mut parameters.values, Values::Positional(Vec::new()));
        let mut values = values.in_order(plan.markers.len(), name)?;
        let limit = plan.limit.value(&values)?;
        let vector = plan
            .vector
            .value(&values, &plan.index.target.column, plan.dimensions)?;
        values.truncate(plan.selection_markers);
        Ok(Search {
            plan,
            vector,
            limit,
            selection: values,
            parameters,
            traced,
        })
    }

    async fn answer(
        &self,
        by: ReadBy<'_>,
        node: &Inquirer,
        stores: &Stores,
    ) -> Result<(ResponseContext, Response), Failure> {
        let mut reading = Reading {
            search: self,
            by,
            node,
            context: ResponseContext::default(),
            shape: None,
            rows: ReadRows::default(),
        };
        let mut wanted = self.plan.candidates.wanted(self.limit);
        let rows = loop {
            let keys = self.candidates(stores, wanted).await?;
            let rows = reading.rows(&keys).await?;
            match Refill::after(self.limit, wanted, keys.len(), rows.len()) {
                Refill::Whole => break rows,
                Refill::Short => {
                    let warning = refill::SHORT_WARNING.to_owned();
                    reading.context.warnings.push(warning);
                    break rows;
                }
                Refill::Ask(more) => wanted = more,
            }
        };
        let shape = reading.shape().await?;
        let skip_metadata = self.parameters.skip_metadata && matches!(reading.by, ReadBy::Id(_));
        let encoded = rows::encode(&rows, &shape.columns, &shape.layout, skip_metadata);
        let mut context = reading.context;
        let page_size = self.parameters.page_size.map(|rows| rows as usize);
        if bounds::is_cut_short(page_size, self.limit) {
            context.warnings.push(bounds::PAGING_WARNING.to_owned());
        }
        Ok((context, Response::Rows(encoded)))
    }

    /// Asks the index service for the keys of the `wanted` nearest rows, nearest first.
    async fn candidates(&self, stores: &Stores, wanted: usize) -> Result<Vec<Key>, CqlError> {
        let plan = self.plan;
        let key_columns = plan.table.primary_key();
        let names: Vec<&str> = key_columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        let neighbours = stores
            .ann(
                &plan.index.keyspace,
                &plan.index.name,
                AnnRequest::new(bounds::elements(&self.vector), wanted),
                &names,
            )
            .await
            .map_err(|error| self.search_failed(error))?;
        let key = |key: &Vec<KeyValue>| {
            self.key(key)
                .ok_or_else(|| refused(ClientError::InvalidJson))
        };
        neighbours.keys.iter().map(key).collect()
    }

    /// The error for a search that failed in the index service. A service that does not know a new
    /// index will know it soon; upon that error drivers ask another gateway, or again.
    fn search_failed(&self, error: ClientError) -> CqlError {
        let VectorIndex { name, version, .. } = &*self.plan.index;
        let age = SystemClock.now_micros() - timeuuid::unix_micros(version);
        match error.is_missing() && age < NEW_FOR_MICROS {
            true => CqlError::new(
                ErrorKind::IsBootstrapping,
                format!(
                    "the index {name} was created a moment ago, and the index service does not know it yet: try again"
                ),
            ),
            false => refused(error),
        }
    }

    /// The serialised key that an index service sent as JSON; `None` if it does not fit the table.
    fn key(&self, sent: &[KeyValue]) -> Option<Key> {
        let columns = self.plan.table.primary_key();
        key_values(columns.iter().map(|column| column.cql_type.as_ref()), sent)
    }

    /// The request that reads rows with these values.
    fn request(&self, by: &ReadBy<'_>, values: Vec<BoundValue>) -> Request {
        let parameters = QueryParameters {
            values: Values::Positional(values),
            skip_metadata: matches!(by, ReadBy::Id(_)),
            page_size: None,
            paging_state: None,
            timestamp: None,
            ..self.parameters.clone()
        };
        match by {
            ReadBy::Id(statement) => Request::Execute {
                id: statement.read_id.clone(),
                parameters,
            },
            ReadBy::Text => Request::Query {
                statement: self.plan.read.text.clone(),
                parameters,
            },
        }
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
            self.rows.add(keys, read, &shape.layout);
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

/// Adds the trace and the warnings of a read to those of the answer.
fn add_to(context: &mut ResponseContext, said: ResponseContext) {
    context.tracing_id = context.tracing_id.or(said.tracing_id);
    for warning in said.warnings {
        if !context.warnings.contains(&warning) {
            context.warnings.push(warning);
        }
    }
}

fn unreadable(error: &cql::wire::DecodeError) -> CqlError {
    CqlError::server(format!(
        "the gateway cannot read what Cassandra answered: {error}"
    ))
}
