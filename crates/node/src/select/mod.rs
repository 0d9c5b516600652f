//! SELECT: planned when it is prepared, carried out page by page.
//!
//! The way of a statement, a file each:
//!
//! 1. *decide*: `target` finds the table, `projection` settles what is selected, `relation` each
//!    conjunct of WHERE; `access` splits those into what the storage serves and what is filtered,
//!    `order` and `limit` do the rest. The outcome is a [`Plan`] that can be printed.
//! 2. *bind*: `partitions`, `clustering` and `filter` put the values in.
//! 3. *do*: `source` yields rows from the storage or from `memory` (system tables), `cursor`
//!    filters, counts and writes them into a `page`; `execute` drives it; `paging` remembers where
//!    the page ended.
//!
//! `ann` is the other way to find rows: by asking the index service for their keys.

mod access;
mod aggregate;
mod ann;
mod clustering;
mod conflicts;
mod cursor;
mod execute;
mod expression;
mod filter;
mod limit;
mod log;
mod memory;
mod names;
mod order;
mod page;
mod paging;
mod partitions;
pub(crate) mod place;
mod plan;
mod prepare;
mod projection;
mod relation;
mod source;
mod target;
mod values;

use std::fmt;
use std::sync::Arc;

use cql::error::CqlError;
use storage::catalog::TableId;

use crate::bind::StatementClock;
use crate::consistency;
use crate::query::{Answer, ColumnSpec, Database, Parameters};
use plan::{Kind, Resolved};

/// A SELECT resolved against the catalog. `Display` prints what was decided, a line each.
#[derive(Debug)]
pub struct Plan {
    resolved: Arc<Resolved>,
}

impl Plan {
    /// One spec a bind marker, in their order.
    pub fn variables(&self) -> &[ColumnSpec] {
        &self.resolved.variables
    }

    /// The bind markers that make up the partition key, in its order; empty if they don't alone.
    pub fn partition_key_variables(&self) -> &[u16] {
        &self.resolved.partition_key_variables
    }

    /// The table that is read.
    pub fn table(&self) -> TableId {
        self.resolved.target.table.id
    }

    /// The columns of the answer.
    pub fn result_columns(&self) -> &Arc<[ColumnSpec]> {
        &self.resolved.projection.columns
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.resolved.fmt(f)
    }
}

/// Resolves a SELECT; `keyspace` is the one in use, `markers` those of the statement.
///
/// # Errors
/// Unknown names, wrong types, restrictions that cannot be served.
pub fn prepare(
    database: &Database,
    keyspace: Option<&str>,
    select: &cql::ast::Select,
    markers: &[Option<String>],
) -> Result<Plan, CqlError> {
    prepare::prepare(database, keyspace, select, markers.len()).map(|resolved| Plan {
        resolved: Arc::new(resolved),
    })
}

/// Reads one page.
///
/// # Errors
/// Values that don't fit, a paging state of another query, and failures of the storage or of the
/// index service.
pub async fn execute(
    database: &Database,
    plan: &Plan,
    parameters: Parameters,
) -> Result<Answer, CqlError> {
    consistency::check_read(&parameters)?;
    if let Some(timeout) = &plan.resolved.timeout {
        let clock = StatementClock::start(database.storage.clock());
        timeout.check(&parameters, &clock)?;
    }
    match &plan.resolved.kind {
        Kind::Rows(rows) => execute::execute(database, &plan.resolved, rows, parameters).await,
        Kind::Ann(ann) => ann::execute(database, &plan.resolved, ann, parameters).await,
    }
}
