//! The damage that was found in the files of an index.

use std::sync::{Arc, OnceLock};

use crate::TextIndexError;

/// The damage that was found first, which all segments of an index note here.
#[derive(Clone, Debug, Default)]
pub(crate) struct DamageNote(Arc<OnceLock<String>>);

impl DamageNote {
    /// Notes damage, and gives the error for the reader that met it.
    pub fn note(&self, message: String) -> TextIndexError {
        self.0.get_or_init(|| message.clone());
        TextIndexError::Damaged(message)
    }

    /// The damage that was found first, if any.
    pub fn found(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}
