//! Logins by a password, by CQL and by HTTP: checked, and told to the audit log.

use std::net::IpAddr;
use std::sync::Arc;

use cql::error::CqlError;

use crate::access::login::Credentials;
use crate::audit::{AuditLog, Category, login_line};
use crate::database::Database;

/// An attempt to log in.
pub(crate) struct Attempt {
    /// The name and the password, or the error of a client that gives none.
    pub credentials: Result<Credentials, CqlError>,
    pub address: IpAddr,
    /// The client, as a line tells it.
    pub source: String,
    /// Whether a line tells also of an attempt that succeeds.
    pub is_told_always: bool,
}

/// Checks a login, and has the attempt logged, if there is a log of such. Returns the role.
///
/// An attempt that is logged goes on if nobody waits for it any more: whoever hangs up hides no
/// guess.
///
/// # Errors
/// BadCredentials; Overloaded if too many attempts wait; ServerError if the attempt can't be
/// logged. Nothing is checked while the log is known to be stuck.
pub(crate) async fn log_in(
    database: &Arc<Database>,
    audit: Option<&Arc<AuditLog>>,
    attempt: Attempt,
) -> Result<Arc<str>, CqlError> {
    let log = audit.filter(|log| log.filter().has(Category::Auth));
    let Some(log) = log else {
        return check(database, attempt.credentials, attempt.address).await;
    };
    log.check_login()?;
    let logged = log_in_logged(Arc::clone(database), Arc::clone(log), attempt);
    let ended = tokio::spawn(logged).await;
    ended.unwrap_or_else(|error| Err(CqlError::server(format!("a login ended early: {error}"))))
}

async fn log_in_logged(
    database: Arc<Database>,
    log: Arc<AuditLog>,
    attempt: Attempt,
) -> Result<Arc<str>, CqlError> {
    let name = attempt.credentials.as_ref().ok();
    let name = name.map(|credentials| credentials.role.clone());
    let role = check(&database, attempt.credentials, attempt.address).await;
    let error = role.as_ref().err().map(|error| &error.kind);
    if (error.is_some() || attempt.is_told_always)
        && let Some(line) = login_line(&log, &attempt.source, name.as_deref(), error)
    {
        log.write_login(line).await?;
    }
    role
}

async fn check(
    database: &Database,
    credentials: Result<Credentials, CqlError>,
    address: IpAddr,
) -> Result<Arc<str>, CqlError> {
    // A role that is dropped while the login waits is refused by the check of its first statement.
    let catalog = database.storage.catalog();
    let logins = &database.access.logins;
    logins.log_in(&catalog, credentials?, address).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cql::error::ErrorKind;
    use cql::secret::Secret;
    use futures::FutureExt as _;
    use schema::{Catalog, Role};
    use storage::{Storage, StorageOptions};

    use super::*;
    use crate::access::Access;
    use crate::audit::AuditOptions;
    use crate::system::SystemTables;

    /// A database with the role `ada`, whose password is `lovelace`.
    async fn database(directory: &Path) -> Arc<Database> {
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
        Arc::new(Database {
            storage,
            system: SystemTables::new(),
            stores: store_api::Stores::disabled(),
            access: Access::by_login(),
        })
    }

    fn attempt(password: &str) -> Attempt {
        Attempt {
            credentials: Ok(Credentials {
                role: "ada".to_owned(),
                password: Secret::new(password.to_owned()),
            }),
            address: IpAddr::from([10, 0, 0, 1]),
            source: "10.0.0.1:5".to_owned(),
            is_told_always: true,
        }
    }

    #[tokio::test]
    async fn no_password_is_checked_while_the_log_is_stuck() {
        let directory = tempfile::tempdir().unwrap();
        let database = database(directory.path()).await;
        let log = Arc::new(AuditLog::stuck().await);
        for password in ["lovelace", "wrong"] {
            let refused = log_in(&database, Some(&log), attempt(password)).await;
            let error = refused.unwrap_err();
            assert_eq!(error.kind, ErrorKind::ServerError);
            assert!(error.message.contains("not carried out"), "{error}");
        }
        assert_eq!(database.access.logins.checked(), 0);
        let role = log_in(&database, None, attempt("lovelace")).await;
        assert_eq!(role.as_deref(), Ok("ada"));
    }

    #[tokio::test]
    async fn a_guess_is_logged_though_its_client_has_hung_up() {
        let directory = tempfile::tempdir().unwrap();
        let database = database(&directory.path().join("data")).await;
        let path = directory.path().join("audit.log");
        let log = AuditLog::open(AuditOptions {
            file: path.clone(),
            categories: vec![Category::Auth],
            keyspaces: Vec::new(),
            roles_left_out: Vec::new(),
        });
        let log = Arc::new(log.unwrap());
        let begun = log_in(&database, Some(&log), attempt("wrong")).now_or_never();
        assert!(begun.is_none(), "it has ended at once");
        for _ in 0..10_000 {
            let lines = std::fs::read_to_string(&path).unwrap();
            if lines.contains("LOGIN_ERROR") && lines.ends_with('\n') {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        panic!("the attempt is not logged");
    }
}
