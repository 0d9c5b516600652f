//! Rows by searches: the search over the rows of the storage.
//!
//! The index service names the keys of the best rows, and the rows are read here. So an answer
//! never holds a stale row. The loops are those of [`query::search`]; `view_rows` has the rows.
//!
//! If the index of a single search keeps all that WHERE and the selection need, the index service
//! in the same process answers without rows at the consistency of one replica. It knows every
//! acknowledged write, so its values are those of the rows.

use std::sync::Arc;

use cql::error::CqlError;
use query::bind::StatementClock;
use query::search::{self, ServedIndexes};
use query::values::EvaluationInputs;
use query::{bounds, limit};

use super::plan::ResolvedSelect;
use super::search_execution::SearchExecution;
use super::searches::SearchOrder;
use super::view_rows::ViewRows;
use crate::database::CqlDatabase;
use crate::statement::{ExecutionOutcome, ExecutionParameters, ExecutionResult, ResultRows};

/// Finds the best rows of a plan, and returns them as one page.
///
/// # Errors
/// A LIMIT or vector that is not allowed, and failures of the index service and of the storage.
pub(super) async fn execute(
    database: &CqlDatabase,
    plan: &Arc<ResolvedSelect>,
    order: &SearchOrder,
    parameters: ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let clock =
        StatementClock::start(database.storage.clock()).with_client_now(parameters.client_now_s);
    let values = EvaluationInputs {
        bound: &parameters.values,
        clock: &clock,
    };
    let limit = limit::evaluate(plan.limit.as_ref(), values)?;
    let limit = bounds::checked_limit(limit, order.form)?;
    let execution = SearchExecution::new(database, plan, order, &parameters, &clock, limit)?;
    let key_columns = order.key_columns.iter();
    let indexes = ServedIndexes {
        stores: &database.stores,
        key_columns: key_columns.map(|column| column.name.as_str()).collect(),
    };
    let search = execution.search();
    let mut rows = ViewRows::of(&execution);
    search::run(&search, &indexes, &mut rows).await?;
    let page = rows.into_page().await?;
    let mut warnings = Vec::new();
    if bounds::is_cut_short(parameters.page_size, limit) {
        warnings.push(bounds::paging_warning(order.form));
    }
    let count = page.count;
    let (body, charge) = page.into_body();
    Ok(ExecutionResult {
        outcome: ExecutionOutcome::Rows(ResultRows {
            columns: plan.projection.columns.clone(),
            body,
            count,
            paging_state: None,
            charge: Some(charge),
        }),
        warnings,
    })
}
