//! The changes of an index that its graph does not have yet.
//!
//! A graph takes a vector in about a millisecond of processor time, and a search must not wait for
//! that. So a change is *fresh* first: searches measure its vector exactly, and hide whatever the
//! graph has under its id. In the background the graph takes it in, and then it is fresh no more.
//!
//! Changes lie in blocks, in the order in which they came, and leave in that order. The newest
//! change of an id counts. One task adds and removes blocks, and publishes the list of them as a
//! whole; a search takes the list as it is with one atomic load, and nobody waits for anybody.

use std::collections::HashMap;
use std::sync::Arc;

use ann::{Error, IdSet, Neighbour, Prepared};
use arc_swap::{ArcSwap, Guard};

/// The fresh changes of an index, oldest block first.
#[derive(Default)]
pub struct Fresh(ArcSwap<Blocks>);

/// The blocks of fresh changes, oldest first.
#[derive(Default)]
pub struct Blocks {
    /// The number of the first block. The others count on from there, and no number comes twice.
    pub first: u64,
    /// The blocks.
    pub blocks: Vec<Arc<Block>>,
}

/// Changes that came together.
pub struct Block {
    /// The changes. The ids of a block differ.
    pub changes: Box<[FreshChange]>,
    /// The bytes of memory that the changes take.
    pub bytes: usize,
}

/// A change of one id.
pub struct FreshChange {
    /// The id of the row.
    pub id: u32,
    /// The vector that the row has now; `None` if it has none.
    pub vector: Option<Prepared>,
}

/// The fresh changes at some moment.
pub struct FreshNow(Guard<Arc<Blocks>>);

/// The fresh vectors as one query sees them.
#[derive(Default)]
pub struct Measured {
    /// The ids with fresh changes, which the graph may have in an older state.
    pub hidden: IdSet,
    /// The distances of the fresh vectors.
    pub vectors: Vec<Neighbour>,
    /// The number of the block that comes next.
    pub end: u64,
}

impl Fresh {
    /// The fresh changes now.
    pub fn now(&self) -> FreshNow {
        FreshNow(self.0.load())
    }

    /// Replaces the fresh changes.
    pub fn publish(&self, blocks: Blocks) {
        self.0.store(Arc::new(blocks));
    }

    /// Whether one of these rows may have changed since the next block had the number `end`.
    pub fn may_have_changed(&self, rows: &[Neighbour], end: u64) -> bool {
        let now = self.0.load();
        if now.end() == end {
            return false;
        }
        // A block that has come and left since then tells nothing any more.
        let Some(known) = end.checked_sub(now.first) else {
            return true;
        };
        let newer = now.blocks.iter().skip(known as usize);
        let changed: IdSet = newer.flat_map(|block| block.ids()).collect();
        rows.iter().any(|row| changed.contains(row.id))
    }

    /// The number of fresh changes. An id with two of them counts twice.
    pub fn len(&self) -> usize {
        let now = self.0.load();
        now.blocks.iter().map(|block| block.changes.len()).sum()
    }

    /// The bytes that the fresh changes take.
    pub fn memory_bytes(&self) -> usize {
        self.0.load().blocks.iter().map(|block| block.bytes).sum()
    }
}

impl Blocks {
    fn end(&self) -> u64 {
        self.first + self.blocks.len() as u64
    }
}

impl Block {
    /// Makes a block.
    pub fn new(changes: Vec<FreshChange>) -> Block {
        let vectors = changes.iter().map(|change| change.vector.as_ref());
        let of_vectors = vectors.map(|vector| vector.map_or(0, Prepared::memory_bytes));
        Block {
            bytes: size_of_val(&*changes) + of_vectors.sum::<usize>(),
            changes: changes.into(),
        }
    }

    fn ids(&self) -> impl Iterator<Item = u32> {
        self.changes.iter().map(|change| change.id)
    }
}

impl FreshNow {
    /// The newest change of each id: its vector, or `None` if it has none.
    pub fn by_id(&self) -> HashMap<u32, Option<&Prepared>> {
        let changes = self.0.blocks.iter().flat_map(|block| &block.changes);
        changes
            .map(|change| (change.id, change.vector.as_ref()))
            .collect()
    }

    /// Measures the fresh vectors. Fails if the query is no vector of the index.
    pub fn measure(&self, ann: &ann::Index, query: &[f32]) -> Result<Measured, Error> {
        let blocks = &self.0.blocks;
        let mut measured = Measured {
            end: self.0.end(),
            ..Measured::default()
        };
        if blocks.is_empty() {
            return Ok(measured);
        }
        let changes = blocks.iter().rev().flat_map(|block| &block.changes);
        let newest = changes.filter(|change| measured.hidden.insert(change.id));
        let (ids, vectors): (Vec<u32>, Vec<&Prepared>) = newest
            .filter_map(|change| Some((change.id, change.vector.as_ref()?)))
            .unzip();
        let distances = ann.measure(query, vectors)?;
        let vectors = ids.into_iter().zip(distances);
        let vectors = vectors.map(|(id, distance)| Neighbour { id, distance });
        measured.vectors = vectors.collect();
        Ok(measured)
    }
}
