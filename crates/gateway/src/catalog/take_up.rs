//! From definitions to the snapshot that requests are decided by.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::base_table::BaseTable;
use super::cluster::{Cluster, ClusterError};
use super::definition::{Definition, Definitions, State};
use super::log_table;
use super::snapshot::Snapshot;
use super::streams::Streams;

/// What the definitions come to in the present schema.
pub(super) struct Taken {
    pub(super) snapshot: Snapshot,
    /// Definitions whose table or column is gone, or whose table was made anew.
    pub(super) orphans: Vec<Definition>,
    /// Tables that are to be logged and have no log.
    pub(super) without_log: Vec<BaseTable>,
    /// Definitions that are past being created, and whose tables have no log all the same.
    pub(super) lost: Vec<Definition>,
    /// New indexes whose tables have logs.
    pub(super) with_log: Vec<Definition>,
}

/// Reads the tables of all definitions.
pub(super) async fn take_up(
    cluster: &Cluster,
    definitions: &Definitions,
    streams: &Arc<Streams>,
) -> Result<Taken, ClusterError> {
    let mut by_table: BTreeMap<(&str, &str), Vec<&Definition>> = BTreeMap::new();
    for definition in &definitions.rows {
        if definition.state != State::Dropping {
            let index = &definition.index;
            let table = (index.keyspace.as_str(), index.table.as_str());
            by_table.entry(table).or_default().push(definition);
        }
    }
    let mut logged = Vec::new();
    let mut usable = Vec::new();
    let mut coming = Vec::new();
    let mut orphans = Vec::new();
    let mut without_log = Vec::new();
    let mut lost = Vec::new();
    let mut with_log = Vec::new();
    for ((keyspace, name), of_table) in by_table {
        let table = BaseTable::read(cluster, keyspace, name).await?;
        let log_name = log_table::name_of(name);
        let as_logged = table
            .as_ref()
            .map(|table| table.logged(log_name.clone(), streams.clone()));
        let is_of = |definition: &&Definition| {
            let index = &definition.index;
            as_logged.as_ref().is_some_and(|table| {
                table.id == index.table_id && table.column(&index.column).is_some()
            })
        };
        let (live, gone): (Vec<_>, Vec<_>) = of_table.into_iter().partition(is_of);
        orphans.extend(gone.into_iter().cloned());
        let not_yet = live.iter().filter(|row| row.state != State::Usable);
        coming.extend(not_yet.map(|row| row.index.clone()));
        let (Some(table), Some(as_logged), false) = (table, as_logged, live.is_empty()) else {
            continue;
        };
        match BaseTable::read(cluster, keyspace, &log_name).await? {
            None => {
                let created = live.into_iter().filter(|row| row.state != State::Creating);
                lost.extend(created.cloned());
                without_log.push(table);
            }
            Some(log) if log.target(log_table::STREAM_ID).is_none() => {
                tracing::error!(
                    table = %format_args!("{keyspace}.{log_name}"),
                    "this is no change log: drop or rename it, or drop the vector indexes of {name}"
                );
            }
            Some(_) => {
                logged.push(Arc::new(as_logged));
                for definition in live {
                    match definition.state {
                        State::Creating => with_log.push(definition.clone()),
                        State::Usable => usable.push(definition.index.clone()),
                        State::Logging | State::Dropping => {}
                    }
                }
            }
        }
    }
    Ok(Taken {
        snapshot: Snapshot::new(logged, usable).with_coming(coming),
        orphans,
        without_log,
        lost,
        with_log,
    })
}
