//! Rows that a step of work between requests leaves as they are.

use bytes::Bytes;

use crate::StorageError;
use crate::layout::TableSchema;

/// Bytes of the key of a row in the log of the server.
const LOGGED_KEY_BYTES_MAX: usize = 128;

/// The rows that a step leaves, as it can do nothing with them. They would hold up all others.
#[derive(Default)]
pub(super) struct FailedRows(Option<FailedRowSummary>);

struct FailedRowSummary {
    count: u64,
    /// The key of the first one, or the start of it.
    key: Bytes,
    error: StorageError,
}

impl FailedRows {
    /// Leaves a row with this key.
    pub(super) fn add(&mut self, key: &Bytes, error: StorageError) {
        let rows = self.0.get_or_insert_with(|| FailedRowSummary {
            count: 0,
            key: key.slice(..key.len().min(LOGGED_KEY_BYTES_MAX)),
            error,
        });
        rows.count += 1;
    }

    /// Logs the rows once for all of the step, with what follows of it.
    pub(super) fn log(&self, table: &TableSchema, follows: &str) {
        if let Some(FailedRowSummary { count, key, error }) = &self.0 {
            let table = name(table);
            tracing::error!(%error, table, ?key, rows = count, "{follows}. The key is that of the first one");
        }
    }
}

/// Keyspace and name of a table.
pub(super) fn name(table: &TableSchema) -> String {
    format!("{}.{}", table.table.keyspace, table.table.name)
}
