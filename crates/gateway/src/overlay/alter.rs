//! ALTER TABLE that would take away a column that a vector index needs. It is refused, as Cassandra
//! refuses it for an index of its own.
//!
//! An index whose column is dropped would have to be dropped, and if a key column were renamed, no
//! one could write the table's log. Cassandra knows nothing of vector indexes, so it would do both.

use cql::ast::{AlterTableChange, Statement};
use cql::error::CqlError;
use cql::parser::parse_statement;

use super::refusal::TableChangeRefusal;
use crate::catalog::{DefinedIndex, IndexCatalogSnapshot};

impl TableChangeRefusal {
    /// The refusal of a statement that begins with ALTER; `None` if the gateway does not refuse it.
    pub(crate) fn of_alter(
        text: &str,
        keyspace_in_use: Option<&str>,
        snapshot: &IndexCatalogSnapshot,
    ) -> Option<TableChangeRefusal> {
        // A text that cannot be parsed here goes to the node, which may know it or refuses it.
        let Ok(Statement::AlterTable(alter)) = parse_statement(text).map(|parsed| parsed.statement)
        else {
            return None;
        };
        let keyspace = alter.table.keyspace.as_deref().or(keyspace_in_use)?;
        let table = alter.table.name.as_str();
        let refused = |what: &str, column: &str, needs: &dyn Fn(&DefinedIndex) -> bool| {
            let of_table = snapshot.defined_on(keyspace, table);
            let dependent = of_table.filter(|index| needs(index));
            let names: Vec<&str> = dependent.map(|index| index.name.as_str()).collect();
            (!names.is_empty()).then(|| {
                let error = CqlError::invalid(format!(
                    "Cannot {what} column {column} because it has dependent secondary indexes ({})",
                    names.join(", ")
                ));
                TableChangeRefusal::new(keyspace, table, error)
            })
        };
        match &alter.change {
            AlterTableChange::DropColumns { columns, .. } => columns.iter().find_map(|column| {
                refused("drop", column, &|index| {
                    index.target.columns().any(|name| name == column)
                })
            }),
            AlterTableChange::RenameColumns(renames) => {
                let logged = snapshot.logged_table(keyspace, table)?;
                let in_key = |name: &str| logged.primary_key().iter().any(|key| key.name == *name);
                // The log has a column for each column of the key. Cassandra never renames other
                // columns.
                renames
                    .iter()
                    .filter(|(from, _)| in_key(from))
                    .find_map(|(from, _)| refused("rename", from, &|_| true))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use index::target::StoredTarget;
    use uuid::Uuid;

    use super::*;
    use crate::writes::test_tables::events;

    fn index(name: &str, table: &str, column: &str) -> Arc<DefinedIndex> {
        Arc::new(DefinedIndex {
            keyspace: "shop".to_owned(),
            table: table.to_owned(),
            name: name.to_owned(),
            class_name: "vector_index".to_owned(),
            target: StoredTarget::decode(column),
            options: Default::default(),
            version: Uuid::nil(),
            table_id: Uuid::nil(),
        })
    }

    fn refused(text: &str, keyspace_in_use: Option<&str>) -> Option<String> {
        let snapshot = IndexCatalogSnapshot::new(
            [Arc::new(events())],
            [index("one", "events", "v"), index("two", "events", "v")],
        )
        .with_coming(vec![index("coming", "products", "name")]);
        let refusal = TableChangeRefusal::of_alter(text, keyspace_in_use, &snapshot);
        refusal.and_then(|refusal| refusal.message())
    }

    #[test]
    fn an_indexed_column_is_not_dropped() {
        let expected = "Cannot drop column v because it has dependent secondary indexes (one, two)";
        for text in [
            "ALTER TABLE shop.events DROP v",
            "alter table events drop (owner, v)",
            "ALTER TABLE IF EXISTS events DROP IF EXISTS \"v\" USING TIMESTAMP 5",
        ] {
            assert_eq!(
                refused(text, Some("shop")).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        // The column of an index that is being made is not dropped either.
        let coming = refused("ALTER TABLE shop.products DROP name", None);
        assert!(coming.unwrap().ends_with("(coming)"));
        for text in [
            "ALTER TABLE shop.events DROP owner",
            "ALTER TABLE other.events DROP v",
            "ALTER TABLE events DROP v",
            "ALTER TABLE shop.others DROP v",
            "ALTER TABLE shop.events ADD w int",
            "ALTER TABLE shop.events WITH comment = 'DROP v'",
            "ALTER KEYSPACE shop WITH durable_writes = false",
            "ALTER TABLE shop.events DROP",
        ] {
            assert_eq!(refused(text, None), None, "{text}");
        }
    }

    #[test]
    fn the_columns_of_a_local_key_and_of_filters_are_not_dropped() {
        let local = r#"{"tc":"v","pk":["p"],"fc":["f"]}"#;
        let snapshot =
            IndexCatalogSnapshot::new([Arc::new(events())], [index("one", "events", local)]);
        for column in ["v", "p", "f"] {
            let text = format!("ALTER TABLE shop.events DROP {column}");
            let refusal = TableChangeRefusal::of_alter(&text, None, &snapshot).unwrap();
            assert_eq!(
                refusal.message().unwrap(),
                format!(
                    "Cannot drop column {column} because it has dependent secondary indexes (one)"
                )
            );
        }
        let other =
            TableChangeRefusal::of_alter("ALTER TABLE shop.events DROP owner", None, &snapshot);
        assert_eq!(other, None);
    }

    #[test]
    fn a_column_of_the_key_of_a_logged_table_is_not_renamed() {
        let expected =
            "Cannot rename column hour because it has dependent secondary indexes (one, two)";
        for text in [
            "ALTER TABLE shop.events RENAME hour TO minute",
            "ALTER TABLE shop.events RENAME owner TO holder AND hour TO minute",
        ] {
            assert_eq!(refused(text, None).as_deref(), Some(expected), "{text}");
        }
        // Cassandra refuses in its own words to rename a column that is in no key.
        assert_eq!(refused("ALTER TABLE shop.events RENAME v TO w", None), None);
        // The table has no index, so no log has the column.
        assert_eq!(
            refused("ALTER TABLE shop.products RENAME id TO key", None),
            None
        );
    }

    #[test]
    fn a_probe_shows_whether_the_client_may() {
        let snapshot =
            IndexCatalogSnapshot::new([Arc::new(events())], [index("one", "events", "v")]);
        let refusal =
            TableChangeRefusal::of_alter("ALTER TABLE shop.events DROP v", None, &snapshot)
                .unwrap();
        assert_eq!(
            refusal.probe(),
            "CREATE CUSTOM INDEX ON shop.events (no_column) USING 'vector_index'"
        );
    }
}
