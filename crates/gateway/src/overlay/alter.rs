//! ALTER TABLE of what a vector index needs: refused, as Cassandra refuses it for an index of its own.
//!
//! An index without its column would be dropped, and one whose key has another name would have a log that nobody can write. Cassandra
//! knows nothing of the index, so it would do both.

use cql::ast::{AlterTableChange, Statement};
use cql::error::CqlError;
use cql::parser::parse_statement;

use super::refusal::Refusal;
use crate::catalog::{Snapshot, VectorIndex};

impl Refusal {
    /// Why a statement that begins with ALTER is refused; `None` if it is not, or not here.
    pub(crate) fn of_alter(
        text: &str,
        keyspace_in_use: Option<&str>,
        snapshot: &Snapshot,
    ) -> Option<Refusal> {
        // What cannot be read here is for the node to refuse, or to know.
        let Ok(Statement::AlterTable(alter)) = parse_statement(text).map(|parsed| parsed.statement)
        else {
            return None;
        };
        let keyspace = alter.table.keyspace.as_deref().or(keyspace_in_use)?;
        let table = alter.table.name.as_str();
        let refused = |what: &str, column: &str, needs: &dyn Fn(&VectorIndex) -> bool| {
            let of_table = snapshot.defined_on(keyspace, table);
            let dependent = of_table.filter(|index| needs(index));
            let names: Vec<&str> = dependent.map(|index| index.name.as_str()).collect();
            (!names.is_empty()).then(|| {
                let error = CqlError::invalid(format!(
                    "Cannot {what} column {column} because it has dependent secondary indexes ({})",
                    names.join(", ")
                ));
                Refusal::new(keyspace, table, error)
            })
        };
        match &alter.change {
            AlterTableChange::DropColumns { columns, .. } => columns
                .iter()
                .find_map(|column| refused("drop", column, &|index| index.column == *column)),
            AlterTableChange::RenameColumns(renames) => {
                let logged = snapshot.logged_table(keyspace, table)?;
                let in_key = |name: &str| logged.primary_key().iter().any(|key| key.name == *name);
                // The log has a column for each of the key. Other columns Cassandra renames never.
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

    use uuid::Uuid;

    use super::*;
    use crate::writes::test_tables::events;

    fn index(name: &str, table: &str, column: &str) -> Arc<VectorIndex> {
        Arc::new(VectorIndex {
            keyspace: "shop".to_owned(),
            table: table.to_owned(),
            name: name.to_owned(),
            column: column.to_owned(),
            target: column.to_owned(),
            options: Default::default(),
            version: Uuid::nil(),
            table_id: Uuid::nil(),
        })
    }

    fn refused(text: &str, keyspace_in_use: Option<&str>) -> Option<String> {
        let snapshot = Snapshot::new(
            [Arc::new(events())],
            [index("one", "events", "v"), index("two", "events", "v")],
        )
        .with_coming(vec![index("coming", "products", "name")]);
        let refusal = Refusal::of_alter(text, keyspace_in_use, &snapshot);
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
        // One that is being made, too.
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
    fn a_column_of_the_key_of_a_logged_table_is_not_renamed() {
        let expected =
            "Cannot rename column hour because it has dependent secondary indexes (one, two)";
        for text in [
            "ALTER TABLE shop.events RENAME hour TO minute",
            "ALTER TABLE shop.events RENAME owner TO holder AND hour TO minute",
        ] {
            assert_eq!(refused(text, None).as_deref(), Some(expected), "{text}");
        }
        // What is in no key Cassandra refuses in its own words.
        assert_eq!(refused("ALTER TABLE shop.events RENAME v TO w", None), None);
        // No log has it.
        assert_eq!(
            refused("ALTER TABLE shop.products RENAME id TO key", None),
            None
        );
    }

    #[test]
    fn it_is_asked_whether_the_client_may() {
        let snapshot = Snapshot::new([Arc::new(events())], [index("one", "events", "v")]);
        let refusal = Refusal::of_alter("ALTER TABLE shop.events DROP v", None, &snapshot).unwrap();
        assert_eq!(
            refusal.probe(),
            "CREATE CUSTOM INDEX ON shop.events (no_column) USING 'vector_index'"
        );
    }
}
