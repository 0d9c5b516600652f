//! The task of a catalog, from the gateway's start to its end.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::follower::{DefinitionFollower, RoundFindings};
use super::lease::HeartbeatLease;
use super::options::InternalSessionOptions;
use super::{IndexCatalog, connect, gateways};
use crate::clients::OpenConnections;

/// The time limit for telling the cluster that this gateway leaves.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// The interval at which a gateway that stops checks whether all clients have disconnected.
const DRAINED_EVERY: Duration = Duration::from_millis(20);

/// The parts that the task works with.
pub(super) struct DefinitionTask {
    pub(super) catalog: Arc<IndexCatalog>,
    pub(super) clients: Arc<OpenConnections>,
    pub(super) options: InternalSessionOptions,
    /// The address at which drivers reach this gateway.
    pub(super) address: String,
    /// The last round of the follower; `None` before the first.
    pub(super) rounds: watch::Sender<Option<RoundFindings>>,
    /// The reason why the session could not be opened; `None` if none is known.
    pub(super) trouble: watch::Sender<Option<String>>,
    /// Cancelled when the gateway stops: no more connections and requests are taken.
    pub(super) stop: CancellationToken,
    /// Cancelled when the gateway gives up waiting for answers.
    pub(super) kill: CancellationToken,
}

impl DefinitionTask {
    /// Connects, sends heartbeats and follows the definitions. After `stop` it goes on until no
    /// client is there any more, and then notes in the cluster that the gateway leaves.
    pub(super) async fn run(self) {
        let connecting = connect::connect(&self.options, &self.trouble);
        let Some(cluster) = self.stop.run_until_cancelled(connecting).await else {
            return;
        };
        let cluster = self
            .catalog
            .cluster
            .get_or_init(|| Arc::new(cluster))
            .clone();
        let gateway = Uuid::new_v4();
        let lease = HeartbeatLease {
            catalog: self.catalog.clone(),
            gateway,
            address: self.address,
            confirmed: watch::Sender::new(None),
            acknowledged: watch::Sender::new(None),
            written_at: AtomicI64::new(0),
        };
        let clocks = &lease.catalog.clocks;
        let compared = self
            .stop
            .run_until_cancelled(clocks.compare_with_node(&cluster));
        if compared.await.is_none() {
            return;
        }
        let follower = DefinitionFollower {
            catalog: self.catalog.clone(),
            clients: self.clients.clone(),
            options: self.options,
            rounds: self.rounds,
        };
        let following = async {
            tokio::join!(
                lease.keep(&cluster),
                follower.run(&cluster, &lease),
                self.catalog.clocks.keep(&cluster),
                self.catalog.refresh_gateways_for_polls(&cluster, gateway)
            )
        };
        let mut following = std::pin::pin!(following);
        self.stop.run_until_cancelled(following.as_mut()).await;
        // Requests in flight were decided by the snapshot in place here. Until they are answered,
        // other gateways must wait for this one before they take the next step of a definition.
        let drained = async {
            while !self.clients.open().is_empty() {
                tokio::time::sleep(DRAINED_EVERY).await;
            }
        };
        tokio::select! {
            _ = following => {}
            () = drained => {}
            () = self.kill.cancelled() => {
                tracing::debug!("requests are on their way: the cluster is not told that this gateway stops");
                return;
            }
        }
        let leaving = gateways::leave(&cluster, gateway, lease.next_timestamp());
        if tokio::time::timeout(LEAVE_WITHIN, leaving).await.is_err() {
            tracing::debug!("the cluster was not told that this gateway stops");
        }
    }
}
