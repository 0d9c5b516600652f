//! Turns definitions into the snapshot that requests are decided by.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::base_table::BaseTable;
use super::cluster::{ClusterError, InternalSession};
use super::defined_index::DefinedIndex;
use super::definition::{ClusterDefinitions, IndexLifecycle, StoredDefinition};
use super::log_table;
use super::snapshot::IndexCatalogSnapshot;
use super::streams::LogStreams;
use super::table::LoggedTable;

/// The definitions, compared with the present schema.
#[derive(Default)]
pub(super) struct DefinitionFindings {
    /// The snapshot that requests are decided by.
    pub(super) snapshot: IndexCatalogSnapshot,
    /// The definitions whose table or column was dropped, or whose table was recreated.
    pub(super) orphans: Vec<StoredDefinition>,
    /// The tables without a log whose indexes are all CREATING.
    pub(super) without_log: Vec<BaseTable>,
    /// The definitions past CREATING whose tables have no log.
    pub(super) lost: Vec<StoredDefinition>,
    /// The definitions that are CREATING and whose tables have logs.
    pub(super) with_log: Vec<StoredDefinition>,
    /// The tables that have the name of a log and are none.
    pub(super) no_logs: Vec<BaseTable>,
}

impl DefinitionFindings {
    /// Logs an error for each table that has the name of a log and is none. It may only be called
    /// once it is certain that all was read from one version of the schema: a log without its
    /// columns looks like no log.
    pub(super) fn tell_of_what_is_no_log(&self) {
        for table in &self.no_logs {
            tracing::error!(
                table = %format_args!("{}.{}", table.keyspace, table.name),
                "this table has the name of a change log and is none: drop or rename it, or drop the vector indexes of the table whose log it should be"
            );
        }
    }
}

/// Reads the tables of all definitions, and sorts the definitions by what has to be done.
pub(super) async fn reconcile(
    cluster: &InternalSession,
    definitions: &ClusterDefinitions,
    streams: &Arc<LogStreams>,
) -> Result<DefinitionFindings, ClusterError> {
    let mut by_table: BTreeMap<(&str, &str), Vec<&StoredDefinition>> = BTreeMap::new();
    for definition in &definitions.rows {
        if definition.state != IndexLifecycle::Dropping {
            let index = &definition.index;
            let table = (index.keyspace.as_str(), index.table.as_str());
            by_table.entry(table).or_default().push(definition);
        }
    }
    let mut reconciling = DefinitionComparison::default();
    for ((keyspace, name), of_table) in by_table {
        let table = BaseTable::read(cluster, keyspace, name).await?;
        let log = BaseTable::read(cluster, keyspace, &log_table::name_of(name)).await?;
        reconciling.add(table, log, of_table, streams);
    }
    Ok(reconciling.finish())
}

/// The comparison under way, table by table.
#[derive(Default)]
struct DefinitionComparison {
    logged: Vec<Arc<LoggedTable>>,
    usable: Vec<Arc<DefinedIndex>>,
    coming: Vec<Arc<DefinedIndex>>,
    /// The findings so far, without the snapshot.
    reconciled: DefinitionFindings,
}

impl DefinitionComparison {
    /// Adds the definitions on one table: `log` is the table that has the name of its log.
    fn add(
        &mut self,
        table: Option<BaseTable>,
        log: Option<BaseTable>,
        definitions: Vec<&StoredDefinition>,
        streams: &Arc<LogStreams>,
    ) {
        let logged = table.as_ref().map(|table| {
            let log_name = log_table::name_of(&table.name);
            table.logged(log_name, streams.clone())
        });
        let is_of = |definition: &&StoredDefinition| {
            let index = &definition.index;
            logged.as_ref().is_some_and(|table| {
                let mut columns = index.target.columns();
                // A table that was dropped and made again has the same name and another id.
                table.id == index.table_id && columns.all(|name| table.column(name).is_some())
            })
        };
        let (live, gone): (Vec<_>, Vec<_>) = definitions.into_iter().partition(is_of);
        self.reconciled.orphans.extend(gone.into_iter().cloned());
        let (Some(table), Some(logged), false) = (table, logged, live.is_empty()) else {
            return;
        };
        if log.as_ref().is_some_and(BaseTable::is_log) {
            self.logged.push(Arc::new(logged));
            for definition in live {
                let index = definition.index.clone();
                match definition.state {
                    IndexLifecycle::Usable => self.usable.push(index),
                    IndexLifecycle::Creating => {
                        self.coming.push(index);
                        self.reconciled.with_log.push(definition.clone());
                    }
                    IndexLifecycle::Logging => self.coming.push(index),
                    IndexLifecycle::Dropping => {}
                }
            }
            return;
        }
        self.coming.extend(live.iter().map(|row| row.index.clone()));
        let created = live
            .iter()
            .filter(|row| row.state != IndexLifecycle::Creating);
        let lost: Vec<_> = created.map(|row| StoredDefinition::clone(row)).collect();
        // The log is not made yet if an index must start over: it would hide that there was none.
        if lost.is_empty() && log.is_none() {
            self.reconciled.without_log.push(table);
        }
        self.reconciled.no_logs.extend(log);
        self.reconciled.lost.extend(lost);
    }

    fn finish(self) -> DefinitionFindings {
        DefinitionFindings {
            snapshot: IndexCatalogSnapshot::new(self.logged, self.usable).with_coming(self.coming),
            ..self.reconciled
        }
    }
}

#[cfg(test)]
mod tests {
    use index::target::StoredTarget;
    use uuid::Uuid;

    use super::super::fixtures::{definition, index};
    use super::super::streams::GenerationStreams;
    use super::*;

    fn table(name: &str, columns: &[(&str, &str)]) -> BaseTable {
        let columns = columns.iter().map(|(name, kind)| {
            let cql_type = "int".to_owned();
            (name.to_string(), kind.to_string(), 0, cql_type)
        });
        BaseTable::new("k", name, Uuid::from_u128(2), columns.collect())
    }

    /// The result for an index, with `log` as the table of its log's name.
    fn reconciled(definition: &StoredDefinition, log: Option<BaseTable>) -> DefinitionFindings {
        let streams = LogStreams::new(vec![GenerationStreams {
            from_ms: 0,
            ids: vec![[0; 16]],
        }]);
        let mut reconciling = DefinitionComparison::default();
        let base = table("t", &[("id", "partition_key"), ("v", "regular")]);
        let streams = Arc::new(streams.unwrap());
        reconciling.add(Some(base), log, vec![definition], &streams);
        reconciling.finish()
    }

    #[test]
    fn an_index_of_which_any_column_is_gone_is_an_orphan() {
        let of_target = |target: &str| {
            let definition = StoredDefinition {
                index: Arc::new(DefinedIndex {
                    target: StoredTarget::decode(target),
                    ..index()
                }),
                ..definition(IndexLifecycle::Usable)
            };
            reconciled(&definition, None).orphans.len()
        };
        assert_eq!(of_target(r#"{"tc":"v","pk":["id"]}"#), 0);
        assert_eq!(of_target(r#"{"tc":"v","fc":["gone"]}"#), 1);
        assert_eq!(of_target("gone"), 1);
    }

    #[test]
    fn an_index_past_its_creation_whose_log_is_gone_is_lost() {
        let creating = reconciled(&definition(IndexLifecycle::Creating), None);
        assert_eq!((creating.without_log.len(), creating.lost.len()), (1, 0));
        let no_log = table("t_scylla_cdc_log", &[("id", "partition_key")]);
        for (state, log) in [
            (IndexLifecycle::Logging, None),
            (IndexLifecycle::Usable, None),
            (IndexLifecycle::Logging, Some(no_log.clone())),
        ] {
            let in_its_place = Vec::from_iter(log.clone());
            let reconciled = reconciled(&definition(state), log);
            assert_eq!(
                (reconciled.without_log.len(), reconciled.lost.len()),
                (0, 1)
            );
            assert_eq!(reconciled.no_logs, in_its_place);
            assert!(reconciled.snapshot.logs_nothing());
            assert!(reconciled.snapshot.index("k", "i").is_none());
            assert!(reconciled.snapshot.defined("k", "i").is_some());
        }
        let log = table(
            "t_scylla_cdc_log",
            &[("id", "regular"), ("cdc$stream_id", "partition_key")],
        );
        let usable = reconciled(&definition(IndexLifecycle::Usable), Some(log));
        assert_eq!((usable.without_log.len(), usable.lost.len()), (0, 0));
        assert!(usable.snapshot.index("k", "i").is_some());
    }
}
