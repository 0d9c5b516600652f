//! The memory that a structure takes.

/// The bytes that a structure takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StructureMemory {
    /// The bytes that have to stay in memory, by component: the value of a metric's label.
    pub pinned: Vec<(&'static str, usize)>,
    /// The bytes in mapped files, whose pages the system may take back.
    pub mapped: usize,
}
