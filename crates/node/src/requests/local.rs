//! Statements of the process itself, which come over no connection.

use std::sync::Arc;

use cql::error::CqlError;

use crate::database::CqlDatabase;
use crate::planner;
use crate::statement::{Actor, BoundValue, ExecutionParameters, ExecutionResult};

/// Executes statements for the process that runs the node.
///
/// No role has logged in for them: all are allowed but those about roles, and no role gets grants
/// on what they make. They take no part in the bounds for clients. Cheap to clone.
#[derive(Clone)]
pub struct InternalExecutor {
    database: Arc<CqlDatabase>,
}

impl InternalExecutor {
    /// Statements on this database.
    pub(crate) fn new(database: Arc<CqlDatabase>) -> InternalExecutor {
        InternalExecutor { database }
    }

    /// Executes a statement with a value for each bind marker, in their order. All rows come in one
    /// page.
    ///
    /// # Errors
    /// All errors of the statement.
    pub async fn execute(
        &self,
        statement: &str,
        values: Vec<BoundValue>,
    ) -> Result<ExecutionResult, CqlError> {
        let parsed = cql::parser::parse_statement(statement)?;
        let plan = planner::prepare(&self.database, None, &parsed)?;
        if values.len() != plan.variables().len() {
            return Err(CqlError::invalid(format!(
                "{} values are bound, and the statement has {} markers",
                values.len(),
                plan.variables().len()
            )));
        }
        let parameters = ExecutionParameters {
            values,
            actor: Actor::Anybody,
            ..ExecutionParameters::default()
        };
        plan.execute(&self.database, parameters).await
    }
}
