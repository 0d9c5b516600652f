//! A node: the database, its system tables and its listeners, started and stopped together.

mod options;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::listener::BindError;
pub use options::NodeOptions;
use rustls::ServerConfig;
use storage::Storage;
use store_api::IndexServices;

use crate::database::CqlDatabase;
use crate::requests::{InternalExecutor, StatementService};
use crate::security::access::AuthService;
use crate::server::{
    BoundListener, CounterValues, CqlListenerOptions, CqlServer, LiveCounters, serve,
};
use crate::system::SystemTables;

/// A running CQL server on embedded storage.
///
/// It does not open or close the storage. The caller closes the storage after [`Node::stop`].
pub struct Node {
    server: CqlServer<StatementService>,
    service: Arc<StatementService>,
}

impl Node {
    /// Binds all listeners and serves them. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// If one of the addresses cannot be listened on. Then no listener is started.
    pub async fn start(
        storage: Storage,
        stores: impl Into<IndexServices>,
        options: NodeOptions,
    ) -> Result<Node, BindError> {
        let listeners = bind(options.listeners).await?;
        let database = Arc::new(CqlDatabase {
            storage,
            system: SystemTables::new()
                .in_data_center(&options.data_center)
                .with_settings(options.settings)
                .with_guardrails(options.guardrails),
            stores: stores.into(),
            access: Arc::new(match options.login {
                true => AuthService::by_login(),
                false => AuthService::default(),
            }),
            timeouts: options.timeouts,
        });
        let prepared_bytes_max = options.prepared_bytes_max;
        let service = StatementService::new(database, prepared_bytes_max, options.audit);
        let service = Arc::new(service);
        Ok(Node {
            server: serve(listeners, service.clone()),
            service,
        })
    }

    /// The addresses of the listeners, in the order of [`NodeOptions::listeners`].
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.server.addresses()
    }

    /// The database of the node.
    pub fn database(&self) -> &Arc<CqlDatabase> {
        self.service.database()
    }

    /// Statements of this process itself.
    pub fn local(&self) -> InternalExecutor {
        InternalExecutor::new(Arc::clone(self.database()))
    }

    /// The counters of the listeners, by the listeners' names.
    pub fn counters(&self) -> Vec<(&'static str, CounterValues)> {
        self.server.counters()
    }

    /// The counters of the listeners, to be read at any time.
    pub fn live_counters(&self) -> LiveCounters {
        self.server.live_counters()
    }

    /// Uses another certificate for clients that connect from now on, at the listeners that have
    /// one. If there are `other_rules` for certificates of clients, present connections end once
    /// their requests in flight are answered. Else they go on.
    pub fn renew_tls(&self, tls: &Arc<ServerConfig>, other_rules: bool) {
        self.server.renew_tls(tls, other_rules);
    }

    /// Stops listening, answers the requests in flight for at most `grace`, and closes every
    /// connection. Returns whether all requests were answered. The audit log has their lines then.
    pub async fn stop(&self, grace: Duration) -> bool {
        let all_answered = self.server.stop(grace).await;
        self.service.flush_audit_log().await;
        all_answered
    }
}

async fn bind(options: Vec<CqlListenerOptions>) -> Result<Vec<BoundListener>, BindError> {
    let mut listeners = Vec::with_capacity(options.len());
    for listener in options {
        listeners.push(BoundListener::bind(listener).await?);
    }
    Ok(listeners)
}
