//! The attributes that a statement gives a role, with its password hashed.

use cql::ast::{RoleAttributes, RolePassword, RoleStatement};
use cql::error::CqlError;
use cql::secret::Secret;

use crate::security::access::{self, PasswordHasher};
use crate::statement::LoggedInRole;

/// The longest password, in bytes. bcrypt takes only the first 72, as in Cassandra.
const PASSWORD_BYTES_MAX: usize = 1_024;

/// The attributes of a statement; `None` for each that it does not give.
#[derive(Debug, Default)]
pub(super) struct ResolvedAttributes {
    pub login: Option<bool>,
    pub superuser: Option<bool>,
    pub salted_hash: Option<Secret<String>>,
}

impl ResolvedAttributes {
    /// Reads the attributes of a statement. A password takes the place of its hash until
    /// [`ResolvedAttributes::hash`].
    pub fn of(statement: &RoleStatement) -> Result<ResolvedAttributes, CqlError> {
        let Some(given) = given(statement) else {
            return Ok(ResolvedAttributes::default());
        };
        check(given)?;
        Ok(ResolvedAttributes {
            login: given.login,
            superuser: given.superuser,
            salted_hash: match &given.password {
                None => None,
                Some(RolePassword::Plain(password) | RolePassword::Hashed(password)) => {
                    Some(password.clone())
                }
            },
        })
    }

    /// Puts the hash of the statement's password in its place.
    pub async fn hash(
        &mut self,
        statement: &RoleStatement,
        actor: &LoggedInRole,
        hashing: &PasswordHasher,
    ) -> Result<(), CqlError> {
        let password = given(statement).and_then(|given| given.password.as_ref());
        if let Some(RolePassword::Plain(password)) = password {
            self.salted_hash = Some(hashing.hash(actor.name(), password.clone()).await?);
        }
        Ok(())
    }

    /// Whether the statement gives none.
    pub fn is_empty(&self) -> bool {
        self.login.is_none() && self.superuser.is_none() && self.salted_hash.is_none()
    }
}

fn given(statement: &RoleStatement) -> Option<&RoleAttributes> {
    match statement {
        RoleStatement::Create { attributes, .. } | RoleStatement::Alter { attributes, .. } => {
            Some(attributes)
        }
        _ => None,
    }
}

fn check(given: &RoleAttributes) -> Result<(), CqlError> {
    match given.unsupported {
        None => {}
        Some("OPTIONS") => {
            return Err(CqlError::invalid(
                "Annulus doesn't support OPTIONS of a role: leave them out",
            ));
        }
        Some(words) => {
            return Err(CqlError::invalid(format!(
                "Annulus doesn't support {words}: it is one data center; let a firewall choose who reaches it"
            )));
        }
    }
    match &given.password {
        Some(RolePassword::Hashed(hash)) => access::check_hash(hash),
        Some(RolePassword::Plain(password)) if password.expose().len() > PASSWORD_BYTES_MAX => Err(
            CqlError::invalid(format!("A password has at most {PASSWORD_BYTES_MAX} bytes")),
        ),
        Some(RolePassword::Plain(_)) | None => Ok(()),
    }
}
