//! The work that changes have left in an index of texts.

use super::TextStructure;
use crate::indexes::structure_memory::StructureDebt;

impl TextStructure {
    /// The dead documents, which merges take out. Texts that no segment has yet are no debt: they
    /// are counted as memory.
    pub(crate) fn debt(&self) -> StructureDebt {
        let dead = self.index.memory().dead;
        StructureDebt {
            dead,
            pending: dead,
        }
    }
}
