//! The roles behind connections, and what they may do.
//!
//! A node may ask for logins. Then each connection belongs to a role, which proves itself by a
//! password ([`login`]) or a client's certificate. Every statement needs some permissions
//! (`query::needs`), and is refused if the role does not have them ([`rights`]). Rights are worked
//! out from the catalog, once for each role and version of the catalog. So a change of roles or
//! grants holds for the next statement of every connection.
//!
//! Roles and grants are a part of the catalog (`schema::roles`); the statements that change them
//! are in [`crate::roles`].

mod attempts;
pub mod first_superuser;
mod hashing;
pub mod login;
mod password;
mod remembered;
mod rights;
mod slowing;
mod under_way;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cql::error::{CqlError, ErrorKind};
pub(crate) use hashing::Hashing;
use login::Logins;
pub(crate) use password::check_hash;
pub use rights::Rights;
use schema::{Catalog, Permission, Resource};
use uuid::Uuid;

/// The role behind a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Actor {
    /// Anybody: the node asks for no login, and everything is allowed but to manage roles.
    #[default]
    Anybody,
    /// This role, which has logged in.
    Role(LoggedIn),
}

/// A role that has logged in. If it is dropped, another role of its name is not the same one.
/// Small, as the future of each request holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoggedIn(Arc<RoleIdentity>);

/// The name of a role, and the id that it was created with.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RoleIdentity {
    name: Arc<str>,
    id: Uuid,
}

impl LoggedIn {
    /// The role of this name; `None` if there is none.
    pub fn of(catalog: &Catalog, name: &str) -> Option<LoggedIn> {
        let id = catalog.roles.get(name)?.id;
        let name = name.into();
        Some(LoggedIn(Arc::new(RoleIdentity { name, id })))
    }

    /// The name of the role.
    pub fn name(&self) -> &Arc<str> {
        &self.0.name
    }

    /// Whether the catalog has this very role.
    pub fn is_in(&self, catalog: &Catalog) -> bool {
        let role = catalog.roles.get(&**self);
        role.is_some_and(|role| role.id == self.0.id)
    }

    /// The rights of the role; `None` if it is gone, or may not log in any more.
    pub fn rights(&self, catalog: &Catalog) -> Option<Rights> {
        match self.is_in(catalog) {
            true => Rights::of(catalog, self),
            false => None,
        }
    }
}

#[cfg(test)]
impl From<&str> for LoggedIn {
    /// A role without an id, as tests make it.
    fn from(name: &str) -> LoggedIn {
        let id = Uuid::nil();
        let name = name.into();
        LoggedIn(Arc::new(RoleIdentity { name, id }))
    }
}

impl Deref for LoggedIn {
    type Target = str;

    /// The name of the role.
    fn deref(&self) -> &str {
        &self.0.name
    }
}

impl Actor {
    /// The name of the role.
    ///
    /// # Errors
    /// Unauthorized if the node asks for no login.
    pub fn role(&self) -> Result<&LoggedIn, CqlError> {
        match self {
            Actor::Role(role) => Ok(role),
            Actor::Anybody => Err(unauthorized(
                "You have to be logged in and not anonymous to perform this request: start annulus serve with --login",
            )),
        }
    }
}

/// The logins of a node, and the rights of its roles.
#[derive(Default)]
pub struct Access {
    asks_for_login: bool,
    /// Checks passwords.
    pub logins: Logins,
    /// Hashes new passwords.
    pub(crate) hashing: Hashing,
    rights: Mutex<Known>,
}

/// The rights of roles by one version of the catalog.
#[derive(Default)]
struct Known {
    version: Uuid,
    by_role: HashMap<LoggedIn, Arc<Rights>>,
}

impl Access {
    /// The access to a node that asks for logins.
    pub fn by_login() -> Access {
        Access {
            asks_for_login: true,
            ..Access::default()
        }
    }

    /// Whether clients have to log in.
    pub fn asks_for_login(&self) -> bool {
        self.asks_for_login
    }

    /// The rights of a role.
    ///
    /// # Errors
    /// Unauthorized if the role is gone or may not log in any more.
    pub fn rights(&self, catalog: &Catalog, role: &LoggedIn) -> Result<Arc<Rights>, CqlError> {
        let mut known = lock(&self.rights);
        if known.version != catalog.version {
            // Of two versions the one in use last is kept. Requests that began before a change are
            // few, and go on with rights of their own version.
            *known = Known {
                version: catalog.version,
                by_role: HashMap::new(),
            };
        }
        if let Some(rights) = known.by_role.get(role) {
            return Ok(rights.clone());
        }
        let rights = Arc::new(role.rights(catalog).ok_or_else(|| {
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

    #[test]
    fn another_role_of_the_name_is_not_the_one_that_logged_in() {
        let access = Access::by_login();
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
        let first = LoggedIn::of(&catalog, "ada").unwrap();
        assert!(access.rights(&catalog, &first).is_ok());
        catalog.remove_role("ada");
        change(&mut catalog, 7);
        let second = LoggedIn::of(&catalog, "ada").unwrap();
        assert!(access.rights(&catalog, &second).is_ok());
        let refused = access.rights(&catalog, &first).unwrap_err();
        assert!(refused.message.contains("log in again"), "{refused:?}");
        // It doesn't own what it makes, either.
        let made = Resource::Keyspace("ks".to_owned());
        crate::roles::own(&mut catalog, &first, made.clone());
        assert_eq!(catalog.roles["ada"].grants.get(&made), None);
        crate::roles::own(&mut catalog, &second, made.clone());
        assert!(catalog.roles["ada"].grants.contains_key(&made));
    }
}
