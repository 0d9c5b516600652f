//! The choice of the next step of the definitions, which any gateway may take.

use uuid::Uuid;

use super::change::DefinitionChange;
use super::definition::{ClusterDefinitions, IndexLifecycle};
use super::reconcile::DefinitionFindings;

/// The next change of the definitions that can be made; `None` if there is none. An index that
/// starts over gets `version`.
pub(super) fn next_change(
    definitions: &ClusterDefinitions,
    reconciled: &DefinitionFindings,
    confirmed_by_all: i64,
    version: Uuid,
) -> Option<DefinitionChange> {
    if let Some(orphan) = reconciled.orphans.first() {
        return Some(DefinitionChange::Turn(
            orphan.index.clone(),
            IndexLifecycle::Dropping,
        ));
    }
    // Without its log the index has missed writes, so it is built again as another version.
    if let Some(lost) = reconciled.lost.first() {
        return Some(DefinitionChange::Restart(lost.index.clone(), version));
    }
    if let Some(ready) = reconciled.with_log.first() {
        return Some(DefinitionChange::Turn(
            ready.index.clone(),
            IndexLifecycle::Logging,
        ));
    }
    definitions
        .rows
        .iter()
        // Both steps need every live gateway to act by the state that the index has now.
        .filter(|row| row.changed_at <= confirmed_by_all)
        .find_map(|row| match row.state {
            IndexLifecycle::Logging => Some(DefinitionChange::Turn(
                row.index.clone(),
                IndexLifecycle::Usable,
            )),
            IndexLifecycle::Dropping => Some(DefinitionChange::Remove(row.index.clone())),
            IndexLifecycle::Creating | IndexLifecycle::Usable => None,
        })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::definition;
    use super::*;

    #[test]
    fn an_index_whose_log_is_lost_starts_over() {
        let definitions = ClusterDefinitions {
            revision: 7,
            rows: vec![definition(IndexLifecycle::Usable)],
        };
        let lost = definitions.rows.clone();
        let reconciled = DefinitionFindings {
            lost,
            ..DefinitionFindings::default()
        };
        let version = Uuid::from_u128(9);
        let change = next_change(&definitions, &reconciled, 7, version);
        let Some(DefinitionChange::Restart(index, new)) = change else {
            panic!("{change:?}");
        };
        assert_eq!((index, new), (definitions.rows[0].index.clone(), version));
        let unchanged = next_change(&definitions, &DefinitionFindings::default(), 7, version);
        assert!(unchanged.is_none(), "{unchanged:?}");
    }
}
