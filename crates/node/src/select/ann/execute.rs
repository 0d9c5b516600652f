//! Asking for neighbours and reading their rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ann_query::{Nearest, bounds, key_value};
use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use futures::stream::{self, StreamExt};
use storage::read::{Row, View};
use store_api::{ClientError, KeyValue};

use super::AnnPlan;
use crate::bind::{Bound, StatementClock};
use crate::failure::storage_error;
use crate::query::{Answer, BoundValue, Database, Outcome, Parameters, Rows};
use crate::select::execute::{on_blocking_thread, terms};
use crate::select::expression::Scope;
use crate::select::limit;
use crate::select::page::Page;
use crate::select::plan::Resolved;
use crate::select::values::Values;

/// For so long rows are read on the async thread, where that costs less than handing them over.
const INLINE_TIME: Duration = Duration::from_millis(1);
/// Rows read by one visit to a blocking thread.
const CHUNK_ROWS: usize = 64;
/// Visits at the same time, for one query.
const CHUNKS_AT_ONCE: usize = 4;

/// A primary key in serialised form: partition key and clustering key.
type Key = (Vec<Bytes>, Vec<Bytes>);

/// Executes a nearest-neighbour query.
pub(in crate::select) async fn execute(
    database: &Database,
    plan: &Arc<Resolved>,
    ann: &AnnPlan,
    parameters: Parameters,
) -> Result<Answer, CqlError> {
    let clock = StatementClock::start(database.storage.clock());
    let values = Values {
        parameters: &parameters,
        clock: &clock,
    };
    let limit = bounds::checked_limit(limit::evaluate(Some(&ann.limit), values)?)?;
    let vector = query_vector(ann, values)?;
    let terms = terms(&plan.projection.terms, values)?;
    let keys = candidates(database, plan, ann, &vector, limit).await?;

    let view = database
        .storage
        .view(plan.target.table.id)
        .map_err(storage_error)?;
    let page = match ann.candidates.rescoring {
        None => {
            let mut page = Page::new(None, &parameters.memory);
            let mut take = |row: Row| {
                let scope = Scope {
                    row: Some(&row),
                    terms: &terms,
                    aggregates: &[],
                    clock: &clock,
                };
                page.push(&plan.projection.outputs, scope)
            };
            each_row(&view, ann, keys, &mut take).await?;
            page
        }
        Some(similarity) => {
            let mut nearest = Nearest::new(limit);
            let mut take = |row: Row| {
                if let Some(stored) = ann.place.value(&row) {
                    nearest.push(similarity.score(&vector, stored), row);
                }
                Ok(())
            };
            each_row(&view, ann, keys, &mut take).await?;
            let mut page = Page::new(None, &parameters.memory);
            for row in nearest.into_best() {
                let scope = Scope {
                    row: Some(&row),
                    terms: &terms,
                    aggregates: &[],
                    clock: &clock,
                };
                page.push(&plan.projection.outputs, scope)?;
            }
            page
        }
    };
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
        warnings: if bounds::is_cut_short(parameters.page_size, limit) {
            vec![bounds::PAGING_WARNING.to_owned()]
        } else {
            Vec::new()
        },
    })
}

/// The vector to look for, serialised.
fn query_vector(ann: &AnnPlan, values: Values<'_>) -> Result<Bytes, CqlError> {
    if let Some(marker) = ann.vector.marker()
        && let Some(BoundValue::Value(bytes)) = values.parameters.values.get(usize::from(marker))
    {
        bounds::check_bound_dimensions(bytes, ann.dimensions)?;
    }
    match ann.vector.evaluate(values.parameters, values.clock)? {
        Bound::Value(bytes) => bounds::check_finite(&bytes, &ann.column).map(|()| bytes),
        Bound::Null => Err(bounds::null_vector(&ann.column)),
        Bound::Unset => Err(bounds::unset_vector(&ann.column)),
    }
}

/// The keys of the nearest rows, nearest first.
async fn candidates(
    database: &Database,
    plan: &Resolved,
    ann: &AnnPlan,
    vector: &[u8],
    limit: usize,
) -> Result<Vec<Key>, CqlError> {
    let names: Vec<&str> = ann
        .key_columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    let neighbours = database
        .stores
        .ann(
            &plan.target.table.keyspace,
            &ann.index.name,
            bounds::elements(vector),
            ann.candidates.wanted(limit),
            &names,
        )
        .await
        .map_err(refused)?;
    neighbours
        .keys
        .iter()
        .take(ann.candidates.used(limit))
        .map(|key| read_key(ann, key).ok_or_else(|| refused(ClientError::InvalidJson)))
        .collect()
}

/// Overload has the code at which drivers ask another node or try again later. All else is the statement's fault, as in
/// ScyllaDB.
fn refused(error: ClientError) -> CqlError {
    match error {
        ClientError::Overloaded { .. } => CqlError::new(ErrorKind::Overloaded, error.to_string()),
        error => CqlError::invalid(error.to_string()),
    }
}

fn read_key(ann: &AnnPlan, key: &[KeyValue]) -> Option<Key> {
    if key.len() != ann.key_columns.len() {
        return None;
    }
    let mut values = ann
        .key_columns
        .iter()
        .zip(key)
        .map(|(column, value)| key_value(&column.cql_type, value))
        .collect::<Option<Vec<Bytes>>>()?;
    let clustering = values.split_off(ann.partition_columns);
    Some((values, clustering))
}

/// Reads the rows of the keys and hands on those that still have a vector, in the order of the keys.
async fn each_row(
    view: &View,
    ann: &AnnPlan,
    keys: Vec<Key>,
    take: &mut (dyn FnMut(Row) -> Result<(), CqlError> + Send),
) -> Result<(), CqlError> {
    let mut take_live = |row: Row| match ann.place.value(&row) {
        Some(_) => take(row),
        None => Ok(()),
    };
    let mut keys = keys.into_iter();
    let started = Instant::now();
    while started.elapsed() < INLINE_TIME {
        let Some(key) = keys.next() else {
            return Ok(());
        };
        if let Some(row) = read_row(view, key)? {
            take_live(row)?;
        }
    }
    let chunks = std::iter::from_fn(|| {
        let chunk: Vec<Key> = keys.by_ref().take(CHUNK_ROWS).collect();
        (!chunk.is_empty()).then_some(chunk)
    });
    let mut rows = stream::iter(chunks)
        .map(|chunk| {
            let view = view.clone();
            on_blocking_thread(move || {
                chunk
                    .into_iter()
                    .filter_map(|key| read_row(&view, key).transpose())
                    .collect::<Result<Vec<Row>, CqlError>>()
            })
        })
        .buffered(CHUNKS_AT_ONCE);
    while let Some(chunk) = rows.next().await {
        for row in chunk?? {
            take_live(row)?;
        }
    }
    Ok(())
}

fn read_row(view: &View, (partition, clustering): Key) -> Result<Option<Row>, CqlError> {
    view.row(partition, &clustering).map_err(storage_error)
}
