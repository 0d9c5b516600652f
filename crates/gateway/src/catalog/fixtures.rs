//! Definitions for tests.

use std::sync::Arc;

use index::target::StoredTarget;
use uuid::Uuid;

use super::defined_index::DefinedIndex;
use super::definition::{IndexLifecycle, StoredDefinition};

/// The index `k.i` on the column `v` of `k.t`.
pub(super) fn index() -> DefinedIndex {
    DefinedIndex {
        keyspace: "k".to_owned(),
        table: "t".to_owned(),
        name: "i".to_owned(),
        class_name: "vector_index".to_owned(),
        target: StoredTarget::decode("v"),
        options: Default::default(),
        version: Uuid::from_u128(1),
        table_id: Uuid::from_u128(2),
    }
}

/// The definition of the index `k.i`, last changed in revision 7.
pub(super) fn definition(state: IndexLifecycle) -> StoredDefinition {
    StoredDefinition {
        index: Arc::new(index()),
        state,
        changed_at: 7,
        truncates: Vec::new(),
    }
}
