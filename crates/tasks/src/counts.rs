//! The number of tasks of a kind since the start, by their fate.

/// The tasks of one kind that are no parts of others, since the registry was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// Those that run.
    pub running: u64,
    /// Those that have done all they had to.
    pub done: u64,
    /// Those that have failed.
    pub failed: u64,
    /// Those that were stopped before their end.
    pub aborted: u64,
}
