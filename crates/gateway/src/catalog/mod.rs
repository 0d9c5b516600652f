//! The definitions of vector indexes, which the cluster itself keeps, as every request sees them.
//!
//! Definitions lie in a keyspace of the cluster's own, so they are replicated and backed up as the rows are, and all gateways
//! see the same ones. Each gateway has an internal session to the cluster, under a user of its own, follows that keyspace, and
//! holds what it read in one immutable [`Snapshot`], which is replaced as a whole. A request takes the snapshot once
//! ([`Catalog::snapshot`], one atomic load) and decides everything by it.
//!
//! While no index is defined the snapshot [is empty](Snapshot::is_empty), and nothing need be looked at for its sake.
//!
//! What was prepared was understood by a snapshot, so it holds as long as that: each snapshot has an
//! [epoch](Snapshot::epoch), and a prepared statement of another is answered UNPREPARED.

mod index;
mod snapshot;
mod streams;
mod table;

use std::sync::Arc;

use arc_swap::ArcSwap;

pub(crate) use index::VectorIndex;
pub(crate) use snapshot::Snapshot;
#[cfg(test)]
pub(crate) use streams::Generation;
pub(crate) use streams::{StreamId, Streams};
pub(crate) use table::{Column, ColumnKind, LoggedTable};

/// What a gateway knows of vector indexes.
pub(crate) struct Catalog {
    current: ArcSwap<Snapshot>,
}

impl Catalog {
    /// A catalog that holds `snapshot` until it is given another.
    pub(crate) fn new(snapshot: Snapshot) -> Catalog {
        Catalog {
            current: ArcSwap::from_pointee(snapshot),
        }
    }

    /// What holds now. A request takes it once and decides by it alone.
    pub(crate) fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// Puts another snapshot in place; its epoch becomes the next one.
    pub(crate) fn replace(&self, snapshot: Snapshot) {
        self.current.rcu(|current| {
            let mut next = snapshot.clone();
            next.epoch = current.epoch + 1;
            next
        });
    }
}
