//! Execution of ANN queries: asks the index service for neighbours and reads their rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cql::error::{CqlError, ErrorKind};
use futures::stream::{self, StreamExt};
use query::refill::{self, Refill};
use query::{Nearest, bounds, key_value};
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

/// The time for which rows are read on the async thread. To hand over a few reads to another thread
/// would cost more.
const INLINE_TIME: Duration = Duration::from_millis(1);
/// The number of rows that are read in one visit to a blocking thread.
const CHUNK_ROWS: usize = 64;
/// The most visits at the same time for one query.
const CHUNKS_AT_ONCE: usize = 4;

/// A primary key: the serialised values of the partition key and of the clustering key.
type Key = (Vec<Bytes>, Vec<Bytes>);

/// Executes an ANN query. The answer is one page.
///
/// # Errors
/// A LIMIT or vector that is not allowed, and failures of the index service and of the storage.
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
    let answering = Answering {
        database,
        plan,
        ann,
        parameters: &parameters,
        clock: &clock,
        terms: &terms,
        vector,
        limit,
    };
    let mut warnings = Vec::new();
    let mut requested = ann.candidates.wanted(limit);
    let page = loop {
        let keys = answering.candidates(requested).await?;
        let named = keys.len();
        let page = answering.page(keys).await?;
        match Refill::after(limit, requested, named, page.count as usize) {
            Refill::Whole => break page,
            Refill::Short => {
                warnings.push(refill::SHORT_WARNING.to_owned());
                break page;
            }
            // To read the same rows again costs little beside the search, as they are in memory
            // now.
            Refill::Ask(more) => requested = more,
        }
    };
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

/// One execution of an ANN query.
struct Answering<'a> {
    database: &'a Database,
    plan: &'a Resolved,
    ann: &'a AnnPlan,
    parameters: &'a Parameters,
    clock: &'a StatementClock,
    /// The values of the terms in the selection; `None` for null.
    terms: &'a [Option<Bytes>],
    /// The vector to look for, serialised.
    vector: Bytes,
    limit: usize,
}

impl Answering<'_> {
    /// Asks the index service for the keys of the `wanted` nearest rows. The nearest come first.
    async fn candidates(&self, wanted: usize) -> Result<Vec<Key>, CqlError> {
        let (plan, ann) = (self.plan, self.ann);
        let names: Vec<&str> = ann
            .key_columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        let neighbours = self
            .database
            .stores
            .ann(
                &plan.selected.table.keyspace,
                &ann.index.name,
                bounds::elements(&self.vector),
                wanted,
                &names,
            )
            .await
            .map_err(refused)?;
        neighbours
            .keys
            .iter()
            .map(|key| read_key(ann, key).ok_or_else(|| refused(ClientError::InvalidJson)))
            .collect()
    }

    /// Reads the rows of these keys, up to LIMIT, into a page.
    async fn page(&self, keys: Vec<Key>) -> Result<Page, CqlError> {
        let view = self
            .database
            .storage
            .view(self.plan.selected.table.id)
            .map_err(storage_error)?;
        let mut page = Page::new(None, &self.parameters.memory);
        match self.ann.candidates.rescoring {
            None => {
                let mut take = |row: Row| self.show(&mut page, &row);
                each_row(&view, self.ann, keys, self.limit, &mut take).await?;
            }
            Some(similarity) => {
                let mut nearest = Nearest::new(self.limit);
                let mut take = |row: Row| {
                    if let Some(stored) = self.ann.place.value(&row) {
                        nearest.push(similarity.score(&self.vector, stored), row);
                    }
                    Ok(())
                };
                each_row(&view, self.ann, keys, usize::MAX, &mut take).await?;
                for row in nearest.into_best() {
                    self.show(&mut page, &row)?;
                }
            }
        }
        Ok(page)
    }

    fn show(&self, page: &mut Page, row: &Row) -> Result<(), CqlError> {
        let scope = Scope {
            row: Some(row),
            terms: self.terms,
            aggregates: &[],
            clock: self.clock,
        };
        page.push(&self.plan.projection.outputs, scope)
    }
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

/// The CQL error for an error of the index service. Overload gets the code at which drivers ask
/// another node or try again later. All other errors are invalid statements, as in ScyllaDB.
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

/// Reads the rows of the keys, and gives `take` the first `enough` of them that still have a
/// vector, in the order of the keys.
async fn each_row(
    view: &View,
    ann: &AnnPlan,
    keys: Vec<Key>,
    enough: usize,
    take: &mut (dyn FnMut(Row) -> Result<(), CqlError> + Send),
) -> Result<(), CqlError> {
    let mut missing = enough;
    // Returns whether another row is wanted.
    let mut take_live = |row: Row| {
        if missing > 0 && ann.place.value(&row).is_some() {
            take(row)?;
            missing -= 1;
        }
        Ok::<bool, CqlError>(missing > 0)
    };
    let mut keys = keys.into_iter();
    let started = Instant::now();
    while started.elapsed() < INLINE_TIME {
        let Some(key) = keys.next() else {
            return Ok(());
        };
        if let Some(row) = read_row(view, key)?
            && !take_live(row)?
        {
            return Ok(());
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
            if !take_live(row)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn read_row(view: &View, (partition, clustering): Key) -> Result<Option<Row>, CqlError> {
    view.row(partition, &clustering).map_err(storage_error)
}
