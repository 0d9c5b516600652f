//! The description of a task before it begins.

use crate::scope::TaskScope;

/// The description of a task.
#[derive(Clone, Debug)]
pub struct TaskSpec {
    /// The kind of work, such as `scan`.
    pub kind: &'static str,
    /// The things that the work is on.
    pub scope: TaskScope,
    /// The unit of progress, such as `rows`.
    pub units: &'static str,
    /// Number of units in all, if that is known from the beginning.
    pub total: Option<u64>,
    /// The names of the other counts.
    pub counters: &'static [&'static str],
    /// Whether the work heeds an abort.
    pub abortable: bool,
}
