//! The follower of the definitions. It activates what the cluster holds, and takes the steps that
//! are due.
//!
//! A round begins at intervals, and at once after a change by this gateway. It reads the revision
//! and the version of the schema, and activates both if either has changed. Then it takes the steps
//! of [definitions](super::definition) whose conditions hold. Each step raises the revision, which
//! the next round activates. A round only begins while the gateway's [lease](super::lease) is held,
//! so that no other gateway acts without it.
//!
//! A new snapshot is put in place at once. Its revision counts as confirmed when all requests that
//! were in flight at that moment are answered, or Cassandra has given them up. Only then no older
//! snapshot decides a request that is still in flight.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use cql::wire::{
    Compression, Response, ResponseContext, SchemaChange, SchemaChangeKind, SchemaTarget,
    ServerEvent,
};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::active_revision::{ActiveRevision, OutdatedRequests};
use super::change::DefinitionChange;
use super::cluster::{ClusterError, InternalSession};
use super::define::cassandras_indexes;
use super::definition::{ClusterDefinitions, IndexLifecycle};
use super::lease::HeartbeatLease;
use super::next_change::next_change;
use super::options::InternalSessionOptions;
use super::reconcile::reconcile;
use super::truncation::TruncateNotes;
use super::{IndexCatalog, gateways, generations, grants, history, log_table, timeuuids};
use crate::clients::OpenConnections;

/// The pause between rounds, and so the longest time until a change by another gateway is seen.
const ROUND_EVERY: Duration = Duration::from_millis(500);

/// The pause between rounds while not all gateways have confirmed the revision.
const WAITING_ROUND_EVERY: Duration = Duration::from_millis(50);

/// The pause after a failure.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// The finding of the last round.
#[derive(Clone, Debug)]
pub(super) struct RoundFindings {
    /// All definitions.
    pub(super) definitions: Arc<ClusterDefinitions>,
    /// The revision that all live gateways have confirmed; -1 if one of them has confirmed none.
    pub(super) confirmed_by_all: i64,
    /// The logs that could not be made.
    pub(super) log_failures: Arc<Vec<LogFailure>>,
}

/// A log that could not be made.
#[derive(Clone, Debug)]
pub(super) struct LogFailure {
    /// The keyspace of the table that the log is for.
    pub(super) keyspace: String,
    /// The name of the table that the log is for.
    pub(super) table: String,
    /// The reason why the log could not be made.
    pub(super) error: ClusterError,
}

/// Follows the definitions, in rounds.
pub(super) struct DefinitionFollower {
    pub(super) catalog: Arc<IndexCatalog>,
    pub(super) clients: Arc<OpenConnections>,
    pub(super) options: InternalSessionOptions,
    /// The last round, for statements that wait for its findings.
    pub(super) rounds: watch::Sender<Option<RoundFindings>>,
}

/// The state that a follower keeps from round to round.
struct RoundState {
    active: Option<ActiveRevision>,
    older: OutdatedRequests,
    notes: TruncateNotes,
}

impl DefinitionFollower {
    /// Follows until the future is dropped.
    pub(super) async fn run(self, cluster: &InternalSession, lease: &HeartbeatLease) {
        let mut here = RoundState {
            active: None,
            older: OutdatedRequests::of_none(),
            notes: TruncateNotes::default(),
        };
        let mut told: Option<ClusterError> = None;
        loop {
            lease.held().await;
            // Before anything is read, so that a lapse during the round shows.
            let lapses = self.catalog.lapses();
            if self.catalog.snapshot().lapsed() {
                // The revision may be the same as before, but a lapsed snapshot has to be replaced.
                here.active = None;
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
                        tracing::warn!(%error, "the definitions of vector indexes cannot be followed: trying again");
                        told = Some(error);
                    }
                    RETRY_EVERY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.catalog.refresh_requested.notified() => {}
            }
        }
    }

    /// Takes one round; true if all live gateways have confirmed the revision.
    async fn round(
        &self,
        cluster: &InternalSession,
        lease: &HeartbeatLease,
        lapses: u64,
        here: &mut RoundState,
    ) -> Result<bool, ClusterError> {
        let began = Instant::now();
        // A node that lags could report tables as missing, and their writes would pass unlogged.
        let Some(schema_version) = cluster.agreed_schema_version().await? else {
            tracing::debug!("the nodes do not agree on the schema yet");
            return Ok(false);
        };
        let definitions = ClusterDefinitions::read(cluster).await?;
        let is_new = here.active.as_ref().is_none_or(|known| {
            known.schema_version != schema_version
                || known.definitions.revision != definitions.revision
        });
        if is_new {
            let older = &mut here.older;
            let new = self.activate(cluster, lapses, definitions, schema_version, older);
            match new.await? {
                Some(new) => here.active = Some(new),
                None => return Ok(false),
            }
        }
        let Some(known) = here.active.as_mut() else {
            return Ok(false);
        };
        // By the beginning of the round, as later changes may not have been read.
        self.catalog.set_refreshed(began);
        // Only once this gateway shows the indexes: index services look for them when they see a
        // new entry.
        if !known.is_recorded {
            history::record(cluster, schema_version, known.definitions.revision).await?;
            known.is_recorded = true;
        }
        let confirmed = known.confirmed(&mut here.older);
        // A change wakes the task that sends heartbeats, so only news counts as one.
        lease.confirmed.send_if_modified(|said| {
            let is_news = *said != confirmed;
            *said = confirmed;
            is_news
        });
        let live = self
            .catalog
            .refresh_gateways(cluster, lease.gateway)
            .await?;
        let confirmed_by_all = gateways::confirmed_by_all(&live).unwrap_or(-1);
        let log_failures = Arc::new(self.make_logs(cluster, known).await);
        let stepped = self
            .step(cluster, known, &mut here.notes, confirmed_by_all)
            .await;
        // The round is published even if a step failed: clients wait for the first one.
        self.rounds.send_replace(Some(RoundFindings {
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

    /// Reads the schema and puts a new snapshot in place. `None` if the lease has lapsed or the
    /// schema has changed meanwhile, as what was read may be out of date.
    async fn activate(
        &self,
        cluster: &InternalSession,
        lapses: u64,
        definitions: ClusterDefinitions,
        schema_version: Uuid,
        older: &mut OutdatedRequests,
    ) -> Result<Option<ActiveRevision>, ClusterError> {
        let streams = Arc::new(generations::read_or_begin(cluster).await?);
        let reconciled = reconcile(cluster, &definitions, &streams).await?;
        // Each part of the schema may come from another node: a table from one that has it, its
        // columns from one that has not. A mixture of two versions must not be put in place.
        if cluster.agreed_schema_version().await? != Some(schema_version) {
            tracing::debug!("the schema has changed while it was read");
            return Ok(None);
        }
        reconciled.tell_of_what_is_no_log();
        let before = self.catalog.snapshot().clone();
        if !before.has_same_content(&reconciled.snapshot) {
            if !self.catalog.replace_since(lapses, &reconciled.snapshot) {
                return Ok(None);
            }
            // Only after the replacement: whatever request begins from here on is decided by the
            // new snapshot.
            let busy = self.clients.open();
            for client in busy.iter().filter_map(Weak::upgrade) {
                client.mark();
            }
            *older = OutdatedRequests::on(busy);
            self.tell_clients(&before, &reconciled.snapshot);
        }
        Ok(Some(ActiveRevision {
            definitions: Arc::new(definitions),
            schema_version,
            reconciled,
            is_recorded: false,
        }))
    }

    /// Sends an event to clients for each table whose indexes have changed.
    fn tell_clients(
        &self,
        before: &super::IndexCatalogSnapshot,
        now: &super::IndexCatalogSnapshot,
    ) {
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
            let event = ServerEvent::SchemaChange(table_updated(keyspace, table));
            let event = Response::Event(event);
            self.clients.tell_schema_change(|version| {
                let mut frame = bytes::BytesMut::new();
                const PLAIN: Option<Compression> = None;
                let context = ResponseContext::new(cql::wire::EVENT_STREAM).at(version);
                event.encode(&context, PLAIN, &mut frame);
                frame.freeze()
            });
        }
    }

    /// Makes the missing logs. A log that cannot be made does not hold up the others.
    async fn make_logs(
        &self,
        cluster: &InternalSession,
        known: &ActiveRevision,
    ) -> Vec<LogFailure> {
        let mut failures = Vec::new();
        for table in &known.reconciled.without_log {
            let ttl = self.options.log_ttl;
            let made = log_table::create(cluster, table, known.schema_version, ttl).await;
            match made {
                Ok(()) => self.catalog.refresh_requested.notify_one(),
                Err(error) => failures.push(LogFailure {
                    keyspace: table.keyspace.clone(),
                    table: table.name.clone(),
                    error,
                }),
            }
        }
        failures
    }

    /// Takes one step that is due, if there is one. Only one, as the next step needs the revision
    /// that this one makes.
    async fn step(
        &self,
        cluster: &InternalSession,
        known: &ActiveRevision,
        notes: &mut TruncateNotes,
        confirmed_by_all: i64,
    ) -> Result<(), ClusterError> {
        let definitions = &known.definitions;
        let version = timeuuids::now()?;
        // In each round, even if another step is due, as the time of a note counts from when it was
        // first seen.
        let overdue = notes.overdue(definitions, Instant::now(), version);
        let next = next_change(definitions, &known.reconciled, confirmed_by_all, version);
        let Some(change) = next.or(overdue) else {
            return Ok(());
        };
        let change = without_namesake(cluster, change).await?;
        if let DefinitionChange::Remove(index) = &change {
            let (keyspace, table) = (&index.keyspace, &index.table);
            if definitions.live_on(keyspace, table).next().is_none()
                && log_table::is_there(cluster, keyspace, table).await?
            {
                // Another gateway may have finished this step, and the log may belong to a new
                // index.
                if ClusterDefinitions::read(cluster).await?.revision != definitions.revision {
                    self.catalog.refresh_requested.notify_one();
                    return Ok(());
                }
                // Before the definition is removed: if this gateway dies in between, another one
                // finds the definition and takes the step again.
                log_table::drop(cluster, keyspace, table).await?;
            }
        }
        // Permissions are granted before any write is logged.
        if let DefinitionChange::Turn(index, IndexLifecycle::Logging) = &change {
            grants::give(cluster, index).await?;
        }
        definitions.change(cluster, change).await?;
        self.catalog.refresh_requested.notify_one();
        Ok(())
    }
}

/// Replaces the change that makes an index usable, if Cassandra meanwhile has an index of its own
/// under that name: ours is dropped instead. Once all gateways know an index, none of
/// them passes a statement on that could take its name. So such an index is found here in time.
async fn without_namesake(
    cluster: &InternalSession,
    change: DefinitionChange,
) -> Result<DefinitionChange, ClusterError> {
    let DefinitionChange::Turn(index, IndexLifecycle::Usable) = &change else {
        return Ok(change);
    };
    let theirs = cassandras_indexes(cluster, &index.keyspace).await?;
    if !theirs.contains(&index.name) {
        return Ok(change);
    }
    tracing::warn!(
        keyspace = index.keyspace,
        index = index.name,
        "Cassandra has made an index of its own under the same name at the same time: the index of index services is dropped"
    );
    Ok(DefinitionChange::Turn(
        index.clone(),
        IndexLifecycle::Dropping,
    ))
}

/// The event by which clients learn that the indexes of a table have changed.
pub(super) fn table_updated(keyspace: &str, table: &str) -> SchemaChange {
    SchemaChange {
        change: SchemaChangeKind::Updated,
        keyspace: keyspace.to_owned(),
        target: SchemaTarget::Table(table.to_owned()),
    }
}
