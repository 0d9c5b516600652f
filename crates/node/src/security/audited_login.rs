//! Logins by a password, by CQL and by HTTP: checked, and written to the audit log.

use std::net::IpAddr;
use std::sync::Arc;

use cql::error::{CqlError, ErrorKind};
use storage::Storage;

use super::access::login::{PasswordAuthenticator, RoleCredentials};
use super::audit::{AuditLog, EventCategory, login_line};
use crate::statement::LoggedInRole;

/// An attempt to log in.
pub(crate) struct LoginAttempt {
    /// The name and the password, or the error of a client that gives none.
    pub credentials: Result<RoleCredentials, CqlError>,
    pub address: IpAddr,
    /// The client, as a line names it.
    pub source: String,
    /// Whether an attempt that succeeds is logged, too.
    pub is_always_logged: bool,
}

/// Checks a login, and has the attempt logged, if there is a log of such. Returns the role.
///
/// An attempt whose password is checked goes on if no one waits for it any more: a client that
/// hangs up hides no guess. Those that fail without a check of their own cost a client next to
/// nothing, so that a line for each could fill the disk: they share a line now and then.
///
/// # Errors
/// BadCredentials; Overloaded if too many attempts wait; ServerError if the attempt can't be
/// logged. Nothing is checked while the log is known to be stuck.
pub(crate) async fn log_in(
    storage: &Storage,
    logins: &PasswordAuthenticator,
    audit: Option<&Arc<AuditLog>>,
    attempt: LoginAttempt,
) -> Result<LoggedInRole, CqlError> {
    let logs = |log: &&Arc<AuditLog>| log.filter().has(EventCategory::Auth);
    let log = audit.filter(logs);
    if let Some(log) = log {
        log.check_login()?;
    }
    let name = attempt.credentials.as_ref().ok();
    let name = name.map(|credentials| credentials.role.clone());
    let begun = attempt.credentials.and_then(|credentials| {
        // A role that is dropped while the login waits is refused by the check of its first
        // statement.
        let catalog = storage.catalog();
        logins.begin(&catalog, credentials, attempt.address)
    });
    let Some(log) = log else {
        return begun?.end().await;
    };
    let told = LoginRecord {
        log: Arc::clone(log),
        name,
        source: attempt.source,
        is_always_logged: attempt.is_always_logged,
    };
    match begun {
        Ok(begun) if begun.is_checked() => {
            let logged = async move {
                match begun.end().await {
                    // It gave way to others before its check.
                    Err(error) if error.kind == ErrorKind::Overloaded => {
                        told.of_unchecked(Err(error)).await
                    }
                    ended => told.of_checked(ended).await,
                }
            };
            let ended = tokio::spawn(logged).await;
            ended.unwrap_or_else(|error| {
                Err(CqlError::server(format!("a login ended early: {error}")))
            })
        }
        Ok(begun) => told.of_unchecked(begun.end().await).await,
        Err(error) => told.of_unchecked(Err(error)).await,
    }
}

/// The words of an attempt for the log.
struct LoginRecord {
    log: Arc<AuditLog>,
    name: Option<String>,
    source: String,
    is_always_logged: bool,
}

impl LoginRecord {
    async fn of_checked(
        self,
        role: Result<LoggedInRole, CqlError>,
    ) -> Result<LoggedInRole, CqlError> {
        if (role.is_err() || self.is_always_logged)
            && let Some(line) = self.line(&role)
        {
            self.log.write_login(line).await?;
        }
        role
    }

    async fn of_unchecked(
        self,
        role: Result<LoggedInRole, CqlError>,
    ) -> Result<LoggedInRole, CqlError> {
        match self.line(&role) {
            Some(line) if role.is_err() => self.log.write_unchecked(line).await?,
            Some(line) if self.is_always_logged => self.log.write_login(line).await?,
            _ => {}
        }
        role
    }

    fn line(&self, role: &Result<LoggedInRole, CqlError>) -> Option<Vec<u8>> {
        let error = role.as_ref().err().map(|error| &error.kind);
        login_line(&self.log, &self.source, self.name.as_deref(), error)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cql::secret::Secret;
    use futures::FutureExt as _;
    use schema::{Catalog, Role};
    use serde_json::Value;
    use storage::StorageOptions;
    use test_support::eventually;

    use super::*;
    use crate::security::audit::AuditOptions;

    /// A storage with the role `ada`, whose password is `lovelace`.
    async fn storage(directory: &Path) -> Storage {
        let storage = Storage::open(directory, StorageOptions::default()).unwrap();
        let changed = storage.change_catalog(|catalog: &mut Catalog| {
            let role = Role {
                can_login: true,
                salted_hash: Some(Secret::new(bcrypt::hash("lovelace", 4).unwrap())),
                ..Role::default()
            };
            catalog.roles.insert("ada".to_owned(), Arc::new(role));
            Ok::<(), CqlError>(())
        });
        assert!(changed.await.is_ok());
        storage
    }

    fn attempt(password: &str) -> LoginAttempt {
        LoginAttempt {
            credentials: Ok(RoleCredentials {
                role: "ada".to_owned(),
                password: Secret::new(password.to_owned()),
            }),
            address: IpAddr::from([10, 0, 0, 1]),
            source: "10.0.0.1:5".to_owned(),
            is_always_logged: true,
        }
    }

    #[tokio::test]
    async fn no_password_is_checked_while_the_log_is_stuck() {
        let directory = tempfile::tempdir().unwrap();
        let storage = storage(directory.path()).await;
        let logins = PasswordAuthenticator::default();
        let log = Arc::new(AuditLog::stuck().await);
        for password in ["lovelace", "wrong"] {
            let refused = log_in(&storage, &logins, Some(&log), attempt(password)).await;
            let error = refused.unwrap_err();
            assert_eq!(error.kind, ErrorKind::ServerError);
            assert!(error.message.contains("not carried out"), "{error}");
        }
        assert_eq!(logins.checked(), 0);
        let role = log_in(&storage, &logins, None, attempt("lovelace")).await;
        assert_eq!(role.as_deref(), Ok("ada"));
    }

    fn log_of_logins(path: &Path) -> Arc<AuditLog> {
        let log = AuditLog::open(AuditOptions {
            file: path.to_owned(),
            categories: vec![EventCategory::Auth],
            keyspaces: Vec::new(),
            roles_left_out: Vec::new(),
        });
        Arc::new(log.unwrap())
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }

    #[tokio::test]
    async fn attempts_that_nothing_is_checked_for_share_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let storage = storage(&directory.path().join("data")).await;
        let logins = PasswordAuthenticator::default();
        let path = directory.path().join("audit.log");
        let log = log_of_logins(&path);
        let too_long = || attempt(&"x".repeat(2_000));
        let formless = || LoginAttempt {
            credentials: RoleCredentials::of_token(b"no token"),
            ..attempt("")
        };
        for _ in 0..100 {
            for unchecked in [too_long(), formless()] {
                let refused = log_in(&storage, &logins, Some(&log), unchecked).await;
                assert_eq!(refused.unwrap_err().kind, ErrorKind::BadCredentials);
            }
        }
        assert_eq!(logins.checked(), 0);
        assert_eq!(lines(&path).len(), 1);

        // Of those with the same words one is checked, and has its own line.
        let guess = || log_in(&storage, &logins, Some(&log), attempt("wrong"));
        let guesses = futures::future::join_all((0..100).map(|_| guess())).await;
        assert!(guesses.iter().all(Result::is_err));
        assert_eq!(logins.checked(), 1);
        assert_eq!(lines(&path).len(), 2);
        log.flush().await;
        let untold = &lines(&path)[2];
        assert_eq!(untold["times"], 2 * 100 - 1 + 99);
        assert_eq!(
            (&untold["source"], &untold["role"]),
            (&Value::Null, &Value::Null)
        );

        // Every login that succeeds has its line.
        let right = || log_in(&storage, &logins, Some(&log), attempt("lovelace"));
        let let_in = futures::future::join_all((0..100).map(|_| right())).await;
        assert!(let_in.iter().all(Result::is_ok));
        let lines = lines(&path);
        let successes = lines.iter().filter(|line| line["type"] == "LOGIN_SUCCESS");
        assert_eq!(successes.count(), 100);
    }

    #[tokio::test]
    async fn a_guess_is_logged_though_its_client_has_hung_up() {
        let directory = tempfile::tempdir().unwrap();
        let storage = storage(&directory.path().join("data")).await;
        let logins = PasswordAuthenticator::default();
        let path = directory.path().join("audit.log");
        let log = log_of_logins(&path);
        let begun = log_in(&storage, &logins, Some(&log), attempt("wrong")).now_or_never();
        assert!(begun.is_none(), "it has ended at once");
        eventually("the attempt is logged", async || {
            let lines = std::fs::read_to_string(&path).unwrap();
            lines.contains("LOGIN_ERROR") && lines.ends_with('\n')
        })
        .await;
    }
}
