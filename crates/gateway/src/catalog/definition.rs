//! The definitions as the cluster holds them, and the states that each one goes through.
//!
//! All definitions are stored in one partition together with a revision. Every change raises the
//! revision by one, on the condition that no one else has. So changes come one after another, and a
//! revision identifies exactly one set of definitions. A gateway has *confirmed* a revision once it
//! acts by it and has no request in flight that an earlier revision decided.
//!
//! ```text
//! CREATE INDEX -> CREATING   the table is given a log, if it has none
//!                  |         once all nodes agree on that schema
//!                  v
//!                 LOGGING    every gateway logs the table's writes
//!                  |         once all live gateways have confirmed the revision of this change
//!                  v
//!                 USABLE     queries and index services see the index: the scan begins, and every
//!                  |         write from then on has its log row
//!                  |         once DROP INDEX comes, or the table was dropped
//!                  v
//!                 DROPPING   no one sees the index, and gateways no longer log writes for it
//!                  |         once all live gateways have confirmed the revision of this change
//!                  v
//!                 (nothing)  the log goes, if no other index needs it, and then the definition
//! ```
//!
//! Any gateway may take any of these steps, so one that dies in between holds nothing up.
//!
//! If the log of a table goes while an index is LOGGING or USABLE, the index has missed writes. It
//! becomes CREATING again, under another version. While an index of a table is being dropped, no
//! index is made on a table of that name, as its log would be dropped with the old one.
//!
//! A definition also holds notes of the [TRUNCATEs](super::truncation) of its table that are under
//! way.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use cql::quote::quoted;
use index::SearchClass;
use index::target::StoredTarget;
use scylla::value::CqlTimeuuid;
use uuid::Uuid;

use super::base_table::BaseTable;
use super::cluster::{ClusterError, InternalSession};
use super::defined_index::DefinedIndex;
use super::tables::SCOPE;

/// The state of an index, between its creation and its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexLifecycle {
    /// The table has no log yet, or not all nodes know it.
    Creating,
    /// Gateways log the writes of the table, or begin to.
    Logging,
    /// All gateways log the writes of the table, and the index can be queried.
    Usable,
    /// The index is dropped, but not all gateways may know it yet.
    Dropping,
}

impl IndexLifecycle {
    /// The name of the state in the table of definitions.
    pub(super) fn name(self) -> &'static str {
        match self {
            IndexLifecycle::Creating => "CREATING",
            IndexLifecycle::Logging => "LOGGING",
            IndexLifecycle::Usable => "USABLE",
            IndexLifecycle::Dropping => "DROPPING",
        }
    }

    fn from_name(name: &str) -> Option<IndexLifecycle> {
        [
            IndexLifecycle::Creating,
            IndexLifecycle::Logging,
            IndexLifecycle::Usable,
            IndexLifecycle::Dropping,
        ]
        .into_iter()
        .find(|state| state.name() == name)
    }
}

/// The definition of one index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredDefinition {
    /// The index that is defined.
    pub(super) index: Arc<DefinedIndex>,
    /// The state of the index.
    pub(super) state: IndexLifecycle,
    /// The revision of its last change.
    pub(super) changed_at: i64,
    /// The ids of the notes of TRUNCATEs of the table that are not finished.
    pub(super) truncates: Vec<Uuid>,
}

/// All definitions of a cluster, as they were read at once.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClusterDefinitions {
    /// The revision, which counts the changes; 0 before the first.
    pub(super) revision: i64,
    /// The definitions, in the order of their keyspaces and names.
    pub(super) rows: Vec<StoredDefinition>,
}

type Row = (
    Option<i64>,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<Uuid>,
    Option<String>,
    Option<HashMap<String, String>>,
    Option<CqlTimeuuid>,
    Option<String>,
    Option<i64>,
    Option<Vec<CqlTimeuuid>>,
    Option<String>,
    Option<String>,
);

impl ClusterDefinitions {
    /// Reads all definitions.
    pub(super) async fn read(
        cluster: &InternalSession,
    ) -> Result<ClusterDefinitions, ClusterError> {
        let keyspace = quoted(&cluster.keyspace);
        let text = format!(
            "SELECT revision, keyspace_name, index_name, table_name, table_id, column_name, \
             options, version, state, changed_at, truncates, target, class_name \
             FROM {keyspace}.vector_indexes WHERE scope = ?"
        );
        let rows: Vec<Row> = cluster.rows(&text, (SCOPE,)).await?;
        let mut definitions = ClusterDefinitions::default();
        for row in rows {
            definitions.revision = row.0.unwrap_or(0);
            definitions.rows.extend(definition(row));
        }
        Ok(definitions)
    }

    /// The definition of the index of this name.
    pub(super) fn find(&self, keyspace: &str, name: &str) -> Option<&StoredDefinition> {
        self.rows
            .iter()
            .find(|row| row.index.keyspace == keyspace && row.index.name == name)
    }

    /// Whether an index of this name is being dropped.
    pub(super) fn is_dropping(&self, keyspace: &str, name: &str) -> bool {
        self.find(keyspace, name)
            .is_some_and(|row| row.state == IndexLifecycle::Dropping)
    }

    /// Whether an index of a table, or of an earlier table of its name, is still to be dropped.
    pub(super) fn is_left(&self, table: &BaseTable) -> bool {
        self.rows.iter().any(|row| {
            let index = &row.index;
            index.keyspace == table.keyspace
                && index.table == table.name
                && (row.state == IndexLifecycle::Dropping || index.table_id != table.id)
        })
    }

    /// Whether a TRUNCATE of a table is under way. An index that is created meanwhile could read
    /// rows that are about to go.
    pub(super) fn is_truncated(&self, table: &BaseTable) -> bool {
        self.live_on(&table.keyspace, &table.name)
            .any(|row| !row.truncates.is_empty())
    }

    /// The definitions on a table, without those that are being dropped.
    pub(super) fn live_on<'a>(
        &'a self,
        keyspace: &'a str,
        table: &'a str,
    ) -> impl Iterator<Item = &'a StoredDefinition> {
        self.rows.iter().filter(move |row| {
            row.state != IndexLifecycle::Dropping
                && row.index.keyspace == keyspace
                && row.index.table == table
        })
    }
}

/// The definition in a row; `None` for a row that holds only the revision.
fn definition(row: Row) -> Option<StoredDefinition> {
    let (
        _,
        keyspace,
        name,
        table,
        table_id,
        column,
        options,
        version,
        state,
        changed_at,
        truncates,
        target,
        class_name,
    ) = row;
    let column = column?;
    // The definitions of version 0.1.0 have no target.
    let target = target.map_or_else(
        || StoredTarget::on(column),
        |target| StoredTarget::decode(&target),
    );
    Some(StoredDefinition {
        index: Arc::new(DefinedIndex {
            keyspace: keyspace?,
            table: table?,
            name: name?,
            // Before there were full-text indexes, no class was stored.
            class_name: class_name.unwrap_or_else(|| SearchClass::Vector.name().to_owned()),
            target,
            options: options.map(BTreeMap::from_iter).unwrap_or_default(),
            version: version?.into(),
            table_id: table_id?,
        }),
        state: IndexLifecycle::from_name(&state?)?,
        changed_at: changed_at?,
        truncates: truncates.into_iter().flatten().map(Uuid::from).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{definition, index};
    use super::*;

    /// The index in a row on this column, with such a target and such a class.
    fn stored(column: &str, target: Option<&str>, class: Option<&str>) -> Arc<DefinedIndex> {
        let text = |text: &str| Some(text.to_owned());
        let row: Row = (
            Some(7),
            text("k"),
            text("i"),
            text("t"),
            Some(Uuid::from_u128(2)),
            text(column),
            None,
            Some(CqlTimeuuid::from(Uuid::from_u128(1))),
            text("USABLE"),
            Some(7),
            None,
            target.map(str::to_owned),
            class.map(str::to_owned),
        );
        super::definition(row).unwrap().index
    }

    #[test]
    fn a_row_without_a_target_is_of_an_index_on_its_column_alone() {
        let read = |column: &str, target| stored(column, target, None).target.clone();
        let odd = r#"{"tc":"w"}"#;
        assert_eq!(read(odd, None), StoredTarget::on(odd.to_owned()));
        assert_eq!(read("v", Some("v")), StoredTarget::on("v".to_owned()));
        let local = read("v", Some(r#"{"tc":"v","pk":["p"],"fc":["f"]}"#));
        assert_eq!(local.columns().collect::<Vec<_>>(), ["p", "v", "f"]);
    }

    #[test]
    fn a_row_without_a_class_is_of_a_vector_index() {
        let read = |class| stored("body", Some("body"), class);
        assert_eq!(read(None).class(), Some(SearchClass::Vector));
        let full_text = read(Some("fulltext_index"));
        assert_eq!(full_text.class(), Some(SearchClass::FullText));
        let newer = read(Some("graph_index"));
        assert_eq!((newer.class(), newer.noun()), (None, "index"));
        assert_eq!(newer.class_name, "graph_index");
    }

    #[test]
    fn indexes_being_dropped_from_a_table_or_its_forerunner_are_found() {
        let table = BaseTable::new("k", "t", Uuid::from_u128(2), Vec::new());
        let is_left = |name: &str, id: u128, state: IndexLifecycle| {
            let row = StoredDefinition {
                index: Arc::new(DefinedIndex {
                    table: name.to_owned(),
                    table_id: Uuid::from_u128(id),
                    ..index()
                }),
                ..definition(state)
            };
            let rows = vec![row];
            ClusterDefinitions { revision: 1, rows }.is_left(&table)
        };
        assert!(is_left("t", 2, IndexLifecycle::Dropping));
        assert!(
            is_left("t", 1, IndexLifecycle::Usable),
            "of a table before it"
        );
        assert!(!is_left("t", 2, IndexLifecycle::Usable));
        assert!(!is_left("other", 1, IndexLifecycle::Dropping));
    }

    #[test]
    fn a_table_is_truncated_as_long_as_an_index_that_stays_has_a_note() {
        let table = BaseTable::new("k", "t", Uuid::from_u128(2), Vec::new());
        let is_truncated = |state, truncates: &[Uuid]| {
            let row = StoredDefinition {
                truncates: truncates.to_vec(),
                ..definition(state)
            };
            let rows = vec![row];
            ClusterDefinitions { revision: 1, rows }.is_truncated(&table)
        };
        assert!(is_truncated(IndexLifecycle::Usable, &[Uuid::nil()]));
        assert!(!is_truncated(IndexLifecycle::Usable, &[]));
        assert!(!is_truncated(IndexLifecycle::Dropping, &[Uuid::nil()]));
    }
}
