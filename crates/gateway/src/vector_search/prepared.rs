//! PREPARE of a query by searches.

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::{ColumnsMetadata, PreparedResponse, Request, Response, ResponseContext};
use uuid::Uuid;

use super::AnnPlan;
use crate::key_read::ReadRowLayout;
use crate::node_requests::{ClientRequestError, NodeRequestSender};

/// A prepared query by searches.
#[derive(Debug)]
pub(crate) struct AnnStatement {
    /// The plan of the query.
    pub(super) plan: AnnPlan,
    /// The cluster's id of the prepared statement that reads the rows.
    pub(super) read_id: Bytes,
    /// The cluster's id of the columns that this statement reads; `None` if a client of version 4
    /// prepared it.
    pub(super) read_columns_id: Option<Bytes>,
    /// The columns of the rows that this statement reads.
    pub(super) columns: ColumnsMetadata,
    /// The layout of these rows.
    pub(super) layout: ReadRowLayout,
    /// The id of the columns of the answer.
    pub(super) columns_id: Bytes,
    /// The bind markers as they are reported to the client. The names also apply to `?`.
    pub(super) variables: ColumnsMetadata,
}

impl AnnStatement {
    /// The plan of the query.
    pub(crate) fn plan(&self) -> &AnnPlan {
        &self.plan
    }
}

/// The id of a statement: a hash of the keyspace in use and the text.
pub(crate) fn statement_id(keyspace: Option<&str>, text: &str) -> Bytes {
    // The prefix keeps the id from being one of the node's by chance, as those are hashes of texts,
    // too.
    let named = ["annulus ann", keyspace.unwrap_or_default(), text].join("\0");
    let id = Uuid::new_v5(&Uuid::nil(), named.as_bytes());
    Bytes::copy_from_slice(id.as_bytes())
}

/// Prepares the statement that reads rows. Returns the query to remember, and the answer to the
/// client under `id`.
///
/// # Errors
/// If the cluster refuses that statement, for instance because it does not know a name or function
/// in the selection.
pub(crate) async fn prepare(
    plan: AnnPlan,
    id: Bytes,
    node: &NodeRequestSender,
    traced: bool,
) -> Result<(AnnStatement, ResponseContext, Response), ClientRequestError> {
    let (context, read) = prepare_read(&plan, node, traced).await?;
    let columns = read.result.unwrap_or_default();
    let layout = plan.read.layout(&columns)?;
    let selection = read.bind.columns.get(..plan.selection.markers.len());
    let variables = plan.variables(selection.unwrap_or_default());
    let (shown, _) = plan.selection.answer(&columns.columns[..layout.shown]);
    let named = shown.columns.iter();
    let named = named.map(|column| (&*column.name, &column.cql_type));
    let columns_id = query::columns_id(b"annulus ann\0", named);
    let told = PreparedResponse {
        id,
        result_metadata_id: Some(columns_id.clone()),
        bind: variables.clone(),
        partition_key_indexes: Vec::new(),
        result: Some(shown),
    };
    let statement = AnnStatement {
        plan,
        read_id: read.id,
        read_columns_id: read.result_metadata_id,
        columns_id,
        columns,
        layout,
        variables,
    };
    Ok((statement, context, Response::Prepared(told)))
}

/// Has the cluster prepare the statement that reads rows.
pub(super) async fn prepare_read(
    plan: &AnnPlan,
    node: &NodeRequestSender,
    traced: bool,
) -> Result<(ResponseContext, PreparedResponse), ClientRequestError> {
    let request = Request::Prepare {
        statement: plan.read.text.clone(),
        keyspace: None,
    };
    match node.ask(&request, traced).await? {
        (context, Response::Prepared(read)) => Ok((context, read)),
        _ => Err(ClientRequestError::Cql(CqlError::server(
            "Cassandra answered PREPARE with something else than a prepared statement",
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_that_of_a_keyspace_and_a_text() {
        let id = statement_id(Some("a"), "b");
        assert_eq!(id, statement_id(Some("a"), "b"));
        assert_eq!(id.len(), 16);
        assert_ne!(id, statement_id(None, "b"));
        assert_ne!(id, statement_id(Some("a"), "c"));
    }
}
