//! Plans of statements of all kinds: a parsed statement becomes a plan of its own module, which
//! executes it.

mod required_permissions;
mod unsupported;

use std::sync::Arc;

use ::schema::TableId;
use cql::ast::{ParsedStatement, Statement};
use cql::error::CqlError;

use crate::database::{CqlDatabase, resolve};
use crate::security::roles;
use crate::statement::{
    ColumnSpec, ExecutionOutcome, ExecutionParameters, ExecutionResult, keyspace_name,
};
use crate::{describe, modify, schema_changes, select};

/// A statement resolved against the catalog. A plan is valid for one version of the catalog. When
/// the version has changed, `requests` prepares the statement again from its parsed form.
#[derive(Debug)]
pub enum StatementPlan {
    /// SELECT.
    Select(select::SelectPlan),
    /// INSERT, UPDATE, DELETE, BATCH or TRUNCATE.
    Modify(modify::ModifyPlan),
    /// CREATE, ALTER or DROP of what the schema has.
    Schema(schema_changes::SchemaPlan),
    /// Statements about roles and permissions.
    Roles(roles::RolesPlan),
    /// DESCRIBE.
    Describe(describe::DescribePlan),
    /// A DROP with IF EXISTS of a kind of thing that there is none of.
    Nothing,
    /// USE.
    Use {
        /// The name of the keyspace, which existed when the statement was prepared.
        keyspace: String,
    },
}

/// Resolves a parsed statement into a plan. `keyspace` is the keyspace in use.
///
/// # Errors
/// Unknown names, wrong types and restrictions that cannot be served: every error that can be found
/// before the values are known.
pub fn prepare(
    database: &CqlDatabase,
    keyspace: Option<&str>,
    parsed: &ParsedStatement,
) -> Result<StatementPlan, CqlError> {
    traces::note(|| "Preparing statement".to_owned());
    match &parsed.statement {
        Statement::Select(select) => {
            select::prepare(database, keyspace, select, &parsed.markers).map(StatementPlan::Select)
        }
        Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Batch(_)
        | Statement::Truncate(_) => {
            modify::prepare(database, keyspace, &parsed.statement, &parsed.markers)
                .map(StatementPlan::Modify)
        }
        Statement::Describe(describe) => {
            describe::prepare(database, keyspace, describe).map(StatementPlan::Describe)
        }
        Statement::Use { keyspace } => {
            resolve::check_keyspace(database, keyspace)?;
            Ok(StatementPlan::Use {
                keyspace: keyspace.clone(),
            })
        }
        Statement::Role(statement) => roles::prepare(keyspace, statement).map(StatementPlan::Roles),
        Statement::DropAbsent { keyspace: own, .. } => {
            keyspace_name(own.as_deref(), keyspace)?;
            Ok(StatementPlan::Nothing)
        }
        Statement::Unsupported(words) => Err(unsupported::refused(words)),
        _ => schema_changes::prepare(database, keyspace, &parsed.statement)
            .map(StatementPlan::Schema),
    }
}

impl StatementPlan {
    /// The name and type of each bind marker, in the markers' order.
    pub fn variables(&self) -> &[ColumnSpec] {
        match self {
            StatementPlan::Select(plan) => plan.variables(),
            StatementPlan::Modify(plan) => plan.variables(),
            StatementPlan::Schema(_)
            | StatementPlan::Roles(_)
            | StatementPlan::Describe(_)
            | StatementPlan::Nothing
            | StatementPlan::Use { .. } => &[],
        }
    }

    /// The positions of the bind markers that make up the partition key, in the key's order.
    /// Drivers route requests by them. Empty if the key is not made only of markers.
    pub fn partition_key_variables(&self) -> &[u16] {
        match self {
            StatementPlan::Select(plan) => plan.partition_key_variables(),
            StatementPlan::Modify(plan) => plan.partition_key_variables(),
            StatementPlan::Schema(_)
            | StatementPlan::Roles(_)
            | StatementPlan::Describe(_)
            | StatementPlan::Nothing
            | StatementPlan::Use { .. } => &[],
        }
    }

    /// The tables that the plan reads or writes; empty for plans that find their tables only when
    /// they are executed.
    pub fn tables(&self) -> Vec<TableId> {
        match self {
            StatementPlan::Select(plan) => vec![plan.table()],
            StatementPlan::Modify(plan) => plan.tables(),
            StatementPlan::Schema(_)
            | StatementPlan::Roles(_)
            | StatementPlan::Describe(_)
            | StatementPlan::Nothing
            | StatementPlan::Use { .. } => Vec::new(),
        }
    }

    /// The columns of the answer. `None` if the answer has no rows, or if its columns are not known
    /// beforehand (conditional writes).
    pub fn result_columns(&self) -> Option<&Arc<[ColumnSpec]>> {
        match self {
            StatementPlan::Select(plan) => Some(plan.result_columns()),
            StatementPlan::Describe(plan) => Some(plan.result_columns()),
            StatementPlan::Modify(_)
            | StatementPlan::Schema(_)
            | StatementPlan::Roles(_)
            | StatementPlan::Nothing
            | StatementPlan::Use { .. } => None,
        }
    }

    /// The number of values in a row of the answer, as far as it is known beforehand.
    pub fn width(&self) -> usize {
        match self {
            StatementPlan::Select(plan) => plan.width(),
            _ => self.result_columns().map_or(0, |columns| columns.len()),
        }
    }

    /// The plan of a search, a line for each decision; `None` for another statement.
    pub fn search(&self) -> Option<String> {
        match self {
            StatementPlan::Select(plan) => plan.search(),
            _ => None,
        }
    }

    /// Executes the statement.
    ///
    /// # Errors
    /// Unauthorized where the actor has no right to it, and all errors of the statement's kind.
    pub async fn execute(
        &self,
        database: &CqlDatabase,
        parameters: ExecutionParameters,
    ) -> Result<ExecutionResult, CqlError> {
        let catalog = database.storage.catalog();
        self.check_rights(&database.access, &catalog, &parameters.actor)?;
        match self {
            StatementPlan::Select(plan) => select::execute(database, plan, parameters).await,
            StatementPlan::Modify(plan) => modify::execute(database, plan, parameters).await,
            StatementPlan::Schema(plan) => {
                traces::note(|| "Changing the schema".to_owned());
                Box::pin(schema_changes::execute(database, plan, parameters.actor)).await
            }
            StatementPlan::Roles(plan) => {
                let CqlDatabase {
                    storage,
                    access,
                    system,
                    ..
                } = database;
                Box::pin(roles::execute(storage, access, system, plan, parameters)).await
            }
            StatementPlan::Describe(plan) => describe::execute(database, plan),
            StatementPlan::Nothing => Ok(ExecutionResult {
                outcome: ExecutionOutcome::Void,
                warnings: Vec::new(),
            }),
            StatementPlan::Use { keyspace } => Ok(ExecutionResult {
                outcome: ExecutionOutcome::SetKeyspace(keyspace.clone()),
                warnings: Vec::new(),
            }),
        }
    }
}
