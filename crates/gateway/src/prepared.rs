//! The prepared statements that went through this gateway, by their ids.
//!
//! Ids are the node's: a digest of the keyspace and the text, so that one id means the same to every client. The table is
//! shared by all connections and bounded.

use std::sync::Arc;

use bytes::Bytes;
use cql::wire::Metadata;
use quick_cache::sync::Cache;

/// What a prepared statement means to the gateway.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    /// Nothing: it passes.
    Plain,
    /// It reads one of the tables that tell of the cluster's nodes. Its result's columns are kept for results that
    /// come without them.
    RingRows(Arc<Metadata>),
}

/// What is known of ids.
pub(crate) struct PreparedStatements {
    by_id: Cache<Bytes, Meaning>,
}

impl PreparedStatements {
    pub(crate) fn new(capacity: usize) -> Self {
        PreparedStatements {
            by_id: Cache::new(capacity),
        }
    }

    pub(crate) fn get(&self, id: &[u8]) -> Option<Meaning> {
        self.by_id.get(id)
    }

    pub(crate) fn insert(&self, id: &[u8], meaning: Meaning) {
        self.by_id.insert(Bytes::copy_from_slice(id), meaning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_beyond_the_capacity_are_forgotten() {
        let statements = PreparedStatements::new(100);
        for number in 0u32..10_000 {
            statements.insert(&number.to_be_bytes(), Meaning::Plain);
        }
        let known = (0u32..10_000)
            .filter(|number| statements.get(&number.to_be_bytes()).is_some())
            .count();
        assert!((1..=110).contains(&known), "{known}");
        assert!(matches!(
            statements.get(&9_999u32.to_be_bytes()),
            Some(Meaning::Plain)
        ));
    }
}
