//! How long ended tasks are retained.

/// The numbers of ended tasks that are retained.
#[derive(Clone, Copy, Debug)]
pub struct TaskRetention {
    /// The most trees of one kind whose root has ended; the oldest go first. No kind takes
    /// another's place.
    pub trees_of_a_kind_max: usize,
    /// The most of these trees that are on one scope and have ended well, and likewise of those
    /// that have not. So work that is done again and again leaves its last few trees.
    pub trees_of_a_scope_max: usize,
    /// The most parts of one task that have ended well, and likewise of those that have not; the
    /// oldest go first.
    pub ended_children_max: usize,
}

impl Default for TaskRetention {
    fn default() -> TaskRetention {
        // At a few hundred bytes a task, this takes some megabytes for each kind at the very most.
        TaskRetention {
            trees_of_a_kind_max: 128,
            trees_of_a_scope_max: 8,
            ended_children_max: 64,
        }
    }
}
