//! The list of all sets.

mod named;
mod own;

use crate::set::VectorSet;

/// All sets.
pub fn catalogue() -> Vec<VectorSet> {
    [named::SETS, own::SETS].concat()
}

/// The set of a name; `None` if there is no such set.
pub fn find(name: &str) -> Option<VectorSet> {
    catalogue().into_iter().find(|set| set.name == name)
}
