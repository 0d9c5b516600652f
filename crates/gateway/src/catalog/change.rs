//! Changes of definitions, as the cluster makes them: one after another, each on the condition that there was none since.

use std::sync::Arc;

use scylla::value::CqlTimeuuid;
use uuid::Uuid;

use super::cluster::{Cluster, ClusterError};
use super::definition::{Definitions, State};
use super::index::VectorIndex;
use super::tables::SCOPE;

/// A change of one definition.
#[derive(Clone, Debug)]
pub(super) enum Change {
    /// A new index.
    Create(Arc<VectorIndex>),
    /// Another state.
    Turn(Arc<VectorIndex>, State),
    /// A TRUNCATE of its table begins, under a note.
    Note(Arc<VectorIndex>, Uuid),
    /// The TRUNCATE of a note did nothing.
    Forget(Arc<VectorIndex>, Uuid),
    /// Another version, as its table was truncated under these notes.
    Renew(Arc<VectorIndex>, Uuid, Vec<Uuid>),
    /// From the beginning, under another version.
    Restart(Arc<VectorIndex>, Uuid),
    /// The end.
    Remove(Arc<VectorIndex>),
}

impl Definitions {
    /// Changes one definition; false if somebody else has changed something since these were read.
    pub(super) async fn change(
        &self,
        cluster: &Cluster,
        change: Change,
    ) -> Result<bool, ClusterError> {
        let keyspace = super::quoted(&cluster.keyspace);
        let next = self.revision + 1;
        let known = (self.revision > 0).then_some(self.revision);
        let raise = format!(
            "BEGIN BATCH UPDATE {keyspace}.vector_indexes SET revision = ? WHERE scope = '{SCOPE}' \
             IF revision = ?;"
        );
        let of_row = format!("WHERE scope = '{SCOPE}' AND keyspace_name = ? AND index_name = ?");
        match change {
            Change::Create(index) => {
                let text = format!(
                    "{raise} INSERT INTO {keyspace}.vector_indexes (scope, keyspace_name, \
                     index_name, table_name, table_id, column_name, options, version, state, \
                     changed_at) VALUES ('{SCOPE}', ?, ?, ?, ?, ?, ?, ?, ?, ?); APPLY BATCH"
                );
                let values = (
                    next,
                    known,
                    &index.keyspace,
                    &index.name,
                    &index.table,
                    index.table_id,
                    &index.column,
                    &index.options,
                    CqlTimeuuid::from(index.version),
                    State::Creating.name(),
                    next,
                );
                cluster.execute_if(&text, values).await
            }
            Change::Turn(index, state) => {
                let text = format!(
                    "{raise} UPDATE {keyspace}.vector_indexes SET state = ?, changed_at = ? \
                     {of_row}; APPLY BATCH"
                );
                let (keyspace, name) = (&index.keyspace, &index.name);
                let values = (next, known, state.name(), next, keyspace, name);
                cluster.execute_if(&text, values).await
            }
            Change::Note(ref index, note) | Change::Forget(ref index, note) => {
                let sign = match change {
                    Change::Note(..) => '+',
                    _ => '-',
                };
                let text = format!(
                    "{raise} UPDATE {keyspace}.vector_indexes SET truncates = truncates {sign} ? \
                     {of_row}; APPLY BATCH"
                );
                let notes = timeuuids(vec![note]);
                let values = (next, known, notes, &index.keyspace, &index.name);
                cluster.execute_if(&text, values).await
            }
            Change::Renew(index, version, notes) => {
                let text = format!(
                    "{raise} UPDATE {keyspace}.vector_indexes SET version = ?, \
                     truncates = truncates - ? {of_row}; APPLY BATCH"
                );
                let values = (
                    next,
                    known,
                    CqlTimeuuid::from(version),
                    timeuuids(notes),
                    &index.keyspace,
                    &index.name,
                );
                cluster.execute_if(&text, values).await
            }
            Change::Restart(index, version) => {
                let text = format!(
                    "{raise} UPDATE {keyspace}.vector_indexes SET version = ?, state = ?, \
                     changed_at = ? {of_row}; APPLY BATCH"
                );
                let values = (
                    next,
                    known,
                    CqlTimeuuid::from(version),
                    State::Creating.name(),
                    next,
                    &index.keyspace,
                    &index.name,
                );
                cluster.execute_if(&text, values).await
            }
            Change::Remove(index) => {
                let text =
                    format!("{raise} DELETE FROM {keyspace}.vector_indexes {of_row}; APPLY BATCH");
                let values = (next, known, &index.keyspace, &index.name);
                cluster.execute_if(&text, values).await
            }
        }
    }
}

fn timeuuids(ids: Vec<Uuid>) -> Vec<CqlTimeuuid> {
    ids.into_iter().map(CqlTimeuuid::from).collect()
}
