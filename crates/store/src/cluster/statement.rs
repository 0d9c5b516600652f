//! A statement that is prepared when it is first needed on a session.

use std::sync::{Mutex, PoisonError};

use scylla::errors::{DbError, PrepareError, RequestAttemptError};
use scylla::statement::prepared::PreparedStatement;

use super::session::DbSession;

/// The end of a read that must not displace what is in the database's cache. ScyllaDB knows it,
/// Cassandra doesn't.
const BYPASS_CACHE: &str = " BYPASS CACHE";

/// An idempotent statement.
#[derive(Debug)]
pub(super) struct IdempotentStatement {
    text: String,
    bypass_cache: bool,
    page_rows: Option<i32>,
    prepared: Mutex<Option<(u64, PreparedStatement)>>,
}

impl IdempotentStatement {
    /// A statement that returns pages of the session's default size.
    pub(super) fn new(text: impl Into<String>) -> IdempotentStatement {
        IdempotentStatement {
            text: text.into(),
            bypass_cache: false,
            page_rows: None,
            prepared: Mutex::new(None),
        }
    }

    /// Makes the database read past its cache, if it can.
    pub(super) fn bypassing_cache(self) -> IdempotentStatement {
        IdempotentStatement {
            bypass_cache: true,
            ..self
        }
    }

    /// Sets the number of rows in a page.
    pub(super) fn with_page_rows(self, rows: usize) -> IdempotentStatement {
        IdempotentStatement {
            page_rows: Some(i32::try_from(rows).unwrap_or(i32::MAX)),
            ..self
        }
    }

    /// Returns the statement prepared on the session, and prepares it first if necessary.
    pub(super) async fn on(&self, db: &DbSession) -> Result<PreparedStatement, PrepareError> {
        if let Some((generation, prepared)) = &*self.slot()
            && *generation == db.generation
        {
            return Ok(prepared.clone());
        }
        let mut prepared = db.counted(self.prepare(db).await)?;
        prepared.set_is_idempotent(true);
        if let Some(rows) = self.page_rows {
            prepared.set_page_size(rows);
        }
        *self.slot() = Some((db.generation, prepared.clone()));
        Ok(prepared)
    }

    async fn prepare(&self, db: &DbSession) -> Result<PreparedStatement, PrepareError> {
        if self.bypass_cache {
            let text = format!("{}{BYPASS_CACHE}", self.text);
            match db.session.prepare(text).await {
                Err(error) if is_syntax_error(&error) => {}
                result => return result,
            }
        }
        db.session.prepare(self.text.as_str()).await
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<(u64, PreparedStatement)>> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_syntax_error(error: &PrepareError) -> bool {
    matches!(
        error,
        PrepareError::AllAttemptsFailed {
            first_attempt: RequestAttemptError::DbError(DbError::SyntaxError, _),
        }
    )
}
