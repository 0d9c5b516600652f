//! The changes of an index that its structure does not have yet.
//!
//! A graph takes a vector in about a millisecond of processor time, and a search must not wait for
//! that. So a change is *fresh* first: searches look at its value by itself, and hide whatever the
//! structure has under its id. In the background the structure takes it in, and then it is fresh no
//! more.
//!
//! Changes are stored in blocks, in the order in which they came, and leave in that order. The
//! newest change of an id counts. One task adds and removes blocks, and publishes the list of them
//! as a whole; a search takes the list as it is with one atomic load, and neither waits for the
//! other.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use filter_columns::IdSet;

/// A value in the form in which a structure takes it in.
pub(crate) trait FreshValue {
    /// The bytes of memory that the value takes.
    fn memory_bytes(&self) -> usize;
}

/// The fresh changes of an index, oldest block first.
pub(crate) struct PublishedChanges<V>(ArcSwap<ChangeBlocks<V>>);

/// The blocks of fresh changes, oldest first.
pub(crate) struct ChangeBlocks<V> {
    /// The number of the first block. The others count on from there, and no number comes twice.
    pub first: u64,
    /// The blocks.
    pub blocks: Vec<Arc<ChangeBlock<V>>>,
}

/// Changes that came together.
pub(crate) struct ChangeBlock<V> {
    /// The changes. The ids of a block differ.
    pub changes: Box<[FreshChange<V>]>,
    /// The bytes of memory that the changes take.
    pub bytes: usize,
}

/// A change of one id.
pub(crate) struct FreshChange<V> {
    /// The id of the row.
    pub id: u32,
    /// The value that the row has now; `None` if it has none.
    pub value: Option<V>,
}

/// The fresh changes at some moment.
pub(crate) struct LoadedChanges<V>(Guard<Arc<ChangeBlocks<V>>>);

/// The newest fresh change of each id.
pub(crate) struct NewestChanges<'a, V> {
    /// The ids with fresh changes, which the structure may have in an older state.
    pub ids: IdSet,
    /// The values of those that have one.
    pub values: Vec<(u32, &'a V)>,
    /// The number of the block that comes next.
    pub end: u64,
}

impl<V> Default for PublishedChanges<V> {
    fn default() -> PublishedChanges<V> {
        PublishedChanges(ArcSwap::from_pointee(ChangeBlocks {
            first: 0,
            blocks: Vec::new(),
        }))
    }
}

impl<V> PublishedChanges<V> {
    /// The fresh changes now.
    pub(crate) fn now(&self) -> LoadedChanges<V> {
        LoadedChanges(self.0.load())
    }

    /// Replaces the fresh changes.
    pub(crate) fn publish(&self, blocks: ChangeBlocks<V>) {
        self.0.store(Arc::new(blocks));
    }

    /// Whether one of these rows may have changed since the next block had the number `end`.
    pub(crate) fn may_have_changed(&self, mut ids: impl Iterator<Item = u32>, end: u64) -> bool {
        let now = self.0.load();
        if now.end() == end {
            return false;
        }
        // A block that has come and left since then shows nothing any more.
        let Some(known) = end.checked_sub(now.first) else {
            return true;
        };
        let newer = now.blocks.iter().skip(known as usize);
        let changed: IdSet = newer.flat_map(|block| block.ids()).collect();
        ids.any(|id| changed.contains(id))
    }

    /// The number of fresh changes. An id with two of them counts twice.
    pub(crate) fn len(&self) -> usize {
        let now = self.0.load();
        now.blocks.iter().map(|block| block.changes.len()).sum()
    }

    /// The bytes that the fresh changes take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.load().blocks.iter().map(|block| block.bytes).sum()
    }
}

impl<V> ChangeBlocks<V> {
    fn end(&self) -> u64 {
        self.first + self.blocks.len() as u64
    }
}

impl<V> ChangeBlock<V> {
    /// Makes a block.
    pub(crate) fn new(changes: Vec<FreshChange<V>>) -> ChangeBlock<V>
    where
        V: FreshValue,
    {
        let values = changes.iter().map(|change| change.value.as_ref());
        let of_values = values.map(|value| value.map_or(0, V::memory_bytes));
        ChangeBlock {
            bytes: size_of_val(&*changes) + of_values.sum::<usize>(),
            changes: changes.into(),
        }
    }

    fn ids(&self) -> impl Iterator<Item = u32> {
        self.changes.iter().map(|change| change.id)
    }
}

impl<V> LoadedChanges<V> {
    /// The newest change of each id: its value, or `None` if it has none.
    pub(crate) fn by_id(&self) -> HashMap<u32, Option<&V>> {
        let changes = self.0.blocks.iter().flat_map(|block| &block.changes);
        changes
            .map(|change| (change.id, change.value.as_ref()))
            .collect()
    }

    /// The newest change of each id, as one query looks at them.
    pub(crate) fn newest(&self) -> NewestChanges<'_, V> {
        let mut ids = IdSet::default();
        let changes = self.0.blocks.iter().rev();
        let changes = changes.flat_map(|block| &block.changes);
        let newest = changes.filter(|change| ids.insert(change.id));
        let values = newest.filter_map(|change| Some((change.id, change.value.as_ref()?)));
        let values = values.collect();
        NewestChanges {
            ids,
            values,
            end: self.0.end(),
        }
    }
}
