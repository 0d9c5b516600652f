//! Answers without rows: where the gateway may give them, and the index keeps all that a query
//! needs, the index service's answer is the client's.
//!
//! Where the values are too many bytes for one answer of the service, or the service keeps or tells
//! less than the definition says, the rows are read.

use bytes::Bytes;
use cql::wire::{Response, ResponseContext};
use query::asks_one_replica;
use store_api::ClientError;
use store_api::types::AnnRequest;

use super::execution::{NO_ROOM_WARNING, Search};
use super::freshness::{STALE_WARNING, Searches};
use super::key_read::Layout;
use crate::inquiry::{Failure, Inquirer};

/// Answers a query without rows; `None` if rows have to be read.
///
/// # Errors
/// If the client may not read the table, there is no memory for the answer, or the index service
/// fails.
pub(super) async fn answer(
    search: &Search<'_>,
    node: &Inquirer,
    searches: &Searches,
) -> Result<Option<(ResponseContext, Response)>, Failure> {
    let (Some(covered), Some(reader)) = (&search.plan.covered, searches.reader()) else {
        return Ok(None);
    };
    let consistency = search.parameters.consistency;
    // A trace would show nothing, and the index knows no other present than its own.
    let has_own_present = search.parameters.now_in_seconds.is_some();
    if search.traced || has_own_present || !asks_one_replica(consistency) {
        return Ok(None);
    }
    let Some(filter) = search.whole_filter() else {
        return Ok(None);
    };
    let table = &search.plan.table;
    reader.check(table, consistency, node).await?;
    let names = covered.returned.iter().map(|column| column.name.clone());
    let names: Vec<String> = names.collect();
    let request = AnnRequest {
        filter,
        return_columns: (!names.is_empty()).then_some(names),
        ..search.request_for(search.plan.candidates.wanted(search.limit))
    };
    let mut asked = searches.of_query(table.id);
    let (found, is_stale) = match search.ask(&mut asked, request).await {
        Ok(found) => found,
        Err(ClientError::Status { .. } | ClientError::InvalidJson | ClientError::InvalidBinary) => {
            return Ok(None);
        }
        Err(error) => return Err(search.search_failed(error).into()),
    };
    let Some(rows) = covered.rows(&found, search.limit) else {
        return Ok(None);
    };
    let bytes = rows.iter().flatten().flatten().map(Bytes::len).sum();
    reader.answered(bytes, node)?;
    let mut context = ResponseContext::default();
    if is_stale {
        context.warnings.push(STALE_WARNING.to_owned());
    }
    if found.is_short {
        context.warnings.push(NO_ROOM_WARNING.to_owned());
    }
    let layout = Layout::of_shown(covered.columns.columns.len());
    Ok(Some(search.encoded(
        &rows,
        &covered.columns,
        &layout,
        context,
    )))
}
