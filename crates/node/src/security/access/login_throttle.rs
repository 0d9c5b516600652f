//! Slows the guessing of passwords: after a failed login, the next attempts from its address wait.
//!
//! Attempts are counted when they begin, for their address and role: many connections at once guess
//! no faster than one, and one that hangs up early gains nothing. Failures are also summed over the
//! roles of an address, so that trying one password with many names is slow, too. A login takes
//! back only the failures of its own role: else a guesser with one right password would wipe out
//! its guesses at others.
//!
//! The failures also decide in which order attempts are checked where many wait: see
//! [`FailureCounts`].

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use net::address::network;
use tokio::time::Instant;

use super::lock;

/// The wait after the first failure. Each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait between two attempts at a role.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// The longest wait between two attempts of an address at different roles. It is shorter, as many
/// clients may share an address with one whose password is old.
const ADDRESS_WAIT_MAX: Duration = Duration::from_secs(1);
/// An attempt that would wait for longer is refused at once.
const QUEUE_MAX: Duration = Duration::from_secs(20);
/// Failures are forgotten after this time without another.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// The most addresses that are remembered. Beyond it the oldest failures are forgotten.
const ADDRESSES_MAX: usize = 16_384;
/// The most roles of an address that are counted one by one, at most 16 MiB for all addresses.
/// Attempts at further ones are slowed by the sum of the address.
const ROLES_MAX: usize = 16;
/// The most roles whose failures from all addresses are remembered. Beyond it the oldest are
/// forgotten.
const FAILED_ROLES_MAX: usize = 16_384;
/// After more attempts than this, a right password that is remembered has to wait, too: else its
/// quick answer would tell it from the wrong ones.
const QUICK_ATTEMPTS_MAX: u32 = 10;

/// The failed logins of each address.
#[derive(Default)]
pub(super) struct LoginThrottle {
    addresses: Mutex<HashMap<IpAddr, AddressFailures>>,
    /// The failures at each role from all addresses, and the time of the last, by the hash of its
    /// name.
    roles: Mutex<HashMap<u64, (u32, Instant)>>,
    hasher: RandomState,
}

/// The failures that count in the order of attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FailureCounts {
    /// The failures of the address.
    pub failed: u32,
    /// The attempts of the address at the role that began since it last logged in.
    pub begun: u32,
    /// The failures at the role from all addresses.
    pub at_role: u32,
}

/// The failures of an address.
struct AddressFailures {
    /// The failures with all roles, but for those that a login took back.
    failed: u32,
    /// The time of the last failure, or of the first attempt.
    last: Instant,
    /// The time of the next attempt.
    next: Instant,
    /// The attempts at some roles, by the hashes of their names.
    roles: HashMap<u64, RoleAttempts>,
}

/// The attempts at a role since it last logged in.
struct RoleAttempts {
    /// The attempts that began, refused ones included.
    begun: u32,
    /// Those of them that failed.
    failed: u32,
    /// The time of the next attempt.
    next: Instant,
}

impl LoginThrottle {
    /// Begins an attempt at a role: returns the time for which it has to wait; `None` if so many
    /// are waiting already that it is refused.
    pub fn begin(&self, address: IpAddr, role: &str) -> Option<Duration> {
        let now = Instant::now();
        let mut addresses = self.lock();
        let failures = of_address(&mut addresses, address, now);
        let next = failures.next.max(now);
        let role = failures.role(self.hasher.hash_one(role), now);
        let at = role.as_ref().map_or(next, |role| role.next.max(next));
        let wait = at.duration_since(now);
        let is_refused = wait > QUEUE_MAX;
        if let Some(role) = role {
            role.begun = role.begun.saturating_add(1);
            if !is_refused {
                role.next = at + pause(role.begun);
            }
        }
        if is_refused {
            return None;
        }
        if failures.failed > 0 {
            failures.next = next + pause_of_address(failures.failed);
        }
        Some(wait)
    }

    /// Whether there were so many attempts at the role that it has to wait even with a password
    /// that is remembered.
    pub fn is_guessed_at(&self, address: IpAddr, role: &str) -> bool {
        let addresses = self.lock();
        let failures = addresses.get(&network(address));
        failures.is_some_and(|failures| {
            let attempts = match failures.roles.get(&self.hasher.hash_one(role)) {
                Some(role) => role.begun,
                // It may be one of those that are not counted one by one.
                None if failures.roles.len() >= ROLES_MAX => failures.failed,
                None => 0,
            };
            attempts > QUICK_ATTEMPTS_MAX && failures.last.elapsed() <= FORGOTTEN_AFTER
        })
    }

    /// Notes that an attempt failed.
    pub fn failed(&self, address: IpAddr, role: &str) {
        let now = Instant::now();
        let mut addresses = self.lock();
        let failures = of_address(&mut addresses, address, now);
        if let Some(role) = failures.roles.get_mut(&self.hasher.hash_one(role)) {
            role.failed = role.failed.saturating_add(1);
            role.next = role.next.max(now + pause(role.failed));
        }
        failures.failed = failures.failed.saturating_add(1);
        failures.last = now;
        failures.next = failures.next.max(now + pause_of_address(failures.failed));
        drop(addresses);
        self.failed_at(self.hash(role), now);
    }

    /// Counts a failure at a role, whatever its address.
    fn failed_at(&self, role: u64, now: Instant) {
        let mut roles = lock(&self.roles);
        if roles.len() >= FAILED_ROLES_MAX && !roles.contains_key(&role) {
            let oldest = roles.iter().min_by_key(|(_, (_, last))| *last);
            if let Some(oldest) = oldest.map(|(role, _)| *role) {
                roles.remove(&oldest);
            }
        }
        let (failed, last) = roles.entry(role).or_insert((0, now));
        if now.duration_since(*last) > FORGOTTEN_AFTER {
            *failed = 0;
        }
        *failed = failed.saturating_add(1);
        *last = now;
    }

    /// The hash of a role's name.
    pub fn hash(&self, role: &str) -> u64 {
        self.hasher.hash_one(role)
    }

    /// The failures that count for an attempt from an address at the role of this hash.
    pub fn failure_counts(&self, address: IpAddr, role: u64) -> FailureCounts {
        let mut standing = FailureCounts::default();
        if let Some(failures) = self.lock().get(&network(address))
            && failures.last.elapsed() <= FORGOTTEN_AFTER
        {
            standing.failed = failures.failed;
            standing.begun = failures.roles.get(&role).map_or(0, |role| role.begun);
        }
        if let Some((failed, last)) = lock(&self.roles).get(&role)
            && last.elapsed() <= FORGOTTEN_AFTER
        {
            standing.at_role = *failed;
        }
        standing
    }

    /// Forgets the failures of a role that has logged in from this address.
    pub fn succeeded(&self, address: IpAddr, role: &str) {
        let mut addresses = self.lock();
        let Some(failures) = addresses.get_mut(&network(address)) else {
            return;
        };
        if let Some(role) = failures.roles.remove(&self.hasher.hash_one(role)) {
            failures.failed = failures.failed.saturating_sub(role.failed);
        }
        if failures.failed == 0 {
            failures.next = Instant::now();
            if failures.roles.is_empty() {
                addresses.remove(&network(address));
            }
        }
    }

    /// The attempts at a role that are counted.
    #[cfg(test)]
    pub fn begun(&self, address: IpAddr, role: &str) -> u32 {
        let addresses = self.lock();
        let failures = addresses.get(&network(address));
        let role = failures.and_then(|it| it.roles.get(&self.hasher.hash_one(role)));
        role.map_or(0, |role| role.begun)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, AddressFailures>> {
        lock(&self.addresses)
    }
}

impl AddressFailures {
    fn new(now: Instant) -> AddressFailures {
        AddressFailures {
            failed: 0,
            last: now,
            next: now,
            roles: HashMap::new(),
        }
    }

    fn role(&mut self, role: u64, now: Instant) -> Option<&mut RoleAttempts> {
        if self.roles.len() >= ROLES_MAX && !self.roles.contains_key(&role) {
            return None;
        }
        let attempts = self.roles.entry(role);
        Some(attempts.or_insert(RoleAttempts {
            begun: 0,
            failed: 0,
            next: now,
        }))
    }
}

fn of_address(
    addresses: &mut HashMap<IpAddr, AddressFailures>,
    address: IpAddr,
    now: Instant,
) -> &mut AddressFailures {
    let address = network(address);
    if addresses.len() >= ADDRESSES_MAX && !addresses.contains_key(&address) {
        let oldest = addresses.iter().min_by_key(|(_, failures)| failures.last);
        if let Some(oldest) = oldest.map(|(address, _)| *address) {
            addresses.remove(&oldest);
        }
    }
    let failures = addresses
        .entry(address)
        .or_insert_with(|| AddressFailures::new(now));
    if now.duration_since(failures.last) > FORGOTTEN_AFTER {
        *failures = AddressFailures::new(now);
    }
    failures
}

fn pause(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    (FIRST_WAIT * (1 << doublings)).min(WAIT_MAX)
}

fn pause_of_address(failures: u32) -> Duration {
    pause(failures / 4).min(ADDRESS_WAIT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    fn fail(slowing: &LoginThrottle, role: &str) -> Option<Duration> {
        let wait = slowing.begin(ADDRESS, role);
        slowing.failed(ADDRESS, role);
        wait
    }

    fn millis(wait: Option<Duration>) -> Option<u128> {
        wait.map(|wait| wait.as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_and_attempts_at_once_wait_for_one_another() {
        let slowing = LoginThrottle::default();
        let waits = std::iter::from_fn(|| slowing.begin(ADDRESS, "alice"));
        let waits: Vec<_> = waits.take(100).map(|wait| wait.as_millis()).collect();
        assert_eq!(waits[..4], [0, 100, 300, 700], "before any of them failed");
        assert!(waits.len() < 11, "the queue has an end");
        assert_eq!(slowing.begin(ADDRESS, "bob"), Some(Duration::ZERO));
        let another = "10.0.0.2".parse().unwrap();
        assert_eq!(slowing.begin(another, "alice"), Some(Duration::ZERO));
        slowing.succeeded(ADDRESS, "alice");
        assert_eq!(slowing.begin(ADDRESS, "alice"), Some(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_login_takes_back_the_failures_of_its_own_role_alone() {
        let slowing = LoginThrottle::default();
        for _ in 0..5 {
            fail(&slowing, "annulus");
            slowing.begin(ADDRESS, "bob");
            slowing.succeeded(ADDRESS, "bob");
        }
        assert!(millis(slowing.begin(ADDRESS, "annulus")) >= Some(1_600));
        assert!(millis(slowing.begin(ADDRESS, "carol")) >= Some(100));
        slowing.succeeded(ADDRESS, "annulus");
        assert_eq!(slowing.begin(ADDRESS, "dora"), Some(Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_remembered_password_is_quick_until_its_role_is_guessed_at() {
        let slowing = LoginThrottle::default();
        assert!(!slowing.is_guessed_at(ADDRESS, "alice"));
        for _ in 0..=QUICK_ATTEMPTS_MAX {
            slowing.begin(ADDRESS, "alice");
        }
        assert!(slowing.is_guessed_at(ADDRESS, "alice"));
        assert!(!slowing.is_guessed_at(ADDRESS, "bob"));
        tokio::time::advance(FORGOTTEN_AFTER + Duration::from_secs(1)).await;
        assert!(!slowing.is_guessed_at(ADDRESS, "alice"));
    }

    #[tokio::test(start_paused = true)]
    async fn guesses_at_one_role_slow_no_password_that_is_remembered_of_another() {
        let slowing = LoginThrottle::default();
        for _ in 0..20 {
            fail(&slowing, "alice");
        }
        assert!(slowing.is_guessed_at(ADDRESS, "alice"));
        assert!(!slowing.is_guessed_at(ADDRESS, "bob"));
        for _ in 0..11 {
            slowing.begin(ADDRESS, "bob");
            slowing.succeeded(ADDRESS, "bob");
            assert!(!slowing.is_guessed_at(ADDRESS, "bob"));
            tokio::time::advance(FORGOTTEN_AFTER / 10).await;
        }
        assert!(!slowing.is_guessed_at(ADDRESS, "alice"));
        assert_eq!(slowing.begin(ADDRESS, "alice"), Some(Duration::ZERO));
        for role in 0..=ROLES_MAX {
            fail(&slowing, &role.to_string());
        }
        assert!(slowing.is_guessed_at(ADDRESS, "one beyond those that are counted"));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_forgotten_and_addresses_and_roles_bounded() {
        let slowing = LoginThrottle::default();
        fail(&slowing, "alice");
        tokio::time::advance(FORGOTTEN_AFTER + Duration::from_secs(1)).await;
        assert_eq!(slowing.begin(ADDRESS, "alice"), Some(Duration::ZERO));
        for role in 0..100 {
            fail(&slowing, &role.to_string());
        }
        assert_eq!(slowing.lock()[&ADDRESS].roles.len(), ROLES_MAX);
        assert!(
            slowing
                .begin(ADDRESS, "another")
                .is_none_or(|wait| wait >= ADDRESS_WAIT_MAX)
        );
        for number in 0..ADDRESSES_MAX as u32 + 10 {
            slowing.failed(IpAddr::V4((number + 1).into()), "alice");
        }
        assert_eq!(slowing.lock().len(), ADDRESSES_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn the_standing_counts_the_address_and_the_role() {
        let slowing = LoginThrottle::default();
        let standing = |address, role| slowing.failure_counts(address, slowing.hash(role));
        let another = "10.0.0.2".parse().unwrap();
        assert_eq!(standing(ADDRESS, "alice"), FailureCounts::default());
        fail(&slowing, "alice");
        slowing.begin(ADDRESS, "alice");
        let expected = FailureCounts {
            failed: 1,
            begun: 2,
            at_role: 1,
        };
        assert_eq!(standing(ADDRESS, "alice"), expected);
        let of_role = FailureCounts {
            at_role: 1,
            ..FailureCounts::default()
        };
        assert_eq!(standing(another, "alice"), of_role);
        let of_address = FailureCounts {
            failed: 1,
            ..FailureCounts::default()
        };
        assert_eq!(standing(ADDRESS, "bob"), of_address);
        // A login takes back the failures of its address. Those at the role are forgotten in time.
        slowing.succeeded(ADDRESS, "alice");
        assert_eq!(standing(ADDRESS, "alice"), of_role);
        tokio::time::advance(FORGOTTEN_AFTER + Duration::from_secs(1)).await;
        assert_eq!(standing(another, "alice"), FailureCounts::default());
        for role in 0..FAILED_ROLES_MAX + 10 {
            slowing.failed(ADDRESS, &role.to_string());
        }
        assert_eq!(lock(&slowing.roles).len(), FAILED_ROLES_MAX);
    }
}
