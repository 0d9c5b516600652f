//! The task that follows the schema: an index that appears is built, one that is gone is freed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::db::DbHandle;
use crate::discovery::{Discovered, Discovery, DiscoveryError, Round};
use crate::engine::{Engine, IndexHandle};
use crate::identity::{IndexIdentity, IndexName, TableIdentity};
use crate::keys::KeySchema;
use crate::table::{Table, TableContext};

/// So many looks in a row without an answer mean that the session is lost.
const SILENCES_MAX: u32 = 3;

/// A look that takes longer counts as one without an answer.
const ROUND_TIMEOUT: Duration = Duration::from_secs(30);

/// So many looks may find something unclear before the service stops waiting for it to start.
const UNCLEAR_MAX: u32 = 10;

/// The pause between looks from then on.
const UNCLEAR_PAUSE: Duration = Duration::from_secs(1);

/// A table as the readers of its log know it.
type TableKey = (TableIdentity, Vec<String>);

/// Follows the schema.
pub struct MonitorIndexes {
    context: TableContext,
    interval: Duration,
    discovery: Discovery,
    tables: HashMap<TableKey, Table>,
    /// Every index that is built or being built.
    indexes: HashMap<IndexName, IndexIdentity>,
    unclear_rounds: u32,
    cancel: CancellationToken,
}

impl MonitorIndexes {
    /// Before the first look. `cancel`: the parent of all that runs for tables.
    pub fn new(
        context: TableContext,
        interval: Duration,
        cancel: CancellationToken,
    ) -> MonitorIndexes {
        MonitorIndexes {
            context,
            interval,
            discovery: Discovery::default(),
            tables: HashMap::new(),
            indexes: HashMap::new(),
            unclear_rounds: 0,
            cancel,
        }
    }

    /// Follows the schema for ever.
    pub async fn run(mut self) {
        let db: DbHandle = self.context.db.clone();
        let mut silences = 0;
        let mut generation = 0;
        loop {
            let session = db.current().await;
            if session.generation != generation {
                generation = session.generation;
                silences = 0;
                self.discovery.forget();
            }
            let round = tokio::time::timeout(ROUND_TIMEOUT, self.discovery.round(&session))
                .await
                .unwrap_or_else(|_| Err(DiscoveryError::Unreachable("no answer".to_owned())));
            match round {
                Ok(Round::Unchanged | Round::Unsettled) => silences = 0,
                Ok(Round::Found(discovered)) => {
                    silences = 0;
                    self.take_in(discovered);
                }
                Err(DiscoveryError::Unreachable(error)) => {
                    silences += 1;
                    tracing::debug!(error, silences, "the schema can't be read");
                    if silences >= SILENCES_MAX {
                        db.report_lost(generation);
                        db.replaced(generation).await;
                        continue;
                    }
                }
                Err(error) => {
                    silences = 0;
                    tracing::warn!(%error, "the schema can't be read");
                }
            }
            tokio::time::sleep(self.pause()).await;
        }
    }

    /// How long until the next look. What stays unclear isn't worth looking at as often.
    fn pause(&self) -> Duration {
        match self.unclear_rounds >= UNCLEAR_MAX {
            true => self.interval.max(UNCLEAR_PAUSE),
            false => self.interval,
        }
    }

    /// Makes the indexes those of the schema.
    fn take_in(&mut self, discovered: Discovered) {
        let plan = plan(&self.indexes, &discovered);
        for name in plan.remove {
            self.remove(&name);
        }
        for identity in plan.add {
            self.add(identity);
        }
        if discovered.unclear.is_empty() {
            self.unclear_rounds = 0;
            self.context.engine.first_discovery();
        } else if self.unclear_rounds < UNCLEAR_MAX {
            self.unclear_rounds += 1;
            tracing::debug!(indexes = ?discovered.unclear, "not yet visible");
        } else {
            self.context.engine.first_discovery();
        }
    }

    fn add(&mut self, identity: IndexIdentity) {
        let engine: &Engine = &self.context.engine;
        let metrics = engine.metrics().index(&identity.name);
        let index = match IndexHandle::new(identity.clone(), &self.context.indexes, metrics) {
            Ok(index) => Arc::new(index),
            Err(error) => {
                tracing::error!(index = %identity.name, %error, "the index can't be made");
                engine.remove(&identity.name);
                return;
            }
        };
        tracing::info!(index = %identity.name, table = %identity.table, "index found");
        engine.insert(index.clone());
        let key = table_key(&identity.table, &identity.keys);
        self.tables
            .entry(key)
            .or_insert_with(|| {
                Table::start(
                    identity.table.clone(),
                    identity.keys.clone(),
                    self.context.clone(),
                    self.cancel.child_token(),
                )
            })
            .add(index);
        self.indexes.insert(identity.name.clone(), identity);
    }

    fn remove(&mut self, name: &IndexName) {
        let Some(identity) = self.indexes.remove(name) else {
            return;
        };
        tracing::info!(index = %name, "index gone");
        let key = table_key(&identity.table, &identity.keys);
        if let Some(table) = self.tables.get_mut(&key) {
            table.remove(name);
            if table.is_empty() {
                self.tables.remove(&key);
            }
        }
        self.context.engine.remove(name);
    }
}

fn table_key(table: &TableIdentity, keys: &KeySchema) -> TableKey {
    let columns = keys.columns().map(|column| column.name.clone());
    (table.clone(), columns.collect())
}

/// What is to be done so that the indexes are those of the schema.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    /// First to be freed.
    remove: Vec<IndexName>,
    /// Then to be built.
    add: Vec<IndexIdentity>,
}

/// Any difference in its identity makes an index another one.
fn plan(indexes: &HashMap<IndexName, IndexIdentity>, discovered: &Discovered) -> Plan {
    let mut plan = Plan::default();
    for (name, identity) in indexes {
        let stays =
            discovered.unclear.contains(name) || discovered.indexes.get(name) == Some(identity);
        if !stays {
            plan.remove.push(name.clone());
        }
    }
    for (name, identity) in &discovered.indexes {
        if indexes.get(name) != Some(identity) {
            plan.add.push(identity.clone());
        }
    }
    plan.remove.sort_unstable();
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::identity;

    fn known(identities: &[IndexIdentity]) -> HashMap<IndexName, IndexIdentity> {
        identities
            .iter()
            .map(|identity| (identity.name.clone(), identity.clone()))
            .collect()
    }

    fn discovered(identities: &[IndexIdentity]) -> Discovered {
        Discovered {
            indexes: known(identities).into_iter().collect(),
            ..Discovered::default()
        }
    }

    #[test]
    fn what_is_the_same_stays() {
        let both = [identity("a"), identity("b")];
        assert_eq!(plan(&known(&both), &discovered(&both)), Plan::default());
    }

    #[test]
    fn what_differs_in_anything_is_built_anew() {
        let before = identity("a");
        let changes: [fn(&mut IndexIdentity); 5] = [
            |index| index.truncated_ms = Some(1),
            |index| index.table.id = uuid::Uuid::from_u128(7),
            |index| index.version = None,
            |index| index.options.search_beam_width += 1,
            |index| index.range.end = 0,
        ];
        for change in changes {
            let mut after = before.clone();
            change(&mut after);
            assert_eq!(
                plan(
                    &known(std::slice::from_ref(&before)),
                    &discovered(std::slice::from_ref(&after))
                ),
                Plan {
                    remove: vec![before.name.clone()],
                    add: vec![after],
                }
            );
        }
    }

    #[test]
    fn what_is_unclear_stays_and_what_is_gone_goes() {
        let mut schema = discovered(&[identity("new")]);
        schema.unclear.insert(identity("unclear").name);
        assert_eq!(
            plan(&known(&[identity("unclear"), identity("gone")]), &schema),
            Plan {
                remove: vec![identity("gone").name],
                add: vec![identity("new")],
            }
        );
    }
}
