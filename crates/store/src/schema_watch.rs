//! The task that follows the schema. It builds each index that appears and frees each one that was
//! dropped.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use platform::aside;
use store_api::types::IndexState;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::database::{DiscoveredIndexes, LogFacts, SchemaFollower};
use crate::feed::InterruptedTable;
use crate::identity::{IndexIdentity, IndexName, TableIdentity};
use crate::indexes::{IndexEngine, IndexHandle};
use crate::keys::KeySchema;
use crate::present::TimeSource;
use crate::snapshot::ReopenOutcome;
use crate::table::{IndexedTable, InitialRows, SnapshotRows, TableContext};

/// The number of rounds with unclear indexes after which the start of the service no longer waits
/// for them.
const UNCLEAR_MAX: u32 = 10;

/// The key of a table that is followed: its identity, and the names of its key columns.
type TableKey = (TableIdentity, Vec<String>);

/// Follows the schema.
pub(crate) struct SchemaWatch {
    context: TableContext,
    schema: Box<dyn SchemaFollower>,
    tables: HashMap<TableKey, IndexedTable>,
    /// Every index that is built or being built.
    indexes: BTreeMap<IndexName, IndexIdentity>,
    unclear_rounds: u32,
    /// Indexes whose vectors turned out to be damaged.
    damaged: mpsc::Receiver<Arc<IndexHandle>>,
    /// Tables whose indexes missed a part of the log.
    interrupted: mpsc::Receiver<InterruptedTable>,
    /// Whether the snapshots of dropped indexes have been deleted.
    swept: bool,
    cancel: CancellationToken,
}

impl SchemaWatch {
    /// Makes the task, which knows no index yet. `damaged` and `interrupted` are the receivers of
    /// the context's channels. `cancel` is the parent of the tokens of all tables.
    pub(crate) fn new(
        context: TableContext,
        damaged: mpsc::Receiver<Arc<IndexHandle>>,
        interrupted: mpsc::Receiver<InterruptedTable>,
        cancel: CancellationToken,
    ) -> SchemaWatch {
        SchemaWatch {
            schema: context.database.schema(),
            context,
            tables: HashMap::new(),
            indexes: BTreeMap::new(),
            unclear_rounds: 0,
            damaged,
            interrupted,
            swept: false,
            cancel,
        }
    }

    /// Follows the schema until the future is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            tokio::select! {
                biased;
                // These come first. They are too rare to hold anything up.
                Some(index) = self.damaged.recv() => self.rebuild(&index).await,
                Some(interrupted) = self.interrupted.recv() => self.reopen(interrupted).await,
                discovered = self.schema.changed() => self.take_in(discovered).await,
            }
        }
    }

    /// Makes the set of indexes equal to that of the schema.
    async fn take_in(&mut self, mut discovered: DiscoveredIndexes) {
        let mut changes = changes(&self.indexes, &discovered);
        self.recall_truncations(&mut changes.add).await;
        self.recall_truncations(&mut changes.renew).await;
        for identity in changes.renew {
            let serving = self.context.engine.index(&identity.name);
            match serving.is_some_and(|index| index.state() == IndexState::Serving) {
                true => self.renew(identity).await,
                false => {
                    changes.remove.push(identity.name.clone());
                    changes.add.push(identity);
                }
            }
        }
        for name in changes.remove {
            self.remove(&name).await;
        }
        let context = &self.context;
        let opened = changes.add.iter().map(|identity| open(context, identity));
        let opened = futures::future::join_all(opened).await;
        for (identity, opened) in changes.add.into_iter().zip(opened) {
            let name = identity.name.clone();
            if !self.add_opened(identity, opened).await {
                // The index still exists, so its snapshot must not be swept.
                discovered.unclear.insert(name);
            }
        }
        if discovered.unclear.is_empty() && !self.swept {
            self.swept = true;
            self.sweep().await;
        }
        if discovered.unclear.is_empty() {
            self.unclear_rounds = 0;
            self.context.engine.first_discovery();
        } else if self.unclear_rounds < UNCLEAR_MAX {
            self.unclear_rounds += 1;
            tracing::debug!(indexes = ?discovered.unclear, "some indexes can't be described yet");
        } else {
            self.context.engine.first_discovery();
        }
    }

    /// Corrects the times of truncations. The schema may not know the latest one, so the time in a
    /// snapshot counts too.
    async fn recall_truncations(&mut self, identities: &mut [IndexIdentity]) {
        for identity in identities {
            let (snapshots, of) = (self.context.snapshots.clone(), identity.clone());
            let saved_ms = blocking(move || snapshots.truncated_ms(&of))
                .await
                .flatten();
            identity.truncated_ms =
                self.schema
                    .truncated_ms(identity.table.id, identity.truncated_ms, saved_ms);
        }
    }

    /// Adds an index if the facts about its log are known. If not, the index waits for the next
    /// look at the schema.
    async fn add_opened(&mut self, identity: IndexIdentity, opened: OpenedOf) -> bool {
        let missing = match opened {
            Ok(Some((log, opened, None))) => {
                self.add(identity, log, opened);
                return true;
            }
            Ok(Some((log, opened, Some(former)))) => {
                self.add(former, log, opened);
                self.renew(identity).await;
                return true;
            }
            Ok(None) => "there is none".to_owned(),
            Err(error) => format!("{error:#}"),
        };
        tracing::warn!(
            index = %identity.name,
            reason = missing,
            "the table's log can't be described; the index waits until it can"
        );
        self.schema.request_again();
        false
    }

    fn add(&mut self, identity: IndexIdentity, log: LogFacts, opened: ReopenOutcome) {
        let engine: &IndexEngine = &self.context.engine;
        let metrics = engine.metrics().index(&identity.name);
        let (index, beginning) = match opened {
            ReopenOutcome::Index(opened) => {
                let rows = SnapshotRows {
                    items: opened.items,
                    unread: opened.unread,
                };
                let saved = opened.saved;
                let beginning = match opened.to_reconcile {
                    true => InitialRows::Reconciled { rows },
                    false => InitialRows::Resumed { rows, saved },
                };
                let index = IndexHandle::with(identity.clone(), opened.content, metrics);
                (index, beginning)
            }
            ReopenOutcome::Nothing => {
                match IndexHandle::new(identity.clone(), &self.context.indexes, metrics) {
                    Ok(index) => (index, InitialRows::Empty),
                    Err(error) => {
                        tracing::error!(index = %identity.name, %error, "the index can't be made");
                        engine.remove(&identity.name);
                        return;
                    }
                }
            }
        };
        let index = Arc::new(index);
        if let Some(head) = self.context.database.log_head(&identity.table) {
            index.freshness.set_head(head);
        }
        tracing::info!(index = %identity.name, table = %identity.table, "index found");
        engine.insert(index.clone());
        let key = table_key(&identity.table, &identity.keys);
        self.tables
            .entry(key)
            .or_insert_with(|| {
                IndexedTable::start(
                    identity.table.clone(),
                    identity.keys.clone(),
                    &log,
                    self.context.clone(),
                    self.cancel.child_token(),
                )
            })
            .add(index, log, beginning);
        self.indexes.insert(identity.name.clone(), identity);
    }

    /// Builds an index again, as it is to keep other columns. The present one serves until then.
    async fn renew(&mut self, identity: IndexIdentity) {
        let log = self.context.database.log(&identity.table).await;
        let key = table_key(&identity.table, &identity.keys);
        let (Ok(Some(log)), Some(table)) = (log, self.tables.get_mut(&key)) else {
            // The next look at the schema finds the same.
            self.schema.request_again();
            return;
        };
        let metrics = self.context.engine.metrics().index(&identity.name);
        let index = IndexHandle::new(identity.clone(), &self.context.indexes, metrics);
        let index = match index {
            Ok(index) => Arc::new(index),
            Err(error) => {
                tracing::error!(index = %identity.name, %error, "the index can't be made yet");
                self.schema.request_again();
                return;
            }
        };
        if let Some(head) = self.context.database.log_head(&identity.table) {
            index.freshness.set_head(head);
        }
        tracing::info!(index = %identity.name, "the index is built anew, with other columns");
        self.context.engine.insert_replacement(index.clone());
        table.add_replacement(index, log);
        self.indexes.insert(identity.name.clone(), identity);
    }

    /// Builds an index again, as its vectors are damaged.
    async fn rebuild(&mut self, index: &Arc<IndexHandle>) {
        // The index may have been dropped meanwhile, or replaced by another one.
        let Some(identity) = self.indexes.get(&index.identity.name).cloned() else {
            return;
        };
        let now = self.context.engine.index(&identity.name);
        if now.is_some_and(|now| Arc::ptr_eq(&now, index)) {
            self.remove(&identity.name).await;
            let opened = open(&self.context, &identity).await;
            self.add_opened(identity, opened).await;
        } else if self.context.engine.is_replacement(index) {
            self.renew(identity).await;
        }
    }

    /// Reopens the indexes of a table from their snapshots, as after a restart. No snapshot has a
    /// position after the gap, so each index gets what it lacks from the log or by a comparison
    /// with the table. An index without a snapshot is built again.
    async fn reopen(&mut self, interrupted: InterruptedTable) {
        // Another reader of the table may have reported the gap before, so that the log is followed
        // again already.
        if interrupted.following.is_cancelled() {
            return;
        }
        let key = table_key(&interrupted.table, &interrupted.keys);
        // All indexes go at once, as they share the readers. This also ends tasks that might still
        // save them.
        self.tables.remove(&key);
        let identities = self.indexes.values();
        let of_table: Vec<IndexIdentity> = identities
            .filter(|identity| table_key(&identity.table, &identity.keys) == key)
            .cloned()
            .collect();
        for identity in &of_table {
            self.indexes.remove(&identity.name);
            self.context.engine.remove(&identity.name);
        }
        for identity in of_table {
            let opened = open(&self.context, &identity).await;
            self.add_opened(identity, opened).await;
        }
    }

    /// Deletes the snapshots of dropped indexes.
    async fn sweep(&self) {
        let identities: Vec<IndexIdentity> = self.indexes.values().cloned().collect();
        let snapshots = self.context.snapshots.clone();
        blocking(move || snapshots.retain(&identities)).await;
    }

    async fn remove(&mut self, name: &IndexName) {
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
        let snapshots = self.context.snapshots.clone();
        blocking(move || snapshots.remove(&identity)).await;
    }
}

/// The facts about an index's log, what its snapshot gives, and the identity of the index in that
/// if it has fewer columns, so that the index has still to be built again. `None` if the table has
/// no log.
type OpenedOf = anyhow::Result<Option<(LogFacts, ReopenOutcome, Option<IndexIdentity>)>>;

async fn open(context: &TableContext, identity: &IndexIdentity) -> OpenedOf {
    let Some(log) = context.database.log(&identity.table).await? else {
        return Ok(None);
    };
    let (snapshots, indexes) = (context.snapshots.clone(), context.indexes.clone());
    let (identity, memory) = (identity.clone(), context.memory.clone());
    let present = TimeSource::of(context.database.clock());
    let opened = blocking(move || {
        let open =
            |identity: &IndexIdentity| snapshots.open(identity, &log, &present, &indexes, &memory);
        if let Some(former) = snapshots.former(&identity, &log) {
            match open(&former) {
                // It would have to scan the table before it serves, as the new index has to.
                ReopenOutcome::Index(opened) if opened.to_reconcile => {}
                ReopenOutcome::Index(opened) => {
                    return (ReopenOutcome::Index(opened), Some(former));
                }
                ReopenOutcome::Nothing => {}
            }
        }
        (open(&identity), None)
    });
    let (opened, former) = opened.await.unwrap_or((ReopenOutcome::Nothing, None));
    Ok(Some((log, opened, former)))
}

/// Runs blocking work with files. `None` if the process is ending.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match aside(work).await {
        Ok(done) => Some(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}

fn table_key(table: &TableIdentity, keys: &KeySchema) -> TableKey {
    let columns = keys.columns().map(|column| column.name.clone());
    (table.clone(), columns.collect())
}

/// The steps that make the indexes those of the schema.
#[derive(Debug, Default, PartialEq)]
struct IndexChanges {
    /// The indexes to free, first.
    remove: Vec<IndexName>,
    /// The indexes to build, afterwards.
    add: Vec<IndexIdentity>,
    /// The indexes to build next to those of their names, which differ in nothing but the columns
    /// that they keep.
    renew: Vec<IndexIdentity>,
}

/// Compares the indexes with those of the schema. Any difference in its identity makes an index
/// another one.
fn changes(
    indexes: &BTreeMap<IndexName, IndexIdentity>,
    discovered: &DiscoveredIndexes,
) -> IndexChanges {
    let mut changes = IndexChanges::default();
    let differ_in_columns = |old: &IndexIdentity, new: &IndexIdentity| {
        let with_columns = IndexIdentity {
            filter_columns: new.filter_columns.clone(),
            ..old.clone()
        };
        old != new && with_columns == *new
    };
    for (name, identity) in indexes {
        let now = discovered.indexes.get(name);
        let stays = discovered.unclear.contains(name) || now == Some(identity);
        if !stays && !now.is_some_and(|now| differ_in_columns(identity, now)) {
            changes.remove.push(name.clone());
        }
    }
    for (name, identity) in &discovered.indexes {
        match indexes.get(name) {
            Some(known) if known == identity => {}
            Some(known) if differ_in_columns(known, identity) => {
                changes.renew.push(identity.clone());
            }
            _ => changes.add.push(identity.clone()),
        }
    }
    changes.remove.sort_unstable();
    changes
}

#[cfg(test)]
mod tests {
    use value::CqlType;

    use super::*;
    use crate::identity::FilterColumn;
    use crate::indexes::tests::identity;

    fn known(identities: &[IndexIdentity]) -> BTreeMap<IndexName, IndexIdentity> {
        identities
            .iter()
            .map(|identity| (identity.name.clone(), identity.clone()))
            .collect()
    }

    fn discovered(identities: &[IndexIdentity]) -> DiscoveredIndexes {
        DiscoveredIndexes {
            indexes: known(identities).into_iter().collect(),
            ..DiscoveredIndexes::default()
        }
    }

    #[test]
    fn unchanged_indexes_stay() {
        let both = [identity("a"), identity("b")];
        assert_eq!(
            changes(&known(&both), &discovered(&both)),
            IndexChanges::default()
        );
    }

    #[test]
    fn an_index_with_any_difference_is_built_again() {
        let before = identity("a");
        let edits: [fn(&mut IndexIdentity); 5] = [
            |index| index.truncated_ms = Some(1),
            |index| index.table.id = uuid::Uuid::from_u128(7),
            |index| index.version = None,
            |index| index.options.vector().search_beam_width = Some(65),
            |index| index.range.end = 0,
        ];
        for edit in edits {
            let mut after = before.clone();
            edit(&mut after);
            assert_eq!(
                changes(
                    &known(std::slice::from_ref(&before)),
                    &discovered(std::slice::from_ref(&after))
                ),
                IndexChanges {
                    remove: vec![before.name.clone()],
                    add: vec![after],
                    renew: Vec::new(),
                }
            );
        }
    }

    #[test]
    fn an_index_that_differs_only_in_its_columns_is_built_next_to_the_old_one() {
        let before = identity("a");
        let mut after = before.clone();
        after.filter_columns.push(FilterColumn {
            name: "f".to_owned(),
            cql_type: CqlType::Int,
            is_static: false,
        });
        for (before, after) in [(&before, &after), (&after, &before)] {
            assert_eq!(
                changes(
                    &known(std::slice::from_ref(before)),
                    &discovered(std::slice::from_ref(after))
                ),
                IndexChanges {
                    renew: vec![after.clone()],
                    ..IndexChanges::default()
                }
            );
        }
        let mut truncated = after;
        truncated.truncated_ms = Some(1);
        let both = changes(&known(&[before]), &discovered(&[truncated]));
        assert!(both.renew.is_empty());
    }

    #[test]
    fn an_unclear_index_stays_and_a_dropped_one_is_removed() {
        let mut schema = discovered(&[identity("new")]);
        schema.unclear.insert(identity("unclear").name);
        assert_eq!(
            changes(&known(&[identity("unclear"), identity("gone")]), &schema),
            IndexChanges {
                remove: vec![identity("gone").name],
                add: vec![identity("new")],
                renew: Vec::new(),
            }
        );
    }
}
