//! The superuser of a node that has none yet, and the way back in for an owner who is locked out.

use std::sync::Arc;

use cql::error::CqlError;
use cql::secret::Secret;
use schema::Catalog;
use storage::{CatalogChangeError, Storage};
use uuid::Uuid;

use super::password::hash_of_new;
use crate::statement::storage_error;

/// The name of the first superuser, unless it is given another.
pub const NAME: &str = "annulus";

/// A random password of 24 letters and digits, more than 110 random bits.
pub fn random_password() -> Secret<String> {
    const LETTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut bits = Uuid::new_v4().as_u128();
    let letters = (0..24).map(|_| {
        let letter = LETTERS[(bits % 32) as usize];
        bits /= 32;
        char::from(letter)
    });
    Secret::new(letters.collect())
}

/// Whether some role can log in and do everything.
pub fn is_there(catalog: &Catalog) -> bool {
    let mut roles = catalog.roles.iter();
    roles.any(|(name, role)| {
        let can_prove_itself = role.salted_hash.is_some() || !role.identities.is_empty();
        let mut roles = catalog.roles_of(name).into_values();
        role.can_login && can_prove_itself && roles.any(|role| role.is_superuser)
    })
}

/// Makes the role a superuser with this password, whether it is there already or not.
///
/// # Errors
/// If the password can't be hashed or the storage can't be written.
pub async fn set(storage: &Storage, name: &str, password: Secret<String>) -> Result<(), CqlError> {
    let hash = tokio::task::spawn_blocking(move || hash_of_new(&password))
        .await
        .map_err(|error| CqlError::server(format!("hashing a password: {error}")))??;
    let name = name.to_owned();
    let changed = storage.change_catalog(move |catalog: &mut Catalog| {
        let role = catalog.roles.entry(name).or_default();
        let role = Arc::make_mut(role);
        role.is_superuser = true;
        role.can_login = true;
        role.salted_hash = Some(hash);
        Ok(())
    });
    changed.await.map_err(|error| match error {
        CatalogChangeError::Refused(error) => error,
        CatalogChangeError::Storage(error) => storage_error(error),
    })
}

#[cfg(test)]
mod tests {
    use schema::Role;

    use super::*;

    #[test]
    fn passwords_differ_and_have_letters_and_digits_alone() {
        let (one, other) = (random_password(), random_password());
        assert_ne!(one.expose(), other.expose());
        assert_eq!(one.expose().len(), 24);
        assert!(one.expose().chars().all(|c| c.is_ascii_alphanumeric()));
    }

    #[test]
    fn a_superuser_by_membership_counts_if_it_can_log_in() {
        let mut catalog = crate::fixtures::catalog();
        let chief = Role {
            is_superuser: true,
            ..Role::default()
        };
        catalog.roles.insert("chief".to_owned(), Arc::new(chief));
        assert!(!is_there(&catalog));
        let member = Role {
            can_login: true,
            salted_hash: Some(Secret::new("hash".to_owned())),
            member_of: ["chief".to_owned()].into(),
            ..Role::default()
        };
        catalog.roles.insert("member".to_owned(), Arc::new(member));
        assert!(is_there(&catalog));
    }
}
