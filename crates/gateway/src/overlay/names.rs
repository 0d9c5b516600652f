//! CREATE INDEX of an index of Cassandra's own under the name of a vector index. It is refused, as
//! two indexes of a keyspace cannot have one name.
//!
//! Cassandra knows nothing of the vector index and would take the name. Then readers of
//! `system_schema.indexes` would take the two for one index, and the vector index for dropped.

use cql::ast::{CreateIndex, IndexTarget, Statement};
use cql::error::CqlError;
use cql::parser::parse_statement;
use index::definition;

use super::refusal::TableChangeRefusal;
use crate::catalog::IndexCatalogSnapshot;

impl TableChangeRefusal {
    /// The refusal of a statement that begins with CREATE and defines no vector index; `None` if
    /// the gateway does not refuse it.
    pub(crate) fn of_create(
        text: &str,
        keyspace_in_use: Option<&str>,
        snapshot: &IndexCatalogSnapshot,
    ) -> Option<TableChangeRefusal> {
        let Ok(Statement::CreateIndex(create)) =
            parse_statement(text).map(|parsed| parsed.statement)
        else {
            return None;
        };
        let keyspace = create.table.keyspace.as_deref().or(keyspace_in_use)?;
        let table = create.table.name.as_str();
        let Some(name) = &create.name else {
            let name = default_name(&create)?;
            let taken = snapshot.defined_in(keyspace).find(|index| {
                let rest = index.name.strip_prefix(&name);
                rest.is_some_and(|rest| rest.is_empty() || is_number(rest))
            })?;
            return Some(TableChangeRefusal::new(
                keyspace,
                table,
                CqlError::invalid(format!(
                    "Index '{}' already exists as a {}, and this one could get the same name: give it another one, \
                     as in CREATE INDEX name ON ...",
                    taken.name,
                    taken.noun()
                )),
            ));
        };
        snapshot.defined(keyspace, name)?;
        Some(match create.if_not_exists {
            true => TableChangeRefusal::in_silence(keyspace, table),
            // The text is Cassandra's own.
            false => TableChangeRefusal::new(
                keyspace,
                table,
                CqlError::invalid(format!("Index '{name}' already exists")),
            ),
        })
    }
}

/// The name that Cassandra gives an index without one. Cassandra adds a number if an index has that
/// name already.
fn default_name(create: &CreateIndex) -> Option<String> {
    let column = match create.targets.as_slice() {
        [IndexTarget::Column(column) | IndexTarget::Collection { column, .. }] => {
            Some(column.as_str())
        }
        [_] => return None,
        _ => None,
    };
    Some(definition::default_name(&create.table.name, column))
}

/// Whether a suffix of a name is an underscore and a number, as in `_1`.
fn is_number(rest: &str) -> bool {
    rest.strip_prefix('_').is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use index::target::StoredTarget;
    use uuid::Uuid;

    use super::*;
    use crate::catalog::DefinedIndex;

    fn index(keyspace: &str, name: &str) -> Arc<DefinedIndex> {
        Arc::new(DefinedIndex {
            keyspace: keyspace.to_owned(),
            table: "events".to_owned(),
            name: name.to_owned(),
            class_name: "vector_index".to_owned(),
            target: StoredTarget::decode("v"),
            options: Default::default(),
            version: Uuid::nil(),
            table_id: Uuid::nil(),
        })
    }

    fn refusal(text: &str, keyspace_in_use: Option<&str>) -> Option<TableChangeRefusal> {
        let indexes = [index("shop", "same"), index("shop", "events_v_idx_1")];
        let snapshot =
            IndexCatalogSnapshot::new([], indexes).with_coming(vec![index("shop", "coming")]);
        TableChangeRefusal::of_create(text, keyspace_in_use, &snapshot)
    }

    #[test]
    fn the_name_of_a_vector_index_is_taken_for_all_indexes_of_its_keyspace() {
        for text in [
            "CREATE INDEX same ON shop.other (x)",
            "create index \"same\" on other (x)",
            "CREATE CUSTOM INDEX Same ON other (x) USING 'StorageAttachedIndex'",
        ] {
            let message = refusal(text, Some("shop")).and_then(TableChangeRefusal::message);
            assert_eq!(
                message.as_deref(),
                Some("Index 'same' already exists"),
                "{text}"
            );
        }
        assert!(refusal("CREATE INDEX coming ON shop.other (x)", None).is_some());
        let silent = refusal("CREATE INDEX IF NOT EXISTS same ON shop.other (x)", None);
        assert_eq!(
            silent,
            Some(TableChangeRefusal::in_silence("shop", "other"))
        );
        for text in [
            "CREATE INDEX same ON another.other (x)",
            "CREATE INDEX same2 ON shop.other (x)",
            "CREATE TABLE shop.same (index int PRIMARY KEY)",
        ] {
            assert_eq!(refusal(text, Some("shop")), None, "{text}");
        }
    }

    #[test]
    fn an_index_without_a_name_does_not_get_that_of_a_vector_index() {
        for text in [
            "CREATE INDEX ON shop.events (v)",
            "CREATE INDEX IF NOT EXISTS ON shop.events (values(v))",
        ] {
            let message = refusal(text, None)
                .and_then(TableChangeRefusal::message)
                .unwrap_or_default();
            assert!(message.contains("give it another one"), "{text}: {message}");
        }
        for text in [
            "CREATE INDEX ON shop.events (w)",
            "CREATE INDEX ON shop.event (v)",
        ] {
            assert_eq!(refusal(text, None), None, "{text}");
        }
    }
}
