//! The memory that a structure takes, and what changes have left behind in it.

use store_api::types::IndexMemory;

/// The bytes that a structure takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StructureMemory {
    /// The bytes that have to stay in memory, by component: the value of a metric's label.
    pub pinned: Vec<(&'static str, usize)>,
    /// The bytes in mapped files, whose pages the system may take back.
    pub mapped: usize,
}

impl StructureMemory {
    /// The bytes by part, as the HTTP API shows them. Of some components it shows only the sum.
    pub(crate) fn by_part(&self) -> IndexMemory {
        let mut parts = IndexMemory {
            mapped: self.mapped,
            ..IndexMemory::default()
        };
        for (component, bytes) in &self.pinned {
            let part = match *component {
                "graph" => &mut parts.graph,
                "codes" => &mut parts.codes,
                "vectors" => &mut parts.vectors,
                "text" => &mut parts.text,
                "keys" => &mut parts.keys,
                "filter_values" => &mut parts.filter_values,
                "fresh" => &mut parts.fresh,
                _ => &mut parts.other,
            };
            *part += bytes;
        }
        parts
    }
}

/// The work that changes have left in a structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StructureDebt {
    /// The number of entries of removed and changed rows that still take room.
    pub dead: usize,
    /// The number of entries that the work in the background has still to look at.
    pub pending: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_in_some_part() {
        let memory = StructureMemory {
            pinned: vec![
                ("graph", 1),
                ("codes", 2),
                ("ids", 4),
                ("rows", 8),
                ("keys", 16),
            ],
            mapped: 32,
        };
        let expected = IndexMemory {
            graph: 1,
            codes: 2,
            other: 12,
            keys: 16,
            mapped: 32,
            ..IndexMemory::default()
        };
        assert_eq!(memory.by_part(), expected);
    }
}
