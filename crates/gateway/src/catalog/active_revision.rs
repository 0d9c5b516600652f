//! The snapshot in place in a gateway, and the requests that an older one decided. A revision
//! counts as confirmed once none of them is in flight.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::definition::ClusterDefinitions;
use super::reconcile::DefinitionFindings;
use crate::clients::ConnectionHandle;

/// The time after which no request is in flight any more. Cassandra's own timeouts end each one,
/// and the longest is 12 s by default.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);

/// The definitions and the schema that this gateway acts by.
pub(super) struct ActiveRevision {
    /// The definitions as they were read.
    pub(super) definitions: Arc<ClusterDefinitions>,
    /// The version of the schema that all nodes had when it was read.
    pub(super) schema_version: Uuid,
    /// The findings from definitions and schema, with the snapshot.
    pub(super) reconciled: DefinitionFindings,
    /// Whether this gateway has added an entry for this revision to the history.
    pub(super) is_recorded: bool,
}

/// The requests in flight that an older snapshot may have decided.
pub(super) struct OutdatedRequests {
    /// The connections with such requests, which are marked there.
    busy: Vec<Weak<ConnectionHandle>>,
    /// The time at which the present snapshot was put in place.
    since: Instant,
}

impl OutdatedRequests {
    /// Returns the value for no requests.
    pub(super) fn of_none() -> OutdatedRequests {
        OutdatedRequests::on(Vec::new())
    }

    /// The requests that are marked on these connections, when the present snapshot was put in
    /// place just now.
    pub(super) fn on(busy: Vec<Weak<ConnectionHandle>>) -> OutdatedRequests {
        OutdatedRequests {
            busy,
            since: Instant::now(),
        }
    }
}

impl ActiveRevision {
    /// The revision, if it is confirmed; `None` while a request is in flight that was decided
    /// before the revision was in place, or while a log is missing.
    pub(super) fn confirmed(&self, older: &mut OutdatedRequests) -> Option<i64> {
        if older.since.elapsed() >= ANSWERED_WITHIN {
            older.busy.clear();
        }
        older.busy.retain(|client| {
            let client = client.upgrade();
            client.is_some_and(|client| !client.marked_are_answered())
        });
        // Without its log a table's writes pass unlogged. An index that is only being created needs
        // no log yet.
        let is_whole = older.busy.is_empty() && self.reconciled.lost.is_empty();
        is_whole.then_some(self.definitions.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::super::base_table::BaseTable;
    use super::super::definition::IndexLifecycle;
    use super::super::fixtures::definition;
    use super::*;

    fn confirmed(reconciled: DefinitionFindings) -> Option<i64> {
        let active = ActiveRevision {
            definitions: Arc::new(ClusterDefinitions {
                revision: 7,
                rows: Vec::new(),
            }),
            schema_version: Uuid::nil(),
            reconciled,
            is_recorded: true,
        };
        active.confirmed(&mut OutdatedRequests::of_none())
    }

    #[tokio::test]
    async fn a_log_that_is_not_made_yet_holds_up_no_other_definition() {
        let without_log = vec![BaseTable::new("k", "t", Uuid::nil(), Vec::new())];
        assert_eq!(
            confirmed(DefinitionFindings {
                without_log,
                ..DefinitionFindings::default()
            }),
            Some(7)
        );
        let lost = vec![definition(IndexLifecycle::Logging)];
        assert_eq!(
            confirmed(DefinitionFindings {
                lost,
                ..DefinitionFindings::default()
            }),
            None
        );
    }
}
