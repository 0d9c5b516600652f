//! Turns on the processor for classes of work.
//!
//! Work that computes for long takes a [`Turn`] of its [`Class`] and gives it back when it is done.
//! So one place decides how much of each class runs at once, and who comes next when there are
//! fewer processors than work.
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
//! **The rule for callers.** Whoever holds a turn waits for nothing but a file: neither for another
//! turn, nor for a full channel, nor for the network. Otherwise turns that wait for each other
//! could take all processors.
//!
//! **Two ways.** A server shares the cores by [`TurnsOptions::of_shares`]. The operating system
//! can't: it shares them between threads, and a hundred searches keep every thread that serves
//! sockets busy, so that writes wait for all of them. [`TurnsOptions::of_threads`] limits each
//! class by itself, for a part that has the cores to itself.
//!
//! **Reads.** A turn of [`Class::Read`] bounds memory as well as processors: who reads rows for a
//! client holds the large ones only in a turn.
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

pub use class::{Class, ClassOptions, Shares, TurnsOptions};
pub use schedule::Counts;

use schedule::Schedule;

/// The turns of a process. It is cheap to clone; clones share the turns.
#[derive(Clone)]
pub struct Turns(Arc<Inner>);

struct Inner {
    /// Whether classes wait for each other.
    is_shared: bool,
    /// See [`Turns::at_once`].
    at_once: [usize; Class::ALL.len()],
    schedule: Mutex<Schedule<oneshot::Sender<Turn>>>,
}

/// A turn on the processor. Dropping it gives it back.
#[derive(Debug)]
#[must_use = "a turn is given back when it is dropped"]
pub struct Turn {
    turns: Turns,
    class: Class,
    /// The time from which on the turn is used. No one needs it while classes don't wait for each
    /// other.
    began: Option<Instant>,
}

impl Turns {
    /// Makes turns with these limits and shares.
    pub fn new(options: TurnsOptions) -> Turns {
        Turns(Arc::new(Inner {
            is_shared: options.at_once_max.is_some(),
            at_once: Class::ALL.map(|class| options.at_once(class)),
            schedule: Mutex::new(Schedule::new(&options)),
        }))
    }

    /// Makes turns with the limits of [`TurnsOptions::of_threads`].
    pub fn of_threads(threads: usize) -> Turns {
        Turns::new(TurnsOptions::of_threads(threads))
    }

    /// Makes turns with the limits and shares of [`TurnsOptions::of_shares`].
    pub fn of_shares(threads: usize, shares: Shares) -> Turns {
        Turns::new(TurnsOptions::of_shares(threads, shares))
    }

    /// Takes a turn if there is one and no one of the class waits for it.
    pub fn try_take(&self, class: Class) -> Option<Turn> {
        let is_given = self.0.schedule.lock().try_give(class);
        is_given.then(|| self.begin(class))
    }

    /// Waits for a turn. A caller that stops waiting loses its place, and a turn that it was given
    /// meanwhile goes to the next.
    pub async fn take(&self, class: Class) -> Turn {
        let (ticket, turn) = match self.enter(class) {
            Entered::Given(turn) => return turn,
            Entered::Waits(ticket, turn) => (ticket, turn),
        };
        let mut place = Place {
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
    pub fn take_blocking(&self, class: Class) -> Turn {
        match self.enter(class) {
            Entered::Given(turn) => turn,
            Entered::Waits(_, turn) => given(turn.blocking_recv()).begin(),
        }
    }

    /// The largest number of turns that a class can have at once; the number of cores where no
    /// limit is set.
    pub fn at_once(&self, class: Class) -> usize {
        self.0.at_once[class as usize]
    }

    /// The turns of a class, counted.
    pub fn counts(&self, class: Class) -> Counts {
        self.0.schedule.lock().counts(class)
    }

    /// Takes a turn, or a place in the queue.
    fn enter(&self, class: Class) -> Entered {
        let mut schedule = self.0.schedule.lock();
        if schedule.try_give(class) {
            drop(schedule);
            return Entered::Given(self.begin(class));
        }
        let (sender, turn) = oneshot::channel();
        Entered::Waits(schedule.wait(class, sender), turn)
    }

    /// Makes the turn that the schedule has given.
    fn begin(&self, class: Class) -> Turn {
        Turn {
            turns: self.clone(),
            class,
            began: self.0.is_shared.then(Instant::now),
        }
    }
}

impl Default for Turns {
    fn default() -> Turns {
        Turns::new(TurnsOptions::default())
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = Class::ALL.map(|class| (class, self.counts(class)));
        formatter.debug_map().entries(counts).finish()
    }
}

impl Turn {
    /// Restarts the turn for the caller that has waited for it. The time until a thread has come
    /// back to the caller is no time on the processor.
    fn begin(mut self) -> Turn {
        self.began = self.began.map(|_| Instant::now());
        self
    }
}

impl Drop for Turn {
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

enum Entered {
    Given(Turn),
    Waits(u64, oneshot::Receiver<Turn>),
}

/// The place of a caller in the queue. Dropping it leaves the queue; if a turn has been given
/// meanwhile, it is dropped, too.
struct Place<'a> {
    turns: &'a Turns,
    class: Class,
    ticket: u64,
    turn: oneshot::Receiver<Turn>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let sender = self.turns.0.schedule.lock().leave(self.class, self.ticket);
        drop(sender);
    }
}

/// The turn that a caller has waited for.
fn given(turn: Result<Turn, oneshot::error::RecvError>) -> Turn {
    match turn {
        Ok(turn) => turn,
        Err(_) => unreachable!("a place leaves the queue with a turn, or with its caller"),
    }
}

#[cfg(test)]
mod tests;
