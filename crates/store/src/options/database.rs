//! Options of the connection to the database.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use cql::secret::Secret;
use net::tls::Pem;
use scylla::statement::Consistency;

/// The addresses of the database, and the options of connections to it.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseOptions {
    /// The `host:port` of the nodes to contact first.
    pub contact_points: Vec<String>,
    /// The role that the service logs in as.
    pub credentials: Option<SessionCredentials>,
    /// The number of replicas that answer a scan or a re-read.
    pub consistency: Consistency,
    /// The longest time that opening a connection may take.
    pub connect_timeout: Duration,
    /// The longest time that a statement may take.
    pub request_timeout: Duration,
    /// The number of connections to each node; `None` for one to each shard.
    pub connections: Option<NonZeroUsize>,
    /// The pause before connecting again. It grows from failure to failure, up to ten times this.
    pub reconnect_interval: Duration,
    /// The authorities that sign certificates of nodes. If set, the service talks TLS only, with
    /// nodes that have such a certificate. The driver knows nodes by their addresses, so the
    /// certificates have to name those.
    pub certificate_authorities: Option<Pem>,
    /// The data centre, and the rack of it, whose nodes are queried before others.
    pub preferred: Option<PreferredNodes>,
    /// The addresses that nodes report for themselves, each with the address at which this service
    /// reaches the node.
    pub address_map: HashMap<SocketAddr, SocketAddr>,
    /// The interval at which a connection without traffic is probed by a request; `None` for the
    /// driver's default.
    pub keepalive_interval: Option<Duration>,
    /// The longest time that the answer to such a probe may take; `None` for the driver's default.
    pub keepalive_timeout: Option<Duration>,
    /// The TCP keepalive interval of connections; `None` for no TCP keepalive.
    pub tcp_keepalive_interval: Option<Duration>,
}

/// The nodes that are queried before others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreferredNodes {
    /// The data centre.
    pub datacenter: String,
    /// The rack of that data centre; `None` for all racks.
    pub rack: Option<String>,
}

/// A user of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionCredentials {
    /// The name of the role.
    pub user: String,
    /// The password of the role.
    pub password: Secret<String>,
}

impl Default for DatabaseOptions {
    fn default() -> DatabaseOptions {
        DatabaseOptions {
            contact_points: vec!["127.0.0.1:9042".to_owned()],
            credentials: None,
            consistency: Consistency::LocalQuorum,
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            connections: None,
            reconnect_interval: Duration::from_secs(1),
            certificate_authorities: None,
            preferred: None,
            address_map: HashMap::new(),
            keepalive_interval: None,
            keepalive_timeout: None,
            tcp_keepalive_interval: None,
        }
    }
}
