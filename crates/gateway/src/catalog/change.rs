//! Changes of definitions in the cluster. They are made one after another, each on the condition
//! that the revision is still the one that was read.

use std::sync::Arc;

use cql::quote::quoted;
use scylla::value::CqlTimeuuid;
use uuid::Uuid;

use super::cluster::{ClusterError, InternalSession};
use super::defined_index::DefinedIndex;
use super::definition::{ClusterDefinitions, IndexLifecycle};
use super::tables::SCOPE;

/// A change of one definition.
#[derive(Clone, Debug)]
pub(super) enum DefinitionChange {
    /// Creates an index.
    Create(Arc<DefinedIndex>),
    /// Gives an index another state.
    Turn(Arc<DefinedIndex>, IndexLifecycle),
    /// Adds a note: a TRUNCATE of the index's table begins.
    Note(Arc<DefinedIndex>, Uuid),
    /// Removes a note, as its TRUNCATE did nothing.
    Forget(Arc<DefinedIndex>, Uuid),
    /// Gives an index another version and removes these notes, as its table was truncated under
    /// them.
    Renew(Arc<DefinedIndex>, Uuid, Vec<Uuid>),
    /// Creates an index again from the beginning, under another version.
    Restart(Arc<DefinedIndex>, Uuid),
    /// Removes the definition of an index.
    Remove(Arc<DefinedIndex>),
}

impl ClusterDefinitions {
    /// Makes one change; false if another change was made since these definitions were read.
    pub(super) async fn change(
        &self,
        cluster: &InternalSession,
        change: DefinitionChange,
    ) -> Result<bool, ClusterError> {
        let keyspace = quoted(&cluster.keyspace);
        let next = self.revision + 1;
        let known = (self.revision > 0).then_some(self.revision);
        let raise = format!(
            "BEGIN BATCH UPDATE {keyspace}.vector_indexes SET revision = ? WHERE scope = '{SCOPE}' \
             IF revision = ?;"
        );
        let of_row = format!("WHERE scope = '{SCOPE}' AND keyspace_name = ? AND index_name = ?");
        let update = |set: &str| {
            format!("{raise} UPDATE {keyspace}.vector_indexes SET {set} {of_row}; APPLY BATCH")
        };
        match change {
            DefinitionChange::Create(index) => create(cluster, &raise, (next, known), &index).await,
            DefinitionChange::Turn(index, state) => {
                let text = update("state = ?, changed_at = ?");
                let (keyspace, name) = (&index.keyspace, &index.name);
                let values = (next, known, state.name(), next, keyspace, name);
                cluster.execute_if(&text, values).await
            }
            DefinitionChange::Note(ref index, note) | DefinitionChange::Forget(ref index, note) => {
                let sign = match change {
                    DefinitionChange::Note(..) => '+',
                    _ => '-',
                };
                let text = update(&format!("truncates = truncates {sign} ?"));
                let notes = timeuuids(vec![note]);
                let values = (next, known, notes, &index.keyspace, &index.name);
                cluster.execute_if(&text, values).await
            }
            DefinitionChange::Renew(index, version, notes) => {
                let text = update("version = ?, truncates = truncates - ?");
                let version = CqlTimeuuid::from(version);
                let (keyspace, name) = (&index.keyspace, &index.name);
                let values = (next, known, version, timeuuids(notes), keyspace, name);
                cluster.execute_if(&text, values).await
            }
            DefinitionChange::Restart(index, version) => {
                let text = update("version = ?, state = ?, changed_at = ?");
                let (version, state) =
                    (CqlTimeuuid::from(version), IndexLifecycle::Creating.name());
                let (keyspace, name) = (&index.keyspace, &index.name);
                let values = (next, known, version, state, next, keyspace, name);
                cluster.execute_if(&text, values).await
            }
            DefinitionChange::Remove(index) => {
                let text =
                    format!("{raise} DELETE FROM {keyspace}.vector_indexes {of_row}; APPLY BATCH");
                let values = (next, known, &index.keyspace, &index.name);
                cluster.execute_if(&text, values).await
            }
        }
    }
}

/// Adds the definition of an index, under the revision `next` after the `known` one. `raise` is the
/// beginning of a batch that raises the revision.
async fn create(
    cluster: &InternalSession,
    raise: &str,
    (next, known): (i64, Option<i64>),
    index: &DefinedIndex,
) -> Result<bool, ClusterError> {
    let keyspace = quoted(&cluster.keyspace);
    let text = format!(
        "{raise} INSERT INTO {keyspace}.vector_indexes (scope, keyspace_name, index_name, \
         table_name, table_id, column_name, target, class_name, options, version, state, \
         changed_at) VALUES ('{SCOPE}', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?); APPLY BATCH"
    );
    let values = (
        next,
        known,
        &index.keyspace,
        &index.name,
        &index.table,
        index.table_id,
        &index.target.column,
        index.target.encode(),
        &index.class_name,
        &index.options,
        CqlTimeuuid::from(index.version),
        IndexLifecycle::Creating.name(),
        next,
    );
    cluster.execute_if(&text, values).await
}

fn timeuuids(ids: Vec<Uuid>) -> Vec<CqlTimeuuid> {
    ids.into_iter().map(CqlTimeuuid::from).collect()
}
