//! `POST /api/v1/batch`: writes to several tables that are carried out together or not at all.

use std::collections::BTreeMap;

use axum::extract::{Request, State};
use axum::response::Response;
use cql::wire::{
    BatchKind, BatchRequest, BatchStatement, BatchedStatement, Consistency, Request as CqlRequest,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Shared;
use super::answers::JsonWriter;
use super::call::{CallKind, TableCall, json};
use super::failure::HttpFailure;
use super::names::table_of;
use super::rows::{GivenKey, check_row, delete_by, insert};
use super::statements::{ComposedStatement, bound, is_outdated};

/// The most operations of a batch.
const OPERATIONS_MAX: usize = 10_000;

/// The body of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBatch<'b> {
    #[serde(borrow)]
    operations: Vec<BatchOperation<'b>>,
}

/// One write of a batch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum BatchOperation<'b> {
    /// A row, as in `PUT .../rows`.
    Put {
        keyspace: String,
        table: String,
        #[serde(borrow)]
        row: &'b RawValue,
        ttl: Option<u32>,
    },
    /// A row is deleted by its key.
    Delete {
        keyspace: String,
        table: String,
        #[serde(borrow)]
        key: BTreeMap<String, &'b RawValue>,
    },
}

/// `POST /api/v1/batch`.
pub(super) async fn run(
    State(tables): State<Shared>,
    request: Request,
) -> Result<Response, HttpFailure> {
    let (call, body) = TableCall::with_body(tables, request, CallKind::MayChange).await?;
    let work = async {
        let batch: WrittenBatch<'_> = json(&body.bytes)?;
        if batch.operations.len() > OPERATIONS_MAX {
            return Err(HttpFailure::bad_request(
                format!("a batch has {OPERATIONS_MAX} operations at most"),
                "send several batches",
            ));
        }
        let mut statements = Vec::with_capacity(batch.operations.len());
        for (at, operation) in batch.operations.iter().enumerate() {
            let composed = compose(&call, operation);
            let place = format!("operation {}", at + 1);
            statements.push(composed.map_err(|failure| failure.at(&place))?);
        }
        let warnings = execute(&call, &statements).await?;
        let mut text = JsonWriter::new(&call);
        text.put(&format!("{{\"written\":{}", statements.len()));
        text.put_rest(None, &warnings);
        text.put("}");
        Ok(text.finish())
    };
    call.answer(work).await
}

fn compose(
    call: &TableCall,
    operation: &BatchOperation<'_>,
) -> Result<ComposedStatement, HttpFailure> {
    match operation {
        BatchOperation::Put {
            keyspace,
            table,
            row,
            ttl,
        } => {
            let table = table_of(&call.tables, keyspace, table)?;
            check_row(&table, row.get())?;
            Ok(insert(&table, row.get(), *ttl, false))
        }
        BatchOperation::Delete {
            keyspace,
            table,
            key,
        } => {
            let table = table_of(&call.tables, keyspace, table)?;
            delete_by(&table, &GivenKey::of_fields(&table, key)?)
        }
    }
}

/// Executes statements as one logged batch. Returns its warnings.
async fn execute(
    call: &TableCall,
    statements: &[ComposedStatement],
) -> Result<Vec<String>, HttpFailure> {
    if statements.is_empty() {
        return Ok(Vec::new());
    }
    let mut is_again = false;
    loop {
        let mut batched = Vec::with_capacity(statements.len());
        for ComposedStatement { text, values } in statements {
            let prepared = call.prepare(None, text, is_again).await?;
            batched.push(BatchStatement {
                statement: BatchedStatement::Prepared(prepared.id.clone()),
                values: bound(values, &prepared.bind.columns)?,
            });
        }
        let request = CqlRequest::Batch(BatchRequest {
            kind: BatchKind::Logged,
            statements: batched,
            consistency: Consistency::One,
            serial_consistency: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        });
        match call.session.answer(request).await {
            Err(error) if is_outdated(&error) && !is_again => is_again = true,
            Err(error) => return Err(error.into()),
            Ok(reply) => return Ok(reply.warnings),
        }
    }
}
