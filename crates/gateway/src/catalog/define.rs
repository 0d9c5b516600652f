//! CREATE INDEX and DROP INDEX, once the node has shown that the client may do so.

use std::sync::Arc;
use std::time::Duration;

use cql::ast::CreateIndex;
use cql::error::CqlError;
use cql::wire::Response;
use index::SearchClass;
use index::definition::{self, NewName};
use index::target::StoredTarget;
use tokio::time::{Instant, timeout_at};

use super::base_table::BaseTable;
use super::change::DefinitionChange;
use super::cluster::{ClusterError, InternalSession};
use super::creation::{IndexCreationOutcome, end_of_creation};
use super::defined_index::DefinedIndex;
use super::definition::{ClusterDefinitions, IndexLifecycle, StoredDefinition};
use super::follower::{RoundFindings, table_updated};
use super::indexable::indexable;
use super::one_version::of_one_version;
use super::statement::IndexStatement;
use super::{IndexCatalog, grants, log_table, timeuuids};

/// The time limit for a statement to wait until all gateways have confirmed its change. It is less
/// than drivers wait for an answer.
const WAIT_MAX: Duration = Duration::from_secs(8);

/// The number of attempts at a change, as other changes may come first each time.
pub(super) const TRIES_MAX: usize = 20;

/// The outcome of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IndexStatementOutcome {
    /// The response for the client.
    pub(crate) response: Response,
    /// The warning that goes with the response.
    pub(crate) warning: Option<String>,
    /// The new index, if it is usable. Index services are about to find it.
    pub(crate) created: Option<Arc<DefinedIndex>>,
}

/// An index as a CREATE INDEX defines it.
#[derive(Clone, Copy)]
struct WantedIndex<'s> {
    /// The statement.
    create: &'s CreateIndex,
    /// The class that the statement names.
    class: SearchClass,
    /// The columns that the index is to be on.
    target: &'s StoredTarget,
}

impl IndexCatalog {
    /// Carries a statement out.
    ///
    /// # Errors
    /// If the statement cannot be carried out. Errors that a node of Annulus has too have the same
    /// texts.
    pub(crate) async fn define(
        &self,
        statement: &IndexStatement,
    ) -> Result<IndexStatementOutcome, CqlError> {
        let cluster = self.cluster().ok_or_else(|| {
            CqlError::server("The gateway has no session to the cluster yet: try again")
        })?;
        let deadline = Instant::now() + WAIT_MAX;
        match statement {
            IndexStatement::Create {
                keyspace,
                create,
                class,
                target,
            } => {
                let wanted = WantedIndex {
                    create,
                    class: *class,
                    target,
                };
                self.create(&cluster, keyspace, wanted, deadline).await
            }
            IndexStatement::Drop {
                keyspace,
                name,
                if_exists,
                ..
            } => {
                let dropped = self.drop(&cluster, keyspace, name, deadline).await?;
                match dropped {
                    None if !*if_exists => Err(definition::missing(keyspace, name)),
                    dropped => Ok(dropped.unwrap_or_else(IndexStatementOutcome::nothing)),
                }
            }
        }
    }

    async fn create(
        &self,
        cluster: &InternalSession,
        keyspace: &str,
        wanted: WantedIndex<'_>,
        deadline: Instant,
    ) -> Result<IndexStatementOutcome, CqlError> {
        let WantedIndex { create, class, .. } = wanted;
        for _ in 0..TRIES_MAX {
            // Read before all that is checked: `change` succeeds only under this revision, so no
            // definition that another gateway makes meanwhile goes unseen.
            let definitions = ClusterDefinitions::read(cluster).await?;
            // The name stays taken until all gateways know of the drop.
            if let Some(name) = &create.name
                && definitions.is_dropping(keyspace, name)
            {
                let is_free = |now: &ClusterDefinitions| !now.is_dropping(keyspace, name);
                self.wait_until(definitions.revision, deadline, is_free, || {
                    format!("The index {name} was dropped, but not all gateways know it yet")
                })
                .await?;
                continue;
            }
            // An obstacle may be about to go, such as the log of a dropped table of this name.
            let (table, theirs) = of_one_version(
                || cluster.agreed_schema_version(),
                || async {
                    let table = indexable(cluster, keyspace, create, class).await?;
                    Ok::<_, CqlError>((table, cassandras_indexes(cluster, keyspace).await?))
                },
                deadline,
            )
            .await?;
            // The log of a new index would be dropped together with the old index.
            if definitions.is_left(&table) {
                let is_free = |now: &ClusterDefinitions| !now.is_left(&table);
                self.wait_until(definitions.revision, deadline, is_free, || {
                    format!(
                        "An index of {keyspace}.{} was dropped, but not all gateways know it yet",
                        table.name
                    )
                })
                .await?;
                continue;
            }
            // The scan of a new index could read rows that are about to be removed.
            if definitions.is_truncated(&table) {
                let is_whole = |now: &ClusterDefinitions| !now.is_truncated(&table);
                self.wait_until(definitions.revision, deadline, is_whole, || {
                    format!("{keyspace}.{} is being truncated", table.name)
                })
                .await?;
                continue;
            }
            // After all waits, as an index that is on its way out must not count as an obstacle.
            let checked = checked(&definitions, &table, &theirs, wanted)?;
            let Some(name) = checked else {
                return Ok(IndexStatementOutcome::nothing());
            };
            // Before anything is defined: without grants on the log, all writes to the table could
            // be refused.
            grants::check(cluster, keyspace, &table.name).await?;
            let index = Arc::new(DefinedIndex {
                keyspace: keyspace.to_owned(),
                table: table.name.clone(),
                name,
                class_name: class.name().to_owned(),
                target: wanted.target.clone(),
                options: create.options.clone(),
                version: timeuuids::now()?,
                table_id: table.id,
            });
            // If another change came first, all is read and checked again.
            if definitions
                .change(cluster, DefinitionChange::Create(index.clone()))
                .await?
            {
                // Each change raises the revision by one.
                let created_at = definitions.revision + 1;
                return self
                    .wait_until_usable(cluster, index, created_at, deadline)
                    .await;
            }
        }
        Err(too_many_changes())
    }

    async fn wait_until_usable(
        &self,
        cluster: &InternalSession,
        index: Arc<DefinedIndex>,
        created_at: i64,
        deadline: Instant,
    ) -> Result<IndexStatementOutcome, CqlError> {
        let end = self.wait_for(deadline, |round| end_of_creation(&index, created_at, round));
        match end.await {
            Some(IndexCreationOutcome::Usable) => Ok(IndexStatementOutcome {
                created: Some(index.clone()),
                ..IndexStatementOutcome::updated(&index)
            }),
            Some(IndexCreationOutcome::Dropped) => Err(CqlError::invalid(format!(
                "Index '{}' was dropped, or its table was, before it was ready",
                index.name
            ))),
            Some(IndexCreationOutcome::WithoutLog(error)) => {
                // Otherwise the definition would stay, and each round would try to make the log.
                self.take_back(cluster, &index).await?;
                let log = log_table::name_of(&index.table);
                Err(CqlError::invalid(format!(
                    "The index needs {}.{log} for its log, which cannot be made: {error}",
                    index.keyspace
                )))
            }
            // No error: the definition is there, and gateways go on with it by themselves.
            None => Ok(IndexStatementOutcome {
                warning: Some(format!(
                    "The index {} is defined, but not all gateways log the writes of {} yet: it \
                     is seen once they do",
                    index.name, index.table
                )),
                ..IndexStatementOutcome::updated(&index)
            }),
        }
    }

    /// Drops a new index whose log cannot be made.
    async fn take_back(
        &self,
        cluster: &InternalSession,
        index: &DefinedIndex,
    ) -> Result<(), CqlError> {
        for _ in 0..TRIES_MAX {
            let definitions = ClusterDefinitions::read(cluster).await?;
            let row = definitions.find(&index.keyspace, &index.name);
            // Somebody may have dropped it meanwhile, and given its name to an index of another
            // table.
            let is_ours = |row: &&StoredDefinition| {
                row.index.table_id == index.table_id && row.state != IndexLifecycle::Dropping
            };
            let Some(row) = row.filter(is_ours) else {
                return Ok(());
            };
            let change = DefinitionChange::Turn(row.index.clone(), IndexLifecycle::Dropping);
            if definitions.change(cluster, change).await? {
                self.request_refresh();
                return Ok(());
            }
        }
        Err(too_many_changes())
    }

    /// Waits until a round of the revision `known` or a later one finds definitions for which
    /// `is_so` holds.
    ///
    /// # Errors
    /// If that takes too long, with `why` in the message.
    async fn wait_until(
        &self,
        known: i64,
        deadline: Instant,
        is_so: impl Fn(&ClusterDefinitions) -> bool,
        why: impl FnOnce() -> String,
    ) -> Result<(), CqlError> {
        let reached = self.wait_for(deadline, |round| {
            let definitions = &round.definitions;
            (definitions.revision >= known && is_so(definitions)).then_some(())
        });
        let reached = reached.await;
        reached.ok_or_else(|| CqlError::server(format!("{}: try again", why())))
    }

    /// Drops an index; `None` if there is no such index.
    async fn drop(
        &self,
        cluster: &InternalSession,
        keyspace: &str,
        name: &str,
        deadline: Instant,
    ) -> Result<Option<IndexStatementOutcome>, CqlError> {
        for _ in 0..TRIES_MAX {
            let definitions = ClusterDefinitions::read(cluster).await?;
            let row = definitions.find(keyspace, name);
            let Some(row) = row.filter(|row| row.state != IndexLifecycle::Dropping) else {
                return Ok(None);
            };
            let change = DefinitionChange::Turn(row.index.clone(), IndexLifecycle::Dropping);
            if definitions.change(cluster, change).await? {
                let index = row.index.clone();
                let gone = self.wait_for(deadline, |round| {
                    // The row of an index goes once all gateways know that it is dropped.
                    let mut rows = round.definitions.rows.iter();
                    // An older round may be from before the index was created, and would not show
                    // it either.
                    let is_newer = round.definitions.revision > definitions.revision;
                    // By its version, as a new index may have the same name.
                    let is_there = rows.any(|row| row.index.version == index.version);
                    (is_newer && !is_there).then_some(())
                });
                let known_to_all = gone.await.is_some();
                return Ok(Some(IndexStatementOutcome {
                    warning: (!known_to_all).then(|| {
                        format!("The index {name} is dropped, but not all gateways know it yet")
                    }),
                    ..IndexStatementOutcome::updated(&row.index)
                }));
            }
        }
        Err(too_many_changes())
    }

    /// Waits for a round for which `sought` returns a value; `None` if none comes in time.
    async fn wait_for<T>(
        &self,
        deadline: Instant,
        mut sought: impl FnMut(&RoundFindings) -> Option<T>,
    ) -> Option<T> {
        let mut rounds = self.rounds.clone();
        // After the receiver is there, so that the round of this request is not missed.
        self.request_refresh();
        loop {
            let value = rounds.borrow_and_update().as_ref().and_then(&mut sought);
            if value.is_some() {
                return value;
            }
            timeout_at(deadline, rounds.changed()).await.ok()?.ok()?;
        }
    }
}

/// Checks the definition of an index, and returns its name; `None` if there is such an index
/// already and the statement says IF NOT EXISTS. `theirs` are the indexes of Cassandra's own.
fn checked(
    definitions: &ClusterDefinitions,
    table: &BaseTable,
    theirs: &[String],
    wanted: WantedIndex<'_>,
) -> Result<Option<String>, CqlError> {
    let WantedIndex {
        create,
        class,
        target,
    } = wanted;
    definition::check_properties(create, class.name())?;
    let key: Vec<&str> = table.key().map(|(column, _)| &*column.name).collect();
    let column = |name: &str| table.target(name);
    definition::check(class, target, &create.options, &key, column)?;
    // Names are unique in a keyspace, and Cassandra does not know those of our indexes.
    let ours = |name: &str| definitions.find(&table.keyspace, name).is_some();
    let new_name = definition::new_name(
        create.name.as_deref(),
        create.if_not_exists,
        (&table.name, &target.column),
        |name| ours(name) || theirs.iter().any(|theirs| theirs == name),
        alike(definitions, table, class, target),
    )?;
    Ok(match new_name {
        NewName::Name(name) => Some(name),
        NewName::Exists => None,
    })
}

impl IndexStatementOutcome {
    fn nothing() -> IndexStatementOutcome {
        IndexStatementOutcome {
            response: Response::Void,
            warning: None,
            created: None,
        }
    }

    fn updated(index: &DefinedIndex) -> IndexStatementOutcome {
        IndexStatementOutcome {
            response: Response::SchemaChange(table_updated(&index.keyspace, &index.table)),
            warning: None,
            created: None,
        }
    }
}

/// The names of the indexes in the keyspace that Cassandra itself keeps.
pub(super) async fn cassandras_indexes(
    cluster: &InternalSession,
    keyspace: &str,
) -> Result<Vec<String>, ClusterError> {
    const TEXT: &str = "SELECT index_name FROM system_schema.indexes WHERE keyspace_name = ?";
    let rows: Vec<(String,)> = cluster.rows(TEXT, (keyspace,)).await?;
    Ok(rows.into_iter().map(|(name,)| name).collect())
}

/// The name of an index of the class on the same column, with the same local key or also without
/// one.
fn alike<'d>(
    definitions: &'d ClusterDefinitions,
    table: &'d BaseTable,
    class: SearchClass,
    target: &StoredTarget,
) -> Option<&'d str> {
    let is_alike = |index: &DefinedIndex| {
        index.class() == Some(class)
            && index.target.column == target.column
            && index.target.local_key == target.local_key
    };
    definitions
        .live_on(&table.keyspace, &table.name)
        .find(|row| is_alike(&row.index) && row.index.table_id == table.id)
        .map(|row| row.index.name.as_str())
}

/// The error for a change that others came before each time.
pub(super) fn too_many_changes() -> CqlError {
    CqlError::server("Too many changes of indexes at the same time: try again")
}

impl From<ClusterError> for CqlError {
    fn from(error: ClusterError) -> CqlError {
        CqlError::server(match error {
            ClusterError::Clock(_) | ClusterError::Unsettled => error.to_string(),
            _ => format!("The gateway's own session to the cluster: {error}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use cql::ast::Statement;
    use cql::parser::parse_statement;
    use uuid::Uuid;

    use super::super::fixtures;
    use super::*;

    /// The name that a CREATE INDEX gives its index on `k.t (id, c, v, n, s static, m)`, where the
    /// global index `k.i` on `v` is and the local one `k.by_c`.
    fn name_of(list: &str, options: &str) -> Result<Option<String>, String> {
        name_of_class(SearchClass::Vector, list, options)
    }

    fn name_of_class(
        class: SearchClass,
        list: &str,
        options: &str,
    ) -> Result<Option<String>, String> {
        let using = class.name();
        let text = format!("CREATE CUSTOM INDEX {options} ON k.t ({list}) USING '{using}'");
        let Statement::CreateIndex(create) = parse_statement(&text).unwrap().statement else {
            panic!("{text}");
        };
        let columns = [
            ("id", "partition_key", "int"),
            ("c", "clustering", "int"),
            ("v", "regular", "vector<float, 3>"),
            ("w", "regular", "vector<int, 3>"),
            ("n", "regular", "int"),
            ("s", "static", "text"),
            ("m", "regular", "map<text, text>"),
            ("u", "regular", "address"),
        ];
        let columns =
            columns.map(|(name, kind, of)| (name.to_owned(), kind.to_owned(), 0, of.to_owned()));
        let table = BaseTable::new("k", "t", Uuid::from_u128(2), columns.to_vec());
        let local = StoredDefinition {
            index: Arc::new(DefinedIndex {
                name: "by_c".to_owned(),
                target: StoredTarget::decode(r#"{"tc":"v","pk":["c"]}"#),
                ..fixtures::index()
            }),
            ..fixtures::definition(IndexLifecycle::Usable)
        };
        let definitions = ClusterDefinitions {
            revision: 7,
            rows: vec![fixtures::definition(IndexLifecycle::Usable), local],
        };
        let target = StoredTarget::of(&create.targets, class).map_err(|error| error.message)?;
        let wanted = WantedIndex {
            create: &create,
            class,
            target: &target,
        };
        checked(&definitions, &table, &[], wanted).map_err(|error| error.message)
    }

    #[test]
    fn a_full_text_index_is_checked_by_the_rules_of_its_class() {
        let name_of = |list: &str, name: &str| name_of_class(SearchClass::FullText, list, name);
        let named = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(name_of("s, n, c", ""), named("t_s_idx"));
        assert_eq!(name_of("(n), s, m", "words"), named("words"));
        for (list, expected) in [
            (
                "n",
                "Full-text indexes are only supported on columns of text",
            ),
            (
                "v",
                "Full-text indexes are only supported on columns of text",
            ),
            ("s, w", "Unsupported full-text index filtering column w"),
            ("(s2), s", "No column definition found for column s2"),
        ] {
            let error = name_of(list, "").unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let taken = name_of("s", "i");
        assert_eq!(taken, Err("Index 'i' already exists".to_owned()));
    }

    #[test]
    fn filter_columns_and_local_keys_are_checked() {
        let named = |name: &str| Ok(Some(name.to_owned()));
        assert_eq!(name_of("v, n, id, s, m", "one"), named("one"));
        assert_eq!(name_of("(id, n), v, c", ""), named("t_v_idx"));
        for (list, expected) in [
            (
                "v, w",
                "Unsupported vector index filtering column w of type vector<int, 3>",
            ),
            (
                "v, u",
                "Unsupported vector index filtering column u of type address",
            ),
            ("v, x", "No column definition found for column x"),
            (
                "w",
                "Vector indexes are only supported on columns of vectors of floats (column w is of \
                 type vector<int, 3>)",
            ),
            ("v, n", "Index t_v_idx is a duplicate of existing index i"),
            (
                "(c), v, n",
                "Index t_v_idx is a duplicate of existing index by_c",
            ),
        ] {
            assert_eq!(name_of(list, ""), Err(expected.to_owned()), "{list}");
        }
        assert_eq!(name_of("(c), v, n", "IF NOT EXISTS"), Ok(None));
        assert_eq!(name_of("(c), v, n", "another"), named("another"));
    }
}
