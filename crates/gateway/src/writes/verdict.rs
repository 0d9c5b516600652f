//! Judgements on the node's answers to writes.

use cql::error::{CqlError, ErrorKind};
use cql::wire::Response;

/// Whether an error says that a batch was not begun because the batch log did not answer in time.
pub(super) fn of_batch_log(error: &ErrorKind) -> bool {
    matches!(error, ErrorKind::WriteTimeout { write_type, .. } if *write_type == "BATCH_LOG")
}

/// Whether an error says that a request is invalid, or that its client may not make it. Then
/// nothing of it was carried out.
pub(super) fn is_refusal(error: &CqlError) -> bool {
    matches!(error.kind, ErrorKind::Invalid | ErrorKind::Unauthorized)
}

/// Whether an answer says for certain that nothing was written.
pub(crate) fn nothing_was_written(response: &Response) -> bool {
    match response {
        Response::Error(error) => matches!(
            error.kind,
            ErrorKind::Unprepared { .. }
                | ErrorKind::SyntaxError
                | ErrorKind::Invalid
                | ErrorKind::Unauthorized
                | ErrorKind::ConfigError
                | ErrorKind::ProtocolError
                | ErrorKind::Unavailable { .. }
        ),
        // In the answer to a condition `[applied]` is the first column.
        Response::Rows(rows) => rows.decode().is_ok_and(|decoded| {
            let applied = decoded.rows.first().and_then(|row| row.first());
            matches!(applied, Some(Some(cell)) if cell[..] == [0])
        }),
        _ => false,
    }
}
