//! Memory that clients can pin, counted against one number.
//!
//! Frames and bodies that are still coming in, requests, and answers that no one has read yet are
//! in memory for as long as a client likes. They are charged as they grow, never by the size that a
//! client announces. Where there is no room, the client waits or gets the error that the server is
//! overloaded, and the memory is not taken.
//!
//! **The rule.** A client may hold as much as is left free for all others (the dynamic threshold of
//! shared-memory switches: Choudhury and Hahne, 1998). A single client gets half of a budget, two
//! get a third each, and a part always stays free for the next. The first [`FLOOR_BYTES`] of a
//! client need no more than room in the budget.

#![warn(clippy::unwrap_used)]

mod shares;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

pub use shares::MemoryShares;

/// Bytes that every client holds from its beginning: room to read in, and its tasks.
pub const FLOOR_BYTES: usize = 16 << 10;

/// A client takes and gives back memory in units of this many bytes, so that most requests stay
/// within what it has.
const UNIT_BYTES: usize = 16 << 10;

/// The bytes that the clients of some listeners may hold together. It is cheap to clone; clones
/// share the bytes.
#[derive(Clone)]
pub struct MemoryBudget(Arc<BudgetState>);

struct BudgetState {
    bytes_max: usize,
    used: AtomicUsize,
    /// The most that was used since the last call of [`MemoryBudget::take_peak`].
    peak: AtomicUsize,
    /// The number of those that wait for room.
    waiting: AtomicUsize,
    room: Notify,
}

/// There is no room for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl MemoryBudget {
    /// Makes a budget of this many bytes.
    pub fn new(bytes_max: usize) -> MemoryBudget {
        MemoryBudget(Arc::new(BudgetState {
            bytes_max,
            used: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            room: Notify::new(),
        }))
    }

    /// Makes a budget that bounds nothing, for users that are no clients.
    pub fn unbounded() -> MemoryBudget {
        MemoryBudget::new(usize::MAX / 4)
    }

    /// The size of the budget, in bytes.
    pub fn bytes_max(&self) -> usize {
        self.0.bytes_max
    }

    /// The most that one client can ever hold, in bytes.
    pub fn client_bytes_max(&self) -> usize {
        self.0.bytes_max / 2
    }

    /// Number of bytes that are held now.
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }

    /// The most that was held since the last call, in bytes.
    pub fn take_peak(&self) -> usize {
        self.0.peak.swap(self.used(), Ordering::Relaxed)
    }

    /// Adds a client, with its [`FLOOR_BYTES`].
    ///
    /// # Errors
    /// If all of the budget is held.
    pub fn client(&self) -> Result<MemoryAccount, NoRoom> {
        self.take(0, FLOOR_BYTES)?;
        Ok(MemoryAccount(Arc::new(AccountState {
            budget: self.clone(),
            held: Mutex::new(AccountUsage {
                bytes: 0,
                granted: FLOOR_BYTES,
            }),
        })))
    }

    /// Takes more for a client that has `granted`.
    fn take(&self, granted: usize, more: usize) -> Result<(), NoRoom> {
        let whole = &*self.0;
        let grown = |used: usize| {
            let used = used + more;
            let free = whole.bytes_max.checked_sub(used)?;
            (granted + more <= FLOOR_BYTES.max(free)).then_some(used)
        };
        let before = whole
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown)
            .map_err(|_| NoRoom)?;
        whole.peak.fetch_max(before + more, Ordering::Relaxed);
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        self.0.used.fetch_sub(bytes, Ordering::SeqCst);
        if self.0.waiting.load(Ordering::SeqCst) > 0 {
            self.0.room.notify_waiters();
        }
    }
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Budget({} of {} bytes)", self.used(), self.0.bytes_max)
    }
}

/// Budgets are equal if they are of the same bytes.
impl PartialEq for MemoryBudget {
    fn eq(&self, other: &MemoryBudget) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The memory of one client: of a connection and all that is done for it. It is cheap to clone;
/// clones are the same client.
#[derive(Clone, Debug)]
pub struct MemoryAccount(Arc<AccountState>);

#[derive(Debug)]
struct AccountState {
    budget: MemoryBudget,
    held: Mutex<AccountUsage>,
}

#[derive(Debug)]
struct AccountUsage {
    /// The bytes of all charges.
    bytes: usize,
    /// The bytes as the budget counts them: rounded up, and the floor at least.
    granted: usize,
}

/// The account of no client in particular, which is not bounded.
impl Default for MemoryAccount {
    fn default() -> MemoryAccount {
        MemoryAccount(Arc::new(AccountState {
            budget: MemoryBudget::unbounded(),
            held: Mutex::new(AccountUsage {
                bytes: 0,
                granted: 0,
            }),
        }))
    }
}

impl MemoryAccount {
    /// Makes a charge of no bytes yet.
    pub fn charge(&self) -> MemoryCharge {
        MemoryCharge {
            client: self.0.clone(),
            bytes: 0,
        }
    }

    /// The bytes of all charges.
    pub fn bytes(&self) -> usize {
        self.0.held.lock().bytes
    }

    /// The most that the client can ever hold, in bytes.
    pub fn bytes_max(&self) -> usize {
        self.0.budget.client_bytes_max()
    }
}

impl AccountState {
    fn add(&self, more: usize) -> Result<(), NoRoom> {
        let mut held = self.held.lock();
        let bytes = held.bytes + more;
        if bytes > held.granted {
            let wanted = bytes.next_multiple_of(UNIT_BYTES);
            self.budget.take(held.granted, wanted - held.granted)?;
            held.granted = wanted;
        }
        held.bytes = bytes;
        Ok(())
    }

    fn subtract(&self, less: usize) {
        let mut held = self.held.lock();
        held.bytes -= less;
        let needed = held.bytes.next_multiple_of(UNIT_BYTES).max(FLOOR_BYTES);
        // A unit stays charged, as the next request wants it again.
        if held.granted > needed + UNIT_BYTES {
            let back = held.granted - needed;
            held.granted = needed;
            drop(held);
            self.budget.give_back(back);
        }
    }
}

impl Drop for AccountState {
    fn drop(&mut self) {
        let granted = self.held.get_mut().granted;
        self.budget.give_back(granted);
    }
}

/// Bytes of a client that are in memory. They are given back when this is dropped.
#[derive(Debug)]
pub struct MemoryCharge {
    client: Arc<AccountState>,
    bytes: usize,
}

impl MemoryCharge {
    /// The number of bytes charged.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the number of bytes charged.
    ///
    /// # Errors
    /// If the number grows, and there is no room. It is then as before.
    pub fn resize(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if bytes > self.bytes {
            self.client.add(bytes - self.bytes)?;
        } else if bytes < self.bytes {
            self.client.subtract(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Changes the number of bytes charged, and waits until there is room.
    pub async fn resize_when_free(&mut self, bytes: usize) {
        if self.resize(bytes).is_ok() {
            return;
        }
        let whole = self.client.budget.0.clone();
        let _waiting = RoomWaiter::begin(&whole);
        loop {
            let mut room = std::pin::pin!(whole.room.notified());
            room.as_mut().enable();
            if self.resize(bytes).is_ok() {
                return;
            }
            room.await;
        }
    }
}

impl Drop for MemoryCharge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.client.subtract(self.bytes);
        }
    }
}

/// A waiter for room, counted until it is dropped.
struct RoomWaiter<'a>(&'a BudgetState);

impl<'a> RoomWaiter<'a> {
    fn begin(whole: &'a BudgetState) -> RoomWaiter<'a> {
        whole.waiting.fetch_add(1, Ordering::SeqCst);
        RoomWaiter(whole)
    }
}

impl Drop for RoomWaiter<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
