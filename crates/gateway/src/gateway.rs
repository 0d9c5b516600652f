//! A gateway, started and stopped as one.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalog::Catalog;
use crate::clients::Clients;
use crate::inquiry::AnswerMemory;
use crate::listener::{Shared, accept};
use crate::log_clock::LogClock;
use crate::options::GatewayOptions;
use crate::prepared::PreparedStatements;
use crate::seldom::Seldom;
use crate::writes::{ChangeLog, LATE_AFTER};

/// A running gateway.
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// The address could not be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// What the system said.
    pub source: io::Error,
}

impl Gateway {
    /// Listens and serves. The node need not be there yet. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub async fn start(options: GatewayOptions) -> Result<Gateway, BindError> {
        let bound = async {
            let socket = TcpListener::bind(options.address).await?;
            let address = socket.local_addr()?;
            Ok((socket, address))
        };
        let (socket, address) = bound.await.map_err(|source| BindError {
            address: options.address,
            source,
        })?;
        let clients = Arc::new(Clients::default());
        let clock = Arc::new(LogClock::new(options.clock.clone()));
        let (stop, kill) = (CancellationToken::new(), CancellationToken::new());
        let tasks = TaskTracker::new();
        let catalog = Catalog::start(
            options.catalog.clone(),
            address.to_string(),
            clients.clone(),
            clock.clone(),
            (stop.clone(), kill.clone()),
            |follower| {
                tasks.spawn(follower);
            },
        );
        let shared = Arc::new(Shared {
            ring: Arc::new(options.ring.clone()),
            prepared: Arc::new(PreparedStatements::new(options.prepared_bytes_max)),
            log: Arc::new(ChangeLog::new(options.batch_bytes_max, LATE_AFTER, clock)),
            catalog,
            clients,
            kept_answers: Arc::default(),
            answer_memory: AnswerMemory::new(options.answer_bytes_max),
            stop,
            kill,
            tasks,
            refused: Seldom::default(),
            client_tls: ArcSwapOption::new(options.client_tls.clone()),
            options,
        });
        shared.tasks.spawn(accept(socket, shared.clone()));
        Ok(Gateway { address, shared })
    }

    /// Where it listens, the port that was free included.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it knows what the cluster says of vector indexes; clients wait for that, too.
    pub async fn ready(&self) {
        self.shared.catalog.ready().await;
    }

    /// Proves the gateway to clients that connect from now on with this, in place of [`GatewayOptions::client_tls`].
    pub fn renew_client_tls(&self, tls: Arc<ServerConfig>) {
        self.shared.client_tls.store(Some(tls));
    }

    /// Stops listening and reading requests, waits for the answers to those in flight for as long as `grace`, then
    /// closes what is left. True if nothing was left.
    pub async fn stop(&self, grace: Duration) -> bool {
        self.shared.stop.cancel();
        self.shared.tasks.close();
        let in_time = tokio::time::timeout(grace, self.shared.tasks.wait())
            .await
            .is_ok();
        self.shared.kill.cancel();
        in_time
    }
}
