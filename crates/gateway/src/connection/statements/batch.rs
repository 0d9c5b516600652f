//! BATCH, which may hold writes to logged tables.

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::FrameHeader;
use cql::wire::glance::{self, BatchedRef};

use crate::catalog::IndexCatalogSnapshot;
use crate::connection::context::DecisionContext;
use crate::connection::errors::unprepared;
use crate::statement::ClassifiedStatement;
use crate::writes::{ClientRequest, WriteExecution, is_logged};

/// The execution of a BATCH; `None` if it passes. While no table is logged, it passes without a
/// look.
///
/// # Errors
/// If an id is unknown, if the gateway cannot know the rows that the batch writes, or if its clock
/// is wrong.
pub(in crate::connection) fn execution(
    context: &DecisionContext,
    header: &FrameHeader,
    body: &[u8],
    snapshot: &IndexCatalogSnapshot,
) -> Result<Option<WriteExecution>, CqlError> {
    if snapshot.logs_nothing() {
        return Ok(None);
    }
    let mut scratch = Bytes::new();
    let plain = context.session.plain(header, body, &mut scratch)?;
    let keyspace = context.session.keyspace_of(header, plain)?;
    let mut writes_to_logged = false;
    // The statements are held, as an id may be forgotten at any time.
    let mut prepared = Vec::new();
    for statement in glance::batched(header.flags, plain)? {
        prepared.push(match statement? {
            BatchedRef::Text(text) => {
                writes_to_logged |= str::from_utf8(text)
                    .is_ok_and(|text| is_logged(text, keyspace.as_deref(), snapshot));
                None
            }
            BatchedRef::Prepared(id) => match context.prepared.get(id, snapshot) {
                Some(ClassifiedStatement::Write(write)) => {
                    writes_to_logged = true;
                    Some(write)
                }
                Some(_) => None,
                None => return Err(unprepared(id)),
            },
        });
    }
    if !writes_to_logged {
        return Ok(None);
    }
    let request = ClientRequest {
        header,
        body,
        plain,
        keyspace: keyspace.as_deref(),
        snapshot,
    };
    request.batch(prepared, &context.log)
}
