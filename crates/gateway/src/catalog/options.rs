//! How a gateway keeps the definitions of vector indexes in its cluster.

use std::sync::Arc;
use std::time::Duration;

use cql::secret::Secret;
use rustls::ClientConfig;

/// How a gateway keeps the definitions of vector indexes in its cluster.
#[derive(Clone, Debug)]
pub struct CatalogOptions {
    /// Nodes of the cluster, as `HOST:PORT`, that the internal session begins with.
    pub contact_points: Vec<String>,
    /// The gateway's own user and password; `None` if the cluster asks for none.
    pub credentials: Option<(String, Secret<String>)>,
    /// Talk TLS with the nodes, whose certificates have to name their addresses. `None`: in clear.
    pub tls: Option<Arc<ClientConfig>>,
    /// The keyspace of the definitions. All gateways of a cluster must name the same.
    pub keyspace: String,
    /// The replication of that keyspace as a CQL map, used when it is made. `None`: in each data centre as many copies as
    /// it has nodes, but three at most.
    pub replication: Option<String>,
    /// How long the rows of change logs are kept. Used when a log is made.
    pub log_ttl: Duration,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        CatalogOptions {
            contact_points: vec!["127.0.0.1:9042".to_owned()],
            credentials: None,
            tls: None,
            keyspace: "annulus".to_owned(),
            replication: None,
            log_ttl: Duration::from_secs(24 * 60 * 60),
        }
    }
}
