//! To be written.

use std::sync::Arc;

use cql::error::CqlError;

use crate::query::{Answer, ColumnSpec, Database, Parameters};

/// To be written.
#[derive(Debug)]
pub struct Plan {}

impl Plan {
    pub fn variables(&self) -> &[ColumnSpec] {
        todo!()
    }

    pub fn partition_key_variables(&self) -> &[u16] {
        todo!()
    }

    pub fn result_columns(&self) -> &Arc<[ColumnSpec]> {
        todo!()
    }
}

pub fn prepare(
    _database: &Database,
    _keyspace: Option<&str>,
    _statement: &cql::ast::Statement,
    _markers: &[Option<String>],
) -> Result<Plan, CqlError> {
    todo!()
}

pub async fn execute(
    _database: &Database,
    _plan: &Plan,
    _parameters: Parameters,
) -> Result<Answer, CqlError> {
    todo!()
}
