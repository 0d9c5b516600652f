//! A node: the database, its system tables and its listeners, started and stopped together.

mod options;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use net::listener::BindError;
pub use options::NodeOptions;
use prometheus::core::Collector;
use rustls::ServerConfig;
use storage::Storage;
use store_api::IndexServices;
use tokio_util::task::TaskTracker;

use crate::database::CqlDatabase;
use crate::http::{HttpTables, HttpTablesOptions};
use crate::requests::{InternalExecutor, RequestSessions, StatementService};
use crate::security::HttpLogins;
use crate::security::access::AuthService;
use crate::security::audit::AuditLog;
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
    /// The audit log.
    audit: Option<Arc<AuditLog>>,
    /// Statements that came by other ways than CQL.
    tasks: TaskTracker,
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
                .with_guardrails(options.guardrails)
                .with_slow_queries(options.slow_queries),
            stores: stores.into(),
            access: Arc::new(match options.login {
                true => AuthService::by_login(),
                false => AuthService::default(),
            }),
            timeouts: options.timeouts,
        });
        let prepared_bytes_max = options.prepared_bytes_max;
        let audit = options.audit.clone();
        let service = StatementService::new(
            database,
            prepared_bytes_max,
            options.audit,
            options.maintenance,
        );
        let service = Arc::new(service);
        Ok(Node {
            server: serve(listeners, service.clone()),
            service,
            audit,
            tasks: TaskTracker::new(),
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

    /// The routes of HTTP for the tables of the node, by the logins of its roles.
    pub fn http_tables(&self, options: HttpTablesOptions) -> HttpTables {
        let database = self.database();
        let (storage, access) = (database.storage.clone(), Arc::clone(&database.access));
        let logins = HttpLogins::new(storage, access, self.audit.clone());
        let sessions = RequestSessions::new(Arc::clone(&self.service), self.tasks.clone());
        HttpTables::new(sessions, logins, options)
    }

    /// The counters of the listeners, by the listeners' names.
    pub fn counters(&self) -> Vec<(&'static str, CounterValues)> {
        self.server.counters()
    }

    /// The counters of the listeners, to be read at any time.
    pub fn live_counters(&self) -> LiveCounters {
        self.server.live_counters()
    }

    /// The families of metrics of statements, for a registry.
    pub fn statement_families(&self) -> Vec<Box<dyn Collector>> {
        self.service.counts().families()
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
        self.tasks.close();
        let others = tokio::time::timeout(grace, self.tasks.wait()).await;
        self.service.flush_audit_log().await;
        all_answered && others.is_ok()
    }
}

async fn bind(options: Vec<CqlListenerOptions>) -> Result<Vec<BoundListener>, BindError> {
    let mut listeners = Vec::with_capacity(options.len());
    for listener in options {
        listeners.push(BoundListener::bind(listener).await?);
    }
    Ok(listeners)
}
