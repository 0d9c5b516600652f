//! Following the definitions: what the cluster says is taken up, and what is left undone is done.
//!
//! A round is taken at intervals and whenever somebody here has changed something. It reads the revision and the version of the
//! schema, takes both up if either is another than before, and takes the steps of [definitions](super::definition)
//! whose conditions hold. Each step raises the revision, which the next round takes up. Before it reads what it will act by,
//! a gateway has said that it [lives](super::lease), so that nobody acts without it.
//!
//! A revision is taken up once every connection has been seen idle after the new snapshot was in place, or Cassandra has
//! given up whatever was asked before: only then nothing is on its way that an older snapshot decided.

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
use super::{Catalog, gateways, generations, history, log_table, tables};
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
    /// Whether the history has an entry of it.
    is_recorded: bool,
}

/// What may be on its way that an older snapshot decided.
struct Older {
    /// The connections that have not been seen idle since the present snapshot is in place, and when that was.
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
            if self.catalog.snapshot().lapsed() {
                in_place = None;
            }
            let pause = match self.round(cluster, lease, &mut in_place, &mut older).await {
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
            let new = self.put_in_place(cluster, definitions, schema_version, older);
            match new.await? {
                Some(new) => *in_place = Some(new),
                None => return Ok(false),
            }
        }
        let Some(known) = in_place.as_mut() else {
            return Ok(true);
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
        self.step(cluster, known, confirmed_by_all).await?;
        self.rounds.send_replace(Some(Round {
            definitions: known.definitions.clone(),
            confirmed_by_all,
        }));
        Ok(confirmed_by_all >= known.definitions.revision)
    }

    /// `None` if the schema has changed meanwhile.
    async fn put_in_place(
        &self,
        cluster: &Cluster,
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
            self.catalog.replace(taken.snapshot.clone());
            *older = Older {
                busy: self.clients.open(),
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

    /// Takes what steps can be taken. One change a round: the next one needs the revision that this one makes.
    async fn step(
        &self,
        cluster: &Cluster,
        known: &InPlace,
        confirmed_by_all: i64,
    ) -> Result<(), ClusterError> {
        // A log that cannot be made must not hold up the others.
        let mut made = Ok(());
        for table in &known.taken.without_log {
            let ttl = self.options.log_ttl;
            let one = log_table::create(cluster, table, known.schema_version, ttl).await;
            made = made.and(one);
        }
        if !known.taken.without_log.is_empty() && made.is_ok() {
            self.nudge.notify_one();
        }
        let definitions = &known.definitions;
        let Some(change) = next_change(definitions, &known.taken, confirmed_by_all) else {
            return made;
        };
        if let Change::Remove(index) = &change {
            let (keyspace, table) = (&index.keyspace, &index.table);
            if definitions.live_on(keyspace, table).next().is_none() {
                log_table::drop(cluster, keyspace, table).await?;
            }
        }
        definitions.change(cluster, change).await?;
        self.nudge.notify_one();
        made
    }
}

impl InPlace {
    /// The revision, once nothing is on its way that was decided before it was in place.
    fn confirmed(&self, older: &mut Older) -> Option<i64> {
        if older.since.elapsed() >= ANSWERED_WITHIN {
            older.busy.clear();
        }
        older
            .busy
            .retain(|client| client.upgrade().is_some_and(|client| !client.is_idle()));
        // While a log is missing its table's writes pass unlogged.
        let is_whole = older.busy.is_empty() && self.taken.without_log.is_empty();
        is_whole.then_some(self.definitions.revision)
    }
}

/// The next change of the definitions that can be made.
fn next_change(definitions: &Definitions, taken: &Taken, confirmed_by_all: i64) -> Option<Change> {
    if let Some(orphan) = taken.orphans.first() {
        return Some(Change::Turn(orphan.index.clone(), State::Dropping));
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
