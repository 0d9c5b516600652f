//! The definitions of vector indexes, which the cluster itself keeps, as every request sees them.
//!
//! Definitions lie in a keyspace of the cluster's own, so they are replicated and backed up as the rows are, and all gateways
//! see the same ones. Each gateway has an internal session to the cluster, under a user of its own, follows that keyspace, and
//! holds what it read in one immutable [`Snapshot`], which is replaced as a whole. A request takes the snapshot once
//! ([`Catalog::snapshot`], one atomic load) and decides everything by it.
//!
//! While no index is defined the snapshot [is empty](Snapshot::is_empty), and nothing need be looked at for its sake.
//!
//! What was prepared was understood by a snapshot, each of which has an [epoch](Snapshot::epoch). Under another snapshot it holds as
//! long as what it was understood by is the same there (`crate::grounds`), else it is answered UNPREPARED.

mod activity;
mod base_table;
mod change;
mod clocks;
mod cluster;
mod connect;
mod creation;
mod define;
mod definition;
#[cfg(test)]
mod fixtures;
mod follower;
mod gateways;
mod generations;
mod history;
mod in_place;
mod index;
mod indexable;
mod lease;
mod life;
mod log_table;
mod next_change;
mod one_version;
mod options;
mod snapshot;
mod statement;
mod streams;
mod table;
mod tables;
mod take_up;
mod timeuuids;
mod truncation;
mod validity;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use cql::error::CqlError;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::activity::{Activity, mark_of};
use self::clocks::Clocks;
use self::cluster::ClusterError;
use self::follower::Round;
use self::gateways::LiveGateway;
use self::life::Life;
use self::validity::Validity;
use crate::clients::Clients;
use crate::log_clock::LogClock;

pub(crate) use activity::Entered;
pub(crate) use cluster::Cluster;
pub(crate) use index::VectorIndex;
pub use options::CatalogOptions;
pub(crate) use snapshot::Snapshot;
pub(crate) use statement::{IndexStatement, probe};
#[cfg(test)]
pub(crate) use streams::{Generation, Streams};
#[cfg(test)]
pub(crate) use table::ColumnKind;
pub(crate) use table::{Column, LoggedTable};

/// How long a request waits until what the cluster says now is in place: less than drivers wait for an answer.
const LOOK_WITHIN: Duration = Duration::from_secs(4);

/// How soon the gateways are looked at again that could not be.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// What a gateway knows of vector indexes.
pub(crate) struct Catalog {
    current: ArcSwap<Snapshot>,
    /// Until when that holds.
    validity: Validity,
    /// How often it has run out. Locked while the snapshot is replaced on condition that it has not.
    lapses: Mutex<u64>,
    /// `None` for a gateway that passes everything through.
    options: Option<CatalogOptions>,
    cluster: OnceLock<Arc<Cluster>>,
    /// The clocks that the gateway's is compared with.
    clocks: Clocks,
    /// Which logs may get rows.
    pub(crate) activity: Arc<Activity>,
    /// Begins a round of the follower at once.
    nudge: Notify,
    /// When the last look at the cluster began of which what it showed is in place.
    looked: watch::Sender<Instant>,
    rounds: watch::Receiver<Option<Round>>,
    /// Why there was no round yet.
    trouble: watch::Receiver<Option<String>>,
}

impl Catalog {
    /// A catalog that follows the definitions of the cluster in a task that `spawn` is given; without options it stays empty. `clock` is
    /// the one that is compared with others.
    /// After `stop` it goes on until no client is there any more, or until `kill`.
    pub(crate) fn start(
        options: Option<CatalogOptions>,
        address: String,
        clients: Arc<Clients>,
        clock: Arc<LogClock>,
        (stop, kill): (CancellationToken, CancellationToken),
        spawn: impl FnOnce(std::pin::Pin<Box<dyn Future<Output = ()> + Send>>),
    ) -> Arc<Catalog> {
        let (rounds_in, rounds) = watch::channel(None);
        let (trouble_in, trouble) = watch::channel(None);
        let catalog = Arc::new(Catalog {
            current: ArcSwap::default(),
            validity: Validity::new(),
            lapses: Mutex::new(0),
            options: options.clone(),
            cluster: OnceLock::new(),
            clocks: Clocks::new(clock),
            activity: Arc::new(Activity::new(options.is_some())),
            nudge: Notify::new(),
            looked: watch::Sender::new(Instant::now()),
            rounds,
            trouble,
        });
        if let Some(options) = options {
            let life = Life {
                catalog: catalog.clone(),
                clients,
                options,
                address,
                rounds: rounds_in,
                trouble: trouble_in,
                stop,
                kill,
            };
            spawn(Box::pin(life.run()));
        }
        catalog
    }

    /// A catalog that says this until a test replaces it, and is never out of date.
    #[cfg(test)]
    pub(crate) fn new(snapshot: Snapshot) -> Catalog {
        const GOOD: Duration = Duration::from_secs(24 * 60 * 60);
        Catalog {
            current: ArcSwap::from_pointee(snapshot),
            validity: Validity::new(),
            lapses: Mutex::new(0),
            options: None,
            cluster: OnceLock::new(),
            clocks: Clocks::default(),
            activity: Arc::new(Activity::new(false)),
            nudge: Notify::new(),
            looked: watch::Sender::new(Instant::now() + GOOD),
            rounds: watch::channel(None).1,
            trouble: watch::channel(None).1,
        }
    }

    /// What holds now. A request takes it once and decides by it alone.
    pub(crate) fn snapshot(&self) -> arc_swap::Guard<Arc<Snapshot>> {
        self.current.load()
    }

    /// The gateway's own session; `None` until it is open, and for a gateway that passes everything through.
    pub(crate) fn cluster(&self) -> Option<Arc<Cluster>> {
        self.cluster.get().cloned()
    }

    /// The keyspace of the definitions; `None` for a gateway that passes everything through.
    pub(crate) fn keyspace(&self) -> Option<&str> {
        Some(&self.options.as_ref()?.keyspace)
    }

    /// Waits until the definitions were read for the first time; before that no request may pass.
    pub(crate) async fn ready(&self) {
        if self.options.is_some() {
            let mut rounds = self.rounds.clone();
            if rounds.wait_for(Option::is_some).await.is_err() {
                // The gateway stops.
                std::future::pending::<()>().await;
            }
        }
    }

    /// The gateways that live. What they say of their clocks and of logs is taken in by the way.
    async fn look_at_gateways(
        &self,
        cluster: &Cluster,
        own: Uuid,
    ) -> Result<Vec<LiveGateway>, ClusterError> {
        let (began, from) = (Instant::now(), self.clocks.now_micros());
        let live = gateways::read(cluster).await?;
        self.clocks
            .take_in(&live, own, from, self.clocks.now_micros());
        self.activity.take_in(&live, began, from);
        Ok(live)
    }

    /// Looks at them whenever a poll of a log waits for it, until the future is dropped.
    async fn look_for_polls(&self, cluster: &Cluster, own: Uuid) {
        loop {
            self.activity.look_is_due().await;
            while let Err(error) = self.look_at_gateways(cluster, own).await {
                tracing::debug!(%error, "the gateways cannot be looked at");
                tokio::time::sleep(RETRY_EVERY).await;
            }
        }
    }

    /// A write to these tables begins. Waits until all may know that their logs get rows.
    ///
    /// # Errors
    /// If the cluster can't be told.
    pub(crate) async fn enter(
        &self,
        tables: impl Iterator<Item = &Arc<LoggedTable>>,
    ) -> Result<Entered, CqlError> {
        self.activity
            .enter(tables, || self.clocks.now_micros())
            .await
    }

    /// Whether the log of a table has no rows that are dated from `from_micros` on, as far as was seen.
    pub(crate) fn is_idle(&self, keyspace: &str, table: &str, from_micros: i64) -> bool {
        let (mark, now) = (mark_of(keyspace, table), self.clocks.now_micros());
        !self.snapshot().lapsed() && self.activity.may_be_idle(&mark, from_micros, now)
    }

    /// Has the definitions read again at once.
    fn look_again(&self) {
        self.nudge.notify_one();
    }

    /// What the cluster said at that moment is in place.
    fn has_looked(&self, began: Instant) {
        self.looked.send_replace(began);
    }

    /// Has the definitions read again, and waits until what the cluster says now is in place; false if that takes too long. Those who
    /// ask at the same time wait for the same look.
    pub(crate) async fn look_now(&self) -> bool {
        let asked = Instant::now();
        let mut looked = self.looked.subscribe();
        self.look_again();
        let in_place = looked.wait_for(|began| *began >= asked);
        timeout(LOOK_WITHIN, in_place)
            .await
            .is_ok_and(|looked| looked.is_ok())
    }

    /// Why the definitions were not read yet, as far as it is known.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// Marks the snapshot as out of date if its time is over. Whoever decides on a request calls this first: a process that was
    /// stopped for a while is late for everything else.
    pub(crate) fn lapse_if_over(&self) {
        if self.validity.is_over() && !self.snapshot().lapsed() {
            let lapses = self.lapses.lock();
            // It may have been prolonged meanwhile, and replaced.
            if self.validity.is_over() {
                self.lapse();
            }
            drop(lapses);
        }
    }

    fn lapse(&self) {
        if !self.snapshot().lapsed() {
            tracing::error!(
                "the cluster could not be told in time that this gateway lives: writes are refused until it can"
            );
            self.replace(Snapshot::clone(&self.snapshot()).into_lapsed());
        }
    }

    /// The cluster was told that this gateway lives: what it knows holds until `end`, unless that was over already. Then it
    /// is out of date, and true.
    pub(crate) fn prolong(&self, end: Instant) -> bool {
        let mut lapses = self.lapses.lock();
        let was_over = self.validity.is_over();
        if was_over {
            *lapses += 1;
            self.lapse();
        }
        self.validity.prolong(end);
        was_over
    }

    /// How often what was known has run out.
    fn lapses(&self) -> u64 {
        *self.lapses.lock()
    }

    /// Puts a snapshot in place that was read since there were so many lapses; false if there has been another one since.
    fn replace_since(&self, known_lapses: u64, snapshot: &Snapshot) -> bool {
        let lapses = self.lapses.lock();
        let holds = *lapses == known_lapses && !self.validity.is_over();
        if holds {
            self.replace(snapshot.clone());
        }
        holds
    }

    /// Puts another snapshot in place; its epoch becomes the next one.
    pub(crate) fn replace(&self, snapshot: Snapshot) {
        self.current.rcu(|current| {
            let mut next = snapshot.clone();
            next.epoch = current.epoch + 1;
            next
        });
    }
}

/// A name in double quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn what_is_known_runs_out_by_itself() {
        let catalog = Catalog::new(Snapshot::default());
        catalog.lapse_if_over();
        assert!(!catalog.snapshot().lapsed(), "nothing was ever said");
        assert!(!catalog.prolong(Instant::now() + LATER));
        catalog.lapse_if_over();
        assert!(!catalog.snapshot().lapsed());

        assert!(!catalog.prolong(Instant::now()));
        let epoch = catalog.snapshot().epoch();
        catalog.lapse_if_over();
        assert!(catalog.snapshot().lapsed());
        assert!(catalog.snapshot().epoch() > epoch);
    }

    #[tokio::test]
    async fn what_was_read_before_a_lapse_is_not_put_in_place_after_it() {
        let catalog = Catalog::new(Snapshot::default());
        catalog.prolong(Instant::now());
        let known = catalog.lapses();
        assert!(!catalog.replace_since(known, &Snapshot::default()));
        // No request came meanwhile: the next word to the cluster finds the lapse.
        assert!(catalog.prolong(Instant::now() + LATER));
        assert!(catalog.snapshot().lapsed());
        assert!(!catalog.replace_since(known, &Snapshot::default()));
        assert!(catalog.snapshot().lapsed());
        assert!(catalog.replace_since(catalog.lapses(), &Snapshot::default()));
        assert!(!catalog.snapshot().lapsed());
    }

    #[tokio::test]
    async fn who_looks_waits_for_a_look_that_began_later() {
        const A_LITTLE: Duration = Duration::from_millis(5);
        let catalog = Arc::new(Catalog::new(Snapshot::default()));
        let began = Instant::now();
        catalog.has_looked(began);
        tokio::time::sleep(A_LITTLE).await;
        let looking = catalog.clone();
        let looking = tokio::spawn(async move { looking.look_now().await });
        catalog.nudge.notified().await;
        // One that was under way does not count.
        catalog.has_looked(began);
        tokio::time::sleep(A_LITTLE).await;
        assert!(!looking.is_finished());
        catalog.has_looked(Instant::now());
        let looked = timeout(LATER, looking).await;
        assert!(looked.unwrap().unwrap());
    }
}
