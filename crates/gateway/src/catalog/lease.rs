//! A gateway's word that it lives, and what follows when it cannot give it.
//!
//! Whoever turns a definition on waits for all live gateways, so one that counts as dead must not pass writes by what it
//! knew. It says that it lives several times in a [lease](super::tables::LEASE). When half a lease has gone by without, its snapshot
//! [lapses](super::Snapshot::lapsed): writes are refused, and what was prepared is forgotten, so that writes are recognised. Reads
//! go on. That half is longer than Cassandra works on a write, so what had passed is done before others go on without this gateway.
//! Every request looks at the clock for it, as a process that was stopped for a while wakes anywhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::cluster::{Cluster, ClusterError};
use super::gateways::{BEAT_WITHIN, Word};
use super::tables::LEASE;
use super::{Catalog, gateways};

/// How often a gateway says that it lives if it has nothing new to say.
const BEAT_EVERY: Duration = Duration::from_secs(3);

/// How soon it is tried again.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// How long a gateway goes on without having said so.
const LAPSE_AFTER: Duration = Duration::from_millis(LEASE.as_millis() as u64 / 2);

/// A gateway's word that it lives.
pub(super) struct Lease {
    pub(super) catalog: Arc<Catalog>,
    pub(super) gateway: Uuid,
    /// Where drivers reach this gateway, for people who look at the table of gateways.
    pub(super) address: String,
    /// The revision that is taken up; `None` before the first, and again once the snapshot has lapsed.
    pub(super) confirmed: watch::Sender<Option<i64>>,
    /// When it was said last that this gateway lives.
    pub(super) said: watch::Sender<Option<Instant>>,
    /// The write timestamp of the last word. Microseconds since the epoch.
    pub(super) written_at: AtomicI64,
}

impl Lease {
    /// Says so until the future is dropped.
    pub(super) async fn keep(&self, cluster: &Cluster) {
        let mut confirmed = self.confirmed.subscribe();
        let mut told: Option<ClusterError> = None;
        loop {
            let began = Instant::now();
            let revision = *confirmed.borrow_and_update();
            let clocks = &self.catalog.clocks;
            let activity = &self.catalog.activity;
            let now_micros = clocks.now_micros();
            let marks = activity.marks(now_micros);
            let word = Word {
                gateway: self.gateway,
                address: &self.address,
                confirmed: revision,
                now_micros,
                node_clock: clocks.of_node(),
                marks: &marks,
                written_at: self.next_timestamp(),
            };
            let beaten = match timeout(BEAT_WITHIN, gateways::beat(cluster, &word)).await {
                Ok(beaten) => beaten,
                Err(_) => Err(ClusterError::Unreachable("no answer in time".to_owned())),
            };
            let pause = match beaten {
                Ok(()) => {
                    told = None;
                    activity.were_said(&marks);
                    if self.catalog.prolong(began + LAPSE_AFTER) {
                        self.confirmed.send_replace(None);
                    }
                    self.said.send_replace(Some(began));
                    BEAT_EVERY
                }
                Err(error) => {
                    if told.as_ref() != Some(&error) {
                        tracing::warn!(%error, "the cluster could not be told that this gateway lives: trying on");
                        told = Some(error);
                    }
                    self.catalog.lapse_if_over();
                    RETRY_EVERY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = confirmed.changed() => {}
                () = activity.has_news() => {}
            }
        }
    }

    /// A write timestamp that is greater than all before, for nobody else writes this row.
    pub(super) fn next_timestamp(&self) -> i64 {
        let now = self.catalog.clocks.now_micros();
        let after = |last: i64| now.max(last.saturating_add(1));
        let last = self
            .written_at
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| {
                Some(after(last))
            })
            .unwrap_or_else(|last| last);
        after(last)
    }

    /// Waits until it has been said lately enough.
    pub(super) async fn held(&self) {
        let is_held =
            |said: &Option<Instant>| said.is_some_and(|said| said.elapsed() < LAPSE_AFTER);
        // The sender is here.
        let _ = self.said.subscribe().wait_for(is_held).await;
    }
}
