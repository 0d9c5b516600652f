//! SELECT: planned when a statement is prepared, carried out page by page.
//!
//! A statement takes three steps. The names in backticks are the modules here:
//!
//! 1. *decide*: `selected_table` finds the table. `projection` resolves the selection, and
//!    `relation` the relations of WHERE. `access` splits the relations into those that the storage
//!    serves and those that filter rows. `order` (with `searches`) and `limit` resolve the other
//!    clauses. The outcome is a [`SelectPlan`] that can be printed: an access path and an ordering.
//! 2. *bind*: `partitions`, `clustering` (with `slices`), `filter` (with `terms`) and `lookup` put
//!    the values in.
//! 3. *do*: rows are found in the wanted order. In the order of the disk, `execute` drives a
//!    `cursor` from the `page_start` along the access path, whose `source` sends its
//!    `partition_query` to the storage or to a `memory_table` (system tables), and `paging` encodes
//!    where the page ended. Where secondary indexes serve relations, the `indexed` rows are those
//!    at the `positions` of their entries. By searches (a `search_execution`), `neighbours` gets
//!    their keys from the index service, and for all rows with words `matches`; `view_rows` reads
//!    the rows, and `hits` are what searches know of a row. Either way a `collector` filters and
//!    counts the rows, takes those of a `group` together, and makes a `page` of them.
//!
//! All but small reads are done on `blocking` threads, a slice at a time and each in a turn
//! ([`cpu_scheduler`]). A query holds rows as they were read only while it has a turn; what it has
//! `held` from one slice to the next is charged to the client's memory.

mod access;
mod aggregate;
mod blocking;
mod clustering;
mod collector;
pub(crate) mod column_location;
mod composed;
mod composed_condition;
mod cursor;
mod execute;
mod expression;
mod failed;
mod filter;
mod group;
mod group_order;
mod guarded;
mod hits;
mod indexed;
mod log;
mod lookup;
mod matches;
mod memory_table;
mod names;
mod neighbours;
mod order;
mod page;
mod page_start;
mod paging;
mod partition_query;
mod partitions;
mod parts;
mod plan;
mod positions;
mod prepare;
mod projection;
mod read_limits;
mod retained_rows;
mod search_execution;
mod searches;
mod selected_table;
pub(crate) mod slices;
mod source;
mod terms;
mod view_rows;

use std::fmt;
use std::sync::Arc;

use cql::error::CqlError;
use order::ResultOrder;
use plan::ResolvedSelect;
pub(crate) use projection::json_name;
use query::bind::StatementClock;
use schema::{Table, TableId};

use crate::database::CqlDatabase;
use crate::statement::{ColumnSpec, ExecutionParameters, ExecutionResult, consistency, deadline};

/// A SELECT resolved against the catalog. `Display` prints one line for each decision.
#[derive(Debug)]
pub struct SelectPlan {
    resolved: Arc<ResolvedSelect>,
}

impl SelectPlan {
    /// The spec of each bind marker, in the order of the markers.
    pub fn variables(&self) -> &[ColumnSpec] {
        &self.resolved.variables
    }

    /// The indexes of the bind markers that give the partition key, in the order of the key. Empty
    /// if a key column has another value than a single marker.
    pub fn partition_key_variables(&self) -> &[u16] {
        &self.resolved.partition_key_variables
    }

    /// The table that is read.
    pub fn table(&self) -> TableId {
        self.resolved.selected.table.id
    }

    /// The table that is read.
    pub(crate) fn selected_table(&self) -> &Table {
        &self.resolved.selected.table
    }

    /// The number of selected values, which one column may hold as JSON.
    pub fn width(&self) -> usize {
        self.resolved.projection.width()
    }

    /// The columns of the answer.
    pub fn result_columns(&self) -> &Arc<[ColumnSpec]> {
        &self.resolved.projection.columns
    }
}

impl fmt::Display for SelectPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.resolved.fmt(f)
    }
}

/// Resolves a SELECT. `keyspace` is the one in use, and `markers` are those of the statement.
///
/// # Errors
/// Unknown names, wrong types, restrictions that cannot be served.
pub fn prepare(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    select: &cql::ast::Select,
    markers: &[Option<String>],
) -> Result<SelectPlan, CqlError> {
    prepare::prepare(database, keyspace, select, markers.len()).map(|resolved| SelectPlan {
        resolved: Arc::new(resolved),
    })
}

/// Reads one page of the answer.
///
/// # Errors
/// Values that don't fit their places, a paging state of another query, and failures of the storage
/// or of the index service.
pub async fn execute(
    database: &CqlDatabase,
    plan: &SelectPlan,
    parameters: ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    consistency::check_read(&parameters)?;
    let plan = &plan.resolved;
    let Some(timeout) = &plan.timeout else {
        return read(database, plan, parameters).await;
    };
    let clock = StatementClock::start(database.storage.clock());
    let limit = timeout.limit(&parameters.values, &clock)?;
    let late = deadline::read_timeout(&plan.selected.table, &parameters);
    let reading = Box::pin(read(database, plan, parameters));
    deadline::within(limit, || late, reading).await
}

async fn read(
    database: &CqlDatabase,
    plan: &Arc<ResolvedSelect>,
    parameters: ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    match &plan.order {
        ResultOrder::Clustering(_) if parameters.condition.is_some() => Err(CqlError::server(
            "bug: a condition was added to a SELECT that does not search",
        )),
        ResultOrder::Clustering(order) => execute::execute(database, plan, order, parameters).await,
        ResultOrder::Searched(searched) => {
            let searching = async {
                let presence = parameters.presence.clone();
                let found = neighbours::execute(database, plan, searched, parameters);
                presence.during(found).await
            };
            Box::pin(searching).await
        }
        ResultOrder::Matching(searched) => {
            let searching = async {
                let presence = parameters.presence.clone();
                let found = matches::execute(database, plan, searched, parameters);
                presence.during(found).await
            };
            Box::pin(searching).await
        }
    }
}
