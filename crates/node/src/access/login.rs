//! Checks passwords, a few at a time on threads for blocking work, and remembers which were right.
//!
//! A check takes as long as a thousand reads. So a password that was right is remembered until its
//! role changes, as a keyed digest in memory: 1,000 connections that log in with one password cost
//! one check, also if they come at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::hmac;
use cql::error::{CqlError, ErrorKind};
use cql::secret::Secret;
use schema::Catalog;
use tokio::sync::{OnceCell, Semaphore};
use uuid::Uuid;

use super::password;
use super::slowing::Slowing;

/// Passwords checked at once.
const CHECKS_AT_ONCE: usize = 2;
/// The most attempts that wait for a check. Further ones are refused.
const WAITING_MAX: usize = 1_024;
/// The most right passwords that are remembered, 2 MiB.
const REMEMBERED_MAX: usize = 10_000;
/// The longest name and password, in bytes each, that are looked at.
const WORD_BYTES_MAX: usize = 1_024;
/// A hash that no password has, checked where there is no role, so that the time of an answer does
/// not tell which roles there are.
const NOBODYS_HASH: &str = "$2a$10$abcdefghijklmnopqrstuuAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The name and the password that a client gives.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The name of the role.
    pub role: String,
    /// Its password.
    pub password: Secret<String>,
}

impl Credentials {
    /// Reads a token of SASL PLAIN (RFC 4616): the identity to act as, the name and the password,
    /// with zeros between them. The first is ignored, as Cassandra does.
    ///
    /// # Errors
    /// If the token has another form.
    pub fn of_token(token: &[u8]) -> Result<Credentials, CqlError> {
        let mut parts = token.splitn(3, |byte| *byte == 0).skip(1);
        let mut part = |what: &str| {
            let bytes = parts.next().filter(|bytes| !bytes.is_empty());
            let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
            text.map(str::to_owned).ok_or_else(|| {
                bad_credentials(format!("{what} must not be null in the SASL PLAIN token"))
            })
        };
        Ok(Credentials {
            role: part("Authentication ID")?,
            password: Secret::new(part("Password")?),
        })
    }
}

/// Checks logins.
pub struct Logins {
    /// The key of the digests, made at each start.
    key: hmac::Key,
    /// The digest of role, hash and the password that was right, by role.
    remembered: Mutex<HashMap<String, Digest>>,
    /// The checks that are under way, by the digest of role, hash and password.
    under_way: Mutex<HashMap<Digest, Arc<OnceCell<bool>>>>,
    checks: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    slowing: Slowing,
    checked: AtomicU64,
    failed: AtomicU64,
}

type Digest = [u8; 32];

impl Default for Logins {
    fn default() -> Logins {
        let random = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        Logins {
            key: hmac::Key::new(hmac::HMAC_SHA256, &random),
            remembered: Mutex::default(),
            under_way: Mutex::default(),
            checks: Arc::new(Semaphore::new(CHECKS_AT_ONCE)),
            waiting: Arc::new(Semaphore::new(WAITING_MAX)),
            slowing: Slowing::default(),
            checked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }
}

impl Logins {
    /// Checks the credentials of a client at this address. Returns the role.
    ///
    /// # Errors
    /// BadCredentials, the same for an unknown role and for a wrong password. Overloaded if too
    /// many attempts wait.
    pub async fn log_in(
        &self,
        catalog: &Catalog,
        credentials: Credentials,
        address: IpAddr,
    ) -> Result<Arc<str>, CqlError> {
        let Credentials { role, password } = credentials;
        let known = catalog.roles.get(&role);
        let hash = known.and_then(|known| known.salted_hash.clone());
        let fits = match hash {
            _ if role.len().max(password.expose().len()) > WORD_BYTES_MAX => false,
            Some(hash) if self.remembers(&role, &hash, &password) => true,
            Some(hash) => self.check_slowly(&role, hash, password, address).await?,
            None => {
                let nobodys = Secret::new(NOBODYS_HASH.to_owned());
                self.check_slowly(&role, nobodys, password, address).await?;
                false
            }
        };
        if !fits {
            self.failed.fetch_add(1, Ordering::Relaxed);
            self.slowing.failed(address);
            tracing::warn!(role = role.escape_debug().to_string(), %address, "a login failed");
            return Err(bad_credentials(format!(
                "Provided username {role} and/or password are incorrect"
            )));
        }
        self.slowing.succeeded(address);
        match known.is_some_and(|known| known.can_login) {
            true => Ok(role.into()),
            false => Err(bad_credentials(format!(
                "{role} is not permitted to log in"
            ))),
        }
    }

    /// Hashes a new password, within the bounds of the checks: it costs as much as one.
    ///
    /// # Errors
    /// Overloaded if too many wait.
    pub async fn hash(&self, password: Secret<String>) -> Result<Secret<String>, CqlError> {
        let _place = self.waiting.try_acquire().map_err(|_| too_many())?;
        let checks = self.checks.clone();
        let turn = checks.acquire_owned().await.map_err(|_| too_many())?;
        let hash = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            password::hash_of_new(&password)
        });
        let hash = hash.await;
        hash.map_err(|error| CqlError::server(format!("hashing a password: {error}")))?
    }

    /// The checks so far: how many passwords were hashed.
    pub fn checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    /// The failed logins so far.
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    fn remembers(&self, role: &str, hash: &Secret<String>, password: &Secret<String>) -> bool {
        self.has_been_right(role, &self.digest(role, hash, password))
    }

    /// Whether a check of this digest, of which the hash is a part, was passed by the role's last
    /// password.
    fn has_been_right(&self, role: &str, digest: &Digest) -> bool {
        let remembered = lock(&self.remembered);
        remembered.get(role).is_some_and(|known| known == digest)
    }

    /// Waits for a turn, then checks a password. One that is being checked already is waited for.
    async fn check_slowly(
        &self,
        role: &str,
        hash: Secret<String>,
        password: Secret<String>,
        address: IpAddr,
    ) -> Result<bool, CqlError> {
        let _place = self.waiting.try_acquire().map_err(|_| too_many())?;
        let wait = self.slowing.wait(address).ok_or_else(too_many)?;
        tokio::time::sleep(wait).await;
        let digest = self.digest(role, &hash, &password);
        let cell = lock(&self.under_way).entry(digest).or_default().clone();
        let fits = cell.get_or_try_init(async || {
            // A check may have ended since this attempt looked.
            match self.has_been_right(role, &digest) {
                true => Ok(true),
                false => self.check(hash, password).await,
            }
        });
        let fits = fits.await.copied();
        if fits.as_ref().is_ok_and(|fits| *fits) {
            self.remember(role, digest);
        }
        lock(&self.under_way).remove(&digest);
        fits
    }

    async fn check(
        &self,
        hash: Secret<String>,
        password: Secret<String>,
    ) -> Result<bool, CqlError> {
        let checks = self.checks.clone();
        let turn = checks.acquire_owned().await.map_err(|_| too_many())?;
        self.checked.fetch_add(1, Ordering::Relaxed);
        let check = tokio::task::spawn_blocking(move || {
            // The turn ends with the check, also if the client has gone meanwhile.
            let _turn = turn;
            password::fits(&password, &hash)
        });
        let fits = check.await;
        fits.map_err(|error| CqlError::server(format!("checking a password: {error}")))
    }

    fn remember(&self, role: &str, digest: Digest) {
        let mut remembered = lock(&self.remembered);
        if remembered.len() >= REMEMBERED_MAX {
            // Rare, and costs each role one more check.
            remembered.clear();
        }
        remembered.insert(role.to_owned(), digest);
    }

    fn digest(&self, role: &str, hash: &Secret<String>, password: &Secret<String>) -> Digest {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [role, hash.expose(), password.expose()] {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part.as_bytes());
        }
        let mut digest = Digest::default();
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bad_credentials(message: String) -> CqlError {
    CqlError::new(ErrorKind::BadCredentials, message)
}

fn too_many() -> CqlError {
    let message = "Overloaded: too many logins wait to be checked; try again later";
    CqlError::new(ErrorKind::Overloaded, message)
}

#[cfg(test)]
mod tests {
    use schema::Role;

    use super::*;
    use crate::fixtures;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// A catalog with the role `alice`, whose password is `wonder`.
    fn catalog() -> Catalog {
        let mut catalog = fixtures::catalog();
        let hash = bcrypt::hash("wonder", 4).unwrap();
        let role = Role {
            can_login: true,
            salted_hash: Some(Secret::new(hash)),
            ..Role::default()
        };
        catalog.roles.insert("alice".to_owned(), Arc::new(role));
        catalog
    }

    fn credentials(role: &str, password: &str) -> Credentials {
        Credentials::of_token(format!("\0{role}\0{password}").as_bytes()).unwrap()
    }

    #[tokio::test]
    async fn many_logins_at_once_cost_one_check_until_the_password_changes() {
        let logins = Arc::new(Logins::default());
        let catalog = Arc::new(catalog());
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..200 {
            let (logins, catalog) = (logins.clone(), catalog.clone());
            tasks.spawn(async move {
                let login = logins.log_in(&catalog, credentials("alice", "wonder"), ADDRESS);
                login.await.map(|role| role.to_string())
            });
        }
        while let Some(role) = tasks.join_next().await {
            assert_eq!(role.unwrap().as_deref(), Ok("alice"));
        }
        assert_eq!(logins.checked(), 1);
        let mut changed = Catalog::clone(&catalog);
        let role = changed.roles.get_mut("alice").unwrap();
        let other = bcrypt::hash("mirror", 4).unwrap();
        Arc::make_mut(role).salted_hash = Some(Secret::new(other));
        let refused = logins.log_in(&changed, credentials("alice", "wonder"), ADDRESS);
        assert_eq!(refused.await.unwrap_err().kind, ErrorKind::BadCredentials);
        assert_eq!(logins.checked(), 2);
    }

    #[tokio::test]
    async fn an_unknown_role_is_refused_like_a_wrong_password() {
        let logins = Logins::default();
        let catalog = catalog();
        let mut errors = Vec::new();
        for role in ["alice", "nobody"] {
            let login = logins.log_in(&catalog, credentials(role, "wrong"), ADDRESS);
            let error = login.await.unwrap_err();
            errors.push((error.kind.clone(), error.message.replace(role, "X")));
        }
        assert_eq!(errors[0], errors[1]);
        assert_eq!((logins.checked(), logins.failed()), (2, 2));
    }

    #[test]
    fn tokens_have_a_name_and_a_password() {
        let read = credentials("alice", "a\0b");
        assert_eq!(
            (read.role.as_str(), read.password.expose().as_str()),
            ("alice", "a\0b")
        );
        for token in [
            &b""[..],
            b"alice",
            b"\0alice",
            b"\0\0secret",
            b"\0alice\0",
            b"\0\xff\0x",
        ] {
            let error = Credentials::of_token(token).unwrap_err();
            assert_eq!(error.kind, ErrorKind::BadCredentials, "{token:?}");
        }
    }
}
