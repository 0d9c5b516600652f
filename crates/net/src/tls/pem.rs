//! Certificates and keys as they are in files.

use std::fmt;
use std::sync::Arc;

/// Certificates or a key in the PEM format.
#[derive(Clone, PartialEq, Eq)]
pub struct Pem {
    /// The PEM text.
    pub bytes: Arc<[u8]>,
    /// The source of the text, for messages.
    pub origin: String,
}

impl fmt::Debug for Pem {
    /// Leaves the text out, which may be a key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pem").field(&self.origin).finish()
    }
}
