//! Statements that define vector indexes.

use cql::ast::{CreateIndex, IndexTarget, Statement};
use cql::error::CqlError;
use cql::parser::parse_statement;
use cql::quote::{Identifier, Quoted};
use cql::vector_index;

use super::snapshot::Snapshot;

/// A statement about a vector index, its names resolved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum IndexStatement {
    /// `CREATE CUSTOM INDEX ... USING 'vector_index'`.
    Create {
        /// The keyspace of the table.
        keyspace: String,
        /// What is to be made, with a name that may be.
        create: CreateIndex,
        /// What is to be indexed.
        target: IndexTarget,
    },
    /// `DROP INDEX` of an index that is ours.
    Drop {
        /// Its keyspace.
        keyspace: String,
        /// Its table, which its owner must be allowed to alter.
        table: String,
        /// Its name.
        name: String,
        /// Whether it may have been dropped meanwhile.
        if_exists: bool,
    },
}

impl IndexStatement {
    /// What a CREATE or DROP says of vector indexes; `None` if it is none of our business: it passes.
    ///
    /// # Errors
    /// If it is of vector indexes, but cannot be.
    pub(crate) fn read(
        text: &str,
        keyspace_in_use: Option<&str>,
        snapshot: &Snapshot,
    ) -> Result<Option<IndexStatement>, CqlError> {
        // What cannot be read here is for the node to refuse, or to know.
        let Ok(parsed) = parse_statement(text) else {
            return Ok(None);
        };
        match parsed.statement {
            Statement::CreateIndex(create) if vector_index::is_vector_index(&create) => {
                let keyspace = create.table.keyspace.as_deref().or(keyspace_in_use);
                let keyspace = keyspace.ok_or_else(no_keyspace)?.to_owned();
                if let Some(name) = &create.name {
                    vector_index::check_name(name)?;
                }
                let target = vector_index::single_target(&create.targets)?;
                Ok(Some(IndexStatement::Create {
                    keyspace,
                    create,
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

    /// A statement by whose answer it is seen whether the client may.
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

/// A statement that Cassandra never carries out, but only to those that may alter the table says why: it knows no such class
/// of indexes.
pub(crate) fn probe(keyspace: &str, table: &str) -> String {
    format!(
        "CREATE CUSTOM INDEX ON {}.{} (no_column) USING {}",
        Identifier(keyspace),
        Identifier(table),
        Quoted(vector_index::CLASS),
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

    use super::super::VectorIndex;
    use super::super::fixtures::index;
    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot::new(
            [],
            [Arc::new(VectorIndex {
                name: "ours".to_owned(),
                ..index()
            })],
        )
    }

    #[test]
    fn only_statements_about_vector_indexes_are_ours() {
        let read = |text, in_use| IndexStatement::read(text, in_use, &snapshot()).unwrap();
        for text in [
            "CREATE INDEX i ON k.t (c)",
            "CREATE CUSTOM INDEX i ON k.t (v) USING 'StorageAttachedIndex'",
            "CREATE TABLE k.t (id int PRIMARY KEY) WITH comment = 'vector_index'",
            "DROP INDEX k.theirs",
            "DROP INDEX other.ours",
            "DROP INDEX ours",
            "CREATE CUSTOM INDEX broken ON USING 'vector_index'",
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
    }

    #[test]
    fn what_cannot_be_is_refused_at_once() {
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
    }
}
