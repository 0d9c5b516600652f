//! Carries out a query by searches, with the rows of the cluster.

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{QueryParameters, Response, ResponseContext};
use query::search::{self, ServedIndexes};

use super::execution::{AnnExecution, ReadBy};
use super::freshness::FreshSearches;
use super::rows::ClusterRows;
use super::{AnnPlan, AnnStatement, matching};
use crate::node_requests::{ClientRequestError, NodeRequestSender};

/// Executes a prepared query. `id` is the id by which the client knows it.
///
/// # Errors
/// If values don't fit, or the index service or the cluster does not answer or answers with an
/// error. If the cluster has forgotten its statement, or its columns have changed, the error is
/// UNPREPARED, so that the client prepares the query again.
pub(crate) async fn execute(
    statement: &AnnStatement,
    id: Bytes,
    expected: Option<Bytes>,
    parameters: QueryParameters,
    node: &NodeRequestSender,
    searches: &FreshSearches,
    traced: bool,
) -> Result<(ResponseContext, Response), ClientRequestError> {
    let names = &statement.variables.columns;
    let name = |position: usize| names.get(position).map(|spec| &*spec.name);
    let new_columns = expected
        .filter(|expected| *expected != statement.columns_id)
        .map(|_| statement.columns_id.clone());
    let skips_metadata = parameters.skip_metadata && new_columns.is_none();
    let execution = AnnExecution {
        skips_metadata,
        new_columns,
        ..AnnExecution::new(&statement.plan, parameters, name, traced)?
    };
    match answer(&execution, ReadBy::Id(statement), node, searches).await {
        Err(failure) if failure.is_unprepared(node.compression()) => Err(ClientRequestError::Cql(
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
    node: &NodeRequestSender,
    searches: &FreshSearches,
    traced: bool,
) -> Result<(ResponseContext, Response), ClientRequestError> {
    let name = |position: usize| plan.markers.get(position)?.as_deref();
    let execution = AnnExecution::new(plan, parameters, name, traced)?;
    answer(&execution, ReadBy::Text, node, searches).await
}

async fn answer(
    execution: &AnnExecution<'_>,
    by: ReadBy<'_>,
    node: &NodeRequestSender,
    searches: &FreshSearches,
) -> Result<(ResponseContext, Response), ClientRequestError> {
    let key_columns = execution.plan.table.primary_key().iter();
    let indexes = ServedIndexes {
        stores: &searches.stores,
        key_columns: key_columns.map(|column| column.name.as_str()).collect(),
    };
    let mut rows = ClusterRows::of(execution, by, node, searches);
    let Some(search) = execution.search(searches) else {
        return matching::answer(execution, rows, searches).await;
    };
    search::run(&search, &indexes, &mut rows).await?;
    rows.into_answer(None).await
}
