//! The roles of connections, and what they may do.
//!
//! A node may require logins. Then each connection belongs to a role, which proves itself by a
//! password ([`login`]) or a client's certificate. Every statement needs some permissions
//! (`planner::needs`), and is refused if the role does not have them ([`rights`]). Rights are
//! worked out from the catalog, once for each role and version of the catalog. So a change of roles
//! or grants holds for the next statement of every connection.
//!
//! Roles and grants are a part of the catalog (`schema::roles`); the statements that change them
//! are in [`crate::security::roles`].

mod attempt_queue;
mod attempts;
pub mod first_superuser;
mod hashing;
pub mod login;
mod login_throttle;
mod password;
mod rights;
mod verified_passwords;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cql::error::{CqlError, ErrorKind};
pub(crate) use hashing::PasswordHasher;
use login::PasswordAuthenticator;
pub(crate) use password::check_hash;
pub use rights::RoleRights;
pub(crate) use rights::is_of_system;
use schema::{Catalog, Permission, Resource};
use uuid::Uuid;

use crate::statement::LoggedInRole;

/// The logins of a node, and the rights of its roles.
#[derive(Default)]
pub struct AuthService {
    requires_login: bool,
    /// Checks passwords.
    pub logins: PasswordAuthenticator,
    /// Hashes new passwords.
    pub(crate) hashing: PasswordHasher,
    rights: Mutex<RightsCache>,
}

/// The rights of roles by one version of the catalog.
#[derive(Default)]
struct RightsCache {
    version: Uuid,
    by_role: HashMap<LoggedInRole, Arc<RoleRights>>,
}

impl AuthService {
    /// The access to a node that requires logins.
    pub fn by_login() -> AuthService {
        AuthService {
            requires_login: true,
            ..AuthService::default()
        }
    }

    /// Whether clients have to log in.
    pub fn requires_login(&self) -> bool {
        self.requires_login
    }

    /// The rights of a role.
    ///
    /// # Errors
    /// Unauthorized if the role was dropped or may not log in any more.
    pub fn rights(
        &self,
        catalog: &Catalog,
        role: &LoggedInRole,
    ) -> Result<Arc<RoleRights>, CqlError> {
        let mut known = lock(&self.rights);
        if known.version != catalog.version {
            // Only the version in use last is remembered. Requests that began before a change are
            // few, and go on with rights of their own version.
            *known = RightsCache {
                version: catalog.version,
                by_role: HashMap::new(),
            };
        }
        if let Some(rights) = known.by_role.get(role) {
            return Ok(rights.clone());
        }
        let rights = Arc::new(RoleRights::of_logged_in(catalog, role).ok_or_else(|| {
            unauthorized(format!(
                "The role {} does not exist any more or may not log in: log in again",
                role.name()
            ))
        })?);
        known.by_role.insert(role.clone(), rights.clone());
        Ok(rights)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn too_many_logins() -> CqlError {
    let message = "Overloaded: too many logins wait to be checked; try again later";
    CqlError::new(ErrorKind::Overloaded, message)
}

/// An `Unauthorized` error.
pub(crate) fn unauthorized(message: impl Into<String>) -> CqlError {
    CqlError::new(ErrorKind::Unauthorized, message)
}

/// The error for a permission that a role does not have.
pub(crate) fn no_permission(role: &str, permission: Permission, resource: &Resource) -> CqlError {
    unauthorized(format!(
        "User {role} has no {permission} permission on {resource} or any of its parents"
    ))
}

#[cfg(test)]
mod tests {
    use schema::Role;

    use super::*;
    use crate::fixtures;
    use crate::security::roles::own;

    #[test]
    fn another_role_of_the_name_is_not_the_one_that_logged_in() {
        let access = AuthService::by_login();
        let role = |id| Role {
            id: Uuid::from_u128(id),
            can_login: true,
            ..Role::default()
        };
        let mut catalog = fixtures::catalog();
        let change = |catalog: &mut Catalog, id| {
            catalog.version = Uuid::new_v4();
            catalog.roles.insert("ada".to_owned(), Arc::new(role(id)));
        };
        change(&mut catalog, 0);
        let first = LoggedInRole::of(&catalog, "ada").unwrap();
        assert!(access.rights(&catalog, &first).is_ok());
        catalog.remove_role("ada");
        change(&mut catalog, 7);
        let second = LoggedInRole::of(&catalog, "ada").unwrap();
        assert!(access.rights(&catalog, &second).is_ok());
        let refused = access.rights(&catalog, &first).unwrap_err();
        assert!(refused.message.contains("log in again"), "{refused:?}");
        // It doesn't own what it makes, either.
        let made = Resource::Keyspace("ks".to_owned());
        own(&mut catalog, &first, made.clone());
        assert_eq!(catalog.roles["ada"].grants.get(&made), None);
        own(&mut catalog, &second, made.clone());
        assert!(catalog.roles["ada"].grants.contains_key(&made));
    }
}
