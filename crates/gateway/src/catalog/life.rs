//! The task behind a catalog, from the gateway's start to its end.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::follower::{Follower, Round};
use super::lease::Lease;
use super::options::CatalogOptions;
use super::{Catalog, connect, gateways};
use crate::clients::Clients;

/// How long a gateway that stops tries to say so.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// How often a gateway that stops looks whether all is answered.
const DRAINED_EVERY: Duration = Duration::from_millis(20);

/// What it needs.
pub(super) struct Life {
    pub(super) catalog: Arc<Catalog>,
    pub(super) clients: Arc<Clients>,
    pub(super) options: CatalogOptions,
    /// Where drivers reach this gateway.
    pub(super) address: String,
    pub(super) rounds: watch::Sender<Option<Round>>,
    pub(super) trouble: watch::Sender<Option<String>>,
    /// No more connections, no more requests.
    pub(super) stop: CancellationToken,
    /// No more waiting for answers.
    pub(super) kill: CancellationToken,
}

impl Life {
    /// Connects, says that this gateway lives and follows the definitions; once it stops and all is answered, says so.
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
        let lease = Lease {
            catalog: self.catalog.clone(),
            gateway,
            address: self.address,
            confirmed: watch::Sender::new(None),
            said: watch::Sender::new(None),
            written_at: AtomicI64::new(0),
        };
        let clocks = &lease.catalog.clocks;
        if let None = self
            .stop
            .run_until_cancelled(clocks.ask_node(&cluster))
            .await
        {
            return;
        }
        let follower = Follower {
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
                self.catalog.look_for_polls(&cluster, gateway)
            )
        };
        let mut following = std::pin::pin!(following);
        self.stop.run_until_cancelled(following.as_mut()).await;
        // What is still on its way was decided by what is in place here: until it is answered, whoever changes
        // definitions must wait for this gateway.
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
