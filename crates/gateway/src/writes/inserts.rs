//! The statement that writes a log row. It is prepared once on the node and shared by all
//! connections.

use std::collections::HashMap;

use bytes::Bytes;
use cql::quote::quoted;
use parking_lot::RwLock;
use uuid::Uuid;

use crate::catalog::LoggedTable;

/// The columns of every log that a hint fills. Those of the table's primary key follow them.
const LOG_COLUMNS: [&str; 5] = [
    "cdc$stream_id",
    "cdc$time",
    "cdc$batch_seq_no",
    "cdc$operation",
    "cdc$end_of_batch",
];

/// The text of the INSERT into the log of a table. Its rows expire by the log's own default.
pub(super) fn text(table: &LoggedTable) -> String {
    let key = table.primary_key().iter().map(|column| &*column.name);
    let names: Vec<String> = LOG_COLUMNS.into_iter().chain(key).map(quoted).collect();
    let markers = vec!["?"; names.len()];
    format!(
        "INSERT INTO {}.{} ({}) VALUES ({})",
        quoted(&table.keyspace),
        quoted(&table.log_name),
        names.join(", "),
        markers.join(", ")
    )
}

/// The ids under which the node knows these statements, by table.
#[derive(Debug, Default)]
pub(crate) struct LogInserts {
    by_table: RwLock<HashMap<Uuid, Bytes>>,
}

impl LogInserts {
    /// The id of the INSERT into the log of a table; `None` if it is not prepared.
    pub(super) fn id(&self, table: &LoggedTable) -> Option<Bytes> {
        self.by_table.read().get(&table.id).cloned()
    }

    /// Remembers the id that the node gave the INSERT into the log of a table.
    pub(super) fn remember(&self, table: &LoggedTable, id: &[u8]) {
        self.by_table
            .write()
            .insert(table.id, Bytes::copy_from_slice(id));
    }

    /// Forgets the id of a table's INSERT, as the node does not know it any more.
    pub(super) fn forget(&self, table: &LoggedTable) {
        self.by_table.write().remove(&table.id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_tables::events;
    use super::*;

    #[test]
    fn every_name_is_quoted() {
        let mut table = events();
        table.keyspace = "My\"Shop".to_owned();
        assert_eq!(
            text(&table),
            "INSERT INTO \"My\"\"Shop\".\"events_scylla_cdc_log\" (\"cdc$stream_id\", \"cdc$time\", \
             \"cdc$batch_seq_no\", \"cdc$operation\", \"cdc$end_of_batch\", \"tenant\", \"day\", \"hour\", \
             \"seq\") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        );
    }

    #[test]
    fn an_id_is_known_until_it_is_forgotten() {
        let inserts = LogInserts::default();
        let table = events();
        assert_eq!(inserts.id(&table), None);
        inserts.remember(&table, b"id");
        assert_eq!(inserts.id(&table).as_deref(), Some(&b"id"[..]));
        inserts.forget(&table);
        assert_eq!(inserts.id(&table), None);
    }
}
