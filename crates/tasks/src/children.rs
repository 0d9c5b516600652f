//! The parts of a task that are still kept.

use std::collections::VecDeque;

use uuid::Uuid;

/// The parts of one task.
#[derive(Debug, Default)]
pub struct Children {
    /// In the order of their beginning.
    running: Vec<Uuid>,
    /// Those that ended well, oldest first.
    done: VecDeque<Uuid>,
    /// The others that ended, oldest first.
    failed: VecDeque<Uuid>,
    left_out: u64,
}

impl Children {
    /// A part has begun.
    pub fn begin(&mut self, id: Uuid) {
        self.running.push(id);
    }

    /// A part has ended. Gives back the one that is to be forgotten for it, if more than `max` that
    /// ended likewise are kept.
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

    /// All that are kept: those that failed, those that ended well, those that run.
    pub fn ids(&self) -> Vec<Uuid> {
        let ended = self.failed.iter().chain(&self.done);
        ended.chain(&self.running).copied().collect()
    }

    /// How many are no longer kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}
