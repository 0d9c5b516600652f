//! The choice of the next step of the definitions, which any gateway may take.

use uuid::Uuid;

use super::change::Change;
use super::definition::{Definitions, State};
use super::reconcile::Reconciled;

/// The next change of the definitions that can be made; `None` if there is none. An index that
/// starts over gets `version`.
pub(super) fn next_change(
    definitions: &Definitions,
    reconciled: &Reconciled,
    confirmed_by_all: i64,
    version: Uuid,
) -> Option<Change> {
    if let Some(orphan) = reconciled.orphans.first() {
        return Some(Change::Turn(orphan.index.clone(), State::Dropping));
    }
    if let Some(lost) = reconciled.lost.first() {
        return Some(Change::Restart(lost.index.clone(), version));
    }
    if let Some(ready) = reconciled.with_log.first() {
        return Some(Change::Turn(ready.index.clone(), State::Logging));
    }
    definitions
        .rows
        .iter()
        .filter(|row| row.changed_at <= confirmed_by_all)
        .find_map(|row| match row.state {
            State::Logging => Some(Change::Turn(row.index.clone(), State::Usable)),
            State::Dropping => Some(Change::Remove(row.index.clone())),
            State::Creating | State::Usable => None,
        })
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::definition;
    use super::*;

    #[test]
    fn an_index_whose_log_is_lost_starts_over() {
        let definitions = Definitions {
            revision: 7,
            rows: vec![definition(State::Usable)],
        };
        let lost = definitions.rows.clone();
        let reconciled = Reconciled {
            lost,
            ..Reconciled::default()
        };
        let version = Uuid::from_u128(9);
        let change = next_change(&definitions, &reconciled, 7, version);
        let Some(Change::Restart(index, new)) = change else {
            panic!("{change:?}");
        };
        assert_eq!((index, new), (definitions.rows[0].index.clone(), version));
        let unchanged = next_change(&definitions, &Reconciled::default(), 7, version);
        assert!(unchanged.is_none(), "{unchanged:?}");
    }
}
