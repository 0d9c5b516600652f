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
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::change::Change;
use super::cluster::{Cluster, ClusterError};
use super::definition::Definitions;
use super::in_place::{InPlace, Older};
use super::lease::Lease;
use super::next_change::next_change;
use super::options::CatalogOptions;
use super::take_up::take_up;
use super::truncation::Notes;
use super::{Catalog, gateways, generations, history, log_table, timeuuids};
use crate::clients::Clients;

/// The longest time until a change that another gateway made is seen.
const ROUND_EVERY: Duration = Duration::from_millis(500);

/// The same while this gateway, or another one, has not taken up the revision yet.
const WAITING_ROUND_EVERY: Duration = Duration::from_millis(50);

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
    pub(super) rounds: watch::Sender<Option<Round>>,
}

/// What a follower holds from round to round.
struct Here {
    in_place: Option<InPlace>,
    older: Older,
    notes: Notes,
}

impl Follower {
    /// Follows until the future is dropped.
    pub(super) async fn run(self, cluster: &Cluster, lease: &Lease) {
        let mut here = Here {
            in_place: None,
            older: Older::of_none(),
            notes: Notes::default(),
        };
        let mut told: Option<ClusterError> = None;
        loop {
            lease.held().await;
            let lapses = self.catalog.lapses();
            if self.catalog.snapshot().lapsed() {
                here.in_place = None;
            }
            let round = self.round(cluster, lease, lapses, &mut here);
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
                () = self.catalog.nudge.notified() => {}
            }
        }
    }

    /// One round; whether all gateways have taken up what there is.
    async fn round(
        &self,
        cluster: &Cluster,
        lease: &Lease,
        lapses: u64,
        here: &mut Here,
    ) -> Result<bool, ClusterError> {
        let began = Instant::now();
        // A node that lags behind would tell of tables as if they were gone, and their writes would pass unlogged.
        let Some(schema_version) = cluster.agreed_schema_version().await? else {
            tracing::debug!("the nodes do not agree on the schema yet");
            return Ok(false);
        };
        let definitions = Definitions::read(cluster).await?;
        let is_new = here.in_place.as_ref().is_none_or(|known| {
            known.schema_version != schema_version
                || known.definitions.revision != definitions.revision
        });
        if is_new {
            let older = &mut here.older;
            let new = self.put_in_place(cluster, lapses, definitions, schema_version, older);
            match new.await? {
                Some(new) => here.in_place = Some(new),
                None => return Ok(false),
            }
        }
        let Some(known) = here.in_place.as_mut() else {
            return Ok(false);
        };
        self.catalog.has_looked(began);
        if !known.is_recorded {
            history::record(cluster, schema_version, known.definitions.revision).await?;
            known.is_recorded = true;
        }
        let confirmed = known.confirmed(&mut here.older);
        lease.confirmed.send_if_modified(|said| {
            let is_news = *said != confirmed;
            *said = confirmed;
            is_news
        });
        let live = self
            .catalog
            .look_at_gateways(cluster, lease.gateway)
            .await?;
        let confirmed_by_all = gateways::confirmed_by_all(&live).unwrap_or(-1);
        let log_failures = Arc::new(self.make_logs(cluster, known).await);
        let stepped = self
            .step(cluster, known, &mut here.notes, confirmed_by_all)
            .await;
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
        taken.tell_of_what_is_no_log();
        let before = self.catalog.snapshot().clone();
        if !before.says_the_same(&taken.snapshot) {
            if !self.catalog.replace_since(lapses, &taken.snapshot) {
                return Ok(None);
            }
            let busy = self.clients.open();
            for client in busy.iter().filter_map(Weak::upgrade) {
                client.mark();
            }
            *older = Older::on(busy);
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
                Ok(()) => self.catalog.nudge.notify_one(),
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
        notes: &mut Notes,
        confirmed_by_all: i64,
    ) -> Result<(), ClusterError> {
        let definitions = &known.definitions;
        let version = timeuuids::now()?;
        let overdue = notes.overdue(definitions, Instant::now(), version);
        let next = next_change(definitions, &known.taken, confirmed_by_all, version);
        let Some(change) = next.or(overdue) else {
            return Ok(());
        };
        if let Change::Remove(index) = &change {
            let (keyspace, table) = (&index.keyspace, &index.table);
            if definitions.live_on(keyspace, table).next().is_none()
                && log_table::is_there(cluster, keyspace, table).await?
            {
                // Another gateway may have done it all meanwhile, and a log that is there be one of a new index.
                if Definitions::read(cluster).await?.revision != definitions.revision {
                    self.catalog.nudge.notify_one();
                    return Ok(());
                }
                log_table::drop(cluster, keyspace, table).await?;
            }
        }
        definitions.change(cluster, change).await?;
        self.catalog.nudge.notify_one();
        Ok(())
    }
}

/// What clients are told of a change of a table's indexes.
pub(super) fn table_updated(keyspace: &str, table: &str) -> SchemaChange {
    SchemaChange {
        change: SchemaChangeKind::Updated,
        keyspace: keyspace.to_owned(),
        target: SchemaTarget::Table(table.to_owned()),
    }
}
