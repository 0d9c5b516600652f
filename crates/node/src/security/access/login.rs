//! Checks passwords, a few at a time on threads for blocking work, and remembers which were right.
//!
//! A check takes as long as a thousand reads. So a password that was right is remembered until its
//! role changes, as a keyed digest in memory: 1,000 connections that log in with one password cost
//! one check, also if they come at once.

use std::net::IpAddr;

use cql::error::{CqlError, ErrorKind};
use cql::secret::Secret;
use net::log_limiter::LogLimiter;
use schema::Catalog;

use super::attempts::{self, PasswordAttempt, PasswordChecks};
use crate::statement::LoggedInRole;

/// The longest name and password, in bytes each, that are looked at.
const WORD_BYTES_MAX: usize = 1_024;
/// A hash that no password has, checked where there is no role, so that the time of an answer does
/// not tell which roles there are.
const NOBODYS_HASH: &str = "$2a$10$abcdefghijklmnopqrstuuAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAC";

/// The name and the password that a client gives.
#[derive(Clone, Debug)]
pub struct RoleCredentials {
    /// The name of the role.
    pub role: String,
    /// Its password.
    pub password: Secret<String>,
}

impl RoleCredentials {
    /// Reads a token of SASL PLAIN (RFC 4616): the identity to act as, the name and the password,
    /// with zeros between them. The first is ignored, as Cassandra does.
    ///
    /// # Errors
    /// If the token has another form.
    pub fn of_token(token: &[u8]) -> Result<RoleCredentials, CqlError> {
        let mut parts = token.splitn(3, |byte| *byte == 0).skip(1);
        let mut part = |what: &str| {
            let bytes = parts.next().filter(|bytes| !bytes.is_empty());
            let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
            text.map(str::to_owned).ok_or_else(|| {
                bad_credentials(format!("{what} must not be null in the SASL PLAIN token"))
            })
        };
        Ok(RoleCredentials {
            role: part("Authentication ID")?,
            password: Secret::new(part("Password")?),
        })
    }
}

/// Checks logins.
#[derive(Default)]
pub struct PasswordAuthenticator {
    attempts: PasswordChecks,
    too_long: LogLimiter,
    too_many: LogLimiter,
}

/// A login whose password is being looked at.
pub(crate) struct PendingLogin {
    attempt: attempts::StartedCheck,
    role: String,
    /// The role of that name, if there is one.
    known: Option<LoggedInRole>,
    can_login: bool,
}

impl PendingLogin {
    /// Whether it has a check of its own, which others with the same words may wait for.
    pub fn is_checked(&self) -> bool {
        matches!(self.attempt, attempts::StartedCheck::Checked(_))
    }

    /// Returns the role once the password was looked at.
    ///
    /// # Errors
    /// BadCredentials, the same for an unknown role and for a wrong password.
    pub async fn end(self) -> Result<LoggedInRole, CqlError> {
        let role = self.role;
        if !self.attempt.fits().await? {
            return Err(bad_credentials(format!(
                "Provided username {role} and/or password are incorrect"
            )));
        }
        self.known
            .filter(|_| self.can_login)
            .ok_or_else(|| bad_credentials(format!("{role} is not permitted to log in")))
    }
}

impl PasswordAuthenticator {
    /// Begins to check the credentials of a client at this address.
    ///
    /// # Errors
    /// BadCredentials if they are too long to be anybody's. Overloaded if too many attempts wait.
    pub(crate) fn begin(
        &self,
        catalog: &Catalog,
        credentials: RoleCredentials,
        address: IpAddr,
    ) -> Result<PendingLogin, CqlError> {
        let RoleCredentials { role, password } = credentials;
        if role.len().max(password.expose().len()) > WORD_BYTES_MAX {
            return Err(self.refuse_long(address));
        }
        let known = catalog.roles.get(&role);
        let hash = known.and_then(|known| known.salted_hash.clone());
        let attempt = PasswordAttempt {
            role: role.clone(),
            password,
            is_known: hash.is_some(),
            hash: hash.unwrap_or_else(|| Secret::new(NOBODYS_HASH.to_owned())),
            address,
        };
        let attempt = self.attempts.begin(attempt);
        Ok(PendingLogin {
            attempt: attempt.inspect_err(|error| self.warn_of_unchecked(error, address))?,
            can_login: known.is_some_and(|known| known.can_login),
            known: LoggedInRole::of(catalog, &role),
            role,
        })
    }

    /// Logs that a login was refused without a check. A client of CQL gets no answer.
    fn warn_of_unchecked(&self, error: &CqlError, address: IpAddr) {
        if let Some(refused) = self.too_many.is_due() {
            tracing::warn!(%address, refused, %error, "logins were not checked");
        }
    }

    /// Counts an attempt with a name or a password that is too long for any role, which is neither
    /// logged nor sent back.
    fn refuse_long(&self, address: IpAddr) -> CqlError {
        self.attempts.failed_unchecked("", address);
        if let Some(attempts) = self.too_long.is_due() {
            tracing::warn!(
                %address,
                attempts,
                "logins failed: a name or a password has more than {WORD_BYTES_MAX} bytes"
            );
        }
        bad_credentials(format!(
            "Provided username and/or password are incorrect: each has at most {WORD_BYTES_MAX} bytes"
        ))
    }

    /// The checks so far: how many passwords were hashed.
    pub fn checked(&self) -> u64 {
        self.attempts.checked()
    }

    /// The failed logins so far.
    pub fn failed(&self) -> u64 {
        self.attempts.failed()
    }
}

/// The role that logs in by a certificate of this identity, if there is one and it may log in.
pub(crate) fn role_of_identity(catalog: &Catalog, identity: &str) -> Option<LoggedInRole> {
    let role = catalog.role_of_identity(identity)?;
    LoggedInRole::of(catalog, role).filter(|_| catalog.roles[role].can_login)
}

fn bad_credentials(message: String) -> CqlError {
    CqlError::new(ErrorKind::BadCredentials, message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use schema::Role;

    use super::*;
    use crate::fixtures;

    impl PasswordAuthenticator {
        async fn log_in(
            &self,
            catalog: &Catalog,
            credentials: RoleCredentials,
            address: IpAddr,
        ) -> Result<LoggedInRole, CqlError> {
            self.begin(catalog, credentials, address)?.end().await
        }
    }

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

    fn credentials(role: &str, password: &str) -> RoleCredentials {
        RoleCredentials::of_token(format!("\0{role}\0{password}").as_bytes()).unwrap()
    }

    #[tokio::test]
    async fn many_logins_at_once_cost_one_check_until_the_password_changes() {
        let logins = Arc::new(PasswordAuthenticator::default());
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
        let logins = PasswordAuthenticator::default();
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

    #[tokio::test]
    async fn a_name_that_is_too_long_counts_and_is_not_sent_back() {
        let logins = PasswordAuthenticator::default();
        let catalog = catalog();
        let long = "x".repeat(WORD_BYTES_MAX + 1);
        for (role, password) in [(&*long, "wonder"), ("alice", &*long)] {
            let login = logins.log_in(&catalog, credentials(role, password), ADDRESS);
            let error = login.await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::BadCredentials);
            assert!(error.message.len() < 100, "{}", error.message);
        }
        assert_eq!((logins.checked(), logins.failed()), (0, 2));
    }

    #[test]
    fn the_hash_for_unknown_roles_is_a_valid_bcrypt_hash() {
        assert!(matches!(bcrypt::verify("x", NOBODYS_HASH), Ok(false)));
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
            let error = RoleCredentials::of_token(token).unwrap_err();
            assert_eq!(error.kind, ErrorKind::BadCredentials, "{token:?}");
        }
    }
}
