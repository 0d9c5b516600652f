//! Carrying out a query: asking for neighbours, reading their rows, answering.

use std::borrow::Cow;

use ann_query::{bounds, key_value};
use bytes::Bytes;
use clock::{Clock, SystemClock};
use cql::error::{CqlError, ErrorKind};
use cql::value::timeuuid;
use cql::wire::{
    BoundValue, Metadata, QueryParameters, Request, Response, ResponseContext, Rows, Values,
};
use futures::stream::{self, StreamExt, TryStreamExt};
use store_api::{ClientError, KeyValue, Stores};

use super::key_read::{Key, Layout};
use super::prepared::prepare_read;
use super::rows::{self, Row};
use super::{AnnPlan, AnnStatement};
use crate::catalog::VectorIndex;
use crate::inquiry::{Failure, Inquirer};

/// Reads of one query on their way at once.
const READS_AT_ONCE: usize = 64;

/// Index services look at the schema every second, and one that was away may be late.
const NEW_FOR_MICROS: i64 = 30_000_000;

/// What one execution asks for.
struct Search<'a> {
    plan: &'a AnnPlan,
    vector: Bytes,
    limit: usize,
    /// The values of the markers in the selection.
    selection: Vec<BoundValue>,
    parameters: QueryParameters,
    traced: bool,
}

/// The statement that reads rows, as the cluster is told of it.
enum ReadBy<'a> {
    Text,
    Id(&'a AnnStatement),
}

/// Executes a prepared query, whose id for the client is `id`.
///
/// # Errors
/// Values that don't fit, and whatever keeps the index service or the cluster from answering. If the cluster has
/// forgotten its part, or its columns have changed, the client is told that it must prepare the query again.
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
/// As [`execute`].
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
            .value(&values, &plan.index.column, plan.dimensions)?;
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
        let keys = self.candidates(stores).await?;
        let mut context = ResponseContext::default();
        let results = self.read(&by, &keys, node, &mut context).await?;
        let columns = self.columns(&by, &results, node, &mut context).await?;
        let layout = match &by {
            ReadBy::Id(statement) => Cow::Borrowed(&statement.layout),
            ReadBy::Text => Cow::Owned(self.plan.read.layout(&columns)?),
        };
        let rows = self.in_order(results, &keys, &columns, &layout)?;
        let skip_metadata = self.parameters.skip_metadata && matches!(by, ReadBy::Id(_));
        let encoded = rows::encode(&rows, &columns, &layout, skip_metadata);
        let page_size = self.parameters.page_size.map(|rows| rows as usize);
        if bounds::is_cut_short(page_size, self.limit) {
            context.warnings.push(bounds::PAGING_WARNING.to_owned());
        }
        Ok((context, Response::Rows(encoded)))
    }

    /// The keys of the nearest rows, nearest first.
    async fn candidates(&self, stores: &Stores) -> Result<Vec<Key>, CqlError> {
        let plan = self.plan;
        let key_columns = plan.table.primary_key();
        let names: Vec<&str> = key_columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        let wanted = plan.candidates.wanted(self.limit);
        let neighbours = stores
            .ann(
                &plan.index.keyspace,
                &plan.index.name,
                bounds::elements(&self.vector),
                wanted,
                &names,
            )
            .await
            .map_err(|error| self.not_found(error))?;
        let used = plan.candidates.used(self.limit);
        let keys = neighbours.keys.iter().take(used);
        keys.map(|key| {
            self.key(key)
                .ok_or_else(|| refused(ClientError::InvalidJson))
        })
        .collect()
    }

    /// Why an index service has found nothing. One that does not know an index which was created a moment ago is about to: upon this
    /// drivers ask another gateway, or again.
    fn not_found(&self, error: ClientError) -> CqlError {
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

    fn key(&self, sent: &[KeyValue]) -> Option<Key> {
        let columns = self.plan.table.primary_key();
        if sent.len() != columns.len() {
            return None;
        }
        columns
            .iter()
            .zip(sent)
            .map(|(column, value)| key_value(column.cql_type.as_ref()?, value))
            .collect()
    }

    /// Reads the rows of the keys. What comes beside them goes to `context`: all warnings, and the id of one trace.
    async fn read(
        &self,
        by: &ReadBy<'_>,
        keys: &[Key],
        node: &Inquirer,
        context: &mut ResponseContext,
    ) -> Result<Vec<Rows>, Failure> {
        let reads = self.plan.read.values(keys, &self.selection);
        let requests = reads.into_iter().map(|values| self.request(by, values));
        let mut answers = stream::iter(requests.enumerate())
            .map(|(number, request)| async move {
                // One trace is all that an answer can name.
                node.ask(&request, self.traced && number == 0).await
            })
            .buffered(READS_AT_ONCE);
        let mut results = Vec::new();
        while let Some((said, response)) = answers.try_next().await? {
            add_to(context, said);
            let Response::Rows(rows) = response else {
                return Err(Failure::Cql(CqlError::server(
                    "Cassandra answered something else than rows",
                )));
            };
            results.push(rows);
        }
        Ok(results)
    }

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

    /// The columns of the rows read.
    async fn columns<'b>(
        &self,
        by: &ReadBy<'b>,
        results: &[Rows],
        node: &Inquirer,
        context: &mut ResponseContext,
    ) -> Result<Cow<'b, Metadata>, Failure> {
        if let ReadBy::Id(statement) = by {
            return Ok(Cow::Borrowed(&statement.columns));
        }
        if let Some(rows) = results.first() {
            let decoded = rows.decode().map_err(|error| unreadable(&error))?;
            return Ok(Cow::Owned(decoded.metadata.unwrap_or_default()));
        }
        // Without a neighbour nothing was read, and nothing is known of the columns yet.
        let (said, read) = prepare_read(self.plan, node, self.traced).await?;
        add_to(context, said);
        Ok(Cow::Owned(read.result.unwrap_or_default()))
    }

    fn in_order(
        &self,
        results: Vec<Rows>,
        keys: &[Key],
        columns: &Metadata,
        layout: &Layout,
    ) -> Result<Vec<Row>, CqlError> {
        let mut read: Vec<Row> = Vec::with_capacity(keys.len());
        for rows in results {
            let rows = rows.decode().map_err(|error| unreadable(&error))?.rows;
            if rows
                .first()
                .is_some_and(|row| row.len() != columns.columns.len())
            {
                return Err(CqlError::server(
                    "the table was altered while its rows were read: try again",
                ));
            }
            read.extend(rows);
        }
        let found = rows::in_order(read, keys, layout);
        Ok(match self.plan.candidates.rescoring {
            None => found,
            Some(similarity) => rows::rescored(found, similarity, &self.vector, layout, self.limit),
        })
    }
}

fn add_to(context: &mut ResponseContext, said: ResponseContext) {
    context.tracing_id = context.tracing_id.or(said.tracing_id);
    for warning in said.warnings {
        if !context.warnings.contains(&warning) {
            context.warnings.push(warning);
        }
    }
}

fn refused(error: ClientError) -> CqlError {
    CqlError::invalid(error.to_string())
}

fn unreadable(error: &cql::wire::DecodeError) -> CqlError {
    CqlError::server(format!(
        "the gateway cannot read what Cassandra answered: {error}"
    ))
}
