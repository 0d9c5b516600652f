//! Statements that change rows: INSERT, UPDATE, DELETE, BATCH and TRUNCATE.
//!
//! [`prepare`] resolves names and types into a [`ModifyPlan`], which holds the partitions and rows
//! to write (`target`) and the changes to their columns (`operation`). [`execute()`] puts the
//! values in and gives the storage one atomic write.

mod batch;
mod condition;
mod conditional;
mod counters;
mod delete;
mod execute;
mod insert;
mod json;
mod operation;
mod plan;
mod restrict;
mod submission;
mod target;
mod update;
mod using;

use std::sync::Arc;

pub use batch::execute_batch;
use cql::ast::{Delete, Insert, Statement, TableName, Update};
use cql::error::{CqlError, ErrorKind};
pub use plan::ModifyPlan;
use plan::{DmlPlan, MutationPlan, TruncatePlan};
use query::bind::{PrepareContext, StatementClock, StatementTimeout};
use query::functions::TokenKey;
use query::resolve::TableColumns;
use schema::Table;
pub use using::MAX_TTL_S;

use crate::database::{CqlDatabase, resolve};
use crate::statement::{
    ExecutionOutcome, ExecutionParameters, ExecutionResult, consistency, deadline, storage_error,
};

/// Resolves a statement that writes. `keyspace` is the one in use, and `markers` are those of the
/// statement.
///
/// # Errors
/// Unknown names, wrong types, keys that are not named in full, and tables that clients may not
/// write to.
pub fn prepare(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    statement: &Statement,
    markers: &[Option<String>],
) -> Result<ModifyPlan, CqlError> {
    let mut ctx = PrepareContext::new("", "", markers.len());
    let work = match statement {
        Statement::Insert(insert) => DmlPlan::Write(Box::new(prepare_insert(
            database, keyspace, insert, &mut ctx,
        )?)),
        Statement::Update(update) => DmlPlan::Write(Box::new(prepare_update(
            database, keyspace, update, &mut ctx,
        )?)),
        Statement::Delete(delete) => DmlPlan::Write(Box::new(prepare_delete(
            database, keyspace, delete, &mut ctx,
        )?)),
        Statement::Batch(batch) => DmlPlan::Batch(Box::new(batch::prepare(
            database, keyspace, batch, &mut ctx,
        )?)),
        Statement::Truncate(truncate) => DmlPlan::Truncate(TruncatePlan {
            table: table_of(database, keyspace, &truncate.table, &mut ctx)?,
            timeout: match &truncate.timeout {
                Some(term) => Some(StatementTimeout::prepare(term, &mut ctx)?),
                None => None,
            },
        }),
        _ => return Err(CqlError::server("bug: this statement does not write")),
    };
    let partition_key_variables = match &work {
        DmlPlan::Write(write) => write.target.partition_key_variables(),
        // The batch goes to a coordinator for its first statement that has a key of markers, which
        // is as good as any other.
        DmlPlan::Batch(batch) => {
            let keys = batch.writes.iter();
            let mut keys = keys.map(|write| write.target.partition_key_variables());
            keys.find(|key| !key.is_empty()).unwrap_or_default()
        }
        DmlPlan::Truncate(_) => Vec::new(),
    };
    Ok(ModifyPlan {
        work,
        variables: ctx.finish()?,
        partition_key_variables,
    })
}

/// Executes a plan.
///
/// # Errors
/// Values that don't fit their places, and failures of the storage.
pub async fn execute(
    database: &CqlDatabase,
    plan: &ModifyPlan,
    parameters: ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let limited = match &plan.work {
        DmlPlan::Write(write) => {
            let is_conditional = write.condition.is_some();
            Some((
                &write.table,
                &write.using,
                is_conditional,
                write.table.is_counter(),
                "SIMPLE",
            ))
        }
        DmlPlan::Batch(batch) => batch.writes.first().map(|first| {
            let mut writes = batch.writes.iter();
            let is_conditional = writes.any(|write| write.condition.is_some());
            (
                &first.table,
                &batch.using,
                is_conditional,
                first.table.is_counter(),
                "BATCH",
            )
        }),
        // It has an error of its own.
        DmlPlan::Truncate(_) => None,
    };
    let Some((table, using, is_conditional, is_counter, write_type)) = limited else {
        return write(database, plan, parameters).await;
    };
    let clock = StatementClock::start(database.storage.clock());
    let Some(limit) = using.limit(&parameters.values, &clock)? else {
        return write(database, plan, parameters).await;
    };
    let write_type = match (is_conditional, is_counter) {
        (true, _) => "CAS",
        (_, true) => "COUNTER",
        _ => write_type,
    };
    let late = deadline::write_timeout(table, &parameters, write_type);
    let writing = Box::pin(write(database, plan, parameters));
    deadline::within(Some(limit), || late, writing).await
}

async fn write(
    database: &CqlDatabase,
    plan: &ModifyPlan,
    parameters: ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    match &plan.work {
        DmlPlan::Write(write) if write.condition.is_some() => {
            consistency::check_conditional(&parameters)?;
            Box::pin(execute::execute_conditional(database, write, &parameters)).await
        }
        DmlPlan::Write(write) => {
            consistency::check_write(&parameters)?;
            execute::execute_write(database, write, &parameters).await
        }
        DmlPlan::Batch(batch) => {
            Box::pin(batch::execute_text_batch(database, batch, &parameters)).await
        }
        DmlPlan::Truncate(plan) => Box::pin(truncate(database, plan, &parameters)).await,
    }
}

async fn truncate(
    database: &CqlDatabase,
    plan: &TruncatePlan,
    parameters: &ExecutionParameters,
) -> Result<ExecutionResult, CqlError> {
    let clock = StatementClock::start(database.storage.clock());
    let limit = match &plan.timeout {
        Some(timeout) => timeout.limit(&parameters.values, &clock)?,
        None => None,
    };
    let work = database.storage.truncate(plan.table.id);
    let work = async { work.await.map_err(storage_error) };
    deadline::within(limit, deadline::truncate_timeout, work).await?;
    Ok(void())
}

fn prepare_insert(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    insert: &Insert,
    ctx: &mut PrepareContext,
) -> Result<MutationPlan, CqlError> {
    let table = table_of(database, keyspace, &insert.table, ctx)?;
    counters::check_insert(&table)?;
    insert::prepare(table, insert, ctx)
}

fn prepare_update(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    update: &Update,
    ctx: &mut PrepareContext,
) -> Result<MutationPlan, CqlError> {
    let table = table_of(database, keyspace, &update.table, ctx)?;
    counters::check_clauses(&table, &update.using, update.condition.is_some())?;
    update::prepare(table, update, ctx)
}

fn prepare_delete(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    delete: &Delete,
    ctx: &mut PrepareContext,
) -> Result<MutationPlan, CqlError> {
    let table = table_of(database, keyspace, &delete.table, ctx)?;
    counters::check_clauses(&table, &delete.using, delete.condition.is_some())?;
    delete::prepare(table, delete, ctx)
}

/// Finds the table of one statement, and makes the bind markers that follow belong to it.
fn table_of(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    name: &TableName,
    ctx: &mut PrepareContext,
) -> Result<Arc<Table>, CqlError> {
    let table = writable_table(database, keyspace, name)?;
    ctx.keyspace = table.keyspace.as_str().into();
    ctx.table = table.name.as_str().into();
    ctx.key = Some(TokenKey::of(TableColumns::from(&*table), table.partitioner));
    ctx.types_of = database
        .storage
        .catalog()
        .keyspace(&table.keyspace)
        .cloned();
    Ok(table)
}

/// Finds a table that clients may write to. System tables and CDC logs are refused.
fn writable_table(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    name: &TableName,
) -> Result<Arc<Table>, CqlError> {
    let table = resolve::table(database, keyspace, name)?;
    if database.system.keyspace(&table.keyspace).is_some() {
        return Err(CqlError::new(
            ErrorKind::Unauthorized,
            format!("{} keyspace is not user-modifiable.", table.keyspace),
        ));
    }
    if table.log_of.is_some() {
        return Err(CqlError::new(
            ErrorKind::Unauthorized,
            format!(
                "Cannot modify {}.{}: a CDC log is written by the database alone",
                table.keyspace, table.name
            ),
        ));
    }
    Ok(table)
}

/// The answer of a statement that returns nothing.
fn void() -> ExecutionResult {
    ExecutionResult {
        outcome: ExecutionOutcome::Void,
        warnings: Vec::new(),
    }
}
