//! Decides which class gets the next turn. It wakes no one and reads no clock.
//!
//! Each class has a queue in order of arrival, and a *position*: the time that its turns have
//! taken, divided by its share. The waiting class with the smallest position gets the next turn. A
//! turn's duration is not known when it is given, so the class is charged with the mean of its
//! recent turns. Over time that is what they took. This is start-time fair queueing (Goyal, Vin and
//! Cheng, 1996).
//!
//! A class that did not wait for a while begins at the position of the last turn that was given. So
//! it gains nothing by its absence, and it loses nothing. A class that has all turns of its own
//! limit does not wait for others either, and gains nothing by that.

use std::collections::VecDeque;
use std::time::Duration;

use crate::class::{SchedulerOptions, WorkClass};

/// The weight of one turn in the running mean: one part in this many.
const MEAN_WEIGHT: u64 = 16;

/// The duration of a turn before the first of its class has ended, as a guess.
const FIRST_TURN_NS: u64 = 1_000_000;

/// Positions are counted in these parts of a nanosecond, so that a division by a share loses
/// little.
const PARTS_OF_NS: u128 = 1 << 16;

/// The turns of a class, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermitCounts {
    /// The number of turns that are held now.
    pub running: usize,
    /// The number of callers that wait for a turn now.
    pub waiting: usize,
    /// The number of turns that were given since the beginning.
    pub given: u64,
    /// The time for which ended turns were held; zero while classes don't wait for each other.
    pub held: Duration,
}

/// The turns and queues of all classes. `W` wakes a caller that waits.
pub(crate) struct FairSchedule<W> {
    at_once_max: usize,
    running: usize,
    /// The position of the last turn that was given. It never goes back.
    position: u128,
    tickets: u64,
    queues: [WorkClassQueue<W>; WorkClass::ALL.len()],
}

struct WorkClassQueue<W> {
    at_once_max: usize,
    share: u128,
    running: usize,
    given: u64,
    held: Duration,
    position: u128,
    /// The running mean of the duration of turns; `None` before the first has ended.
    mean_ns: Option<u64>,
    /// Those that wait, with tickets that rise.
    waiting: VecDeque<(u64, W)>,
}

impl<W> FairSchedule<W> {
    pub fn new(options: &SchedulerOptions) -> FairSchedule<W> {
        let limit = |at_once_max: Option<usize>| at_once_max.unwrap_or(usize::MAX).max(1);
        FairSchedule {
            at_once_max: limit(options.at_once_max),
            running: 0,
            position: 0,
            tickets: 0,
            queues: WorkClass::ALL.map(|class| WorkClassQueue {
                at_once_max: limit(options.of(class).at_once_max),
                share: options.of(class).share.max(1).into(),
                running: 0,
                given: 0,
                held: Duration::ZERO,
                position: 0,
                mean_ns: None,
                waiting: VecDeque::new(),
            }),
        }
    }

    /// Gives a turn at once, if there is one and no one of the class waits for it.
    pub fn try_give(&mut self, class: WorkClass) -> bool {
        // While not all turns are taken, each other class waits only for turns of its own.
        let queue = &self.queues[class as usize];
        if !queue.waiting.is_empty() || !self.has_room(class) {
            return false;
        }
        self.catch_up(class);
        self.give(class);
        true
    }

    /// Puts a caller at the end of its queue, and returns its ticket.
    pub fn wait(&mut self, class: WorkClass, waker: W) -> u64 {
        if self.queues[class as usize].waiting.is_empty() {
            self.catch_up(class);
        }
        self.tickets += 1;
        let queue = &mut self.queues[class as usize];
        queue.waiting.push_back((self.tickets, waker));
        self.tickets
    }

    /// Removes a caller from its queue; `None` if it has been given a turn.
    pub fn leave(&mut self, class: WorkClass, ticket: u64) -> Option<W> {
        let waiting = &mut self.queues[class as usize].waiting;
        let place = waiting.binary_search_by_key(&ticket, |(ticket, _)| *ticket);
        waiting.remove(place.ok()?).map(|(_, waker)| waker)
    }

    /// Takes a turn back, and gives it to the next caller. `took` is the time for which it was
    /// held.
    pub fn give_back(&mut self, class: WorkClass, took: Duration) -> Option<(WorkClass, W)> {
        if self.queues[class as usize].is_full() {
            self.catch_up(class);
        }
        self.running -= 1;
        let queue = &mut self.queues[class as usize];
        queue.running -= 1;
        queue.took(took);
        // One turn has become free, so there is at most one caller that can have it.
        let next = WorkClass::ALL
            .into_iter()
            .filter(|class| !self.queues[*class as usize].waiting.is_empty())
            .filter(|class| self.has_room(*class))
            .min_by_key(|class| self.queues[*class as usize].position)?;
        let (_, waker) = self.queues[next as usize].waiting.pop_front()?;
        self.give(next);
        Some((next, waker))
    }

    pub fn counts(&self, class: WorkClass) -> PermitCounts {
        let queue = &self.queues[class as usize];
        PermitCounts {
            running: queue.running,
            waiting: queue.waiting.len(),
            given: queue.given,
            held: queue.held,
        }
    }

    fn has_room(&self, class: WorkClass) -> bool {
        self.running < self.at_once_max && !self.queues[class as usize].is_full()
    }

    /// Moves a class that did not wait for others to the present position.
    fn catch_up(&mut self, class: WorkClass) {
        let queue = &mut self.queues[class as usize];
        queue.position = queue.position.max(self.position);
    }

    fn give(&mut self, class: WorkClass) {
        let queue = &mut self.queues[class as usize];
        self.running += 1;
        queue.running += 1;
        queue.given += 1;
        self.position = self.position.max(queue.position);
        let charge_ns = queue.mean_ns.unwrap_or(FIRST_TURN_NS).max(1);
        queue.position += u128::from(charge_ns) * PARTS_OF_NS / queue.share;
    }
}

impl<W> WorkClassQueue<W> {
    /// Whether the class has all turns that its own limit allows.
    fn is_full(&self) -> bool {
        self.running >= self.at_once_max
    }

    fn took(&mut self, time: Duration) {
        self.held += time;
        let took_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.mean_ns = Some(match self.mean_ns {
            None => took_ns,
            Some(mean_ns) => mean_ns - mean_ns / MEAN_WEIGHT + took_ns / MEAN_WEIGHT,
        });
    }
}

#[cfg(test)]
mod tests;
