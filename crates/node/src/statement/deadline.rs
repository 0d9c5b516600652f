//! The deadline of a statement with `USING TIMEOUT`.
//!
//! As in ScyllaDB a statement that takes longer fails with a timeout. A write that was handed over
//! by then may be carried out all the same. Without the clause the limits of
//! [`super::DefaultTimeouts`] count, for a page of rows or for the wait of a write until it begins.

use std::time::Duration;

use cql::error::{CqlError, ErrorKind};
use schema::Table;

use super::ExecutionParameters;

/// Does some work of a statement within the time of its clause; without one, in any time.
///
/// # Errors
/// Those of the work, and `late` once the time is over.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    late: impl FnOnce() -> CqlError,
    work: impl Future<Output = Result<T, CqlError>>,
) -> Result<T, CqlError> {
    match limit {
        None => work.await,
        // There is no time for anything.
        Some(Duration::ZERO) => Err(late()),
        Some(limit) => match tokio::time::timeout(limit, work).await {
            Ok(done) => done,
            Err(_) => Err(late()),
        },
    }
}

/// The error of a SELECT that takes too long.
pub(crate) fn read_timeout(table: &Table, parameters: &ExecutionParameters) -> CqlError {
    let kind = ErrorKind::ReadTimeout {
        consistency: parameters.consistency as u16,
        received: 0,
        block_for: 1,
        data_present: false,
    };
    CqlError::new(kind, text(table, parameters))
}

/// The error of a write that takes too long. `write_type` is in the words of the protocol.
pub(crate) fn write_timeout(
    table: &Table,
    parameters: &ExecutionParameters,
    write_type: &'static str,
) -> CqlError {
    let kind = ErrorKind::WriteTimeout {
        consistency: parameters.consistency as u16,
        received: 0,
        block_for: 1,
        write_type,
        contentions: (write_type == "CAS").then_some(0),
    };
    CqlError::new(kind, text(table, parameters))
}

/// The error of a TRUNCATE that takes too long.
pub(crate) fn truncate_timeout() -> CqlError {
    CqlError::new(
        ErrorKind::TruncateError,
        "Truncate timed out - received only 0 responses",
    )
}

fn text(table: &Table, parameters: &ExecutionParameters) -> String {
    format!(
        "Operation timed out for {}.{} - received only 0 responses from 1 CL={}.",
        table.keyspace, table.name, parameters.consistency
    )
}
