//! DESCRIBE with the gateway's vector and full-text indexes.
//!
//! After every table that the node describes come the statements that create its indexes,
//! whether the client described the table, its keyspace or everything. The node does not know an
//! index that is described by name; then its error is replaced by the index's description.

use std::sync::Arc;

use cql::ast::{DescribeTarget, Statement};
use cql::parser::parse_statement;
use cql::quote::Identifier;
use cql::wire::{ColumnSpec, ColumnsMetadata, DecodeError, EncodedRows, RowsEncoder};
use index::definition;
use value::CqlType;

use crate::catalog::{DefinedIndex, IndexCatalogSnapshot};

/// The columns of the answer to DESCRIBE.
const COLUMNS: [&str; 4] = ["keyspace_name", "type", "name", "create_statement"];

/// The part of a DESCRIBE that the gateway needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParsedDescribe {
    /// The keyspace and name of the index that may be described; `None` if the statement describes
    /// something else.
    index: Option<(String, String)>,
}

impl ParsedDescribe {
    /// Reads a statement; `None` if it is no DESCRIBE.
    pub(crate) fn read(text: &str, keyspace_in_use: Option<&str>) -> Option<ParsedDescribe> {
        let Statement::Describe(describe) = parse_statement(text).ok()?.statement else {
            return None;
        };
        let (keyspace, name) = match describe.target {
            DescribeTarget::Index { keyspace, name } => (keyspace, Some(name)),
            DescribeTarget::Any(name) => (name.keyspace, Some(name.name)),
            _ => (None, None),
        };
        let keyspace = keyspace.or(keyspace_in_use.map(str::to_owned));
        Some(ParsedDescribe {
            index: keyspace.zip(name),
        })
    }

    /// The answer in place of the node's error; `None` if the error is right, as no such index is
    /// known.
    pub(crate) fn instead(&self, snapshot: &IndexCatalogSnapshot) -> Option<EncodedRows> {
        let (keyspace, name) = self.index.as_ref()?;
        let index = snapshot.index(keyspace, name)?;
        let column = |name: &str| ColumnSpec {
            keyspace: "system".into(),
            table: "describe".into(),
            name: name.into(),
            cql_type: CqlType::Text,
        };
        let columns = ColumnsMetadata {
            columns: COLUMNS.into_iter().map(column).collect(),
        };
        let mut rows = RowsEncoder::new(&columns, false);
        put(&mut rows, index);
        Some(rows.finish(None))
    }

    /// Adds the indexes after their tables in an answer of the node; `None` if the answer stays as
    /// it is.
    ///
    /// # Errors
    /// If the answer is malformed.
    pub(crate) fn add_to(
        &self,
        rows: &EncodedRows,
        snapshot: &IndexCatalogSnapshot,
    ) -> Result<Option<EncodedRows>, DecodeError> {
        let decoded = rows.decode()?;
        let Some(columns) = &decoded.metadata else {
            return Ok(None);
        };
        let names = columns.columns.iter().map(|column| &*column.name);
        if !names.eq(COLUMNS) {
            return Ok(None);
        }
        let mut told = RowsEncoder::new(columns, false);
        for row in &decoded.rows {
            row.iter().for_each(|cell| told.cell(cell.as_deref()));
            told.end_row();
            let text = |at: usize| row.get(at)?.as_deref().map(String::from_utf8_lossy);
            if let (Some(keyspace), Some("table"), Some(table)) =
                (text(0), text(1).as_deref(), text(2))
            {
                let (keyspace, table) = (unquoted(&keyspace), unquoted(&table));
                for index in snapshot.indexes(&keyspace, &table) {
                    put(&mut told, index);
                }
            }
        }
        Ok(Some(told.finish(decoded.paging_state)))
    }
}

/// The name of a table or keyspace from its described form, which may be in double quotes.
fn unquoted(name: &str) -> String {
    let quoted = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'));
    quoted.map_or_else(|| name.to_owned(), |name| name.replace("\"\"", "\""))
}

/// Adds the row that describes an index.
fn put(rows: &mut RowsEncoder, index: &Arc<DefinedIndex>) {
    let statement = definition::create_statement(
        (&index.keyspace, &index.table),
        &index.name,
        &index.target.to_string(),
        &index.class_name,
        &index.options,
    );
    // Names are in quotes where they must be, as in Cassandra's rows.
    let cells = [
        Identifier(&index.keyspace).to_string(),
        "index".to_owned(),
        Identifier(&index.name).to_string(),
        statement,
    ];
    cells
        .iter()
        .for_each(|cell| rows.cell(Some(cell.as_bytes())));
    rows.end_row();
}

#[cfg(test)]
mod tests;
