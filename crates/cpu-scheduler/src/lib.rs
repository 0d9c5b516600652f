//! Turns on the processor for classes of work.
//!
//! Work that computes for long takes a [`Permit`] of its [`WorkClass`] and gives it back when it is
//! done. So one place decides how much of each class runs at once, and who comes next when there
//! are fewer processors than work.
//!
//! **Limits.** Each class has a largest number of turns at once, and all classes together may have
//! one. Within a class the callers get their turns in the order in which they came.
//!
//! **Shares.** When all turns are taken, a turn that is given back goes to one of the classes that
//! wait. Each class gets processor time in proportion to its share. A class whose turns are long
//! gets fewer of them. A class that waits gets a turn after a bounded time, however small its
//! share: each turn of the others brings its own nearer. Shares that no one uses are divided among
//! those who wait.
//!
//! A turn that was given is not taken away. So the longest turn bounds how well shares are
//! respected, and long work is best cut into pieces that take a turn each.
//!
//! **The rule for callers.** The holder of a turn waits for nothing but a file: neither for another
//! turn, nor for a full channel, nor for the network. Otherwise turns that wait for each other
//! could take all processors.
//!
//! **Two ways.** A server shares the cores by [`SchedulerOptions::of_shares`]. The operating system
//! can't: it shares them between threads, and a hundred searches keep every thread that serves
//! sockets busy, so that writes wait for all of them. [`SchedulerOptions::of_threads`] limits each
//! class by itself, for a part that has the cores to itself.
//!
//! **Reads.** A turn of [`WorkClass::Read`] bounds memory as well as processors: who reads rows for
//! a client holds the large ones only in a turn.
//!
//! Some bounds are no turns, and stay where they are: the number of searches that may wait and for
//! how long (they bound latency), the bytes of writes that wait for the committer and the token
//! ranges that a scan has open (they bound memory and the load on a database), and one snapshot at
//! a time (it bounds the load on a disk).

mod class;
mod schedule;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::Instant;

pub use class::{SchedulerOptions, SchedulingWeights, WorkClass, WorkClassOptions};
pub use schedule::PermitCounts;

use schedule::FairSchedule;

/// The turns of a process. It is cheap to clone; clones share the turns.
#[derive(Clone)]
pub struct CpuScheduler(Arc<SchedulerState>);

struct SchedulerState {
    /// Whether classes wait for each other.
    is_shared: bool,
    /// See [`CpuScheduler::concurrency_limit`].
    at_once: [usize; WorkClass::ALL.len()],
    schedule: Mutex<FairSchedule<oneshot::Sender<Permit>>>,
}

/// A turn on the processor. Dropping it gives it back.
#[derive(Debug)]
#[must_use = "a turn is given back when it is dropped"]
pub struct Permit {
    turns: CpuScheduler,
    class: WorkClass,
    /// The time from which on the turn is used. No one needs it while classes don't wait for each
    /// other.
    began: Option<Instant>,
}

impl CpuScheduler {
    /// Makes turns with these limits and shares.
    pub fn new(options: SchedulerOptions) -> CpuScheduler {
        CpuScheduler(Arc::new(SchedulerState {
            is_shared: options.at_once_max.is_some(),
            at_once: WorkClass::ALL.map(|class| options.concurrency_limit(class)),
            schedule: Mutex::new(FairSchedule::new(&options)),
        }))
    }

    /// Makes turns with the limits of [`SchedulerOptions::of_threads`].
    pub fn of_threads(threads: usize) -> CpuScheduler {
        CpuScheduler::new(SchedulerOptions::of_threads(threads))
    }

    /// Makes turns with the limits and shares of [`SchedulerOptions::of_shares`].
    pub fn of_shares(threads: usize, shares: SchedulingWeights) -> CpuScheduler {
        CpuScheduler::new(SchedulerOptions::of_shares(threads, shares))
    }

    /// Takes a turn if there is one and no one of the class waits for it.
    pub fn try_acquire(&self, class: WorkClass) -> Option<Permit> {
        let is_given = self.0.schedule.lock().try_give(class);
        is_given.then(|| self.begin(class))
    }

    /// Waits for a turn. A caller that stops waiting loses its place, and a turn that it was given
    /// meanwhile goes to the next.
    pub async fn acquire(&self, class: WorkClass) -> Permit {
        let (ticket, turn) = match self.acquire_or_enqueue(class) {
            AcquireOutcome::Granted(turn) => return turn,
            AcquireOutcome::Queued(ticket, turn) => (ticket, turn),
        };
        let mut place = PermitWaiter {
            turns: self,
            class,
            ticket,
            turn,
        };
        given((&mut place.turn).await).begin()
    }

    /// Waits for a turn and blocks the thread meanwhile.
    ///
    /// # Panics
    /// If it has to wait on a thread that drives tasks.
    pub fn acquire_blocking(&self, class: WorkClass) -> Permit {
        match self.acquire_or_enqueue(class) {
            AcquireOutcome::Granted(turn) => turn,
            AcquireOutcome::Queued(_, turn) => given(turn.blocking_recv()).begin(),
        }
    }

    /// The largest number of turns that a class can have at once; the number of cores where no
    /// limit is set.
    pub fn concurrency_limit(&self, class: WorkClass) -> usize {
        self.0.at_once[class as usize]
    }

    /// The turns of a class, counted.
    pub fn counts(&self, class: WorkClass) -> PermitCounts {
        self.0.schedule.lock().counts(class)
    }

    /// Takes a turn, or a place in the queue.
    fn acquire_or_enqueue(&self, class: WorkClass) -> AcquireOutcome {
        let mut schedule = self.0.schedule.lock();
        if schedule.try_give(class) {
            drop(schedule);
            return AcquireOutcome::Granted(self.begin(class));
        }
        let (sender, turn) = oneshot::channel();
        AcquireOutcome::Queued(schedule.wait(class, sender), turn)
    }

    /// Makes the turn that the schedule has given.
    fn begin(&self, class: WorkClass) -> Permit {
        Permit {
            turns: self.clone(),
            class,
            began: self.0.is_shared.then(Instant::now),
        }
    }
}

impl Default for CpuScheduler {
    fn default() -> CpuScheduler {
        CpuScheduler::new(SchedulerOptions::default())
    }
}

impl fmt::Debug for CpuScheduler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = WorkClass::ALL.map(|class| (class, self.counts(class)));
        formatter.debug_map().entries(counts).finish()
    }
}

impl Permit {
    /// Restarts the turn for the caller that has waited for it. The time until a thread has come
    /// back to the caller is no time on the processor.
    fn begin(mut self) -> Permit {
        self.began = self.began.map(|_| Instant::now());
        self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let took = self.began.map_or(Duration::ZERO, |began| began.elapsed());
        let next = self.turns.0.schedule.lock().give_back(self.class, took);
        // No one is woken under the lock, as that may drop tasks with turns or places of theirs.
        if let Some((class, sender)) = next {
            // If the caller has just stopped waiting, the turn is dropped here and goes on.
            let _ = sender.send(self.turns.begin(class));
        }
    }
}

enum AcquireOutcome {
    Granted(Permit),
    Queued(u64, oneshot::Receiver<Permit>),
}

/// The place of a caller in the queue. Dropping it leaves the queue; if a turn has been given
/// meanwhile, it is dropped, too.
struct PermitWaiter<'a> {
    turns: &'a CpuScheduler,
    class: WorkClass,
    ticket: u64,
    turn: oneshot::Receiver<Permit>,
}

impl Drop for PermitWaiter<'_> {
    fn drop(&mut self) {
        let sender = self.turns.0.schedule.lock().leave(self.class, self.ticket);
        drop(sender);
    }
}

/// The turn that a caller has waited for.
fn given(turn: Result<Permit, oneshot::error::RecvError>) -> Permit {
    match turn {
        Ok(turn) => turn,
        Err(_) => unreachable!("a place leaves the queue with a turn, or with its caller"),
    }
}

#[cfg(test)]
mod tests;
