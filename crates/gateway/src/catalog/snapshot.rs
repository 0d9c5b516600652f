//! An immutable snapshot of the vector indexes, and of the tables whose writes are logged.

use std::collections::HashMap;
use std::sync::Arc;

use super::defined_index::DefinedIndex;
use super::table::LoggedTable;

/// The indexes and logged tables at one moment. It is never changed once it is made.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexCatalogSnapshot {
    /// The number of the snapshot, which grows with each one that is put in place.
    pub(super) epoch: u64,
    /// The logged tables by keyspace, then by table.
    logged: HashMap<String, HashMap<String, Arc<LoggedTable>>>,
    /// The usable indexes, in the order of their keyspaces and names.
    indexes: Vec<Arc<DefinedIndex>>,
    /// The indexes that are defined, but not usable yet.
    coming: Vec<Arc<DefinedIndex>>,
    /// Whether other gateways may act without this one, which could not hold its lease.
    lapsed: bool,
}

impl IndexCatalogSnapshot {
    /// A snapshot of these logged tables and usable indexes.
    pub(crate) fn new(
        logged_tables: impl IntoIterator<Item = Arc<LoggedTable>>,
        indexes: impl IntoIterator<Item = Arc<DefinedIndex>>,
    ) -> IndexCatalogSnapshot {
        let mut logged: HashMap<String, HashMap<String, Arc<LoggedTable>>> = HashMap::new();
        for table in logged_tables {
            logged
                .entry(table.keyspace.clone())
                .or_default()
                .insert(table.name.clone(), table);
        }
        let mut indexes: Vec<_> = indexes.into_iter().collect();
        indexes.sort_by(|a, b| (&a.keyspace, &a.name).cmp(&(&b.keyspace, &b.name)));
        IndexCatalogSnapshot {
            epoch: 0,
            logged,
            indexes,
            coming: Vec::new(),
            lapsed: false,
        }
    }

    /// Returns the snapshot with these indexes as those that are defined, but not usable yet.
    pub(crate) fn with_coming(self, coming: Vec<Arc<DefinedIndex>>) -> IndexCatalogSnapshot {
        IndexCatalogSnapshot { coming, ..self }
    }

    /// Whether another snapshot has the same content. Epochs are not compared.
    pub(crate) fn has_same_content(&self, other: &IndexCatalogSnapshot) -> bool {
        self.logged == other.logged
            && self.indexes == other.indexes
            && self.coming == other.coming
            && self.lapsed == other.lapsed
    }

    /// Returns the snapshot marked as out of date.
    pub(super) fn into_lapsed(self) -> IndexCatalogSnapshot {
        IndexCatalogSnapshot {
            lapsed: true,
            ..self
        }
    }

    /// Whether the snapshot is out of date: other gateways may take this one for dead and act
    /// without it. No write may pass then.
    pub(crate) fn lapsed(&self) -> bool {
        self.lapsed
    }

    /// The number of this snapshot.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether there is neither a logged table nor an index. Then no statement needs a look.
    pub(crate) fn is_empty(&self) -> bool {
        self.logged.is_empty() && self.indexes.is_empty() && self.coming.is_empty()
    }

    /// Whether no table is logged. Then no write needs a look.
    pub(crate) fn logs_nothing(&self) -> bool {
        self.logged.is_empty()
    }

    /// Whether a text contains the name of a logged table. Names consist only of letters, digits
    /// and underscores, so a statement that writes to a table contains its name as it is, in
    /// capitals or not.
    pub(crate) fn names_logged_table(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        let mut names = self.logged.values().flat_map(HashMap::keys);
        names.any(|name| text.contains(&name.to_ascii_lowercase()))
    }

    /// The table of these names, if its writes must be logged. The names are without quotes, their
    /// case as stored.
    pub(crate) fn logged_table(&self, keyspace: &str, table: &str) -> Option<Arc<LoggedTable>> {
        self.logged.get(keyspace)?.get(table).cloned()
    }

    /// The usable indexes of a table, in the order of their names. An index is usable once every
    /// gateway logs its table.
    pub(crate) fn indexes<'a>(
        &'a self,
        keyspace: &'a str,
        table: &'a str,
    ) -> impl Iterator<Item = &'a Arc<DefinedIndex>> {
        self.all_indexes()
            .iter()
            .filter(move |index| index.keyspace == keyspace && index.table == table)
    }

    /// The usable index of this name.
    pub(crate) fn index(&self, keyspace: &str, name: &str) -> Option<&Arc<DefinedIndex>> {
        self.indexes
            .iter()
            .find(|index| index.keyspace == keyspace && index.name == name)
    }

    /// The index of this name, usable or not.
    pub(crate) fn defined(&self, keyspace: &str, name: &str) -> Option<&Arc<DefinedIndex>> {
        self.index(keyspace, name).or_else(|| {
            self.coming
                .iter()
                .find(|index| index.keyspace == keyspace && index.name == name)
        })
    }

    /// The indexes of a keyspace, usable or not.
    pub(crate) fn defined_in<'a>(
        &'a self,
        keyspace: &'a str,
    ) -> impl Iterator<Item = &'a Arc<DefinedIndex>> {
        let defined = self.indexes.iter().chain(&self.coming);
        defined.filter(move |index| index.keyspace == keyspace)
    }

    /// The indexes of a table, usable or not.
    pub(crate) fn defined_on<'a>(
        &'a self,
        keyspace: &'a str,
        table: &'a str,
    ) -> impl Iterator<Item = &'a Arc<DefinedIndex>> {
        let defined = self.indexes.iter().chain(&self.coming);
        defined.filter(move |index| index.keyspace == keyspace && index.table == table)
    }

    /// All usable indexes, in the order of their keyspaces and names.
    pub(crate) fn all_indexes(&self) -> &[Arc<DefinedIndex>] {
        &self.indexes
    }
}
