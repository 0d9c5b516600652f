//! The attempts under way: the order in which they are checked, and the one that gives way.
//!
//! Each has a [`AttemptRank`]. Attempts of addresses without failures come first, and addresses
//! take turns. If too many are under way, the one of the worst rank gives way to a better one. So a
//! client that has not failed is checked soon, whatever others guess at many addresses: they come
//! before it at most once each.
//!
//! Hashes that are costly to check have a line of their own. Attempts that wait because of failures
//! are in no line, but they have a rank and may give way.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use net::log_limiter::LogLimiter;
use tokio::sync::{oneshot, watch};

use super::lock;
use super::login_throttle::LoginThrottle;
use super::verified_passwords::PasswordDigest;

/// Passwords checked at once.
const CHECKS_AT_ONCE: usize = 2;
/// The most attempts under way, at most 16 MiB. Beyond it those of the worst rank give way.
pub(super) const UNDER_WAY_MAX: usize = 4_096;
/// The most of them from one address that wait for a check, so that one client can't shut out all
/// others. Those that wait because of failures are not among them.
pub(super) const OF_ADDRESS_MAX: usize = 256;

/// A role and a password, and the address from which they came: failures count for the address.
pub(super) type AttemptKey = (PasswordDigest, IpAddr);

/// The attempts under way.
#[derive(Default)]
pub(super) struct AttemptQueue {
    state: Mutex<QueueState>,
    pub slowing: LoginThrottle,
    gave_way: LogLimiter,
}

struct QueueState {
    /// Receives the outcome of each attempt, with the attempt's number.
    results: HashMap<AttemptKey, (u64, OutcomeReceiver)>,
    by_address: HashMap<IpAddr, AddressAttempts>,
    lines: [RankedWaiters; 3],
    /// The number of the next attempt.
    next: u64,
}

/// The attempts of an address that wait for a check or are checked.
#[derive(Default)]
struct AddressAttempts {
    number: usize,
    /// The last round of the address in each line.
    rounds: [Option<u64>; 3],
}

/// The attempts that wait for one thing.
#[derive(Default)]
struct RankedWaiters {
    /// The checks that may begin now.
    free: usize,
    /// The round of the last check that began.
    round: u64,
    by_rank: BTreeMap<AttemptRank, AttemptWaiter>,
}

/// The thing that an attempt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitReason {
    /// The end of its wait because of failures.
    Slowed,
    /// A check of a usual hash.
    Usual,
    /// A check of a hash that is costly to check.
    Costly,
}

/// The place of an attempt among others. The least comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AttemptRank {
    /// The failures of its address, or its attempts at the role if there are more.
    failures: u32,
    /// An attempt comes a round after the one before it from its address.
    round: u64,
    /// The failures at its role from all addresses.
    at_role: u32,
    number: u64,
}

/// The facts of an attempt that give its rank.
#[derive(Clone, Copy)]
struct AttemptTicket {
    key: AttemptKey,
    /// The hash of the role's name.
    role: u64,
    line: WaitReason,
    /// The failures when it came.
    failures: u32,
    number: u64,
}

/// An attempt that waits. It gives way if this is dropped.
struct AttemptWaiter {
    ticket: AttemptTicket,
    turn: oneshot::Sender<CheckPermit>,
}

/// The end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    /// The password was right.
    Right,
    /// The password was wrong.
    Wrong,
    /// It was not checked, as those of addresses with fewer failures come first.
    GaveWay,
}

/// Receives the outcome of an attempt.
pub(super) type OutcomeReceiver = watch::Receiver<Option<AttemptOutcome>>;

/// An attempt that comes.
pub(super) struct NewAttempt<'a> {
    pub key: AttemptKey,
    pub role: &'a str,
    pub line: WaitReason,
    /// Whether its password has been compared with one that is remembered.
    pub is_compared: bool,
}

/// An attempt that is taken in.
pub(super) enum QueuedAttempt {
    /// One with the same words from its address is under way.
    Joined(OutcomeReceiver),
    /// It is under way itself: it sends its outcome with this sender.
    New(
        watch::Sender<Option<AttemptOutcome>>,
        OutcomeReceiver,
        AttemptWait,
    ),
}

impl Default for QueueState {
    fn default() -> QueueState {
        let line = |free| RankedWaiters {
            free,
            ..RankedWaiters::default()
        };
        QueueState {
            results: HashMap::new(),
            by_address: HashMap::new(),
            lines: [line(0), line(CHECKS_AT_ONCE), line(1)],
            next: 0,
        }
    }
}

impl AttemptQueue {
    /// Takes an attempt in. `None` if too many are under way, in all or at this address.
    pub fn take_in(self: &Arc<AttemptQueue>, newcomer: &NewAttempt<'_>) -> Option<QueuedAttempt> {
        let (_, address) = newcomer.key;
        let role = self.slowing.hash(newcomer.role);
        let mut state = lock(&self.state);
        if let Some((_, result)) = state.results.get(&newcomer.key) {
            return Some(QueuedAttempt::Joined(result.clone()));
        }
        let standing = self.slowing.failure_counts(address, role);
        let ticket = AttemptTicket {
            key: newcomer.key,
            role,
            line: newcomer.line,
            failures: standing.failed.max(standing.begun),
            number: state.next,
        };
        state.next += 1;
        let rank = state.rank(&ticket, &self.slowing);
        let has_place = state.has_place(address, rank);
        // Without a place it is counted only if the password has been compared with one that is
        // remembered: then somebody may learn from the refusal.
        let wait = match has_place || newcomer.is_compared {
            true => self.slowing.begin(address, newcomer.role),
            false => None,
        };
        let wait = wait.filter(|_| has_place)?;
        let gave_way = state.evict_worst();
        let (sender, result) = watch::channel(None);
        let entry = (ticket.number, result.clone());
        state.results.insert(newcomer.key, entry);
        let (waiter, turn) = AttemptWaiter::new(ticket);
        let slowed = (!wait.is_zero()).then_some((wait, rank));
        let waiting = match slowed {
            Some(_) => &mut state.lines[WaitReason::Slowed as usize],
            None => state.enter(&ticket, rank),
        };
        waiting.by_rank.insert(rank, waiter);
        // A runtime that is ending drops the task of the attempt at once, which takes the lock.
        drop(state);
        let wait = AttemptWait {
            place: slowed.is_none().then(|| self.place(address)),
            entry: AttemptGuard {
                under_way: self.clone(),
                ticket,
            },
            slowed,
            turn,
        };
        self.warn_of_eviction(gave_way);
        self.give_turns(ticket.line);
        Some(QueuedAttempt::New(sender, result, wait))
    }

    /// Has an attempt wait for its check that has waited because of failures. `None` if it has
    /// given way meanwhile.
    fn go_on(
        self: &Arc<AttemptQueue>,
        ticket: AttemptTicket,
        slowed: AttemptRank,
    ) -> Option<(AddressSlot, oneshot::Receiver<CheckPermit>)> {
        let (_, address) = ticket.key;
        let (waiter, turn) = AttemptWaiter::new(ticket);
        let mut state = lock(&self.state);
        state.lines[WaitReason::Slowed as usize]
            .by_rank
            .remove(&slowed)?;
        let rank = state.rank(&ticket, &self.slowing);
        let waiting = state.enter(&ticket, rank);
        waiting.by_rank.insert(rank, waiter);
        drop(state);
        self.give_turns(ticket.line);
        Some((self.place(address), turn))
    }

    fn place(self: &Arc<AttemptQueue>, address: IpAddr) -> AddressSlot {
        AddressSlot {
            under_way: self.clone(),
            address,
        }
    }

    /// Gives the checks that may begin to the attempts that come first.
    fn give_turns(self: &Arc<AttemptQueue>, line: WaitReason) {
        loop {
            let next = lock(&self.state).next(line, &self.slowing);
            let Some(waiter) = next else {
                return;
            };
            let turn = CheckPermit {
                under_way: Some(self.clone()),
                line,
            };
            // The lock is not held here: a turn takes it when it is dropped.
            if let Err(mut turn) = waiter.turn.send(turn) {
                // The attempt has ended with its runtime.
                turn.under_way = None;
                lock(&self.state).lines[line as usize].free += 1;
            }
        }
    }

    fn warn_of_eviction(&self, gave_way: Option<AttemptTicket>) {
        if let Some(AttemptTicket { key, .. }) = gave_way
            && let Some(logins) = self.gave_way.is_due()
        {
            let (_, address) = key;
            tracing::warn!(
                %address,
                logins,
                "too many logins wait: those of addresses with failures give way"
            );
        }
    }
}

impl QueueState {
    fn rank(&self, ticket: &AttemptTicket, slowing: &LoginThrottle) -> AttemptRank {
        let (_, address) = ticket.key;
        let standing = slowing.failure_counts(address, ticket.role);
        let line = ticket.line as usize;
        let present = self.lines[line].round;
        let last = self.by_address.get(&address);
        let last = last.and_then(|of_address| of_address.rounds[line]);
        AttemptRank {
            failures: standing.failed.max(ticket.failures),
            round: last.map_or(present, |last| present.max(last + 1)),
            at_role: standing.at_role,
            number: ticket.number,
        }
    }

    /// Whether an attempt of this rank may begin at an address.
    fn has_place(&self, address: IpAddr, rank: AttemptRank) -> bool {
        let of_address = self.by_address.get(&address);
        let is_worse = |worst: AttemptRank| worst > rank;
        of_address.is_none_or(|of_address| of_address.number < OF_ADDRESS_MAX)
            && (self.results.len() < UNDER_WAY_MAX
                || self
                    .lines
                    .iter()
                    .filter_map(RankedWaiters::worst)
                    .any(is_worse))
    }

    /// Has the attempt of the worst rank give way if too many are under way. Returns it.
    fn evict_worst(&mut self) -> Option<AttemptTicket> {
        let mut gave_way = None;
        while self.results.len() >= UNDER_WAY_MAX {
            let worst = self.lines.iter_mut().max_by_key(|line| line.worst())?;
            let (_, waiter) = worst.by_rank.pop_last()?;
            self.forget(&waiter.ticket);
            gave_way = Some(waiter.ticket);
        }
        gave_way
    }

    /// Counts an attempt of an address that waits for a check. Returns its line.
    fn enter(&mut self, ticket: &AttemptTicket, rank: AttemptRank) -> &mut RankedWaiters {
        let (_, address) = ticket.key;
        let line = ticket.line as usize;
        let of_address = self.by_address.entry(address).or_default();
        of_address.number += 1;
        of_address.rounds[line] = Some(rank.round);
        &mut self.lines[line]
    }

    /// Takes the attempt that comes first, if a check may begin.
    fn next(&mut self, line: WaitReason, slowing: &LoginThrottle) -> Option<AttemptWaiter> {
        let waiting = &mut self.lines[line as usize];
        if waiting.free == 0 {
            return None;
        }
        loop {
            let (rank, waiter) = waiting.by_rank.pop_first()?;
            let (_, address) = waiter.ticket.key;
            let standing = slowing.failure_counts(address, waiter.ticket.role);
            // Its address may have failed while it waited. Then others come before it.
            let now = AttemptRank {
                failures: rank.failures.max(standing.failed),
                at_role: rank.at_role.max(standing.at_role),
                ..rank
            };
            let first = waiting.by_rank.first_key_value();
            if now > rank && first.is_some_and(|(first, _)| *first < now) {
                waiting.by_rank.insert(now, waiter);
                continue;
            }
            waiting.free -= 1;
            waiting.round = waiting.round.max(rank.round);
            return Some(waiter);
        }
    }

    /// Forgets an attempt, but not a later one with the same words.
    fn forget(&mut self, ticket: &AttemptTicket) {
        let result = self.results.get(&ticket.key);
        if result.is_some_and(|(number, _)| *number == ticket.number) {
            self.results.remove(&ticket.key);
        }
    }
}

impl RankedWaiters {
    fn worst(&self) -> Option<AttemptRank> {
        self.by_rank.last_key_value().map(|(rank, _)| *rank)
    }
}

impl AttemptWaiter {
    fn new(ticket: AttemptTicket) -> (AttemptWaiter, oneshot::Receiver<CheckPermit>) {
        let (turn, receiver) = oneshot::channel();
        (AttemptWaiter { ticket, turn }, receiver)
    }
}

/// An attempt that waits or is checked.
pub(super) struct AttemptWait {
    /// Its place, once it waits for a check.
    place: Option<AddressSlot>,
    entry: AttemptGuard,
    /// The time for which it waits because of failures, and its rank meanwhile.
    slowed: Option<(Duration, AttemptRank)>,
    turn: oneshot::Receiver<CheckPermit>,
}

impl AttemptWait {
    /// Waits until the check may begin. `None` if the attempt has given way.
    pub async fn turn(&mut self) -> Option<CheckPermit> {
        if let Some((wait, rank)) = self.slowed.take() {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = &mut self.turn => return None,
            }
            let AttemptGuard { under_way, ticket } = &self.entry;
            let (place, turn) = under_way.go_on(*ticket, rank)?;
            self.place = Some(place);
            self.turn = turn;
        }
        (&mut self.turn).await.ok()
    }

    /// Ends the attempt.
    pub fn end(self) {
        drop((self.turn, self.place, self.entry));
    }
}

/// An attempt under way. It is forgotten also if it ends by a panic.
struct AttemptGuard {
    under_way: Arc<AttemptQueue>,
    ticket: AttemptTicket,
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        lock(&self.under_way.state).forget(&self.ticket);
    }
}

/// The place of an attempt that waits for a check or is checked. It is given back in the same way.
struct AddressSlot {
    under_way: Arc<AttemptQueue>,
    address: IpAddr,
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let mut state = lock(&self.under_way.state);
        if let Some(of_address) = state.by_address.get_mut(&self.address) {
            of_address.number -= 1;
            if of_address.number == 0 {
                state.by_address.remove(&self.address);
            }
        }
    }
}

/// The right to check a password. The next attempt gets it when this is dropped.
pub(super) struct CheckPermit {
    /// `None` once it has been given back.
    under_way: Option<Arc<AttemptQueue>>,
    line: WaitReason,
}

impl Drop for CheckPermit {
    fn drop(&mut self) {
        if let Some(under_way) = self.under_way.take() {
            lock(&under_way.state).lines[self.line as usize].free += 1;
            under_way.give_turns(self.line);
        }
    }
}

#[cfg(test)]
impl AttemptQueue {
    /// The outcomes of the attempts under way.
    pub fn results(&self) -> Vec<OutcomeReceiver> {
        let state = lock(&self.state);
        state.results.values().map(|it| it.1.clone()).collect()
    }

    /// The numbers of attempts that wait for a check or are checked, of each address.
    pub fn of_addresses(&self) -> Vec<usize> {
        let state = lock(&self.state);
        state.by_address.values().map(|it| it.number).collect()
    }

    /// The addresses of those in a line, as they come.
    pub fn order(&self, line: WaitReason) -> Vec<IpAddr> {
        let state = lock(&self.state);
        let waiting = state.lines[line as usize].by_rank.values();
        waiting.map(|waiter| waiter.ticket.key.1).collect()
    }

    /// Takes a turn that is free.
    pub fn take_turn(self: &Arc<AttemptQueue>, line: WaitReason) -> CheckPermit {
        let mut state = lock(&self.state);
        let free = &mut state.lines[line as usize].free;
        *free = free.checked_sub(1).expect("a free turn");
        CheckPermit {
            under_way: Some(self.clone()),
            line,
        }
    }
}
