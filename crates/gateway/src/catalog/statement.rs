//! Statements that create and drop vector and full-text indexes.

use cql::ast::{CreateIndex, Statement};
use cql::error::CqlError;
use cql::parser::parse_statement;
use cql::quote::{Identifier, StringLiteral};
use index::target::StoredTarget;
use index::{SearchClass, definition};

use super::snapshot::IndexCatalogSnapshot;

/// A statement about an index that index services build, with its names resolved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IndexStatement {
    /// `CREATE CUSTOM INDEX ... USING 'vector_index'`, or `'fulltext_index'`.
    Create {
        /// The keyspace of the table.
        keyspace: String,
        /// The statement as it was parsed. Its name, if given, has been checked.
        create: CreateIndex,
        /// The class that the statement names.
        class: SearchClass,
        /// The columns that the index is to be on.
        target: StoredTarget,
    },
    /// `DROP INDEX` of an index that this cluster's gateways keep.
    Drop {
        /// The keyspace of the index.
        keyspace: String,
        /// The table of the index. The client needs the permission to alter it.
        table: String,
        /// The name of the index.
        name: String,
        /// Whether the statement says IF EXISTS.
        if_exists: bool,
    },
}

impl IndexStatement {
    /// Reads a CREATE or DROP of such an index; `None` for any other statement, which passes to
    /// the node.
    ///
    /// # Errors
    /// If the statement is about such an index, and cannot be carried out.
    pub(crate) fn read(
        text: &str,
        keyspace_in_use: Option<&str>,
        snapshot: &IndexCatalogSnapshot,
    ) -> Result<Option<IndexStatement>, CqlError> {
        // A text that cannot be parsed here goes to the node, which refuses or understands it.
        let Ok(parsed) = parse_statement(text) else {
            return Ok(None);
        };
        match parsed.statement {
            Statement::CreateIndex(create) => {
                let Some(class) = SearchClass::of_statement(&create) else {
                    return Ok(None);
                };
                let keyspace = create.table.keyspace.as_deref().or(keyspace_in_use);
                let keyspace = keyspace.ok_or_else(no_keyspace)?.to_owned();
                if let Some(name) = &create.name {
                    definition::check_name(name)?;
                }
                let target = StoredTarget::of(&create.targets, class)?;
                Ok(Some(IndexStatement::Create {
                    keyspace,
                    create,
                    class,
                    target,
                }))
            }
            Statement::DropIndex {
                keyspace,
                name,
                if_exists,
            } => {
                let keyspace = keyspace.as_deref().or(keyspace_in_use);
                let index = keyspace.and_then(|keyspace| snapshot.defined(keyspace, &name));
                Ok(index.map(|index| IndexStatement::Drop {
                    keyspace: index.keyspace.clone(),
                    table: index.table.clone(),
                    name: index.name.clone(),
                    if_exists,
                }))
            }
            _ => Ok(None),
        }
    }

    /// The statement that shows whether the client may alter the table: see [`probe`].
    pub(crate) fn probe(&self) -> String {
        let (keyspace, table) = match self {
            IndexStatement::Create {
                keyspace, create, ..
            } => (keyspace, &create.table.name),
            IndexStatement::Drop {
                keyspace, table, ..
            } => (keyspace, table),
        };
        probe(keyspace, table)
    }
}

/// A statement that Cassandra always refuses, as it knows no such class of indexes. It gives this
/// reason only to a client that may alter the table.
pub(crate) fn probe(keyspace: &str, table: &str) -> String {
    format!(
        "CREATE CUSTOM INDEX ON {}.{} (no_column) USING {}",
        Identifier(keyspace),
        Identifier(table),
        StringLiteral(definition::CLASS),
    )
}

fn no_keyspace() -> CqlError {
    CqlError::invalid(
        "No keyspace has been specified. USE a keyspace, or explicitly specify \
         keyspace.tablename",
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::DefinedIndex;
    use super::super::fixtures::index;
    use super::*;

    fn snapshot() -> IndexCatalogSnapshot {
        IndexCatalogSnapshot::new(
            [],
            [Arc::new(DefinedIndex {
                name: "ours".to_owned(),
                ..index()
            })],
        )
    }

    #[test]
    fn only_statements_about_indexes_of_index_services_are_ours() {
        let read = |text, in_use| IndexStatement::read(text, in_use, &snapshot()).unwrap();
        for text in [
            "CREATE INDEX i ON k.t (c)",
            "CREATE CUSTOM INDEX i ON k.t (v) USING 'StorageAttachedIndex'",
            "CREATE TABLE k.t (id int PRIMARY KEY) WITH comment = 'vector_index'",
            "DROP INDEX k.theirs",
            "DROP INDEX other.ours",
            "DROP INDEX ours",
            "CREATE CUSTOM INDEX broken ON USING 'vector_index'",
            "CREATE CUSTOM INDEX broken ON USING 'fulltext_index'",
        ] {
            assert_eq!(read(text, None), None, "{text}");
        }
        let dropped = |if_exists| IndexStatement::Drop {
            keyspace: "k".to_owned(),
            table: "t".to_owned(),
            name: "ours".to_owned(),
            if_exists,
        };
        assert_eq!(
            read("DROP INDEX IF EXISTS k.ours", None),
            Some(dropped(true))
        );
        assert_eq!(read("DROP INDEX ours", Some("k")), Some(dropped(false)));
        let created = read(
            "CREATE CUSTOM INDEX ON \"T\" (v) USING 'Vector_Index'",
            Some("k"),
        );
        assert_eq!(
            created.unwrap().probe(),
            "CREATE CUSTOM INDEX ON k.\"T\" (no_column) USING 'vector_index'"
        );
        let local = read(
            "CREATE CUSTOM INDEX ON k.t ((p, q), v, f) USING 'vector_index'",
            None,
        );
        let Some(IndexStatement::Create { class, target, .. }) = local else {
            panic!("{local:?}");
        };
        assert_eq!(class, SearchClass::Vector);
        assert_eq!(target.encode(), r#"{"tc":"v","pk":["p","q"],"fc":["f"]}"#);
        let text = read(
            "CREATE CUSTOM INDEX ON k.t ((tenant), body, year) USING 'FullText_Index'",
            None,
        );
        let Some(IndexStatement::Create { class, target, .. }) = text else {
            panic!("{text:?}");
        };
        assert_eq!(class, SearchClass::FullText);
        assert_eq!(
            target.encode(),
            r#"{"tc":"body","pk":["tenant"],"fc":["year"]}"#
        );
    }

    #[test]
    fn an_impossible_index_is_refused_at_once() {
        let refusal = |text| {
            let error = IndexStatement::read(text, None, &snapshot()).unwrap_err();
            error.message
        };
        assert!(
            refusal("CREATE CUSTOM INDEX ON t (v) USING 'vector_index'").contains("No keyspace")
        );
        assert!(
            refusal("CREATE CUSTOM INDEX ON k.t (v, v) USING 'vector_index'")
                .contains("Duplicate column v")
        );
        assert!(
            refusal("CREATE CUSTOM INDEX ON k.t (v, KEYS(m)) USING 'vector_index'")
                .contains("Unsupported vector index filtering column keys(m)")
        );
        assert!(
            refusal("CREATE CUSTOM INDEX ON k.t (body, KEYS(m)) USING 'fulltext_index'")
                .contains("Unsupported full-text index filtering column keys(m)")
        );
    }
}
