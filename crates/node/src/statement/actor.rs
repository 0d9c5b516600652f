//! The role that runs a statement.

use std::ops::Deref;
use std::sync::Arc;

use cql::error::{CqlError, ErrorKind};
use schema::Catalog;
use uuid::Uuid;

/// The role that runs a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Actor {
    /// Anybody: the node requires no login, and everything is allowed but to manage roles.
    #[default]
    Anybody,
    /// This role, which has logged in.
    Role(LoggedInRole),
}

/// A role that has logged in. If it is dropped, another role of its name is not the same one.
/// Small, as the future of each request holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoggedInRole(Arc<RoleIdentity>);

/// The name of a role, and the id that it was created with.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RoleIdentity {
    name: Arc<str>,
    id: Uuid,
}

impl LoggedInRole {
    /// The role of this name; `None` if there is none.
    pub fn of(catalog: &Catalog, name: &str) -> Option<LoggedInRole> {
        let id = catalog.roles.get(name)?.id;
        let name = name.into();
        Some(LoggedInRole(Arc::new(RoleIdentity { name, id })))
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
}

#[cfg(test)]
impl From<&str> for LoggedInRole {
    /// A role without an id, as tests make it.
    fn from(name: &str) -> LoggedInRole {
        let id = Uuid::nil();
        let name = name.into();
        LoggedInRole(Arc::new(RoleIdentity { name, id }))
    }
}

impl Deref for LoggedInRole {
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
    /// Unauthorized if the node requires no login.
    pub fn role(&self) -> Result<&LoggedInRole, CqlError> {
        match self {
            Actor::Role(role) => Ok(role),
            Actor::Anybody => Err(CqlError::new(
                ErrorKind::Unauthorized,
                "You have to be logged in and not anonymous to perform this request: start annulus serve with --login",
            )),
        }
    }
}
