//! The attributes that a statement gives a role, with its password hashed.

use cql::ast::{RoleAttributes, RolePassword, RoleStatement};
use cql::error::CqlError;
use cql::secret::Secret;

use crate::access;
use crate::access::login::Logins;

/// The longest password, in bytes. bcrypt takes the first 72 alone, as in Cassandra.
const PASSWORD_BYTES_MAX: usize = 1_024;

/// The attributes of a statement; `None` for each that it does not give.
#[derive(Debug, Default)]
pub(super) struct Attributes {
    pub login: Option<bool>,
    pub superuser: Option<bool>,
    pub salted_hash: Option<Secret<String>>,
}

impl Attributes {
    /// Reads the attributes of a statement, and hashes its password in a turn of the logins.
    pub async fn of(statement: &RoleStatement, logins: &Logins) -> Result<Attributes, CqlError> {
        let (RoleStatement::Create {
            attributes: given, ..
        }
        | RoleStatement::Alter {
            attributes: given, ..
        }) = statement
        else {
            return Ok(Attributes::default());
        };
        check(given)?;
        Ok(Attributes {
            login: given.login,
            superuser: given.superuser,
            salted_hash: match &given.password {
                None => None,
                Some(password) => Some(hashed(password, logins).await?),
            },
        })
    }

    /// Whether the statement gives none.
    pub fn is_empty(&self) -> bool {
        self.login.is_none() && self.superuser.is_none() && self.salted_hash.is_none()
    }
}

fn check(given: &RoleAttributes) -> Result<(), CqlError> {
    match given.unsupported {
        None => Ok(()),
        Some("OPTIONS") => Err(CqlError::invalid(
            "Annulus doesn't support OPTIONS of a role: leave them out",
        )),
        Some(words) => Err(CqlError::invalid(format!(
            "Annulus doesn't support {words}: it is one data center; let a firewall choose who reaches it"
        ))),
    }
}

async fn hashed(password: &RolePassword, logins: &Logins) -> Result<Secret<String>, CqlError> {
    match password {
        RolePassword::Hashed(hash) => {
            access::check_hash(hash)?;
            Ok(hash.clone())
        }
        RolePassword::Plain(password) => {
            if password.expose().len() > PASSWORD_BYTES_MAX {
                return Err(CqlError::invalid(format!(
                    "A password has at most {PASSWORD_BYTES_MAX} bytes"
                )));
            }
            logins.hash(password.clone()).await
        }
    }
}
