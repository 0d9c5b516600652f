//! The end of CREATE INDEX, decided by the rounds of the follower.

use super::cluster::ClusterError;
use super::defined_index::DefinedIndex;
use super::definition::IndexLifecycle;
use super::follower::RoundFindings;

/// The outcome of the creation of an index.
#[derive(Debug, PartialEq)]
pub(super) enum IndexCreationOutcome {
    /// The index is usable, and all gateways show it.
    Usable,
    /// Another statement dropped the index or its table.
    Dropped,
    /// Cassandra refuses to make the log of the index's table.
    WithoutLog(ClusterError),
}

/// The outcome of the creation of an index that was defined in the revision `created_at`, by the
/// finding of a round; `None` if the creation goes on. The index may have another version by then.
pub(super) fn end_of_creation(
    index: &DefinedIndex,
    created_at: i64,
    round: &RoundFindings,
) -> Option<IndexCreationOutcome> {
    if round.definitions.revision < created_at {
        return None;
    }
    let row = round.definitions.find(&index.keyspace, &index.name);
    let Some(row) = row.filter(|row| row.index.table_id == index.table_id) else {
        return Some(IndexCreationOutcome::Dropped);
    };
    match row.state {
        // The client may go on at another gateway, which must show the index by then.
        IndexLifecycle::Usable => {
            (row.changed_at <= round.confirmed_by_all).then_some(IndexCreationOutcome::Usable)
        }
        IndexLifecycle::Dropping => Some(IndexCreationOutcome::Dropped),
        IndexLifecycle::Creating => {
            let mut failures = round.log_failures.iter();
            let failure = failures.find(|failure| {
                failure.keyspace == index.keyspace && failure.table == index.table
            })?;
            // Other errors may not occur the next time.
            matches!(failure.error, ClusterError::Refused(_))
                .then(|| IndexCreationOutcome::WithoutLog(failure.error.clone()))
        }
        IndexLifecycle::Logging => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::definition::ClusterDefinitions;
    use super::super::fixtures::{definition, index};
    use super::super::follower::LogFailure;
    use super::*;

    #[test]
    fn a_creation_ends_when_its_log_is_refused() {
        let index = index();
        let round = |error: ClusterError| RoundFindings {
            definitions: Arc::new(ClusterDefinitions {
                revision: 7,
                rows: vec![definition(IndexLifecycle::Creating)],
            }),
            confirmed_by_all: 7,
            log_failures: Arc::new(vec![LogFailure {
                keyspace: "k".to_owned(),
                table: "t".to_owned(),
                error,
            }]),
        };
        let refused = ClusterError::Refused("no".to_owned());
        assert_eq!(
            end_of_creation(&index, 7, &round(refused.clone())),
            Some(IndexCreationOutcome::WithoutLog(refused.clone()))
        );
        let away = ClusterError::Unreachable("away".to_owned());
        assert_eq!(end_of_creation(&index, 7, &round(away)), None);
        // A round of an earlier revision decides nothing.
        assert_eq!(end_of_creation(&index, 8, &round(refused.clone())), None);
    }
}
