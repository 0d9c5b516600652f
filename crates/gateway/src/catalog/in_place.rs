//! What is in place in a gateway, and when it has taken it up: once nothing is on its way that was decided before.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::definition::Definitions;
use super::take_up::Taken;
use crate::clients::Client;

/// Cassandra answers a request within its timeouts, of which the longest is 12 s by default.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);

/// What is in place here.
pub(super) struct InPlace {
    pub(super) definitions: Arc<Definitions>,
    pub(super) schema_version: Uuid,
    pub(super) taken: Taken,
    /// Whether this gateway has added an entry of it to the history.
    pub(super) is_recorded: bool,
}

/// What may be on its way that an older snapshot decided.
pub(super) struct Older {
    /// The connections on which it is, marked; and since when the present snapshot is in place.
    busy: Vec<Weak<Client>>,
    since: Instant,
}

impl Older {
    /// Nothing is.
    pub(super) fn of_none() -> Older {
        Older::on(Vec::new())
    }

    /// Whatever is marked on these connections; the present snapshot was put in place just now.
    pub(super) fn on(busy: Vec<Weak<Client>>) -> Older {
        Older {
            busy,
            since: Instant::now(),
        }
    }
}

impl InPlace {
    /// The revision, once nothing is on its way that was decided before it was in place.
    pub(super) fn confirmed(&self, older: &mut Older) -> Option<i64> {
        if older.since.elapsed() >= ANSWERED_WITHIN {
            older.busy.clear();
        }
        older.busy.retain(|client| {
            let client = client.upgrade();
            client.is_some_and(|client| !client.marked_are_answered())
        });
        // While a log is missing its table's writes pass unlogged. An index that is only being created needs none yet.
        let is_whole = older.busy.is_empty() && self.taken.lost.is_empty();
        is_whole.then_some(self.definitions.revision)
    }
}

#[cfg(test)]
mod tests {
    use super::super::base_table::BaseTable;
    use super::super::definition::State;
    use super::super::fixtures::definition;
    use super::*;

    fn confirmed(taken: Taken) -> Option<i64> {
        let in_place = InPlace {
            definitions: Arc::new(Definitions {
                revision: 7,
                rows: Vec::new(),
            }),
            schema_version: Uuid::nil(),
            taken,
            is_recorded: true,
        };
        in_place.confirmed(&mut Older::of_none())
    }

    #[tokio::test]
    async fn a_log_that_is_not_made_yet_holds_up_no_other_definition() {
        let without_log = vec![BaseTable::new("k", "t", Uuid::nil(), Vec::new())];
        assert_eq!(
            confirmed(Taken {
                without_log,
                ..Taken::default()
            }),
            Some(7)
        );
        let lost = vec![definition(State::Logging)];
        assert_eq!(
            confirmed(Taken {
                lost,
                ..Taken::default()
            }),
            None
        );
    }
}
