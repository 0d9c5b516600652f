//! The statements that are prepared, as `system.prepared_statements` shows them.

use std::fmt;
use std::sync::OnceLock;

use bytes::Bytes;

/// A statement that is prepared.
pub(crate) struct PreparedText {
    /// The id by which clients execute it.
    pub id: Bytes,
    /// The keyspace that was in use when it was prepared, unless it names its own.
    pub keyspace: Option<String>,
    /// The text, without the secrets of a statement about roles.
    pub text: String,
}

/// Gives the statement with an id, or all of them if no id is given.
type StatementLister = dyn Fn(Option<&[u8]>) -> Vec<PreparedText> + Send + Sync;

/// The statements that are prepared. There are none until a server keeps some.
#[derive(Default)]
pub(crate) struct PreparedTexts {
    list: OnceLock<Box<StatementLister>>,
}

impl PreparedTexts {
    /// Sets where the statements are found. Has no effect the second time.
    pub fn found_by(
        &self,
        list: impl Fn(Option<&[u8]>) -> Vec<PreparedText> + Send + Sync + 'static,
    ) {
        let _ = self.list.set(Box::new(list));
    }

    /// The statement with an id, or all of them if no id is given.
    pub fn list(&self, id: Option<&[u8]>) -> Vec<PreparedText> {
        self.list.get().map_or_else(Vec::new, |list| list(id))
    }
}

impl fmt::Debug for PreparedTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedTexts").finish_non_exhaustive()
    }
}
