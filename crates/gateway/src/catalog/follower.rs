//! Following the definitions: what the cluster says is taken up, and what is left undone is done.
//!
//! A round is taken at intervals and whenever somebody here has changed something. It reads the revision and the version of the
//! schema, takes both up if either is another than before, and takes the steps of [definitions](super::definition)
//! whose conditions hold. Each step raises the revision, which the next round takes up. Before it reads what it will act by,
//! a gateway has said that it [lives](super::lease), so that nobody acts without it.
//!
//! A revision is taken up once everything that was on its way when the new snapshot came is answered, or Cassandra has
//! given it up: only then nothing is on its way that an older snapshot decided.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cql::wire::{
    Compression, Event, Response, ResponseContext, SchemaChange, SchemaChangeKind, SchemaTarget,
};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use uuid::Uuid;

use super::cluster::{Cluster, ClusterError};
use super::definition::{Change, Definitions, State};
use super::lease::Lease;
use super::options::CatalogOptions;
use super::take_up::{Taken, take_up};
use super::{Catalog, gateways, generations, history, log_table, tables, timeuuids};
use crate::clients::{Client, Clients};

/// The longest time until a change that another gateway made is seen.
const ROUND_EVERY: Duration = Duration::from_millis(500);

/// The same while this gateway, or another one, has not taken up the revision yet.
const WAITING_ROUND_EVERY: Duration = Duration::from_millis(50);

/// Cassandra answers a request within its timeouts, of which the longest is 12 s by default.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);

/// How long to wait after a failure.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// What the last round found.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// What there was.
    pub(super) definitions: Arc<Definitions>,
    /// The revision that all live gateways have taken up, as far as it was looked up.
    pub(super) confirmed_by_all: i64,
    /// The logs that could not be made.
    pub(super) log_failures: Arc<Vec<LogFailure>>,
}

/// A log that could not be made.
#[derive(Clone, Debug)]
pub(super) struct LogFailure {
    /// The keyspace and the name of the table that it is for.
    pub(super) keyspace: String,
    pub(super) table: String,
    pub(super) error: ClusterError,
}

/// Follows the definitions.
pub(super) struct Follower {
    pub(super) catalog: Arc<Catalog>,
    pub(super) clients: Arc<Clients>,
    pub(super) options: CatalogOptions,
    pub(super) nudge: Arc<Notify>,
    pub(super) rounds: watch::Sender<Option<Round>>,
}

/// What is in place here.
struct InPlace {
    definitions: Arc<Definitions>,
    schema_version: Uuid,
    taken: Taken,
    /// Whether this gateway has added an entry of it to the history.
    is_recorded: bool,
}

/// What may be on its way that an older snapshot decided.
struct Older {
    /// The connections on which it is, marked; and since when the present snapshot is in place.
    busy: Vec<Weak<Client>>,
    since: Instant,
}

impl Follower {
    /// Follows until the future is dropped.
    pub(super) async fn run(self, cluster: &Cluster, lease: &Lease) {
        let mut in_place = None;
        let mut older = Older {
            busy: Vec::new(),
            since: Instant::now(),
        };
        let mut told: Option<ClusterError> = None;
        loop {
            lease.held().await;
            let lapses = self.catalog.lapses();
            if self.catalog.snapshot().lapsed() {
                in_place = None;
            }
            let round = self.round(cluster, lease, lapses, &mut in_place, &mut older);
            let pause = match round.await {
                Ok(settled) => {
                    told = None;
                    if settled {
                        ROUND_EVERY
                    } else {
                        WAITING_ROUND_EVERY
                    }
                }
                Err(error) => {
                    if told.as_ref() != Some(&error) {
                        tracing::warn!(%error, "the definitions of vector indexes cannot be followed: trying on");
                        told = Some(error);
                    }
                    RETRY_EVERY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.nudge.notified() => {}
            }
        }
    }

    /// One round; whether all gateways have taken up what there is.
    async fn round(
        &self,
        cluster: &Cluster,
        lease: &Lease,
        lapses: u64,
        in_place: &mut Option<InPlace>,
        older: &mut Older,
    ) -> Result<bool, ClusterError> {
        // A node that lags behind would tell of tables as if they were gone, and their writes would pass unlogged.
        let Some(schema_version) = cluster.agreed_schema_version().await? else {
            tracing::debug!("the nodes do not agree on the schema yet");
            return Ok(false);
        };
        let definitions = Definitions::read(cluster).await?;
        let is_new = in_place.as_ref().is_none_or(|known| {
            known.schema_version != schema_version
                || known.definitions.revision != definitions.revision
        });
        if is_new {
            let new = self.put_in_place(cluster, lapses, definitions, schema_version, older);
            match new.await? {
                Some(new) => *in_place = Some(new),
                None => return Ok(false),
            }
        }
        let Some(known) = in_place.as_mut() else {
            return Ok(false);
        };
        if !known.is_recorded {
            history::record(cluster, schema_version, known.definitions.revision).await?;
            known.is_recorded = true;
        }
        let confirmed = known.confirmed(older);
        lease.confirmed.send_if_modified(|said| {
            let is_news = *said != confirmed;
            *said = confirmed;
            is_news
        });
        let confirmed_by_all = gateways::confirmed_by_all(cluster).await?.unwrap_or(-1);
        let log_failures = Arc::new(self.make_logs(cluster, known).await);
        let stepped = self.step(cluster, known, confirmed_by_all).await;
        // What is known is known, whatever could not be done about it: clients wait for the first round.
        self.rounds.send_replace(Some(Round {
            definitions: known.definitions.clone(),
            confirmed_by_all,
            log_failures: log_failures.clone(),
        }));
        stepped?;
        match log_failures.first() {
            Some(failure) => Err(failure.error.clone()),
            None => Ok(confirmed_by_all >= known.definitions.revision),
        }
    }

    /// `None` if what this gateway knows has lapsed, or the schema has changed, meanwhile: what was read before may be out of date.
    async fn put_in_place(
        &self,
        cluster: &Cluster,
        lapses: u64,
        definitions: Definitions,
        schema_version: Uuid,
        older: &mut Older,
    ) -> Result<Option<InPlace>, ClusterError> {
        let streams = Arc::new(generations::read_or_begin(cluster).await?);
        let taken = take_up(cluster, &definitions, &streams).await?;
        // Each part of the schema may have been read from another node: a table from one that has it, its columns from one that
        // has not. What is put together of two versions must not be acted by.
        if cluster.agreed_schema_version().await? != Some(schema_version) {
            tracing::debug!("the schema has changed while it was read");
            return Ok(None);
        }
        let before = self.catalog.snapshot().clone();
        if !before.says_the_same(&taken.snapshot) {
            if !self.catalog.replace_since(lapses, &taken.snapshot) {
                return Ok(None);
            }
            let busy = self.clients.open();
            for client in busy.iter().filter_map(Weak::upgrade) {
                client.mark();
            }
            *older = Older {
                busy,
                since: Instant::now(),
            };
            self.tell_clients(&before, &taken.snapshot);
        }
        Ok(Some(InPlace {
            definitions: Arc::new(definitions),
            schema_version,
            taken,
            is_recorded: false,
        }))
    }

    /// Tells clients of the tables whose indexes are others now.
    fn tell_clients(&self, before: &super::Snapshot, now: &super::Snapshot) {
        let changed: BTreeSet<(&str, &str)> = before
            .all_indexes()
            .iter()
            .filter(|index| !now.all_indexes().contains(index))
            .chain(
                now.all_indexes()
                    .iter()
                    .filter(|index| !before.all_indexes().contains(index)),
            )
            .map(|index| (index.keyspace.as_str(), index.table.as_str()))
            .collect();
        for (keyspace, table) in changed {
            let event = Event::SchemaChange(table_updated(keyspace, table));
            let mut frame = bytes::BytesMut::new();
            const PLAIN: Option<Compression> = None;
            let context = ResponseContext::new(cql::wire::EVENT_STREAM);
            Response::Event(event).encode(&context, PLAIN, &mut frame);
            self.clients.tell_schema_change(&frame.freeze());
        }
    }

    /// Makes the logs that are missing. One that cannot be made holds up no other.
    async fn make_logs(&self, cluster: &Cluster, known: &InPlace) -> Vec<LogFailure> {
        let mut failures = Vec::new();
        for table in &known.taken.without_log {
            let ttl = self.options.log_ttl;
            let made = log_table::create(cluster, table, known.schema_version, ttl).await;
            match made {
                Ok(()) => self.nudge.notify_one(),
                Err(error) => failures.push(LogFailure {
                    keyspace: table.keyspace.clone(),
                    table: table.name.clone(),
                    error,
                }),
            }
        }
        failures
    }

    /// Takes what step can be taken. One change a round: the next one needs the revision that this one makes.
    async fn step(
        &self,
        cluster: &Cluster,
        known: &InPlace,
        confirmed_by_all: i64,
    ) -> Result<(), ClusterError> {
        let definitions = &known.definitions;
        let version = timeuuids::now()?;
        let change = next_change(definitions, &known.taken, confirmed_by_all, version);
        let Some(change) = change else {
            return Ok(());
        };
        if let Change::Remove(index) = &change {
            let (keyspace, table) = (&index.keyspace, &index.table);
            if definitions.live_on(keyspace, table).next().is_none() {
                log_table::drop(cluster, keyspace, table).await?;
            }
        }
        definitions.change(cluster, change).await?;
        self.nudge.notify_one();
        Ok(())
    }
}

impl InPlace {
    /// The revision, once nothing is on its way that was decided before it was in place.
    fn confirmed(&self, older: &mut Older) -> Option<i64> {
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

/// The next change of the definitions that can be made. `version` is for an index that needs another one.
fn next_change(
    definitions: &Definitions,
    taken: &Taken,
    confirmed_by_all: i64,
    version: Uuid,
) -> Option<Change> {
    if let Some(orphan) = taken.orphans.first() {
        return Some(Change::Turn(orphan.index.clone(), State::Dropping));
    }
    if let Some(lost) = taken.lost.first() {
        return Some(Change::Restart(lost.index.clone(), version));
    }
    if let Some(ready) = taken.with_log.first() {
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

/// What clients are told of a change of a table's indexes.
pub(super) fn table_updated(keyspace: &str, table: &str) -> SchemaChange {
    SchemaChange {
        change: SchemaChangeKind::Updated,
        keyspace: keyspace.to_owned(),
        target: SchemaTarget::Table(table.to_owned()),
    }
}

/// Connects, makes what tables there are not, and says so once.
pub(super) async fn connect(
    options: &CatalogOptions,
    trouble: &watch::Sender<Option<String>>,
) -> Cluster {
    let mut told = None;
    loop {
        let error = match connect_once(options).await {
            Ok(cluster) => {
                trouble.send_replace(None);
                return cluster;
            }
            Err(error) => error.to_string(),
        };
        if told.as_ref() != Some(&error) {
            tracing::warn!(
                error,
                "the definitions of vector indexes cannot be read: trying on"
            );
            trouble.send_replace(Some(error.clone()));
            told = Some(error);
        }
        tokio::time::sleep(RETRY_EVERY).await;
    }
}

async fn connect_once(options: &CatalogOptions) -> Result<Cluster, ClusterError> {
    let cluster = Cluster::connect(options).await?;
    tables::create(&cluster, options).await?;
    Ok(cluster)
}

#[cfg(test)]
mod tests {
    use super::super::base_table::BaseTable;
    use super::super::definition::Definition;
    use super::super::index::VectorIndex;
    use super::*;

    fn row(state: State) -> Definition {
        Definition {
            index: Arc::new(VectorIndex {
                keyspace: "k".to_owned(),
                table: "t".to_owned(),
                name: "i".to_owned(),
                column: "v".to_owned(),
                target: "v".to_owned(),
                options: Default::default(),
                version: Uuid::from_u128(1),
                table_id: Uuid::from_u128(2),
            }),
            state,
            changed_at: 7,
        }
    }

    fn nothing() -> Taken {
        Taken::default()
    }

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
        in_place.confirmed(&mut Older {
            busy: Vec::new(),
            since: Instant::now(),
        })
    }

    #[tokio::test]
    async fn a_log_that_is_not_made_yet_holds_up_no_other_definition() {
        let without_log = vec![BaseTable::new("k", "t", Uuid::nil(), Vec::new())];
        assert_eq!(
            confirmed(Taken {
                without_log,
                ..nothing()
            }),
            Some(7)
        );
        let lost = vec![row(State::Logging)];
        assert_eq!(confirmed(Taken { lost, ..nothing() }), None);
    }

    #[test]
    fn an_index_whose_log_is_lost_begins_anew() {
        let definitions = Definitions {
            revision: 7,
            rows: vec![row(State::Usable)],
        };
        let lost = definitions.rows.clone();
        let taken = Taken { lost, ..nothing() };
        let version = Uuid::from_u128(9);
        let change = next_change(&definitions, &taken, 7, version);
        let Some(Change::Restart(index, new)) = change else {
            panic!("{change:?}");
        };
        assert_eq!((index, new), (definitions.rows[0].index.clone(), version));
        let unchanged = next_change(&definitions, &nothing(), 7, version);
        assert!(unchanged.is_none(), "{unchanged:?}");
    }
}
