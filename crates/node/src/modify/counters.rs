//! The checks of statements that write to tables of counters.
//!
//! The server gives the changes of counters their timestamps, so that each is newer than those
//! before it, and no client gives one. A counter lives for ever, and is only added to.

use cql::ast::{TextBatchKind, UsingClause};
use cql::error::CqlError;
use schema::Table;

use super::plan::MutationPlan;

/// Refuses INSERT, which would set a counter.
pub(super) fn check_insert(table: &Table) -> Result<(), CqlError> {
    match table.is_counter() {
        true => Err(CqlError::invalid(
            "INSERT statements are not allowed on counter tables, use UPDATE instead",
        )),
        false => Ok(()),
    }
}

/// Refuses the clauses that UPDATE and DELETE have only on other tables.
pub(super) fn check_clauses(
    table: &Table,
    using: &UsingClause,
    is_conditional: bool,
) -> Result<(), CqlError> {
    let refused = [
        (is_conditional, "Conditions on counters are not supported"),
        (
            using.timestamp.is_some(),
            "Cannot provide custom timestamp for counter updates",
        ),
        (
            using.ttl.is_some(),
            "Cannot provide custom TTL for counter updates",
        ),
    ];
    let found = refused.iter().find(|(is_there, _)| *is_there);
    match found {
        Some((_, message)) if table.is_counter() => Err(CqlError::invalid(*message)),
        _ => Ok(()),
    }
}

/// Checks that the statements of a batch are all on counters or none is, as its kind says. An
/// unlogged batch takes either.
pub(super) fn check_batch<'a>(
    kind: TextBatchKind,
    writes: impl Iterator<Item = &'a MutationPlan>,
) -> Result<(), CqlError> {
    let mut of_batch = match kind {
        TextBatchKind::Counter => Some(true),
        TextBatchKind::Logged => Some(false),
        TextBatchKind::Unlogged => None,
    };
    for write in writes {
        let is_counter = write.table.is_counter();
        if *of_batch.get_or_insert(is_counter) == is_counter {
            continue;
        }
        return Err(CqlError::invalid(match kind {
            TextBatchKind::Counter => "Cannot include non-counter statement in a counter batch",
            TextBatchKind::Logged => "Cannot include a counter statement in a logged batch",
            TextBatchKind::Unlogged => {
                "Counter and non-counter mutations cannot exist in the same batch"
            }
        }));
    }
    Ok(())
}
