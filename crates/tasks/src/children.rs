//! The parts of a task that are not yet forgotten.

use std::collections::VecDeque;

use uuid::Uuid;

/// The parts of one task.
#[derive(Debug, Default)]
pub struct ChildTasks {
    /// Parts that run, in the order of their beginning.
    running: Vec<Uuid>,
    /// Parts that ended well, oldest first.
    done: VecDeque<Uuid>,
    /// Parts that ended otherwise, oldest first.
    failed: VecDeque<Uuid>,
    left_out: u64,
}

impl ChildTasks {
    /// Adds a part that has begun.
    pub fn begin(&mut self, id: Uuid) {
        self.running.push(id);
    }

    /// Notes the end of a part. If more than `max` parts that ended like it are retained, returns
    /// the oldest of them, which is to be forgotten.
    pub fn end(&mut self, id: Uuid, well: bool, max: usize) -> Option<Uuid> {
        self.running.retain(|other| *other != id);
        let ended = match well {
            true => &mut self.done,
            false => &mut self.failed,
        };
        ended.push_back(id);
        if ended.len() <= max {
            return None;
        }
        self.left_out += 1;
        ended.pop_front()
    }

    /// All parts that are retained: those that failed, those that ended well, those that run.
    pub fn ids(&self) -> Vec<Uuid> {
        let ended = self.failed.iter().chain(&self.done);
        ended.chain(&self.running).copied().collect()
    }

    /// The number of parts that are no longer retained.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}
