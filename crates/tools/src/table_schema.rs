//! The columns of a table, as the server's own tables list them.

use scylla::client::session::Session;

use crate::ToolError;
use crate::server_error::of_statement;
use crate::table_name::QualifiedTable;

/// A column of a table of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Whether it is of the primary key.
    pub is_key: bool,
    /// Its type as `system_schema.columns` spells it.
    pub type_text: String,
}

/// The columns of a table: those of its key first, in their order. `None` if there is no such
/// table.
///
/// # Errors
/// If the server does not answer.
pub async fn columns(
    session: &Session,
    table: &QualifiedTable,
) -> Result<Option<Vec<TableColumn>>, ToolError> {
    let statement = "SELECT column_name, kind, position, type FROM system_schema.columns \
                     WHERE keyspace_name = ? AND table_name = ?";
    let answer = session
        .query_unpaged(statement, (&table.keyspace, &table.table))
        .await
        .map_err(|error| of_statement(statement, &error))?;
    let wrong =
        |error: &dyn ToString| ToolError::Statement(format!("{statement}: {}", error.to_string()));
    let rows = answer.into_rows_result().map_err(|error| wrong(&error))?;
    let rows = rows
        .rows::<(String, String, i32, String)>()
        .map_err(|error| wrong(&error))?;
    let mut found = Vec::new();
    for row in rows {
        let (name, kind, position, type_text) = row.map_err(|error| wrong(&error))?;
        let rank = match kind.as_str() {
            "partition_key" => 0,
            "clustering" => 1,
            _ => 2,
        };
        let column = TableColumn {
            name,
            is_key: rank < 2,
            type_text,
        };
        found.push((rank, position, column));
    }
    found.sort_by(|a, b| (a.0, a.1, &a.2.name).cmp(&(b.0, b.1, &b.2.name)));
    let columns: Vec<_> = found.into_iter().map(|(_, _, column)| column).collect();
    Ok((!columns.is_empty()).then_some(columns))
}

/// Whether there is a keyspace of this name.
///
/// # Errors
/// If the server does not answer.
pub async fn has_keyspace(session: &Session, name: &str) -> Result<bool, ToolError> {
    let statement = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let answer = session
        .query_unpaged(statement, (name,))
        .await
        .map_err(|error| of_statement(statement, &error))?;
    let rows = answer.into_rows_result();
    Ok(rows.is_ok_and(|rows| rows.rows_num() > 0))
}
