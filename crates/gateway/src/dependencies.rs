//! The dependencies of a prepared statement: the facts that it was understood by. What the gateway
//! remembers of it holds as long as they do.
//!
//! Each change of the definitions anywhere in the cluster makes a new snapshot. If all prepared ids
//! were forgotten then, every client would prepare all its statements again each time an index is
//! created or dropped. Drivers that prepare only once more for a request (ScyllaDB's Rust driver)
//! would even fail when two snapshots come in a row, as they do: an index is first defined, then
//! logged. So a statement is forgotten only when its own dependencies change:
//!
//! - only the text, for USE and for reads that are no queries by searches;
//! - the state of one table, for writes to one table, TRUNCATE and queries by searches;
//! - the whole snapshot, for anything else, which is rare.
//!
//! The text shows them, and not the kind that it has under the present snapshot: an INSERT into a
//! table without an index is plain (`crate::statement`), and is a logged write once the table has
//! one.

use std::sync::Arc;

use cql::ast::{Statement, TableName};
use cql::parser::{ChangedData, changed, parse_statement};

use crate::catalog::{DefinedIndex, IndexCatalogSnapshot, LoggedTable};
use crate::recognise::{StatementVerb, may_search};

/// The facts that a prepared statement depends on.
#[derive(Clone, Debug)]
pub(crate) struct StatementDependencies {
    /// The epoch of the snapshot by which the dependencies were last known to hold.
    epoch: u64,
    depends_on: DependsOn,
}

/// The kinds of dependencies.
#[derive(Clone, Debug)]
enum DependsOn {
    Text,
    Table(Arc<KnownTable>),
    Snapshot,
}

/// The state of a table in a snapshot, as far as a statement depends on it.
#[derive(Debug)]
struct KnownTable {
    keyspace: String,
    name: String,
    /// The table as its writes are logged; `None` if they are not.
    logged: Option<Arc<LoggedTable>>,
    /// The table's usable indexes; `None` if the statement does not depend on them.
    indexes: Option<Vec<Arc<DefinedIndex>>>,
}

impl StatementDependencies {
    /// The dependencies of a statement that begins with `verb`. Tables without a keyspace are
    /// looked up in `keyspace_in_use`.
    pub(crate) fn of(
        verb: StatementVerb,
        text: &[u8],
        keyspace_in_use: Option<&str>,
        snapshot: &IndexCatalogSnapshot,
    ) -> StatementDependencies {
        StatementDependencies {
            epoch: snapshot.epoch(),
            depends_on: depends_on(verb, text, keyspace_in_use, snapshot),
        }
    }

    /// The epoch of the snapshot by which the dependencies were last known to hold.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether the dependencies certainly hold under a snapshot, without a comparison.
    pub(crate) fn hold_at_once(&self, snapshot: &IndexCatalogSnapshot) -> bool {
        matches!(self.depends_on, DependsOn::Text) || self.epoch == snapshot.epoch()
    }

    /// Compares the dependencies with another snapshot. Returns them with its epoch; `None` if they
    /// do not hold any more. A snapshot that has lapsed may be out of date, so under it only a
    /// dependency on the text holds.
    pub(crate) fn revalidated(
        &self,
        snapshot: &IndexCatalogSnapshot,
    ) -> Option<StatementDependencies> {
        let depends_on = match &self.depends_on {
            DependsOn::Text => DependsOn::Text,
            DependsOn::Table(before) if !snapshot.lapsed() => {
                let now = before.as_known_by(snapshot);
                is_the_same(before, &now).then(|| DependsOn::Table(Arc::new(now)))?
            }
            DependsOn::Table(_) | DependsOn::Snapshot => return None,
        };
        Some(StatementDependencies {
            epoch: snapshot.epoch(),
            depends_on,
        })
    }

    /// The bytes that the dependencies take in addition to their own size. Tables and indexes are
    /// not counted, as they belong to a snapshot.
    pub(crate) fn bytes(&self) -> usize {
        match &self.depends_on {
            DependsOn::Table(table) => {
                size_of::<KnownTable>() + table.keyspace.len() + table.name.len()
            }
            DependsOn::Text | DependsOn::Snapshot => 0,
        }
    }
}

fn depends_on(
    verb: StatementVerb,
    text: &[u8],
    keyspace_in_use: Option<&str>,
    snapshot: &IndexCatalogSnapshot,
) -> DependsOn {
    let Ok(text) = str::from_utf8(text) else {
        return DependsOn::Snapshot;
    };
    let known = |table: TableName, indexes_matter: bool| {
        let keyspace = table.keyspace.as_deref().or(keyspace_in_use);
        // Without a keyspace the statement is of no table.
        keyspace.map_or(DependsOn::Text, |keyspace| {
            let table = KnownTable::of(keyspace, &table.name, indexes_matter, snapshot);
            DependsOn::Table(Arc::new(table))
        })
    };
    match verb {
        StatementVerb::Use => DependsOn::Text,
        StatementVerb::Select if !may_search(text.as_bytes()) => DependsOn::Text,
        StatementVerb::Select => match parse_statement(text).map(|parsed| parsed.statement) {
            Ok(Statement::Select(select)) => known(select.table, true),
            // Any other statement is no query by searches.
            _ => DependsOn::Text,
        },
        StatementVerb::Write | StatementVerb::Truncate => match changed(text) {
            Some(ChangedData::Rows(table) | ChangedData::All(table)) => known(table, false),
            // It writes to several tables, or the text does not show its table.
            Some(ChangedData::Batch) | None => DependsOn::Snapshot,
        },
        _ => DependsOn::Snapshot,
    }
}

impl KnownTable {
    fn of(
        keyspace: &str,
        name: &str,
        indexes_matter: bool,
        snapshot: &IndexCatalogSnapshot,
    ) -> KnownTable {
        KnownTable {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            logged: snapshot.logged_table(keyspace, name),
            indexes: indexes_matter.then(|| snapshot.indexes(keyspace, name).cloned().collect()),
        }
    }

    fn as_known_by(&self, snapshot: &IndexCatalogSnapshot) -> KnownTable {
        let indexes_matter = self.indexes.is_some();
        KnownTable::of(&self.keyspace, &self.name, indexes_matter, snapshot)
    }
}

/// Whether a table is the same in two snapshots, as far as it matters.
fn is_the_same(before: &KnownTable, now: &KnownTable) -> bool {
    before.logged == now.logged && before.indexes == now.indexes
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use uuid::Uuid;

    use super::*;
    use crate::catalog::IndexCatalog;
    use crate::recognise::verb;
    use crate::vector_search::fixtures;
    use crate::writes::test_tables::{events, products};

    /// A snapshot in which `shop.products` is logged.
    fn logged(products: LoggedTable) -> IndexCatalogSnapshot {
        IndexCatalogSnapshot::new([Arc::new(products)], [])
    }

    /// A snapshot in which `shop.products` and one more table are logged.
    fn with_more(products: LoggedTable) -> IndexCatalogSnapshot {
        IndexCatalogSnapshot::new([Arc::new(products), Arc::new(events())], [])
    }

    /// Whether the dependencies of a statement under the first snapshot hold under the second one.
    fn hold(text: &str, first: IndexCatalogSnapshot, second: IndexCatalogSnapshot) -> bool {
        let catalog = IndexCatalog::new(first);
        let dependencies = StatementDependencies::of(
            verb(text.as_bytes()),
            text.as_bytes(),
            Some("shop"),
            &catalog.snapshot(),
        );
        assert!(dependencies.hold_at_once(&catalog.snapshot()), "{text}");
        catalog.replace(second);
        let snapshot = catalog.snapshot();
        let current = dependencies.revalidated(&snapshot);
        if let Some(current) = &current {
            assert_eq!(current.epoch(), snapshot.epoch(), "{text}");
            assert!(current.hold_at_once(&snapshot), "{text}");
        }
        assert!(
            !dependencies.hold_at_once(&snapshot) || current.is_some(),
            "{text}"
        );
        current.is_some()
    }

    #[test]
    fn definitions_of_other_tables_invalidate_nothing() {
        for text in [
            "SELECT name FROM products",
            "SELECT name FROM products WHERE \"annual\" = ?",
            "USE shop",
            "INSERT INTO products (id) VALUES (?)",
            "UPDATE shop.products SET name = ? WHERE id = ?",
            "DELETE FROM other WHERE id = ?",
            "TRUNCATE products",
        ] {
            assert!(
                hold(text, logged(products()), with_more(products())),
                "{text}"
            );
        }
        // These may concern any table.
        for text in [
            "BEGIN BATCH INSERT INTO products (id) VALUES (?); APPLY BATCH",
            "DESCRIBE TABLE products",
            "DROP INDEX products_v",
        ] {
            assert!(
                !hold(text, logged(products()), with_more(products())),
                "{text}"
            );
        }
    }

    #[test]
    fn a_write_is_read_again_when_its_table_is_another() {
        let text = "INSERT INTO products (id) VALUES (?)";
        let mut recreated = products();
        recreated.id = Uuid::from_u128(99);
        let mut altered = products();
        altered.columns.pop();
        let none = IndexCatalogSnapshot::default;
        for (first, second) in [
            (none(), logged(products())),
            (logged(products()), none()),
            (logged(products()), logged(recreated)),
            (logged(products()), logged(altered)),
        ] {
            assert!(!hold(text, first, second));
        }
        assert!(hold(text, none(), none()));
        assert!(hold(
            "SELECT name FROM products",
            none(),
            logged(products())
        ));
    }

    #[test]
    fn a_query_for_neighbours_is_read_again_when_the_indexes_are_others() {
        let text = "SELECT name FROM films ORDER BY v ANN OF ? LIMIT 3";
        let indexes = fixtures::snapshot().all_indexes().to_vec();
        let films = || Arc::new(fixtures::table(&["id"], &[]));
        let with = |indexes: &[Arc<DefinedIndex>], tables: Vec<Arc<LoggedTable>>| {
            IndexCatalogSnapshot::new(tables, indexes.to_vec())
        };
        let all = || with(&indexes, vec![films()]);
        assert!(hold(
            text,
            all(),
            with(&indexes, vec![films(), Arc::new(events())])
        ));
        assert!(!hold(text, all(), with(&indexes[..1], vec![films()])));
        let other_key = Arc::new(fixtures::table(&["id"], &["name"]));
        assert!(!hold(text, all(), with(&indexes, vec![other_key])));
        // A write to that table does not depend on its indexes.
        let insert = "INSERT INTO films (id) VALUES (?)";
        assert!(hold(insert, all(), with(&indexes[..1], vec![films()])));
    }

    #[tokio::test]
    async fn a_snapshot_that_has_lapsed_says_nothing_of_tables() {
        let catalog = IndexCatalog::new(logged(products()));
        let of = |verb, text: &str| {
            StatementDependencies::of(verb, text.as_bytes(), Some("shop"), &catalog.snapshot())
        };
        let insert = of(StatementVerb::Write, "INSERT INTO products (id) VALUES (?)");
        let select = of(StatementVerb::Select, "SELECT name FROM products");
        catalog.prolong(Instant::now());
        catalog.lapse_if_over();
        let snapshot = catalog.snapshot();
        assert!(snapshot.lapsed());
        assert!(!insert.hold_at_once(&snapshot) && insert.revalidated(&snapshot).is_none());
        assert!(select.hold_at_once(&snapshot));
    }
}
