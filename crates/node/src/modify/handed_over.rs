//! Writes on their way to the storage.
//!
//! A write of a client waits for the committer no longer than its limit. If it has not begun by
//! then, the client gets a timeout and the write is never carried out. Once it has begun, it is
//! answered when it is done, however long that takes.

use std::time::Duration;

use cql::error::CqlError;
use storage::StorageError;
use storage::mutation::{Write, WriteOutcome};

use crate::database::Database;
use crate::deadline::late_write;
use crate::failure::storage_error;
use crate::parameters::Parameters;

/// The limit of a write.
pub(super) struct Limit {
    /// The time that the statement gives itself (`USING TIMEOUT`).
    pub own: Option<Duration>,
    /// The kind of write, in the words of the protocol.
    pub write_type: &'static str,
}

/// Hands a write to the storage, and waits for its outcome.
///
/// # Errors
/// Failures of the storage, and a write that does not begin in time.
pub(super) async fn hand_over(
    database: &Database,
    write: Write,
    parameters: &Parameters,
    limit: Limit,
) -> Result<WriteOutcome, CqlError> {
    let of_condition = write.condition.as_ref().map(|condition| condition.table);
    let of_mutation = write.mutations.first().map(|mutation| mutation.table);
    let table = of_condition.or(of_mutation);
    let by_default = match parameters.presence.is_of_client() {
        true => database.timeouts.write,
        false => None,
    };
    let (storage, told_s) = (&database.storage, parameters.told_s);
    let outcome = match limit.own.or(by_default) {
        Some(within) => Box::pin(storage.write_within(within, write, told_s)).await,
        None => Box::pin(storage.write_at(write, told_s)).await,
    };
    outcome.map_err(|error| {
        let catalog = database.storage.catalog();
        let table = table.and_then(|table| catalog.table_by_id(table));
        match (&error, table) {
            (StorageError::Late, Some(table)) => late_write(table, parameters, limit.write_type),
            _ => storage_error(error),
        }
    })
}
