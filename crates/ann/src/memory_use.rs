//! How much memory an index takes, and for what.

use crate::Index;

/// Bytes of an index by component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Codes, headers and links.
    pub graph: usize,
    /// The table from ids to slots, and the ids beside the graph.
    pub ids: usize,
    /// Full vectors that stay in memory.
    pub vectors_pinned: usize,
    /// Full vectors in a mapped file, whose pages the system may take back.
    pub vectors_mapped: usize,
    /// Working memory of searches and changes, kept from one to the next.
    pub workspaces: usize,
}

impl Memory {
    /// What has to stay in memory.
    pub fn anonymous(&self) -> usize {
        self.graph + self.ids + self.vectors_pinned + self.workspaces
    }

    /// What the system may take back at any time.
    pub fn mapped(&self) -> usize {
        self.vectors_mapped
    }
}

impl Index {
    /// What the index takes, by component.
    pub fn memory(&self) -> Memory {
        let vectors = self.vectors.as_ref().map(|vectors| vectors.array());
        let graph = self.graph.blocks();
        Memory {
            graph: graph.footprint().anonymous + self.graph.tables_bytes(),
            ids: self.ids.memory_bytes() + self.undirected.read().memory_bytes(),
            vectors_pinned: vectors.map_or(0, |array| array.footprint().anonymous),
            vectors_mapped: vectors.map_or(0, |array| array.footprint().mapped),
            workspaces: self.workspaces_bytes(),
        }
    }
}
