//! Attempts to log in while they are checked.
//!
//! An attempt runs in a task of its own. It goes on if its client hangs up, so that a failure is
//! counted all the same. Attempts with the same role and password are one.

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
/// The most attempts that wait for a check, at most 4 MiB. Further ones are refused.
const UNDER_WAY_MAX: usize = 1_024;
/// The most of them from one address, so that one client can't shut out all others.
const OF_ADDRESS_MAX: usize = 32;

/// The attempts of a node.
#[derive(Clone)]
pub(super) struct Attempts {
    shared: Arc<Shared>,
}

struct Shared {
    under_way: Mutex<UnderWay>,
    checks: Arc<Semaphore>,
    remembered: Remembered,
    slowing: Slowing,
    checked: AtomicU64,
    failed: AtomicU64,
}

#[derive(Default)]
struct UnderWay {
    /// Where each attempt tells whether the password was right.
    results: HashMap<Digest, watch::Receiver<Option<bool>>>,
    by_address: HashMap<IpAddr, usize>,
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
                remembered: Remembered::default(),
                slowing: Slowing::default(),
                checked: AtomicU64::new(0),
                failed: AtomicU64::new(0),
            }),
        }
    }
}

impl Attempts {
    /// Whether the password is right. One that is remembered is let in at once.
    ///
    /// # Errors
    /// Overloaded if too many wait, in all or at this address.
    pub async fn fits(&self, attempt: Attempt) -> Result<bool, CqlError> {
        let Shared {
            remembered,
            slowing,
            ..
        } = &*self.shared;
        let (role, address) = (&attempt.role, attempt.address);
        let digest = remembered.digest(role, &attempt.hash, &attempt.password);
        if remembered.has(role, &digest) && !slowing.is_guessed_at(address, role) {
            slowing.succeeded(address, role);
            return Ok(true);
        }
        let mut result = self.join_or_begin(attempt, digest)?;
        let result = result.wait_for(Option::is_some).await;
        result
            .ok()
            .and_then(|result| *result)
            .ok_or_else(|| CqlError::server("the check of a password ended early: try again"))
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

    fn join_or_begin(
        &self,
        attempt: Attempt,
        digest: Digest,
    ) -> Result<watch::Receiver<Option<bool>>, CqlError> {
        let mut under_way = lock(&self.shared.under_way);
        if let Some(result) = under_way.results.get(&digest) {
            return Ok(result.clone());
        }
        // It is counted even if there is no place: the password has been compared with the one
        // that is remembered.
        let wait = self.shared.slowing.begin(attempt.address, &attempt.role);
        let address = network(attempt.address);
        let of_address = under_way.by_address.get(&address).copied();
        let has_place = under_way.results.len() < UNDER_WAY_MAX
            && of_address.is_none_or(|number| number < OF_ADDRESS_MAX);
        let wait = wait.filter(|_| has_place).ok_or_else(too_many_logins)?;
        let (sender, result) = watch::channel(None);
        under_way.results.insert(digest, result.clone());
        *under_way.by_address.entry(address).or_default() += 1;
        let place = Place {
            shared: self.shared.clone(),
            digest,
            address,
        };
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let fits = place.shared.check(attempt, digest).await;
            sender.send_replace(fits);
            drop(place);
        });
        Ok(result)
    }
}

impl Shared {
    /// Waits for a turn, then checks a password and counts the result. `None` if it can't be
    /// checked.
    async fn check(&self, attempt: Attempt, digest: Digest) -> Option<bool> {
        let Attempt {
            role,
            password,
            hash,
            is_known,
            address,
        } = attempt;
        // A check may have ended since this attempt looked.
        let fits = self.remembered.has(&role, &digest) || {
            let turn = self.checks.clone().acquire_owned().await.ok()?;
            self.checked.fetch_add(1, Ordering::Relaxed);
            let check = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                password::fits(&password, &hash)
            });
            check.await.ok()? && is_known
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

/// The place of an attempt under way. It is given back also if the attempt ends by a panic.
struct Place {
    shared: Arc<Shared>,
    digest: Digest,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut under_way = lock(&self.shared.under_way);
        under_way.results.remove(&self.digest);
        if let Some(number) = under_way.by_address.get_mut(&self.address) {
            *number -= 1;
            if *number == 0 {
                under_way.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::task::{Context, Waker};

    use super::*;

    fn attempt(number: usize, address: u8) -> Attempt {
        Attempt {
            role: format!("role {number}"),
            password: Secret::new("guess".to_owned()),
            hash: Secret::new(bcrypt::hash("wonder", 4).unwrap()),
            is_known: true,
            address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, address)),
        }
    }

    /// Begins an attempt, and hangs up.
    fn begin(attempts: &Attempts, attempt: Attempt) {
        let mut fits = Box::pin(attempts.fits(attempt));
        let _ = fits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
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
        assert_eq!(attempts.fits(attempt(0, 2)).await, Ok(false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_remembered_password_is_not_told_at_once_to_a_guesser() {
        let attempts = Attempts::default();
        let right = || Attempt {
            password: Secret::new("wonder".to_owned()),
            hash: Secret::new(
                "$2a$04$KyMasePGAj3yLrtol9IGPeXQFpeCkCC0D.K.Ym4b4f//B6Kx0w/wW".to_owned(),
            ),
            ..attempt(0, 1)
        };
        let digest = |attempt: &Attempt| {
            let remembered = &attempts.shared.remembered;
            remembered.digest(&attempt.role, &attempt.hash, &attempt.password)
        };
        let known = digest(&right());
        attempts.shared.remembered.insert(&right().role, known);
        assert_eq!(attempts.fits(right()).await, Ok(true), "at once");
        for _ in 0..20 {
            begin(&attempts, attempt(0, 1));
        }
        let refused = attempts.fits(right()).await;
        assert_eq!(refused, Err(too_many_logins()));
    }
}
