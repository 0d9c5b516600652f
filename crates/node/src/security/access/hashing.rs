//! Hashes new passwords, one at a time, apart from the checks of logins.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use cql::error::{CqlError, ErrorKind};
use cql::secret::Secret;
use tokio::sync::Semaphore;

use super::{lock, password};

/// The most passwords of one role's statements that wait to be hashed or are hashed.
const OF_ROLE_MAX: usize = 64;

/// Hashes new passwords.
pub(crate) struct PasswordHasher {
    turns: Arc<Semaphore>,
    by_role: Mutex<HashMap<Arc<str>, usize>>,
}

impl Default for PasswordHasher {
    fn default() -> PasswordHasher {
        PasswordHasher {
            turns: Arc::new(Semaphore::new(1)),
            by_role: Mutex::default(),
        }
    }
}

impl PasswordHasher {
    /// Hashes a password that a statement of this role gives.
    ///
    /// # Errors
    /// Overloaded if too many of the role wait.
    pub async fn hash(
        &self,
        actor: &Arc<str>,
        password: Secret<String>,
    ) -> Result<Secret<String>, CqlError> {
        let _place = self.place(actor)?;
        let turn = self.turns.clone().acquire_owned().await;
        let turn =
            turn.map_err(|error| CqlError::server(format!("hashing a password: {error}")))?;
        let hash = tokio::task::spawn_blocking(move || {
            // The turn ends with the hash, also if the client has disconnected meanwhile.
            let _turn = turn;
            password::hash_of_new(&password)
        });
        let hash = hash.await;
        hash.map_err(|error| CqlError::server(format!("hashing a password: {error}")))?
    }

    fn place(&self, role: &Arc<str>) -> Result<RoleSlot<'_>, CqlError> {
        let mut by_role = lock(&self.by_role);
        let number = by_role.entry(role.clone()).or_default();
        if *number >= OF_ROLE_MAX {
            return Err(CqlError::new(
                ErrorKind::Overloaded,
                format!(
                    "Overloaded: {OF_ROLE_MAX} new passwords of role {role} wait to be hashed; try again later"
                ),
            ));
        }
        *number += 1;
        Ok(RoleSlot {
            hashing: self,
            role: role.clone(),
        })
    }
}

struct RoleSlot<'a> {
    hashing: &'a PasswordHasher,
    role: Arc<str>,
}

impl Drop for RoleSlot<'_> {
    fn drop(&mut self) {
        let mut by_role = lock(&self.hashing.by_role);
        if let Some(number) = by_role.get_mut(&self.role) {
            *number -= 1;
            if *number == 0 {
                by_role.remove(&self.role);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_has_a_few_places_and_gives_them_back() {
        let hashing = PasswordHasher::default();
        let (one, other) = (Arc::from("one"), Arc::from("other"));
        let places: Vec<_> = (0..64).map(|_| hashing.place(&one)).collect();
        assert!(places.iter().all(Result::is_ok));
        let refused = hashing.place(&one).err().unwrap();
        assert_eq!(refused.kind, ErrorKind::Overloaded);
        assert!(hashing.place(&other).is_ok());
        drop(places);
        assert!(hashing.place(&one).is_ok());
        assert!(lock(&hashing.by_role).is_empty());
    }
}
