//! The lease of a gateway, which it holds by heartbeats, and the consequences when it cannot hold
//! it.
//!
//! An index becomes usable once all live gateways log the writes of its table. So a gateway that
//! counts as dead must not pass writes by what it knew. Each heartbeat says that the gateway lives,
//! and there are several in a [lease](super::tables::LEASE). After half a lease without one, the
//! gateway's snapshot [lapses](super::IndexCatalogSnapshot::lapsed). Then writes are refused, and
//! prepared statements are forgotten, so that all writes are recognised. Reads go on.
//!
//! Half a lease is longer than Cassandra works on a write. So the writes that have passed are done
//! before other gateways go on without this one. A process that was stopped may wake at any point
//! of its code, so every request checks the lease by the clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::cluster::{ClusterError, InternalSession};
use super::gateways::{BEAT_WITHIN, HeartbeatContent};
use super::tables::LEASE;
use super::{IndexCatalog, gateways};

/// The pause between heartbeats when there is nothing new to say.
const BEAT_EVERY: Duration = Duration::from_secs(3);

/// The pause after a heartbeat that failed.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// The time that a gateway goes on after the beginning of its last heartbeat that succeeded.
const LAPSE_AFTER: Duration = Duration::from_millis(LEASE.as_millis() as u64 / 2);

/// The heartbeats of a gateway.
pub(super) struct HeartbeatLease {
    pub(super) catalog: Arc<IndexCatalog>,
    /// The id of this gateway, which is new at each start.
    pub(super) gateway: Uuid,
    /// The address at which drivers reach this gateway. It is there for people who read the table
    /// of gateways.
    pub(super) address: String,
    /// The revision that this gateway has confirmed; `None` before the first, and again once the
    /// snapshot has lapsed.
    pub(super) confirmed: watch::Sender<Option<i64>>,
    /// The beginning of the last heartbeat that succeeded; `None` before the first.
    pub(super) acknowledged: watch::Sender<Option<Instant>>,
    /// The write timestamp of the last heartbeat. Microseconds since the epoch.
    pub(super) written_at: AtomicI64,
}

impl HeartbeatLease {
    /// Sends heartbeats until the future is dropped.
    pub(super) async fn keep(&self, cluster: &InternalSession) {
        let mut confirmed = self.confirmed.subscribe();
        let mut told: Option<ClusterError> = None;
        loop {
            // The lease counts from before the heartbeat: its row in the cluster is written later,
            // and expires later.
            let began = Instant::now();
            let revision = *confirmed.borrow_and_update();
            let clocks = &self.catalog.clocks;
            let activity = &self.catalog.activity;
            let now_micros = clocks.now_micros();
            let marks = activity.marks(now_micros);
            let word = HeartbeatContent {
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
                    activity.marks_were_written(&marks);
                    if self.catalog.prolong(began + LAPSE_AFTER) {
                        // The snapshot has lapsed meanwhile, so what was confirmed by it counts no
                        // more.
                        self.confirmed.send_replace(None);
                    }
                    self.acknowledged.send_replace(Some(began));
                    BEAT_EVERY
                }
                Err(error) => {
                    if told.as_ref() != Some(&error) {
                        tracing::warn!(%error, "the cluster could not be told that this gateway lives: trying again");
                        told = Some(error);
                    }
                    self.catalog.lapse_if_over();
                    RETRY_EVERY
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = confirmed.changed() => {}
                () = activity.has_new_mark() => {}
            }
        }
    }

    /// The next write timestamp of the gateway's row, greater than all before. No other gateway
    /// writes this row.
    pub(super) fn next_timestamp(&self) -> i64 {
        // Cassandra ignores a write with a lower timestamp, as after the clock was set back.
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

    /// Waits until the lease is held: the last heartbeat is recent enough.
    pub(super) async fn held(&self) {
        let is_held =
            |said: &Option<Instant>| said.is_some_and(|said| said.elapsed() < LAPSE_AFTER);
        // The sender lives as long as `self`, so this never fails.
        let _ = self.acknowledged.subscribe().wait_for(is_held).await;
    }
}
