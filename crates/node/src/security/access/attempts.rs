//! Attempts to log in while they are checked.
//!
//! An attempt runs in a task of its own. It goes on if its client hangs up, so that a failure is
//! counted all the same. Attempts with the same role and password from one address are one.
//!
//! Passwords are checked a few at a time, those of addresses without failures first
//! ([`AttemptQueue`]). Addresses take turns. So many clients that come at once are all let in, and
//! shut out no other address.
//!
//! A role may give itself a hash whose check takes seconds. Such hashes are checked one at a time,
//! in a line of their own, so that no other login waits for them.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cql::error::CqlError;
use cql::secret::Secret;
use net::address::network;
use tokio::sync::watch;

use super::attempt_queue::{
    AttemptOutcome, AttemptQueue, AttemptWait, NewAttempt, OutcomeReceiver, QueuedAttempt,
    WaitReason,
};
use super::verified_passwords::{PasswordDigest, VerifiedPasswords};
use super::{password, too_many_logins};

/// The attempts of a node.
#[derive(Clone, Default)]
pub(super) struct PasswordChecks {
    shared: Arc<CheckState>,
}

#[derive(Default)]
struct CheckState {
    under_way: Arc<AttemptQueue>,
    remembered: VerifiedPasswords,
    checked: AtomicU64,
    failed: AtomicU64,
}

/// A name and a password to be checked.
pub(super) struct PasswordAttempt {
    pub role: String,
    pub password: Secret<String>,
    pub hash: Secret<String>,
    /// Whether the hash is the role's. Another is checked where there is none, and lets no one in.
    pub is_known: bool,
    pub address: IpAddr,
}

/// An attempt that has begun.
pub(super) enum StartedCheck {
    /// The password is one that is remembered.
    Known,
    /// A check is under way. It goes on if no one waits for it.
    Checked(OutcomeReceiver),
    /// It waits for the check of an attempt with the same words from its address.
    Joined(OutcomeReceiver),
}

impl StartedCheck {
    /// Whether the password is right.
    ///
    /// # Errors
    /// Overloaded if others came before it and there was no place left. A server error if the check
    /// has ended early.
    pub async fn fits(self) -> Result<bool, CqlError> {
        let mut outcome = match self {
            StartedCheck::Known => return Ok(true),
            StartedCheck::Checked(outcome) | StartedCheck::Joined(outcome) => outcome,
        };
        let outcome = outcome.wait_for(Option::is_some).await;
        match outcome.ok().and_then(|outcome| *outcome) {
            Some(AttemptOutcome::Right) => Ok(true),
            Some(AttemptOutcome::Wrong) => Ok(false),
            Some(AttemptOutcome::GaveWay) => Err(too_many_logins()),
            None => Err(CqlError::server(
                "the check of a password ended early: try again",
            )),
        }
    }
}

impl PasswordChecks {
    /// Begins an attempt. A password that is remembered is let in at once.
    ///
    /// # Errors
    /// Overloaded if too many wait, in all or at this address.
    pub fn begin(&self, attempt: PasswordAttempt) -> Result<StartedCheck, CqlError> {
        let CheckState {
            remembered,
            under_way,
            ..
        } = &*self.shared;
        let (role, address) = (&attempt.role, attempt.address);
        let digest = remembered.digest(role, &attempt.hash, &attempt.password);
        // This takes back no failures: a client that logs in often would do so for somebody who
        // guesses at its role from the same address.
        if remembered.has(role, &digest) && !under_way.slowing.is_guessed_at(address, role) {
            return Ok(StartedCheck::Known);
        }
        self.join_or_begin(attempt, digest)
    }

    /// Counts an attempt that fails without a check.
    pub fn failed_unchecked(&self, role: &str, address: IpAddr) {
        self.shared.under_way.slowing.failed(address, role);
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
        attempt: PasswordAttempt,
        digest: PasswordDigest,
    ) -> Result<StartedCheck, CqlError> {
        let shared = self.shared.clone();
        let newcomer = NewAttempt {
            key: (digest, network(attempt.address)),
            role: &attempt.role,
            line: match password::is_costly(&attempt.hash) {
                true => WaitReason::Costly,
                false => WaitReason::Usual,
            },
            is_compared: shared.remembered.knows(&attempt.role),
        };
        let taken = shared.under_way.take_in(&newcomer);
        Ok(match taken.ok_or_else(too_many_logins)? {
            QueuedAttempt::Joined(outcomes) => StartedCheck::Joined(outcomes),
            QueuedAttempt::New(sender, outcomes, wait) => {
                tokio::spawn(shared.run(attempt, digest, sender, wait));
                StartedCheck::Checked(outcomes)
            }
        })
    }
}

impl CheckState {
    /// Has an attempt checked in its turn, and sends its outcome.
    async fn run(
        self: Arc<CheckState>,
        attempt: PasswordAttempt,
        digest: PasswordDigest,
        sender: watch::Sender<Option<AttemptOutcome>>,
        mut wait: AttemptWait,
    ) {
        let outcome = self.check(attempt, digest, &mut wait).await;
        sender.send_replace(outcome);
        wait.end();
    }

    /// Waits for a turn, then checks a password and counts the result. `None` if it can't be
    /// checked.
    async fn check(
        &self,
        attempt: PasswordAttempt,
        digest: PasswordDigest,
        wait: &mut AttemptWait,
    ) -> Option<AttemptOutcome> {
        let PasswordAttempt {
            role,
            password,
            hash,
            is_known,
            address,
        } = attempt;
        let Some(turn) = wait.turn().await else {
            return Some(AttemptOutcome::GaveWay);
        };
        // A check may have ended while it waited: clients at many addresses may have one password.
        let (fits, turn) = match self.remembered.has(&role, &digest) {
            true => (true, turn),
            false => {
                self.checked.fetch_add(1, Ordering::Relaxed);
                let check = move || (password::fits(&password, &hash), turn);
                let (fits, turn) = tokio::task::spawn_blocking(check).await.ok()?;
                (fits && is_known, turn)
            }
        };
        // The result is counted before the next gets the turn, as it may change the order.
        let slowing = &self.under_way.slowing;
        let outcome = match fits {
            true => {
                self.remembered.insert(&role, digest);
                slowing.succeeded(address, &role);
                AttemptOutcome::Right
            }
            false => {
                slowing.failed(address, &role);
                self.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(role = role.escape_debug().to_string(), %address, "a login failed");
                AttemptOutcome::Wrong
            }
        };
        drop(turn);
        Some(outcome)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::LazyLock;
    use std::time::Duration;

    use super::super::attempt_queue::{OF_ADDRESS_MAX, UNDER_WAY_MAX};
    use super::*;

    static HASH_OF_WONDER: LazyLock<String> = LazyLock::new(|| bcrypt::hash("wonder", 4).unwrap());

    fn attempt(number: usize, address: u8) -> PasswordAttempt {
        PasswordAttempt {
            role: format!("role {number}"),
            password: Secret::new("guess".to_owned()),
            hash: Secret::new(HASH_OF_WONDER.clone()),
            is_known: true,
            address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, address)),
        }
    }

    impl PasswordChecks {
        async fn fits(&self, attempt: PasswordAttempt) -> Result<bool, CqlError> {
            self.begin(attempt)?.fits().await
        }
    }

    /// Begins an attempt, and hangs up.
    fn begin(attempts: &PasswordChecks, attempt: PasswordAttempt) {
        let _ = attempts.begin(attempt);
    }

    #[tokio::test]
    async fn a_client_that_hangs_up_leaves_its_failure_and_no_entry() {
        let attempts = PasswordChecks::default();
        begin(&attempts, attempt(0, 1));
        let under_way = &attempts.shared.under_way;
        let mut results = under_way.results();
        assert_eq!(results.len(), 1);
        let mut result = results.remove(0);
        assert_eq!(
            *result.wait_for(Option::is_some).await.unwrap(),
            Some(AttemptOutcome::Wrong)
        );
        assert_eq!((attempts.checked(), attempts.failed()), (1, 1));
        while result.changed().await.is_ok() {}
        tokio::task::yield_now().await;
        assert!(under_way.results().is_empty() && under_way.of_addresses().is_empty());
    }

    #[tokio::test]
    async fn one_address_does_not_take_all_places() {
        let attempts = PasswordChecks::default();
        for number in 0..OF_ADDRESS_MAX {
            begin(&attempts, attempt(number, 1));
        }
        let refused = attempts.fits(attempt(OF_ADDRESS_MAX, 1)).await;
        assert_eq!(refused, Err(too_many_logins()));
        // The refusal reveals something only if a password is remembered.
        let CheckState {
            under_way,
            remembered,
            ..
        } = &*attempts.shared;
        for (guess, begun) in [("one", 1), ("two", 2)] {
            let another = PasswordAttempt {
                password: Secret::new(guess.to_owned()),
                ..attempt(0, 1)
            };
            let (role, address) = (another.role.clone(), another.address);
            assert_eq!(attempts.fits(another).await, Err(too_many_logins()));
            assert_eq!(under_way.slowing.begun(address, &role), begun);
            remembered.insert(&role, PasswordDigest::default());
        }
        assert_eq!(attempts.fits(attempt(0, 2)).await, Ok(false));
        let waiting: usize = under_way.of_addresses().iter().sum();
        assert!(waiting > OF_ADDRESS_MAX / 2, "it came before {waiting}");
    }

    #[tokio::test]
    async fn other_attempts_do_not_wait_for_costly_hashes() {
        let attempts = PasswordChecks::default();
        let under_way = &attempts.shared.under_way;
        let turn = under_way.take_turn(WaitReason::Costly);
        let costly = |number, address| PasswordAttempt {
            hash: Secret::new(HASH_OF_WONDER.replace("$04$", "$13$")),
            ..attempt(number, address)
        };
        for number in 0..8 {
            begin(&attempts, costly(number, 1));
        }
        begin(&attempts, costly(8, 2));
        tokio::task::yield_now().await;
        assert_eq!(attempts.fits(attempt(9, 1)).await, Ok(false));
        assert_eq!(attempts.checked(), 1, "the others wait for their own turn");
        let order = under_way.order(WaitReason::Costly);
        let expected = [1, 2, 1, 1].map(|address| attempt(0, address).address);
        assert_eq!(order[..4], expected, "addresses take turns");
        assert_eq!(order.len(), 9);
        // They are not checked, as that would take seconds.
        drop(turn);
    }

    #[tokio::test]
    async fn many_roles_of_one_address_are_let_in_at_once() {
        let attempts = PasswordChecks::default();
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200 {
            let attempts = attempts.clone();
            let attempt = PasswordAttempt {
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
    async fn an_attempt_slowed_by_failures_holds_no_place() {
        let attempts = PasswordChecks::default();
        for number in 0..5 {
            let guess = PasswordAttempt {
                password: Secret::new(format!("guess {number}")),
                ..attempt(0, 1)
            };
            begin(&attempts, guess);
        }
        let under_way = &attempts.shared.under_way;
        assert_eq!(under_way.results().len(), 5);
        assert_eq!(under_way.of_addresses(), [1]);
    }

    #[tokio::test]
    async fn attempts_at_two_addresses_count_for_each() {
        let attempts = PasswordChecks::default();
        let [one, other] = [1, 2].map(|address| attempts.fits(attempt(0, address)));
        assert_eq!(tokio::join!(one, other), (Ok(false), Ok(false)));
        assert_eq!(attempts.failed(), 2);
    }

    #[tokio::test]
    async fn a_remembered_password_takes_back_no_guesses() {
        let attempts = PasswordChecks::default();
        let right = || PasswordAttempt {
            password: Secret::new("wonder".to_owned()),
            ..attempt(0, 1)
        };
        assert_eq!(attempts.fits(right()).await, Ok(true));
        assert_eq!(attempts.fits(attempt(0, 1)).await, Ok(false));
        assert_eq!(attempts.fits(right()).await, Ok(true));
        let slowing = &attempts.shared.under_way.slowing;
        assert_eq!(slowing.begun(right().address, &right().role), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_remembered_password_is_not_told_at_once_to_a_guesser() {
        let attempts = PasswordChecks::default();
        let right = || PasswordAttempt {
            password: Secret::new("wonder".to_owned()),
            ..attempt(0, 1)
        };
        let digest = |attempt: &PasswordAttempt| {
            let remembered = &attempts.shared.remembered;
            remembered.digest(&attempt.role, &attempt.hash, &attempt.password)
        };
        let known = digest(&right());
        attempts.shared.remembered.insert(&right().role, known);
        assert_eq!(attempts.fits(right()).await, Ok(true), "at once");
        for number in 0..20 {
            let guess = PasswordAttempt {
                password: Secret::new(format!("guess {number}")),
                ..attempt(0, 1)
            };
            begin(&attempts, guess);
        }
        let refused = attempts.fits(right()).await;
        assert_eq!(refused, Err(too_many_logins()));
    }

    fn right(number: usize, address: u8) -> PasswordAttempt {
        PasswordAttempt {
            password: Secret::new("wonder".to_owned()),
            ..attempt(number, address)
        }
    }

    #[tokio::test]
    async fn a_right_login_waits_for_200_guessing_addresses_once_each_at_most() {
        let attempts = PasswordChecks::default();
        let under_way = &attempts.shared.under_way;
        let turns = [(), ()].map(|()| under_way.take_turn(WaitReason::Usual));
        let mut last = None;
        let guesses = (0..).flat_map(|round| {
            (1..=200).map(move |address| attempt(1_000 * round + usize::from(address), address))
        });
        for guess in guesses.take(UNDER_WAY_MAX) {
            last = Some(attempts.begin(guess).unwrap());
        }
        assert_eq!(under_way.results().len(), UNDER_WAY_MAX);
        // The line is full, and the next guess of an address has the worst rank of all.
        let refused = attempts.fits(attempt(0, 1)).await;
        assert_eq!(refused, Err(too_many_logins()));
        let login = attempts.begin(right(1, 250)).unwrap();
        assert_eq!(under_way.results().len(), UNDER_WAY_MAX);
        let gave_way = last.unwrap().fits().await;
        assert_eq!(gave_way, Err(too_many_logins()));
        drop(turns);
        assert_eq!(login.fits().await, Ok(true));
        // Further checks may begin until this task runs again.
        let checked = attempts.checked();
        assert!(
            checked <= UNDER_WAY_MAX as u64 / 10,
            "{checked} were checked"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_that_have_failed_come_last_also_at_the_role_that_they_guess_at() {
        let attempts = PasswordChecks::default();
        let under_way = &attempts.shared.under_way;
        for address in 1..=200 {
            let PasswordAttempt { role, address, .. } = attempt(0, address);
            attempts.failed_unchecked(&role, address);
        }
        let turns = [(), ()].map(|()| under_way.take_turn(WaitReason::Usual));
        let guesses = (0..).flat_map(|number| {
            let role = if number < 4 { 0 } else { number };
            (1..=200).map(move |address| PasswordAttempt {
                password: Secret::new(format!("guess {number}")),
                ..attempt(role, address)
            })
        });
        for guess in guesses.take(UNDER_WAY_MAX) {
            assert!(attempts.begin(guess).is_ok());
        }
        let in_line = under_way.of_addresses();
        assert!(in_line.is_empty(), "all wait because of failures");
        let one = attempts.begin(right(1_000, 250)).unwrap();
        // Those whose wait is over are in the line, and come last there, too.
        tokio::time::sleep(Duration::from_secs(30)).await;
        let in_line: usize = under_way.of_addresses().iter().sum();
        assert_eq!(in_line, UNDER_WAY_MAX);
        let other = attempts.begin(right(0, 251)).unwrap();
        assert_eq!(under_way.results().len(), UNDER_WAY_MAX);
        drop(turns);
        assert_eq!(one.fits().await, Ok(true));
        assert_eq!(other.fits().await, Ok(true));
        let checked = attempts.checked();
        assert!(
            checked <= UNDER_WAY_MAX as u64 / 10,
            "{checked} were checked"
        );
    }
}
