//! Passwords that were right, remembered as keyed digests until their role changes.

use std::collections::HashMap;
use std::sync::Mutex;

use aws_lc_rs::hmac;
use cql::secret::Secret;
use uuid::Uuid;

use super::lock;

/// The most right passwords that are remembered, 2 MiB.
const REMEMBERED_MAX: usize = 10_000;

/// A digest of a role, the hash of its password and a password.
pub(super) type PasswordDigest = [u8; 32];

/// The passwords that were right.
pub(super) struct VerifiedPasswords {
    /// The key of the digests, made at each start.
    key: hmac::Key,
    /// The digest of the password that was right last, by role.
    by_role: Mutex<HashMap<String, PasswordDigest>>,
}

impl Default for VerifiedPasswords {
    fn default() -> VerifiedPasswords {
        let random = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        VerifiedPasswords {
            key: hmac::Key::new(hmac::HMAC_SHA256, &random),
            by_role: Mutex::default(),
        }
    }
}

impl VerifiedPasswords {
    /// The digest of these three.
    pub fn digest(
        &self,
        role: &str,
        hash: &Secret<String>,
        password: &Secret<String>,
    ) -> PasswordDigest {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [role, hash.expose(), password.expose()] {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part.as_bytes());
        }
        let mut digest = PasswordDigest::default();
        digest.copy_from_slice(context.sign().as_ref());
        digest
    }

    /// Whether a check of this digest, of which the hash is a part, was passed by the role's last
    /// password.
    pub fn has(&self, role: &str, digest: &PasswordDigest) -> bool {
        lock(&self.by_role).get(role) == Some(digest)
    }

    /// Whether a password of the role is remembered.
    pub fn knows(&self, role: &str) -> bool {
        lock(&self.by_role).contains_key(role)
    }

    /// Notes a password that was right.
    pub fn insert(&self, role: &str, digest: PasswordDigest) {
        let mut by_role = lock(&self.by_role);
        if by_role.len() >= REMEMBERED_MAX && !by_role.contains_key(role) {
            // Rare, and costs each role one more check.
            by_role.clear();
        }
        by_role.insert(role.to_owned(), digest);
    }
}
