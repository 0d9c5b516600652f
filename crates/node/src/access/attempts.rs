//! Attempts to log in while they are checked.
//!
//! An attempt runs in a task of its own. It goes on if its client hangs up, so that a failure is
//! counted all the same. Attempts with the same role and password from one address are one.
//!
//! Passwords are checked a few at a time, in the order in which they come into the line. An address
//! has but a few attempts in that line; its others wait behind them. So many clients that come at
//! once are all let in, and shut out no other address.
//!
//! A role may give itself a hash whose check takes seconds. Such hashes are checked one at a time,
//! in a line of their own, so that no other login waits for them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cql::error::CqlError;
use cql::secret::Secret;
use tokio::sync::{Semaphore, watch};

use super::remembered::{Digest, Remembered};
use super::slowing::{Slowing, network};
use super::{lock, password, too_many_logins};

/// Passwords checked at once.
const CHECKS_AT_ONCE: usize = 2;
/// The most attempts under way, at most 16 MiB. Further ones are refused.
const UNDER_WAY_MAX: usize = 4_096;
/// The most of them from one address that wait for a check, so that one client can't shut out all
/// others. Those that wait because of failures are not among them.
const OF_ADDRESS_MAX: usize = 256;
/// The attempts of one address that are in the line for a check at a time.
const IN_LINE: usize = 2 * CHECKS_AT_ONCE;

/// The attempts of a node.
#[derive(Clone)]
pub(super) struct Attempts {
    shared: Arc<Shared>,
}

struct Shared {
    under_way: Mutex<UnderWay>,
    checks: Arc<Semaphore>,
    /// The turn of hashes that are costly to check.
    costly: Arc<Semaphore>,
    remembered: Remembered,
    slowing: Slowing,
    checked: AtomicU64,
    failed: AtomicU64,
}

#[derive(Default)]
struct UnderWay {
    /// Where each attempt tells whether the password was right.
    results: HashMap<Key, watch::Receiver<Option<bool>>>,
    by_address: HashMap<IpAddr, Waiting>,
}

/// A role and a password, and the address from which they came: failures count for the address.
type Key = (Digest, IpAddr);

/// The attempts of an address that wait for a check or are checked.
struct Waiting {
    number: usize,
    lines: Lines,
}

/// The places of an address in the two lines for a check.
#[derive(Clone)]
struct Lines {
    usual: Arc<Semaphore>,
    /// In the line of hashes that are costly to check: one, so that addresses take turns.
    costly: Arc<Semaphore>,
}

/// A name and a password to be checked.
pub(super) struct Attempt {
    pub role: String,
    pub password: Secret<String>,
    pub hash: Secret<String>,
    /// Whether the hash is the role's. Another is checked where there is none, and lets nobody in.
    pub is_known: bool,
    pub address: IpAddr,
}

impl Default for Attempts {
    fn default() -> Attempts {
        Attempts {
            shared: Arc::new(Shared {
                under_way: Mutex::default(),
                checks: Arc::new(Semaphore::new(CHECKS_AT_ONCE)),
                costly: Arc::new(Semaphore::new(1)),
                remembered: Remembered::default(),
                slowing: Slowing::default(),
                checked: AtomicU64::new(0),
                failed: AtomicU64::new(0),
            }),
        }
    }
}

/// An attempt that has begun.
pub(super) enum Begun {
    /// The password is one that is remembered.
    Known,
    /// A check is under way. It goes on if nobody waits for it.
    Checked(watch::Receiver<Option<bool>>),
    /// It waits for the check of an attempt with the same words from its address.
    Joined(watch::Receiver<Option<bool>>),
}

impl Begun {
    /// Whether the password is right.
    ///
    /// # Errors
    /// If the check has ended early.
    pub async fn fits(self) -> Result<bool, CqlError> {
        let mut result = match self {
            Begun::Known => return Ok(true),
            Begun::Checked(result) | Begun::Joined(result) => result,
        };
        let result = result.wait_for(Option::is_some).await;
        result
            .ok()
            .and_then(|result| *result)
            .ok_or_else(|| CqlError::server("the check of a password ended early: try again"))
    }
}

impl Attempts {
    /// Begins an attempt. A password that is remembered is let in at once.
    ///
    /// # Errors
    /// Overloaded if too many wait, in all or at this address.
    pub fn begin(&self, attempt: Attempt) -> Result<Begun, CqlError> {
        let Shared {
            remembered,
            slowing,
            ..
        } = &*self.shared;
        let (role, address) = (&attempt.role, attempt.address);
        let digest = remembered.digest(role, &attempt.hash, &attempt.password);
        // This takes back no failures: a client that logs in often would do so for somebody who
        // guesses at its role from the same address.
        if remembered.has(role, &digest) && !slowing.is_guessed_at(address, role) {
            return Ok(Begun::Known);
        }
        self.join_or_begin(attempt, digest)
    }

    /// Counts an attempt that fails without a check.
    pub fn failed_unchecked(&self, role: &str, address: IpAddr) {
        self.shared.slowing.failed(address, role);
        self.shared.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// The passwords that were checked.
    pub fn checked(&self) -> u64 {
        self.shared.checked.load(Ordering::Relaxed)
    }

    /// The attempts that failed.
    pub fn failed(&self) -> u64 {
        self.shared.failed.load(Ordering::Relaxed)
    }

    fn join_or_begin(&self, attempt: Attempt, digest: Digest) -> Result<Begun, CqlError> {
        let shared = &self.shared;
        let address = network(attempt.address);
        let key = (digest, address);
        let mut under_way = lock(&shared.under_way);
        if let Some(result) = under_way.results.get(&key) {
            return Ok(Begun::Joined(result.clone()));
        }
        let has_place = under_way.has_place(address);
        // Without a place it is counted only if the password has been compared with one that is
        // remembered: then somebody may learn from the refusal.
        let wait = match has_place || shared.remembered.knows(&attempt.role) {
            true => shared.slowing.begin(attempt.address, &attempt.role),
            false => None,
        };
        let wait = wait.filter(|_| has_place).ok_or_else(too_many_logins)?;
        let (sender, result) = watch::channel(None);
        under_way.results.insert(key, result.clone());
        let entry = Entry {
            shared: shared.clone(),
            key,
        };
        let place = wait.is_zero().then(|| Place {
            lines: under_way.enter(address),
            shared: shared.clone(),
            address,
        });
        // A runtime that is ending drops the task at once, which takes the lock.
        drop(under_way);
        tokio::spawn(async move {
            let place = match place {
                Some(place) => place,
                None => {
                    tokio::time::sleep(wait).await;
                    Place {
                        lines: lock(&entry.shared.under_way).enter(address),
                        shared: entry.shared.clone(),
                        address,
                    }
                }
            };
            let fits = entry.shared.check(attempt, digest, &place.lines).await;
            sender.send_replace(fits);
            drop((place, entry));
        });
        Ok(Begun::Checked(result))
    }
}

impl UnderWay {
    /// Whether another attempt may begin at an address.
    fn has_place(&self, address: IpAddr) -> bool {
        let waiting = self.by_address.get(&address);
        self.results.len() < UNDER_WAY_MAX
            && waiting.is_none_or(|waiting| waiting.number < OF_ADDRESS_MAX)
    }

    /// Counts an attempt that waits for a check. Returns the places of its address in the lines.
    fn enter(&mut self, address: IpAddr) -> Lines {
        let waiting = self.by_address.entry(address).or_insert_with(|| Waiting {
            number: 0,
            lines: Lines {
                usual: Arc::new(Semaphore::new(IN_LINE)),
                costly: Arc::new(Semaphore::new(1)),
            },
        });
        waiting.number += 1;
        waiting.lines.clone()
    }
}

impl Shared {
    /// Waits for a turn, then checks a password and counts the result. `None` if it can't be
    /// checked.
    async fn check(&self, attempt: Attempt, digest: Digest, lines: &Lines) -> Option<bool> {
        let Attempt {
            role,
            password,
            hash,
            is_known,
            address,
        } = attempt;
        // A check may have ended since this attempt looked.
        let fits = self.remembered.has(&role, &digest) || {
            let (line, turns) = match password::is_costly(&hash) {
                true => (&lines.costly, &self.costly),
                false => (&lines.usual, &self.checks),
            };
            let _in_line = line.acquire().await.ok()?;
            let turn = turns.clone().acquire_owned().await.ok()?;
            // Or while it waited: clients at many addresses may have one password.
            self.remembered.has(&role, &digest) || {
                self.checked.fetch_add(1, Ordering::Relaxed);
                let check = tokio::task::spawn_blocking(move || {
                    let _turn = turn;
                    password::fits(&password, &hash)
                });
                check.await.ok()? && is_known
            }
        };
        if fits {
            self.remembered.insert(&role, digest);
            self.slowing.succeeded(address, &role);
        } else {
            self.slowing.failed(address, &role);
            self.failed.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(role = role.escape_debug().to_string(), %address, "a login failed");
        }
        Some(fits)
    }
}

/// An attempt under way. It is forgotten also if it ends by a panic.
struct Entry {
    shared: Arc<Shared>,
    key: Key,
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.shared.under_way).results.remove(&self.key);
    }
}

/// The place of an attempt that waits for a check or is checked. It is given back in the same way.
struct Place {
    shared: Arc<Shared>,
    address: IpAddr,
    lines: Lines,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut under_way = lock(&self.shared.under_way);
        if let Some(waiting) = under_way.by_address.get_mut(&self.address) {
            waiting.number -= 1;
            if waiting.number == 0 {
                under_way.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::LazyLock;

    use super::*;

    static HASH_OF_WONDER: LazyLock<String> = LazyLock::new(|| bcrypt::hash("wonder", 4).unwrap());

    fn attempt(number: usize, address: u8) -> Attempt {
        Attempt {
            role: format!("role {number}"),
            password: Secret::new("guess".to_owned()),
            hash: Secret::new(HASH_OF_WONDER.clone()),
            is_known: true,
            address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, address)),
        }
    }

    impl Attempts {
        async fn fits(&self, attempt: Attempt) -> Result<bool, CqlError> {
            self.begin(attempt)?.fits().await
        }
    }

    /// Begins an attempt, and hangs up.
    fn begin(attempts: &Attempts, attempt: Attempt) {
        let _ = attempts.begin(attempt);
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_leaves_its_failure_and_no_entry() {
        let attempts = Attempts::default();
        begin(&attempts, attempt(0, 1));
        let result = {
            let under_way = lock(&attempts.shared.under_way);
            assert_eq!(under_way.results.len(), 1);
            under_way.results.values().next().cloned()
        };
        let mut result = result.unwrap();
        assert_eq!(
            *result.wait_for(Option::is_some).await.unwrap(),
            Some(false)
        );
        assert_eq!((attempts.checked(), attempts.failed()), (1, 1));
        while result.changed().await.is_ok() {}
        tokio::task::yield_now().await;
        let under_way = lock(&attempts.shared.under_way);
        assert!(under_way.results.is_empty() && under_way.by_address.is_empty());
    }

    #[tokio::test]
    async fn one_address_does_not_take_all_places() {
        let attempts = Attempts::default();
        for number in 0..OF_ADDRESS_MAX {
            begin(&attempts, attempt(number, 1));
        }
        let refused = attempts.fits(attempt(OF_ADDRESS_MAX, 1)).await;
        assert_eq!(refused, Err(too_many_logins()));
        // The refusal tells something only of a password that is remembered.
        let Shared {
            slowing,
            remembered,
            ..
        } = &*attempts.shared;
        for (guess, begun) in [("one", 1), ("two", 2)] {
            let another = Attempt {
                password: Secret::new(guess.to_owned()),
                ..attempt(0, 1)
            };
            let (role, address) = (another.role.clone(), another.address);
            assert_eq!(attempts.fits(another).await, Err(too_many_logins()));
            assert_eq!(slowing.begun(address, &role), begun);
            remembered.insert(&role, Digest::default());
        }
        assert_eq!(attempts.fits(attempt(0, 2)).await, Ok(false));
        let waiting: Vec<usize> = {
            let under_way = lock(&attempts.shared.under_way);
            let waiting = under_way.by_address.values();
            waiting.map(|waiting| waiting.number).collect()
        };
        let waiting: usize = waiting.iter().sum();
        assert!(waiting > OF_ADDRESS_MAX / 2, "it came before {waiting}");
    }

    #[tokio::test]
    async fn nobody_waits_for_hashes_that_are_costly_to_check() {
        let attempts = Attempts::default();
        let turn = attempts.shared.costly.clone().acquire_owned().await;
        for number in 0..2 * IN_LINE {
            let costly = Attempt {
                hash: Secret::new(HASH_OF_WONDER.replace("$04$", "$13$")),
                ..attempt(number, 1)
            };
            begin(&attempts, costly);
        }
        tokio::task::yield_now().await;
        assert_eq!(attempts.fits(attempt(2 * IN_LINE, 1)).await, Ok(false));
        assert_eq!(attempts.checked(), 1, "the others wait for their own turn");
        // One of an address is in that line, so that another address comes next.
        let places = {
            let under_way = lock(&attempts.shared.under_way);
            let waiting = under_way.by_address.values().next();
            waiting.map(|waiting| waiting.lines.costly.available_permits())
        };
        assert_eq!(places, Some(0));
        drop(turn);
    }

    #[tokio::test]
    async fn many_roles_of_one_address_are_let_in_at_once() {
        let attempts = Attempts::default();
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200 {
            let attempts = attempts.clone();
            let attempt = Attempt {
                password: Secret::new("wonder".to_owned()),
                ..attempt(number, 1)
            };
            tasks.spawn(async move { attempts.fits(attempt).await });
        }
        while let Some(fits) = tasks.join_next().await {
            assert_eq!(fits.unwrap(), Ok(true));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_because_of_failures_holds_no_place() {
        let attempts = Attempts::default();
        for number in 0..5 {
            let guess = Attempt {
                password: Secret::new(format!("guess {number}")),
                ..attempt(0, 1)
            };
            begin(&attempts, guess);
        }
        let under_way = lock(&attempts.shared.under_way);
        assert_eq!(under_way.results.len(), 5);
        let waiting = under_way.by_address.values().map(|waiting| waiting.number);
        assert_eq!(waiting.sum::<usize>(), 1);
    }

    #[tokio::test]
    async fn attempts_at_two_addresses_count_for_each() {
        let attempts = Attempts::default();
        let [one, other] = [1, 2].map(|address| attempts.fits(attempt(0, address)));
        assert_eq!(tokio::join!(one, other), (Ok(false), Ok(false)));
        assert_eq!(attempts.failed(), 2);
    }

    #[tokio::test]
    async fn a_remembered_password_takes_back_no_guesses() {
        let attempts = Attempts::default();
        let right = || Attempt {
            password: Secret::new("wonder".to_owned()),
            ..attempt(0, 1)
        };
        assert_eq!(attempts.fits(right()).await, Ok(true));
        assert_eq!(attempts.fits(attempt(0, 1)).await, Ok(false));
        assert_eq!(attempts.fits(right()).await, Ok(true));
        let slowing = &attempts.shared.slowing;
        assert_eq!(slowing.begun(right().address, &right().role), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_remembered_password_is_not_told_at_once_to_a_guesser() {
        let attempts = Attempts::default();
        let right = || Attempt {
            password: Secret::new("wonder".to_owned()),
            ..attempt(0, 1)
        };
        let digest = |attempt: &Attempt| {
            let remembered = &attempts.shared.remembered;
            remembered.digest(&attempt.role, &attempt.hash, &attempt.password)
        };
        let known = digest(&right());
        attempts.shared.remembered.insert(&right().role, known);
        assert_eq!(attempts.fits(right()).await, Ok(true), "at once");
        for number in 0..20 {
            let guess = Attempt {
                password: Secret::new(format!("guess {number}")),
                ..attempt(0, 1)
            };
            begin(&attempts, guess);
        }
        let refused = attempts.fits(right()).await;
        assert_eq!(refused, Err(too_many_logins()));
    }
}
