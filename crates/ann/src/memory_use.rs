//! The memory that an index takes, by component.

use crate::NeighbourIndex;
use crate::memory::{Footprint, RecordArray};

/// Bytes of an index by component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComponentMemory {
    /// Headers and links, and the tables about them.
    pub graph: usize,
    /// Codes, by which walks and scans estimate distances. In the forms where codes are the
    /// vectors, these.
    pub codes: usize,
    /// The table from ids to slots, and the ids outside the graph.
    pub ids: usize,
    /// Full vectors that stay in memory.
    pub vectors_pinned: usize,
    /// Full vectors in a mapped file, whose pages the system may take back.
    pub vectors_mapped: usize,
    /// Working memory of searches and changes, reused from one to the next.
    pub workspaces: usize,
}

impl ComponentMemory {
    /// Bytes that have to stay in memory.
    pub fn anonymous(&self) -> usize {
        self.graph + self.codes + self.ids + self.vectors_pinned + self.workspaces
    }

    /// Bytes that the system may take back at any time.
    pub fn mapped(&self) -> usize {
        self.vectors_mapped
    }
}

impl Footprint {
    /// The footprint if only the first `bytes` have ever been written.
    fn used(self, bytes: usize) -> Footprint {
        Footprint {
            anonymous: self.anonymous.min(bytes),
            mapped: self.mapped.min(bytes),
        }
    }
}

impl NeighbourIndex {
    /// The memory that the index takes, by component. Arrays grow by chunks, of which only the used
    /// part counts: the rest has been set aside, but takes no memory yet.
    pub fn memory(&self) -> ComponentMemory {
        let slots = self.graph.slots().end() as usize;
        let used = |array: &RecordArray| array.footprint().used(slots * array.stride());
        let vectors = self.vectors.as_ref().map(|vectors| used(vectors.array()));
        let vectors = vectors.unwrap_or_default();
        let blocks = used(self.graph.blocks()).anonymous;
        let layout = self.graph.layout();
        let codes = blocks / layout.stride * layout.code_bytes;
        ComponentMemory {
            graph: blocks - codes + self.graph.tables_bytes(),
            codes,
            ids: self.ids.memory_bytes()
                + self.sharers.memory_bytes()
                + self.undirected.read().memory_bytes(),
            vectors_pinned: vectors.anonymous,
            vectors_mapped: vectors.mapped,
            workspaces: self.workspaces_bytes(),
        }
    }
}
