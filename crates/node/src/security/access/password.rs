//! Hashes of passwords: bcrypt, in the form that Cassandra stores and takes.

use cql::error::CqlError;
use cql::secret::Secret;

/// The cost of hashes made here, which is Cassandra's default: about 50 ms of a processor.
const COST: u32 = 10;
/// The greatest cost of a hash that is taken from a statement: about four seconds.
const COST_MAX: u32 = 16;
/// The greatest cost of a hash that is checked among the others: about 200 ms.
const COST_BESIDE_OTHERS_MAX: u32 = 12;

/// The hash of a new password. It takes about 50 ms.
///
/// # Errors
/// If the operating system gives no random numbers.
pub fn hash_of_new(password: &Secret<String>) -> Result<Secret<String>, CqlError> {
    let parts = bcrypt::hash_with_result(password.expose(), COST)
        .map_err(|error| CqlError::server(format!("hashing a password: {error}")))?;
    // Cassandra reads only this version.
    Ok(Secret::new(parts.format_for_version(bcrypt::Version::TwoA)))
}

/// Whether the password has this hash. False if the hash can't be read.
pub(super) fn fits(password: &Secret<String>, hash: &Secret<String>) -> bool {
    bcrypt::verify(password.expose(), hash.expose()).unwrap_or(false)
}

/// Whether the check of a hash takes so long that no other may wait for it.
pub(super) fn is_costly(hash: &Secret<String>) -> bool {
    let parts: Result<bcrypt::HashParts, _> = hash.expose().parse();
    parts.is_ok_and(|parts| parts.get_cost() > COST_BESIDE_OTHERS_MAX)
}

/// Checks a hash that a statement gives.
///
/// # Errors
/// If it is no hash of bcrypt, or costs too much to be checked at logins.
pub(crate) fn check_hash(hash: &Secret<String>) -> Result<(), CqlError> {
    let invalid = || CqlError::invalid("Invalid hashed password value. Please use jBcrypt.");
    let parts: bcrypt::HashParts = hash.expose().parse().map_err(|_| invalid())?;
    if parts.get_cost() > COST_MAX {
        return Err(CqlError::invalid(format!(
            "Invalid hashed password value: its cost is {}, and {COST_MAX} is the most",
            parts.get_cost()
        )));
    }
    // The parts are taken only from a text of this form.
    let is_whole = hash.expose().len() == 60 && hash.expose().starts_with("$2");
    is_whole.then_some(()).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret<String> {
        Secret::new(text.to_owned())
    }

    #[test]
    fn hashes_fit_their_password_alone_and_cassandras_are_taken() {
        let hash = hash_of_new(&secret("wonder")).unwrap();
        assert!(hash.expose().starts_with("$2a$10$"), "Cassandra's form");
        check_hash(&hash).unwrap();
        assert!(fits(&secret("wonder"), &hash));
        assert!(!fits(&secret("Wonder"), &hash));
        let carried = secret("$2a$04$KyMasePGAj3yLrtol9IGPeXQFpeCkCC0D.K.Ym4b4f//B6Kx0w/wW");
        check_hash(&carried).unwrap();
        assert!(fits(&secret("carried"), &carried));
    }

    #[test]
    fn a_hash_is_costly_by_its_cost() {
        let of_cost = |cost| {
            let hash = "$2a$04$KyMasePGAj3yLrtol9IGPeXQFpeCkCC0D.K.Ym4b4f//B6Kx0w/wW";
            secret(&hash.replace("$04$", cost))
        };
        assert!(!is_costly(&of_cost("$10$")) && !is_costly(&of_cost("$12$")));
        assert!(is_costly(&of_cost("$13$")) && is_costly(&of_cost("$16$")));
        assert!(!is_costly(&secret("no hash")));
    }

    #[test]
    fn an_invalid_or_too_costly_hash_is_refused() {
        let valid = "$2a$04$KyMasePGAj3yLrtol9IGPeXQFpeCkCC0D.K.Ym4b4f//B6Kx0w/wW";
        for text in [
            "",
            "x",
            "$2a$04$short",
            &valid.replace("$04$", "$31$"),
            &format!("{valid}x"),
        ] {
            assert!(check_hash(&secret(text)).is_err(), "{text}");
            assert!(!text.contains("$04$") || !fits(&secret("x"), &secret(text)));
        }
    }
}
