//! The prepared statements that went through this gateway, by their ids.
//!
//! Ids are the node's, or ours where a statement is worked on here: digests of the keyspace and the text, so that one id means
//! the same to every client. The table is shared by all connections and bounded.
//!
//! What a statement means was decided by one snapshot of the catalog and holds as long as that snapshot: what was
//! remembered under another epoch is as good as forgotten, and its statement is prepared again.

use std::sync::Arc;

use bytes::Bytes;
use cql::wire::Metadata;
use quick_cache::sync::Cache;

use crate::ann::AnnStatement;
use crate::catalog::LoggedTable;
use crate::overlay::PreparedConcern;
use crate::writes::PreparedWrite;

/// What a prepared statement means to the gateway.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    /// Nothing: it passes.
    Plain,
    /// It is a USE.
    Use,
    /// It truncates a logged table.
    Truncate(Arc<LoggedTable>),
    /// It writes to logged tables.
    Write(Arc<PreparedWrite>),
    /// It reads one of the tables that tell of the cluster's nodes. Its result's columns are kept for results that
    /// come without them.
    RingRows(Arc<Metadata>),
    /// It asks for nearest neighbours.
    Ann(Arc<AnnStatement>),
    /// It concerns vector indexes.
    Concern(Arc<PreparedConcern>),
}

/// What is known of ids.
pub(crate) struct PreparedStatements {
    by_id: Cache<Bytes, (u64, Meaning)>,
}

impl PreparedStatements {
    pub(crate) fn new(capacity: usize) -> Self {
        PreparedStatements {
            by_id: Cache::new(capacity),
        }
    }

    /// What a statement means under a snapshot of this epoch.
    pub(crate) fn get(&self, id: &[u8], epoch: u64) -> Option<Meaning> {
        let (understood, meaning) = self.by_id.get(id)?;
        (understood == epoch).then_some(meaning)
    }

    /// Remembers what a statement was understood to mean under the snapshot of an epoch.
    pub(crate) fn insert(&self, id: &[u8], epoch: u64, meaning: Meaning) {
        self.by_id
            .insert(Bytes::copy_from_slice(id), (epoch, meaning));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_beyond_the_capacity_are_forgotten() {
        let statements = PreparedStatements::new(100);
        for number in 0u32..10_000 {
            statements.insert(&number.to_be_bytes(), 0, Meaning::Plain);
        }
        let known = (0u32..10_000)
            .filter(|number| statements.get(&number.to_be_bytes(), 0).is_some())
            .count();
        assert!((1..=110).contains(&known), "{known}");
        assert!(matches!(
            statements.get(&9_999u32.to_be_bytes(), 0),
            Some(Meaning::Plain)
        ));
    }
    #[test]
    fn what_another_snapshot_understood_is_forgotten() {
        let statements = PreparedStatements::new(100);
        statements.insert(b"id", 3, Meaning::Plain);
        assert!(statements.get(b"id", 3).is_some());
        assert!(statements.get(b"id", 4).is_none());
    }
}
