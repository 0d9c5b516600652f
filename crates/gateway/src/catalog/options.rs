//! The options by which a gateway keeps the definitions of vector indexes in its cluster.

use std::sync::Arc;
use std::time::Duration;

use cql::secret::Secret;
use rustls::ClientConfig;

/// The options of a gateway's internal session, and of the tables that it makes in the cluster.
#[derive(Clone, Debug)]
pub struct InternalSessionOptions {
    /// The nodes that the internal session connects to first, as `HOST:PORT`.
    pub contact_points: Vec<String>,
    /// The gateway's own user and password; `None` if the cluster requires no login.
    pub credentials: Option<(String, Secret<String>)>,
    /// The TLS settings for the nodes, whose certificates have to name their addresses; `None` for
    /// connections in clear.
    pub tls: Option<Arc<ClientConfig>>,
    /// The keyspace of the definitions. All gateways of a cluster must name the same.
    pub keyspace: String,
    /// The replication of that keyspace as a CQL map, used when the keyspace is made. `None` for as
    /// many copies in each data centre as it has nodes, three at most.
    pub replication: Option<String>,
    /// The time after which rows of change logs expire. It is used when a log is made.
    pub log_ttl: Duration,
}

impl Default for InternalSessionOptions {
    fn default() -> Self {
        InternalSessionOptions {
            contact_points: vec!["127.0.0.1:9042".to_owned()],
            credentials: None,
            tls: None,
            keyspace: "annulus".to_owned(),
            replication: None,
            log_ttl: Duration::from_secs(24 * 60 * 60),
        }
    }
}
